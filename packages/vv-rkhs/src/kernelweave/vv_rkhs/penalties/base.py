"""What a regulariser must offer."""

from __future__ import annotations

from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from kernelweave.kernels_core.arrays import Vector


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
