"""The published training and test parts, standardised, with their Gram matrices."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plan import Request
from .published import PRINTED, Printed
from .shuffle import split_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """Standardised features and ±1 labels of both parts.

    Attributes
    ----------
    X, X_test : ndarray of shape (n, n_features) and (n_test, n_features)
    y, y_test : ndarray of shape (n,) and (n_test,)
    """

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def read(path: str, columns: list[int] | None, limit: int | None) -> Parts:
    """Return the parts of a file whose last column is the label, split as the authors did.

    Parameters
    ----------
    path : str
    columns : list of int or None
        Features to keep.
    limit : int or None
        Training samples at most.
    """
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    train, test = split_of(len(table))
    train = train[:limit]
    X = table[:, :-1] if columns is None else table[:, columns]
    y = table[:, -1]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0, ddof=1)
    X = (X - mean) / np.where(spread > 0.0, spread, 1e-8)
    return Parts(X[train], y[train], X[test], y[test])


def arguments_of(request: Request, name: str) -> dict[str, Any]:
    """Return what a cell needs to know of a data set: path, columns, settings, limit."""
    row = PRINTED[name]
    return {
        "path": str(request.data_file(row.file)),
        "columns": None if row.columns is None else list(row.columns),
        "limit": request.sample_limit,
        "C": row.C,
        "lam": row.lam,
        "k0": row.k0,
    }


def size_of(request: Request, row: Printed) -> int:
    """Return how many training samples a cell has."""
    path = request.data_file(row.file)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        n = int(0.8 * (sum(1 for _ in file) - 1))
    return min(n, request.sample_limit or n)
