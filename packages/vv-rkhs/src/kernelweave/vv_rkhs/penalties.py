"""Regularisers with the variational form Ω(f) = min over η ≥ 0 of Σ ‖fⱼ‖²/ηⱼ + ω(η)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from kernelweave.kernels_core.arrays import RealArray, Vector
from kernelweave.kernels_core.checks import number
from kernelweave.kernels_core.psd_cone import lq_norm, project_lq_ball

PENALTIES = ("lp", "elastic-net", "group")
EXPONENT = number(least=1.0, most=2.0)
# A projection ends in the ball up to rounding; without this slack its penalty would be infinite.
_FEASIBLE = 1.0 + 1e-12
# Newton from the right of a convex function converges from anywhere, in the end quadratically; this
# only ends what rounding keeps going.
_NEWTON_STEPS = 100
_ROUNDING = 1e-15  # relative: Newton steps that are no longer steps
_MU = number(above=0.0, most=1.0)


@runtime_checkable
class Penalty(Protocol):
    """A regulariser Ω with Ω(f) = min over η ≥ 0 of Σ ‖fⱼ‖²/ηⱼ + ω(η), ω convex (V, (7)).

    ``start``, ``value``, ``update`` and ``conjugate`` are all that block descent and the
    certificates need; ``prox`` is needed by the spectral projected gradient method.
    """

    def start(self, n_kernels: int) -> Vector:
        """Return positive weights in the domain of ω that favour no kernel, shape (m,)."""

    def value(self, weights: Vector) -> float:
        """Return ω(η), infinite outside its domain."""

    def update(self, alpha: Vector) -> Vector:
        """Return the η that minimises Σ αⱼ²/ηⱼ + ω(η), for αⱼ = ‖fⱼ‖ ≥ 0."""

    def conjugate(self, w: Vector) -> float:
        """Return ω*(w) = max over η ≥ 0 of ηᵀw − ω(η), for w ≥ 0."""

    def prox(self, weights: Vector, step: float) -> Vector:
        """Return the η that minimises ½‖η − weights‖² + step · ω(η)."""


METHODS = ("start", "value", "update", "conjugate")


def is_penalty(value: object) -> TypeGuard[Penalty]:
    """Tell whether an object, not a class, has what every regulariser must have."""
    return not isinstance(value, type) and all(callable(getattr(value, m, None)) for m in METHODS)


def smooth(alpha: Vector) -> Vector:
    """Return √(α² + ε) with ε = 1e-14 max α².

    A weight of exactly 0 would stay 0 for ever: αⱼ = ηⱼ √wⱼ.
    """
    squares = alpha**2
    result: Vector = np.sqrt(squares + 1e-14 * squares.max(initial=0.0))
    return result


@dataclass(frozen=True)
class ElasticNet:
    """Ω(f) = (1 − μ) Σ ‖fⱼ‖ + μ Σ ‖fⱼ‖²: ω(η) = Σ (1 − μ)² ηⱼ / (4(1 − μηⱼ)), 0 ≤ ηⱼ < 1/μ.

    V prints the update α/(1 − μ + μα); the minimiser is 2α/(1 − μ + 2μα). The conjugate is
    ω*(w) = Σ max(0, √wⱼ − (1 − μ)/2)² / μ.

    Parameters
    ----------
    mu : float, default=0.5
        Share of the squared norm, in (0, 1]; 1 gives every kernel the weight 1.

    Raises
    ------
    ValueError
        If mu is outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import ElasticNet
    >>> ElasticNet(0.5).update(np.array([0.5, 1.5]))
    array([1. , 1.5])
    """

    mu: float = 0.5

    def __post_init__(self) -> None:
        _MU.check("mu", self.mu)

    def start(self, n_kernels: int) -> Vector:
        """Return equal weights 1/m, shape (n_kernels,)."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def value(self, weights: Vector) -> float:
        """Return ω(η), infinite where a weight is negative or reaches 1/μ."""
        return float(self.values(weights))

    def values(self, weights: RealArray) -> Vector:
        """Return ω of each row of a matrix of weights."""
        room = 1.0 - self.mu * weights
        inside = (weights >= 0).all(axis=-1)
        if self.mu == 1.0:
            inside &= (room >= -1e-12).all(axis=-1)
            return np.where(inside, 0.0, math.inf)
        inside &= (room > 0).all(axis=-1)
        shares = weights / np.where(room > 0, room, 1.0)
        return np.where(inside, 0.25 * (1.0 - self.mu) ** 2 * shares.sum(axis=-1), math.inf)

    def update(self, alpha: Vector) -> Vector:
        """Return 2αⱼ/(1 − μ + 2μαⱼ), with α smoothed."""
        norms = smooth(alpha)
        if self.mu == 1.0:
            return np.ones_like(norms)
        return 2.0 * norms / (1.0 - self.mu + 2.0 * self.mu * norms)

    def conjugate(self, w: Vector) -> float:
        """Return Σ max(0, √wⱼ − (1 − μ)/2)²/μ."""
        return float(self.conjugates(w))

    def conjugates(self, w: RealArray) -> Vector:
        """Return ω* of each row of a matrix."""
        roots = np.sqrt(np.maximum(w, 0.0))
        excess = np.maximum(roots - 0.5 * (1.0 - self.mu), 0.0)
        conjugate: Vector = (excess**2).sum(axis=-1) / self.mu
        return conjugate

    def prox(self, weights: RealArray, step: float | RealArray) -> Vector:
        """Return the minimiser of ½‖η − v‖² + step · ω(η), a root of a cubic per kernel.

        Newton from the right of the convex increasing η − v + t/(1 − μη)², t = step(1 − μ)²/4.
        Any shape; a step for all entries, or one each.
        """
        v, mu = np.asarray(weights, dtype=np.float64), self.mu
        if mu == 1.0:
            return np.clip(v, 0.0, 1.0)
        t = np.broadcast_to(0.25 * (1.0 - mu) ** 2 * np.asarray(step), v.shape)
        result: Vector = np.clip(v, 0.0, np.where(t > 0.0, 0.0, 1.0 / mu))
        inside = (v > t) & (t > 0.0)
        if not inside.any():
            return result
        v, t = v[inside], t[inside]
        right = (1.0 - np.sqrt(t / v)) / mu
        x = np.where(v < right, v, right)
        for _ in range(_NEWTON_STEPS):
            room = 1.0 - mu * x
            move = (x - v + t / room**2) / (1.0 + 2.0 * mu * t / room**3)
            x = x - np.maximum(move, 0.0)
            if not (move > _ROUNDING * np.abs(x)).any():
                break
        result[inside] = np.maximum(x, 0.0)
        return result


def weight_exponent(p: float) -> float:
    """Return q = p / (2 − p), the exponent of the ball of weights."""
    return math.inf if p == 2.0 else p / (2.0 - p)


def dual_exponent(p: float) -> float:
    """Return q′ with 1/q + 1/q′ = 1: p / (2p − 2)."""
    return math.inf if p == 1.0 else p / (2.0 * p - 2.0)


def ball_update(norms: Vector, p: float) -> Vector:
    """Return ηⱼ = αⱼ^{2−p} / (Σᵢ αᵢᵖ)^{(2−p)/p}, the minimiser of Σ αⱼ²/ηⱼ over the ball."""
    total = lq_norm(norms, p)
    if total == 0.0:
        return np.full(len(norms), len(norms) ** -(1.0 / weight_exponent(p)))
    return (norms / total) ** (2.0 - p)


@dataclass(frozen=True)
class SquaredLpNorm:
    """Ω(f) = (Σ_g (Σ_{j∈g} ‖fⱼ‖²)^{p/2})^{2/p}, where without groups each kernel is one by itself.

    Each group has one weight: ω is 0 on {η : ηⱼ = t_g for j in g, t ≥ 0, Σ t_g^q ≤ 1},
    q = p/(2 − p) (V, (8)), and ω*(w) = ‖(Σ_{j∈g} wⱼ)_g‖_{q′} with 1/q + 1/q′ = 1. V's update (10)
    has the exponent of `ball_update` and a normalisation that is right at p = 1 only.

    Parameters
    ----------
    p : float, default=1.0
        In [1, 2]. 1 makes few weights nonzero; 2 gives every kernel the weight 1.
    groups : sequence of int, optional
        Group of each kernel: numbers 0 … G − 1, each used.

    Raises
    ------
    ValueError
        If p is outside [1, 2], or a group is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import SquaredLpNorm
    >>> SquaredLpNorm(1.0).update(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    >>> SquaredLpNorm(1.0).conjugate(np.array([1.0, 3.0]))
    3.0
    >>> SquaredLpNorm(1.0, groups=[0, 0, 1]).update(np.array([3.0, 4.0, 5.0]))
    array([0.5, 0.5, 0.5])
    """

    p: float = 1.0
    groups: Sequence[int] | None = None

    def __post_init__(self) -> None:
        EXPONENT.check("p", self.p)
        if self.groups is None:
            return
        members = np.asarray(self.groups)
        if members.ndim != 1 or members.size == 0 or members.dtype.kind not in "iu":
            raise ValueError(f"groups must be a list of integers, got {self.groups!r}")
        if members.min() < 0 or (np.bincount(members) == 0).any():
            raise ValueError(
                f"groups must use every number from 0 to {int(members.max())}, got {self.groups!r}"
            )

    def _sums(self, values: Vector) -> Vector:
        """Return the sum over each group."""
        if self.groups is None:
            return values
        if len(self.groups) != len(values):
            raise ValueError(
                f"groups names {len(self.groups)} kernels, the dictionary has {len(values)}"
            )
        return np.bincount(self.groups, weights=values).astype(np.float64)

    def _of_kernels(self, values: Vector) -> Vector:
        """Return for each kernel the value of its group."""
        return values if self.groups is None else values[np.asarray(self.groups)]

    def start(self, n_kernels: int) -> Vector:
        """Return equal weights on the surface of the set, shape (n_kernels,)."""
        count = len(self._sums(np.ones(n_kernels)))
        return np.full(n_kernels, count ** -(1.0 / weight_exponent(self.p)))

    def value(self, weights: Vector) -> float:
        """Return 0 in the set (up to a relative 1e-12), infinity outside."""
        means = self._sums(weights) / self._sums(np.ones(len(weights)))
        uneven = np.abs(weights - self._of_kernels(means)).max() > 1e-12 * np.abs(means).max()
        outside = (means < 0).any() or lq_norm(means, weight_exponent(self.p)) > _FEASIBLE
        return math.inf if uneven or outside else 0.0

    def update(self, alpha: Vector) -> Vector:
        """Return the minimiser of Σ αⱼ²/ηⱼ over the set, with α smoothed."""
        norms = np.sqrt(self._sums(smooth(alpha) ** 2))
        return self._of_kernels(ball_update(norms, self.p))

    def conjugate(self, w: Vector) -> float:
        """Return ‖(Σ_{j∈g} max(wⱼ, 0))_g‖_{q′}."""
        return lq_norm(self._sums(np.maximum(w, 0.0)), dual_exponent(self.p))

    def prox(self, weights: Vector, step: float) -> Vector:
        """Return the projection onto the set, whatever the step."""
        sizes = self._sums(np.ones(len(weights)))
        mass = None if self.groups is None else sizes
        means = self._sums(weights) / sizes
        return self._of_kernels(project_lq_ball(means, weight_exponent(self.p), mass))


def as_penalty(
    penalty: object, *, p: float = 1.0, mu: float = 0.5, groups: Sequence[int] | None = None
) -> Penalty:
    """Return the regulariser that a name stands for, or the object given.

    Raises ValueError if the name is unknown or a parameter does not fit it.
    """
    if penalty == "lp":
        return SquaredLpNorm(p)
    if penalty == "elastic-net":
        return ElasticNet(mu)
    if penalty == "group":
        if groups is None:
            raise ValueError("penalty='group' needs groups, the group of each kernel; got None")
        return SquaredLpNorm(p, tuple(groups))
    if not is_penalty(penalty):
        raise ValueError(
            f"penalty must be one of {', '.join(map(repr, PENALTIES))} or an object with "
            f"{', '.join(METHODS)}, got {penalty!r}"
        )
    return penalty
