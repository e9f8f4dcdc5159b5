"""The learner: what is maximised at one kernel, and the one type of its solution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..rounding import UNIT, gamma


class SolveStatus(StrEnum):
    """Why a learner's solve stopped; ``message`` says what happened and what to try."""

    message: str

    def __new__(cls, value: str, message: str) -> SolveStatus:  # noqa: D102
        member = str.__new__(cls, value)
        member._value_ = value
        member.message = message
        return member

    CONVERGED = "converged", "the relative gap, or a learner's violation, is within tol"
    MAX_ITER = (
        "max_iter",
        "the iteration limit was reached: raise max_iter, lower C, or loosen tol",
    )
    MAX_TIME = (
        "max_time",
        "the time limit was reached: raise max_time, pass the result as alpha0, or loosen tol",
    )
    STALLED = (
        "stalled",
        "rounding errors hide any further progress: loosen tol, rescale the kernel to a diagonal "
        "near 1, or lower C",
    )
    ENDLESS = (
        "endless",
        "the dual coefficients grow at an even pace, and max_iter iterations do not reach their "
        "bounds: lower C",
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """A learner at one kernel: max over u of Σₜ κ(uₜ) − ½ uₜᵀKuₜ over t tasks, with proved ends.

    For any other Gram matrix K(θ) the exactly feasible ``dual_coef`` gives a cut,
    ``optimum(θ) ≥ kappa − ½ Σₜ uₜᵀK(θ)uₜ``, and so do its multiples:
    ``κ(su) ≥ s·linear − ½s²·quadratic`` for 0 ≤ s ≤ ``longest``.

    Attributes
    ----------
    dual_coef : ndarray of shape (t, n)
        Signed u, exactly feasible: the predictor is K(x, ·)u + intercept.
    intercept : ndarray of shape (t,)
    lower_bound, upper_bound : float
        The optimum lies between them, rounding included; the upper one is the primal value
        ``½ Σ uₜᵀKuₜ + loss(Kuₜ + b)`` at ``(1 + stretch) u``, or less.
    function_values : ndarray of shape (t, n)
        Kuₜ, without the intercept.
    slope : ndarray of shape (t, n)
        Of the loss: where the decision value of a sample moves by at most e, its loss grows by
        at most slope·e + bend·e².
    linear : float
        The part of Σₜ κ(uₜ) that is linear in u, rounded down; κ itself where it has no other.
    quadratic : float, default=0.0
        Twice what κ lacks to its linear part, rounded up: uᵀRu for a squared loss.
    longest : float, default=1.0
        How long a multiple of u is feasible; infinite on a cone.
    bend : float or ndarray of shape (n,), default=0.0
    violation : float, default=0.0
        How far u is from optimal, in the units of the learner's ``tol``.
    n_iter : int
        Sum over the tasks.
    status : SolveStatus
        That of the first task that did not converge, if any.
    stretch : float, default=0.0
        How much longer than u the point of the upper bound is.
    details : object, optional
        What the learner keeps for those who know it: the tasks' solutions, factorisations.
    """

    dual_coef: FloatArray
    intercept: FloatArray
    lower_bound: float
    upper_bound: float
    function_values: FloatArray
    slope: FloatArray
    linear: float
    quadratic: float = 0.0
    longest: float = 1.0
    bend: float | FloatArray = 0.0
    violation: float = 0.0
    n_iter: int = 0
    status: SolveStatus = SolveStatus.CONVERGED
    stretch: float = 0.0
    details: Any = None

    @property
    def kappa(self) -> float:
        """Return Σₜ κ(uₜ), rounded down."""
        if self.quadratic == 0.0:
            return self.linear
        value = self.linear - 0.5 * self.quadratic
        return value - 2.0 * UNIT * (abs(self.linear) + self.quadratic)

    @property
    def gap(self) -> float:
        """Return ``upper_bound − lower_bound``."""
        return self.upper_bound - self.lower_bound

    def margin(self, spread: FloatArray) -> float:
        """Return what an error of the Gram matrix can add to the upper bound.

        `spread` of shape (n,): s, where entry (i, j) of the matrix that was solved is off by at
        most sᵢsⱼ. ½ (Σ sᵢ abs(uᵢ))² and the growth of the loss, as Ku is off by sᵢ Σ sⱼ abs(uⱼ).
        """
        longer = 1.0 + max(self.stretch, 0.0)
        total = 0.0
        for u, slope in zip(self.dual_coef, self.slope, strict=True):
            size = longer * float(spread @ np.abs(u))
            error = size * spread
            total += 0.5 * size * size + float(slope @ error) + float(np.sum(self.bend * error**2))
        return total * (1.0 + gamma(self.dual_coef.size + 16))

    def scaled(self, cost: float, *, longest: float = math.inf) -> float:
        """Return the best bound of a multiple: max over s of κ(su) − ½s²·cost, rounded down.

        `cost`: Σₜ uₜᵀK(θ)uₜ at the worst θ, at least 0 and rounded up; `longest`: s at most, beside
        the solution's own limit.
        """
        if self.linear <= 0.0:
            return 0.0
        bottom, most = self.quadratic + cost, min(longest, self.longest)
        s = self.linear / bottom if bottom > 0.0 and self.linear < bottom * most else most
        if not math.isfinite(s):
            return math.inf
        value = s * self.linear - 0.5 * s * s * bottom
        return max(0.0, value - 8.0 * UNIT * (s * self.linear + s * s * bottom))


@runtime_checkable
class Learner(Protocol):
    """The inner maximisation as a value: max over u of κ(u) − ½uᵀKu, κ concave with κ(0) = 0.

    The dual of min over f, b of ½‖f‖² + loss(f + b). SVC and SVR, ridge regression, the squared
    hinge and vector-valued least squares are learners; yours is one as soon as it has these
    members (`kernelweave.kernels_core.testing.check_learner` looks).
    """

    @property
    def name(self) -> str:
        """Lower-case words joined by hyphens."""

    @property
    def task(self) -> str:
        """``"classification"`` or ``"regression"``."""

    def validate(self) -> None:
        """Raise ValueError if a parameter is out of range."""

    def solve(
        self,
        K: npt.ArrayLike,
        targets: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        dual0: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        check: bool = True,
    ) -> Solution:
        """Solve at a Gram matrix of shape (n, n) for targets of shape (t, n)."""


def sum_rounded(values: list[float], towards: float) -> float:
    """Return the sum of floats, rounded towards ``-inf`` or ``inf``; one term is itself."""
    if len(values) == 1:
        return values[0]
    return float(np.nextafter(math.fsum(values), towards))


def collect(parts: list[Solution], details: object = None) -> Solution:
    """Return one solution of several tasks, from one each.

    Parameters
    ----------
    parts : list of Solution
        One or more, of one task each, with the same ``bend``.
    details : object, optional
        What the solution is to keep as its own.

    Returns
    -------
    Solution
        Rows in the order of the parts. Bounds are sums, rounded outwards; the status is that of
        the first part that did not converge, if any.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.formula import Solution, collect
    >>> u = np.zeros((1, 2))
    >>> one = Solution(dual_coef=u, intercept=u[0, :1], lower_bound=0.0, upper_bound=9.0,
    ...                function_values=u, slope=u, linear=0.0)
    >>> both = collect([one, one])
    >>> both.dual_coef.shape, both.upper_bound >= 18.0
    ((2, 2), True)
    """
    failed = [part.status for part in parts if part.status is not SolveStatus.CONVERGED]
    return Solution(
        dual_coef=np.concatenate([part.dual_coef for part in parts]),
        intercept=np.concatenate([part.intercept for part in parts]),
        lower_bound=sum_rounded([part.lower_bound for part in parts], -np.inf),
        upper_bound=sum_rounded([part.upper_bound for part in parts], np.inf),
        function_values=np.concatenate([part.function_values for part in parts]),
        slope=np.concatenate([part.slope for part in parts]),
        linear=sum_rounded([part.linear for part in parts], -np.inf),
        quadratic=sum_rounded([part.quadratic for part in parts], np.inf),
        longest=min(part.longest for part in parts),
        bend=parts[0].bend,
        violation=max(part.violation for part in parts),
        n_iter=sum(part.n_iter for part in parts),
        status=failed[0] if failed else SolveStatus.CONVERGED,
        stretch=max(part.stretch for part in parts),
        details=details,
    )
