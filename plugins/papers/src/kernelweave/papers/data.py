"""Data sets of the papers, from the data folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def load(path: str) -> tuple[FloatArray, FloatArray]:
    """Return features (n, p) and targets (n,) of a CSV file whose last column is the target."""
    import pandas as pd

    table: Any = pd.read_csv(path)
    values = table.to_numpy(dtype=np.float64)
    return values[:, :-1], values[:, -1]


def split(
    X: FloatArray, y: FloatArray, n_train: int, n_test: int, seed: int, *, classes: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return X_train, X_test, y_train, y_test of a seeded random split, by class if asked."""
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(
        X,
        y,
        train_size=n_train,
        test_size=n_test,
        random_state=seed,
        stratify=y if classes else None,
    )
    return X_train, X_test, y_train, y_test


def as_unit_range(y: FloatArray) -> FloatArray:
    """Return y shifted and scaled to [0, 1]."""
    return np.asarray((y - y.min()) / (y.max() - y.min()))
