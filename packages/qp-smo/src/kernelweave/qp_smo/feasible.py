"""Dual points that are feasible without any rounding error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _njit_point
from .solution import FloatArray


@dataclass(frozen=True)
class GridPoint:
    """A point whose entries are multiples of one power of two.

    Attributes
    ----------
    u : ndarray of shape (n,)
        Every sum of entries, in any order, is exact in float64; the sum of all is 0.
    lower, upper : ndarray of shape (n,)
        The box with its ends moved inwards onto the grid.
    """

    u: FloatArray
    lower: FloatArray
    upper: FloatArray


def starting_point(u: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Repair a warm start: clip, balance, and put on a bound what is within rounding of it.

    Balancing scales the heavier sign down until ``Σu`` is 0 up to rounding; zeros stay zeros, so
    a start keeps its support. An exactly feasible optimum has its bounded samples a step inside
    the box; without the last part each would cost an iteration.
    """
    start = u.copy()
    _njit_point.repair_start(start, lower, upper)
    return start


def to_grid(u: FloatArray, lower: FloatArray, upper: FloatArray) -> GridPoint:
    """Move a nearly feasible point onto a power-of-two grid where it is exactly feasible.

    The step is ``2^(⌈log₂ Σ|u|⌉ − 52)``, at least 2⁻¹⁰⁰⁰: entries are integers times the step, and
    no partial sum of them passes 2⁵³. The ends of the box are moved inwards onto the grid, and
    what rounding leaves of ``Σu`` goes to the samples that are farthest from a bound.

    Parameters
    ----------
    u : ndarray of shape (n,)
        Inside the box up to rounding, with ``Σu ≈ 0``.
    lower, upper : ndarray of shape (n,)
        ``lower ≤ 0 ≤ upper``; infinite ends are allowed.

    Returns
    -------
    GridPoint

    Examples
    --------
    >>> point = to_grid(np.array([0.1, 0.2, -0.3]), np.full(3, -1.0), np.full(3, 1.0))
    >>> float(point.u.sum())
    0.0
    """
    point, low, high = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    _njit_point.to_grid(u, lower, upper, point, low, high)
    return GridPoint(point, low, high)
