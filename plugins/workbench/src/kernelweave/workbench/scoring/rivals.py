"""What a learned kernel is measured against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .rbf import TunedRBF
from .recursive import RecursiveMachine
from .trees import KINDS, BoostedTrees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_TITLES = {
    "boosting": "HistGradientBoosting",
    "catboost": "CatBoost",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
}


@dataclass(frozen=True)
class Rival:
    """A model of others.

    - `name`: as on the command line
    - `title`: as it is shown
    - `make`: returns one, unfitted, given the task and a seed
    - `seconds`: for all its fits; ``None`` where it keeps to a limit itself, or has none
    """

    name: str
    title: str
    make: Callable[[str, int], Any]
    seconds: float | None = None


def _baseline(task: str, seed: int) -> BaseEstimator:
    """Return what predicts the mean, or the most frequent class and the shares of all."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if task == "regression" else DummyClassifier(strategy="prior")


def rivals(*, every: bool = False, seconds: float | None = None) -> list[Rival]:
    """Return the models to compare with.

    `every`: whether CatBoost, LightGBM, XGBoost and xRFM, where they are installed, are among them;
    `seconds`: for all fits of one.
    """
    names = [name for name, module in KINDS.items() if name == "boosting" or every]
    found: dict[str, tuple[str, Callable[[str, int], Any]]] = {
        name: (_TITLES[name], partial(BoostedTrees, name))
        for name in names
        if find_spec(KINDS[name]) is not None
    }
    if every and find_spec("xrfm") is not None:
        found["xrfm"] = ("xRFM", RecursiveMachine)
    found |= {"rbf": ("tuned RBF SVM", TunedRBF), "baseline": ("baseline", _baseline)}
    return [Rival(name, title, make, seconds) for name, (title, make) in found.items()]
