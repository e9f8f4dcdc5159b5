"""Data sets of the papers, from the data folder."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def load(path: str) -> tuple[FloatArray, FloatArray]:
    """Return features (n, p) and targets (n,) of a CSV file whose last column is the target."""
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]
