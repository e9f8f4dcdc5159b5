"""Models of other libraries, and the baseline, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows

from ..matrix import TableMatrix
from .rbf import TunedRBF
from .trees import KINDS, BoostedTrees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_TITLES = {
    "boosting": "HistGradientBoosting",
    "catboost": "CatBoost",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
}


# the first setting of the search in the xRFM paper
_KERNEL = {"kernel": "l2", "exponent": 1.0, "bandwidth": 10.0, "diag": True}
_FIT = {"reg": 1e-2, "iters": 5, "verbose": False, "early_stop_rfm": True}


class RecursiveMachine:
    """xRFM behind one-hot encoding and scaling, stopped early on a held-out fifth of the rows."""

    def __init__(self, task: str, seed: int) -> None:
        self.task = task
        self.seed = seed

    def fit(self, X: object, y: Labels, weight: FloatArray | None = None) -> RecursiveMachine:
        """Fit the model; xRFM has no sample weights, so all rows must have the same."""
        from sklearn.model_selection import train_test_split
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if weight is not None and np.ptp(weight) > 0:
            raise ValueError("xRFM takes no weights of rows")
        self._columns = make_pipeline(TableMatrix(), StandardScaler())
        Z = self._columns.fit_transform(X).astype(np.float32)
        classes = self.task == "classification"
        parts = train_test_split(
            Z, self._coded(y), test_size=0.2, random_state=self.seed,
            stratify=y if classes else None,
        )  # fmt: skip
        X_own, X_out, y_own, y_out = parts
        self._machine = import_module("xrfm").xRFM(
            rfm_params={"model": _KERNEL | {"bandwidth_mode": "constant"}, "fit": _FIT},
            tuning_metric="accuracy" if classes else "mse",
            device="cpu", random_state=self.seed, n_threads=1, verbose=False,
        )  # fmt: skip
        self._machine.fit(X_own, y_own, X_out, y_out)
        return self

    def _coded(self, y: npt.NDArray[Any]) -> Labels:
        if self.task == "classification":
            self._labels, codes = np.unique(y, return_inverse=True)
            return codes.astype(np.int64)
        self._centre, self._unit = float(y.mean()), float(y.std()) or 1.0
        return ((y - self._centre) / self._unit).astype(np.float32)

    def predict(self, X: Rows) -> Labels:
        """Return labels or numbers."""
        rows = self._columns.transform(X).astype(np.float32)
        given = np.ravel(self._machine.predict(rows))
        if self.task == "classification":
            labels: Labels = self._labels[given.astype(np.intp)]
            return labels
        return given.astype(np.float64) * self._unit + self._centre


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

    `every`: whether to include CatBoost, LightGBM, XGBoost and xRFM, if they are installed;
    `seconds`: time limit of all fits of one model.
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
    return [ComparedModel(name, title, make, seconds) for name, (title, make) in found.items()]
