"""What every solve returns: value, proved bounds, gap, status and history."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .exceptions import ContradictoryBoundsError, Message
from .rounding import gamma

_ROUNDING = gamma(2.0**20)


class Status(enum.Enum):
    """How a solve ended. The value is the sentence that a user reads, a `Message`."""

    def __new__(cls, template: str) -> Status:
        """Return a member whose sentence names parameters."""
        member = object.__new__(cls)
        member._value_ = Message(template)
        return member

    CONVERGED = "the certified relative gap is within {tol}"
    NEGLIGIBLE = (
        "the gap is proved to be below {tol}/1000 of what a constant prediction costs, so the "
        "objective is as good as any to that precision; that the relative gap is within {tol}, and "
        "with it which kernel is best, is not proved: regularise more, which weighs the loss less"
    )
    STATIONARY = (
        "no step of the search leads to anything better: the bounds hold, the parameters are the "
        "best seen; the problem is not convex, so that they are within {tol} of the optimum is not "
        "proved: try other starts, or an algorithm or a setting with a proof"
    )
    MAX_ITER = (
        "{max_iter} was reached before the gap closed: the bounds hold, the parameters are the "
        "best seen; raise {max_iter} or {tol}, or choose another algorithm"
    )
    MAX_TIME = (
        "{max_time} was reached before the gap closed: the bounds hold, the parameters are the "
        "best seen; raise {max_time} or {tol}, or fit fewer samples"
    )
    STALLED = (
        "no further progress is possible in this precision: the bounds hold; raise {tol}, or "
        "regularise more, which weighs the loss less"
    )
    STOPPED = "a callback asked to stop: the bounds hold, the parameters are the best seen"
    INTERRUPTED = "interrupted from the keyboard: the bounds hold, the parameters are the best seen"

    @property
    def label(self) -> str:
        """The short name, e.g. ``"max_iter"``."""
        return self.name.lower()

    @property
    def success(self) -> bool:
        """Whether the gap that was asked for is proved."""
        return self is Status.CONVERGED

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        """Accept the label too, which outlives a change of the wording."""
        return cls.__members__.get(str(value).upper())

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        """Let serialisers that know no enumerations store the label."""
        return (Status, (self.label,))


def relative_gap(lower: float, upper: float) -> float:
    """Return ``(upper − lower) / max(|upper|, |lower|)``, 0 where both are 0.

    Negative where the bounds contradict each other: before a gap counts as closed, `check_bounds`
    refuses those.

    Parameters
    ----------
    lower, upper : float
        Bounds on one value.

    Returns
    -------
    float
        Infinity unless both are finite.

    Examples
    --------
    >>> relative_gap(9.0, 10.0)
    0.1
    """
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return math.inf
    scale = max(abs(lower), abs(upper))
    return 0.0 if scale == 0.0 else (upper - lower) / scale


def check_bounds(algorithm: str, lower: float, upper: float) -> None:
    """Raise ContradictoryBoundsError if lower > upper beyond rounding: one of them is false.

    Bounds are sums over samples and kernels, of a million terms at most: rounding may leave one
    above the other by γₖ of its size, k a million, which is 1.2e-10. ``algorithm``, whose bounds
    they are, is for the message.
    """
    if not lower > upper:
        return
    size = max(abs(lower), abs(upper))
    if math.isfinite(size) and lower - upper <= _ROUNDING * size:
        return
    raise ContradictoryBoundsError(
        f"{algorithm}: the lower bound {lower:.17g} lies above the upper bound {upper:.17g}, by "
        "more than rounding: one of them is false, and nothing is proved; choose another "
        "algorithm, and report this one with the data"
    )


@dataclass
class History:
    """The course of a solve, one entry per iteration.

    Attributes
    ----------
    lower, upper : list of float
        Best bounds proved up to that iteration.
    value : list of float
        Upper bound of that iteration's own iterate.
    seconds : list of float
        Wall-clock time since the start.
    counts : dict of list of int
        Whatever the algorithm counts, e.g. ``n_solves``; cumulative.
    """

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    counts: dict[str, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def gap(self) -> npt.NDArray[np.float64]:
        """Relative gap after each iteration, shape (n_iter + 1,)."""
        return np.array([relative_gap(a, b) for a, b in zip(self.lower, self.upper, strict=True)])

    def append(
        self, *, lower: float, upper: float, value: float, seconds: float, counts: Mapping[str, int]
    ) -> None:
        """Add one iteration."""
        for series, item in (
            (self.lower, lower),
            (self.upper, upper),
            (self.value, value),
            (self.seconds, seconds),
        ):
            series.append(float(item))
        for name, count in counts.items():
            self.counts.setdefault(name, []).append(int(count))


@dataclass(frozen=True)
class Certificate:
    """A proof of how good a solution is.

    Attributes
    ----------
    lower_bound, upper_bound : float
        The optimum lies between them; both ends account for rounding.
    lower_proof, upper_proof : str
        One sentence each: where the bound comes from.
    premise : str, default=""
        What the bounds are of, where that is not the problem as it was stated, see `Result`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import SimpleMKLClassifier
    >>> model = SimpleMKLClassifier(tol=1e-3).fit(*load_iris(return_X_y=True))
    >>> proof = model.certificate_
    >>> proof.lower_bound <= proof.upper_bound, proof.gap <= 1e-3
    (True, True)
    """

    lower_bound: float
    upper_bound: float
    lower_proof: str
    upper_proof: str
    premise: str = ""

    @property
    def gap(self) -> float:
        """Relative gap, see `relative_gap`."""
        return relative_gap(self.lower_bound, self.upper_bound)

    def __str__(self) -> str:
        return (
            f"optimum in [{self.lower_bound:.10g}, {self.upper_bound:.10g}], relative gap "
            f"{self.gap:.2e} (lower: {self.lower_proof}; upper: {self.upper_proof})"
            + (f"; {self.premise}" if self.premise else "")
        )


@dataclass(frozen=True)
class Result:
    """The outcome of a solve.

    Attributes
    ----------
    value : float
        Objective at ``parameters``: the best upper bound.
    lower_bound, upper_bound : float
        The optimum lies between them.
    gap : float
        Relative gap, ``(upper − lower) / max(|upper|, |lower|)``.
    status : Status
        How the solve ended.
    n_iter : int
        Iterations made.
    history : History
        Bounds, times and counts per iteration.
    parameters : object
        The best kernel parameters, as the family understands them.
    solution : object or None
        The learner's solution at ``parameters`` where the algorithm kept it.
    algorithm : str
        Name of the algorithm that ran.
    seconds : float
        Wall-clock time of the solve.
    remark : str
        Why it came to a stop, where the algorithm knows better than ``status``.
    premise : str
        What the bounds are of, where the family says that this is not the problem itself: an
        integral that is a sum over nodes, with an error that is estimated, or a convex problem that
        touches another at a point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import SimpleMKLClassifier
    >>> result = SimpleMKLClassifier(tol=1e-3).fit(*load_iris(return_X_y=True)).result_
    >>> result.algorithm, result.status.label
    ('mkl-simple', 'converged')
    >>> len(result.history) == result.n_iter + 1
    True
    """

    value: float
    lower_bound: float
    upper_bound: float
    gap: float
    status: Status
    n_iter: int
    history: History
    parameters: Any = None
    solution: Any = None
    algorithm: str = ""
    seconds: float = 0.0
    remark: str = ""
    premise: str = ""

    def __repr__(self) -> str:
        # the history and the arrays would be pages
        fields = {
            "algorithm": self.algorithm,
            "status": self.status.label,
            "value": f"{self.value:.10g}",
            "bounds": f"[{self.lower_bound:.10g}, {self.upper_bound:.10g}]",
            "gap": f"{self.gap:.2e}",
            "iterations": self.n_iter,
            "seconds": f"{self.seconds:.3g}",
        }
        return "\n".join(["Result", *(f"  {name}: {value}" for name, value in fields.items())])

    @property
    def dual_gap(self) -> float:
        """Absolute gap, ``upper_bound − lower_bound``."""
        return self.upper_bound - self.lower_bound

    @property
    def falls_short(self) -> bool:
        """Whether less was proved than was asked for, so that a user must be warned.

        Not after a callback stopped it; nor at rest on a problem without a lower bound, where no
        gap is claimed and the certificate says so.
        """
        if self.status is Status.STATIONARY:
            return math.isfinite(self.lower_bound)
        return not (self.status.success or self.status is Status.STOPPED)

    @property
    def message(self) -> str:
        """One sentence: how it ended and what to try."""
        return Message(
            "{who}: {said} (relative gap {gap:.2e}){premise}",
            who=self.algorithm or "solve",
            said=self.remark or self.status.value,
            gap=self.gap,
            premise=f"; {self.premise}" if self.premise else "",
        )


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C during a solve; ``result`` holds the best iterate."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result
