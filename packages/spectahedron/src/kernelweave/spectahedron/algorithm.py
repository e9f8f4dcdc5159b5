"""What the algorithms over positive matrices answer the driver, once for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from kernelweave.kernels_core import Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula.learner import Solution

from .saddle import SpectahedronOracle


class SaddleState(Protocol):
    """What the driver's questions need of a state."""

    @property
    def lower(self) -> float:
        """The proved lower bound, public units."""

    @property
    def upper(self) -> float:
        """The proved upper bound, public units."""

    @property
    def solution(self) -> Solution | None:
        """The learner's solution, as the oracle solved it; there once a bound is."""


State = TypeVar("State", bound=SaddleState)


class SaddleAlgorithm(ABC, Generic[State]):
    """Bounds, solution and counts, read from the state and the oracle.

    Who inherits sets ``oracle`` in ``init``.
    """

    oracle: SpectahedronOracle

    def gap(self, state: State) -> tuple[float, float]:
        """Return the proved bounds."""
        return state.lower, state.upper

    @abstractmethod
    def best(self, state: State) -> FloatArray:
        """Return P."""

    def solution(self, state: State) -> Solution:
        """Return the learner's solution in public units: α and bounds divided by v."""
        scale, inner = self.oracle.scale, state.solution
        assert inner is not None
        return replace(
            inner,
            dual_coef=inner.dual_coef / scale,
            linear=inner.linear / scale,
            slope=inner.slope / scale,
            lower_bound=inner.lower_bound / scale,
            upper_bound=inner.upper_bound / scale,
        )

    def counts(self, state: State) -> dict[str, int]:
        """Return learner solves, inner iterations and Grams so far."""
        return self.oracle.counts()

    def scale(self, state: State) -> float:
        """Return what the best constant prediction costs."""
        return self.oracle.constant_cost

    def remark(self, state: State) -> str:
        """Return why the search came to a stop, where that is not the precision of numbers."""
        inner = state.solution
        return "" if inner is None else self.oracle.remark(inner, state.upper - state.lower)

    def outcome(self, state: State) -> Status | None:
        """Never stop by itself."""
        return None
