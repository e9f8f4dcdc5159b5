"""A mixed norm: kernels of a group enter and leave together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Vector

from .base import smooth
from .lq_ball import lq_norm, project_lq_ball
from .squared_lp import EXPONENT, ball_update, dual_exponent, weight_exponent


@dataclass(frozen=True)
class GroupNorm:
    """Ω(f) = (Σ_g (Σ_{j∈g} ‖fⱼ‖²)^{p/2})^{2/p}: one weight per group, ‖t‖_q ≤ 1, q = p/(2 − p).

    ω is 0 on {η : ηⱼ = t_g for j in group g, t ≥ 0, ‖t‖_q ≤ 1}, so that
    ω*(w) = ‖(Σ_{j∈g} wⱼ)_g‖_{q′}.

    Parameters
    ----------
    groups : sequence of int
        Group of each kernel: numbers 0 … G − 1, each used.
    p : float, default=1.0
        Exponent over the groups, in [1, 2].

    Raises
    ------
    ValueError
        If a group is empty, or p is outside [1, 2].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import GroupNorm
    >>> GroupNorm([0, 0, 1]).update(np.array([3.0, 4.0, 5.0]))
    array([0.5, 0.5, 0.5])
    """

    groups: Sequence[int]
    p: float = 1.0

    def __post_init__(self) -> None:
        EXPONENT.check("p", self.p)
        members = np.asarray(self.groups)
        if members.ndim != 1 or members.size == 0 or members.dtype.kind not in "iu":
            raise ValueError(f"groups must be a list of integers, got {self.groups!r}")
        if members.min() < 0 or (np.bincount(members) == 0).any():
            raise ValueError(
                f"groups must use every number from 0 to {int(members.max())}, got {self.groups!r}"
            )

    @property
    def _members(self) -> npt.NDArray[np.intp]:
        return np.asarray(self.groups, dtype=np.intp)

    def _sizes(self, n_kernels: int) -> Vector:
        if len(self._members) != n_kernels:
            raise ValueError(
                f"groups names {len(self._members)} kernels, the dictionary has {n_kernels}"
            )
        return np.bincount(self._members).astype(np.float64)

    def _sums(self, values: Vector) -> Vector:
        self._sizes(len(values))
        return np.bincount(self._members, weights=values).astype(np.float64)

    def start(self, n_kernels: int) -> Vector:
        """Return equal weights on the surface of the set, shape (n_kernels,)."""
        count = len(self._sizes(n_kernels))
        return np.full(n_kernels, count ** -(1.0 / weight_exponent(self.p)))

    def value(self, weights: Vector) -> float:
        """Return 0 in the set (up to a relative 1e-12), infinity outside."""
        means = self._sums(weights) / self._sizes(len(weights))
        uneven = np.abs(weights - means[self._members]).max() > 1e-12 * np.abs(means).max()
        outside = (means < 0).any() or lq_norm(means, weight_exponent(self.p)) > 1.0 + 1e-12
        return math.inf if uneven or outside else 0.0

    def update(self, alpha: Vector) -> Vector:
        """Return the minimiser of Σ αⱼ²/ηⱼ over the set, with α smoothed."""
        norms = np.sqrt(self._sums(smooth(alpha) ** 2))
        return ball_update(norms, self.p)[self._members]

    def conjugate(self, w: Vector) -> float:
        """Return ‖(Σ_{j∈g} wⱼ)_g‖_{q′}."""
        return lq_norm(np.maximum(self._sums(w), 0.0), dual_exponent(self.p))

    def prox(self, weights: Vector, step: float) -> Vector:
        """Return the projection onto the set, whatever the step."""
        sizes = self._sizes(len(weights))
        means = self._sums(weights) / sizes
        return project_lq_ball(means, weight_exponent(self.p), sizes)[self._members]
