"""What a learned kernel is measured against."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Labels

from .rbf import TunedRBF
from .recursive import RecursiveMachine
from .trees import KINDS, BoostedTrees

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


class Dummy:
    """Predicts the mean, or the most frequent class, whatever the columns say.

    `task`: ``"classification"`` or ``"regression"``; `seed`: passed over: nothing is random.
    """

    def __init__(self, task: str, seed: int = 0) -> None:
        self.task = task
        self.seed = seed

    def fit(self, X: object, y: npt.NDArray[Any], weight: FloatArray | None = None) -> Dummy:
        """Learn one value."""
        if self.task == "regression":
            self._value = np.average(y, weights=weight)
            return self
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=weight)
        self._share = counts / counts.sum()
        self._value = self.classes_[counts.argmax()]
        return self

    def predict(self, X: Sized) -> Labels:
        """Return the value for each row."""
        return np.full(len(X), self._value)

    def predict_proba(self, X: Sized) -> npt.NDArray[np.float64]:
        """Return the share of each class for each row."""
        return np.tile(self._share, (len(X), 1))


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
    found |= {"rbf": ("tuned RBF SVM", TunedRBF), "dummy": ("dummy", Dummy)}
    return [Rival(name, title, make, seconds) for name, (title, make) in found.items()]
