"""Models of other libraries, and the baseline, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .rbf import TunedRBF
from .trees import KINDS, BoostedTrees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class ComparedModel:
    """A model of a comparison.

    - `name`: as on the command line
    - `title`: as it is shown
    - `make`: returns an unfitted model, given the task and a seed
    - `seconds`: time limit of all its fits; ``None`` if it has none, or keeps to one itself
    """

    name: str
    title: str
    make: Callable[[str, int], Any]
    seconds: float | None = None


def _baseline(task: str, seed: int) -> BaseEstimator:
    """Return scikit-learn's dummy: the mean, or the most frequent class with the class shares."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyRegressor() if task == "regression" else DummyClassifier(strategy="prior")


def other_models(*, every: bool = False, seconds: float | None = None) -> list[ComparedModel]:
    """Return the models of other libraries and the baseline.

    `every`: whether to include CatBoost, LightGBM and XGBoost, if they are installed;
    `seconds`: time limit of all fits of one model.
    """
    models: dict[str, tuple[str, Callable[[str, int], Any]]] = {
        name: (title, partial(BoostedTrees, name))
        for name, (title, module) in KINDS.items()
        if name == "boosting" or (every and find_spec(module) is not None)
    }
    models |= {"rbf": ("tuned RBF SVM", TunedRBF), "baseline": ("baseline", _baseline)}
    return [ComparedModel(name, title, make, seconds) for name, (title, make) in models.items()]
