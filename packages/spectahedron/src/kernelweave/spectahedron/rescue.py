"""When a slow method should hand over to the interior point, and when that is worth its work."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelweave.kernels_core.memory import permits

from .interior import required_bytes, work
from .saddle import SpectahedronOracle

# Steps that are compared, and what they must gain; `slow` says how. Impatient numbers pay for an
# interior point where a few more steps would do, patient ones wait beside a method that crawls.
_WINDOW = 12
_GAP, _UPPER = 0.25, 0.01
# Flops of an iteration, of which there are about thirty: ten minutes on one slow core in all.
_MOST_WORK = 1e11


@dataclass
class BoundHistory:
    """The bounds seen, one pair a step."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def observe(self, lower: float, upper: float) -> None:
        """Add the bounds after a step."""
        self.lower.append(lower)
        self.upper.append(upper)

    @property
    def slow(self) -> bool:
        """Whether the gap is wide and neither it nor the upper bound falls, or it has stopped.

        Wide is more than a hundredth; to fall is to a quarter, and by a hundredth, in a dozen
        steps. A gap that is not wide has stopped when it did not halve in two dozen steps.
        """
        if len(self.upper) < 2 * _WINDOW:
            return False
        gap, top = self._gap(-1), self.upper[-1]
        if gap > _UPPER * top:
            falls = gap < _GAP * self._gap(-_WINDOW)
            return not falls and self.upper[-_WINDOW] - top < _UPPER * top
        return gap > 0.5 * self._gap(-2 * _WINDOW)

    def _gap(self, step: int) -> float:
        return self.upper[step] - self.lower[step]


def affordable(oracle: SpectahedronOracle) -> bool:
    """Return whether an interior point is worth its flops, after a warning where it is forbidden.

    A problem whose Gram matrices are not stored has none: it would hold several.
    """
    rows = oracle.problem.n_samples * len(oracle.targets)
    return (
        oracle.stored
        and work(rows, oracle.n_P) <= _MOST_WORK
        and permits(
            required_bytes(rows, oracle.n_P),
            f"the matrices of the interior point over {oracle.problem.n_samples} samples",
        )
    )
