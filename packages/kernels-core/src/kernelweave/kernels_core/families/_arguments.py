"""Checks of arrays that every family receives."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import check_vector


def samples(X: ArrayLike, n_features: int | None, name: str = "X") -> NDArray[np.float64]:
    """Return X as a finite (m, n) float64 array."""
    array = np.ascontiguousarray(X, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            f"{name} must be a non-empty array of shape (n_samples, n_features), "
            f"got shape {array.shape}"
        )
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but the family was made for {n_features}"
        )
    if not np.isfinite(array).all():
        k, j = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name} must be finite, got {array[k, j]} at row {k}, feature {j}")
    return array


def in_box(
    X: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64], name: str = "X"
) -> None:
    """Raise unless ``lower ≤ X ≤ upper``, naming the first row that is outside."""
    outside = (lower > X) | (upper < X)
    if outside.any():
        k, j = np.argwhere(outside)[0]
        raise ValueError(
            f"{name} leaves the box at row {k}, feature {j}: {float(X[k, j])!r} is not in "
            f"[{float(lower[j])!r}, {float(upper[j])!r}]; clip the point or widen the box"
        )


def rows(W: ArrayLike, n_samples: int, name: str = "W") -> NDArray[np.float64]:
    """Return W of shape (m,) or (t, m) as a finite (t, m) float64 array."""
    array = np.ascontiguousarray(np.atleast_2d(np.asarray(W, dtype=np.float64)))
    if array.ndim != 2 or array.shape[1] != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples},) or (t, {n_samples}), got {np.shape(W)}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def matrix(P: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return P as a finite symmetric (size, size) float64 array."""
    array = np.ascontiguousarray(P, dtype=np.float64)
    if array.shape != (size, size):
        raise ValueError(f"P must have shape ({size}, {size}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("P must be finite")
    asymmetry = float(np.abs(array - array.T).max())
    if asymmetry > 1e-8 * float(np.abs(array).max()):
        raise ValueError(
            f"P must be symmetric, but |P - P.T| reaches {asymmetry:.3g}: pass (P + P.T) / 2"
        )
    return array


def output(
    out: RealArray | None, shape: tuple[int, int], dtype: np.dtype[np.floating]
) -> RealArray:
    """Return ``out`` after a check, or a new array within the memory limit."""
    if out is None:
        memory.require(
            shape[0] * shape[1] * dtype.itemsize,
            f"a Gram matrix of {shape[0]} x {shape[1]} samples in {dtype}",
            alternative="use fewer samples, float32, or raise the memory limit",
        )
        return np.empty(shape, dtype=dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(
            f"out must be a C-contiguous array of shape {shape} and dtype {dtype}, "
            f"got shape {out.shape} and dtype {out.dtype}"
        )
    return out


class BoundSamples(ABC):
    """The sizes of a family and its samples, and the precision of its Gram matrices."""

    def __init__(self, n_P: int, n_samples: int, dtype: np.dtype[np.floating]) -> None:
        self.n_P, self.n_samples, self.dtype = n_P, n_samples, dtype

    def _output(self, out: RealArray | None) -> RealArray:
        return output(out, (self.n_samples, self.n_samples), self.dtype)

    @abstractmethod
    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, xₗ)⟩``, shape (m, m), for a symmetric P of shape (n_P, n_P)."""

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``vᵀ G(xₖ, xₗ) v``, shape (m, m), for v of shape (n_P,)."""
        u = check_vector("v", v, self.n_P)
        return self.gram(np.outer(u, u), out)

    @abstractmethod
    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``, for W of shape (m,) or (t, m)."""
