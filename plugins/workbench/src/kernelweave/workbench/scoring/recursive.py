"""Recursive feature machines of the xrfm library on a table as it is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows

from ..matrix import TableMatrix

# the first of the settings that the library's paper searches
_KERNEL = {"kernel": "l2", "exponent": 1.0, "bandwidth": 10.0, "diag": True}
_FIT = {"reg": 1e-2, "iters": 5, "verbose": False, "early_stop_rfm": True}


class RecursiveMachine:
    """A recursive feature machine: words one-hot, columns scaled, a held-out fifth that stops it.

    `task`: ``"classification"`` or ``"regression"``; `seed`: of the draw of the fifth, and of the
    machine.
    """

    def __init__(self, task: str, seed: int) -> None:
        self.task = task
        self.seed = seed

    def fit(self, X: object, y: Labels, weight: FloatArray | None = None) -> RecursiveMachine:
        """Learn from rows, which all have to count the same."""
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
