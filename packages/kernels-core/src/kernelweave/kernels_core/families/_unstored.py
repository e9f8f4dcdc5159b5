"""Gram matrices that are not stored: entries and products of one P, computed where asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import RealArray
from ..grams.unstored import UnstoredGram
from . import _affine, _affine_sum, _general
from ._box import Float
from ._general import Box


def factors_of(P: Float) -> Float | None:
    """Return rows vᵣ with ``P = Σ vᵣvᵣᵀ``, or None where P is not positive semidefinite.

    Eigenvalues below ``n_P`` units of rounding of the largest are left out.
    """
    values, vectors = np.linalg.eigh(0.5 * (P + P.T))
    floor = len(P) * np.finfo(np.float64).eps * max(abs(values[0]), abs(values[-1]))
    if values[0] < -floor:
        return None
    keep = values > floor
    return np.ascontiguousarray((vectors[:, keep] * np.sqrt(values[keep])).T)


def factors_are_cheaper(box: Box, rank: int) -> bool:
    """Tell whether ``rank`` rank-one Grams cost less than one general one."""
    if _affine.is_affine(box.tables):
        return True
    n = box.tables.n_features
    general = len(box.tables.moments) + 2 * len(box.tables.gram_terms.moment)
    return _general.is_quadratic(box.tables) and rank * (2 * n * n + 14 * n) <= general


def fill_rectangle(
    box: Box, X: Float, Y: Float, P: Float | None, factors: Float | None, out: Float
) -> None:
    """Write ``⟨P, G(xₖ, yₗ)⟩`` by P's factors where they are given and cheaper, or P is not."""
    few = factors is not None and (P is None or factors_are_cheaper(box, len(factors)))
    if factors is not None and few and _affine.is_affine(box.tables):
        _affine_sum.gram_rectangular(box, X, Y, factors, out)
    elif factors is not None and few and _general.is_quadratic(box.tables):
        _general.gram_quadratic(box, X, Y, factors, out)
    else:
        whole = factors.T @ factors if P is None and factors is not None else P
        assert whole is not None
        _general.gram_general(box, X, Y, whole, out)


class GeneralGram(UnstoredGram):
    """The Gram matrix of one P over the samples, of any degree.

    `X` of shape (m, n); `P` of shape (n_P, n_P).
    """

    def __init__(self, box: Box, X: Float, P: Float) -> None:
        self._box, self._X, self._P = box, X, P
        self._factors = factors_of(P)
        self.n_samples = len(X)

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp] | slice, out: RealArray
    ) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""
        wide = np.empty(out.shape)
        X, Y = self._X[rows], np.ascontiguousarray(self._X[columns])
        fill_rectangle(self._box, X, Y, self._P, self._factors, wide)
        out[:] = wide

    def diagonal(self) -> Float:
        """Return the diagonal, shape (m,), float64."""
        return _general.diagonal(self._box, self._X, self._P)
