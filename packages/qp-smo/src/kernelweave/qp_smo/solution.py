"""What every solver of this package returns: the dual point, both bounds, and why it stopped."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.formula.learner import SolveStatus


@dataclass(frozen=True)
class DualSolution:
    """A support vector machine dual solved to a known distance from its optimum.

    With ``u = dual_coef`` and ``f = Ku``: ``lower_bound ≤ max κ(u) − ½uᵀKu ≤ upper_bound``.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        ``α ≥ 0`` for classification, signed for regression. Exactly feasible: inside the box, and
        ``dual_coef`` sums to 0 without any rounding (all entries lie on one power-of-two grid).
    intercept : float
        Minimises the primal objective at ``f``; the decision values are ``f + intercept``.
    lower_bound : float
        The dual value at ``alpha`` less a rigorous margin for rounding (never below 0, the value
        at ``α = 0``).
    upper_bound : float
        The primal value at ``(1 + stretch) f`` and its best intercept plus a rigorous margin, and
        what ``negative_part`` can add; where that is None it needs K positive semidefinite.
    objective : float
        The dual value at ``alpha``, the one that is maximised, in plain floating point.
    kkt_violation : float
        The maximal violating pair, from a fresh gradient at ``alpha``.
    n_iter : int
        Steps of the solver that did the work.
    status : SolveStatus
    dual_coef : ndarray of shape (n,)
        The signed ``u``: ``y∘α`` for classification, ``α`` for regression.
    kappa : float
        ``1ᵀα`` for classification, ``yᵀα − ε‖α‖₁`` for regression, rounded down.
    function_values : ndarray of shape (n,)
        ``f = Ku`` at the training samples, without the intercept.
    n_kernel_rows : int
        Rows of K that were read, a count that no machine changes (n entries are one row).
    backend : str
        The solver that finished.
    log : tuple of str
        What each solver that was tried did, in order.
    stretch : float
        0, or what the margins of a classifier are short of 1 by tolerance and rounding, which
        costs less than the losses there when C is large; -1 where ``u = 0`` has the least value.
    negative_part : float or None
        No eigenvalue of K lies below minus this, proved by a Cholesky factor. None where K was
        taken to be positive semidefinite, as it must be then: with ``check=False``, with more than
        4,000 rows, and where C is so small that rounding of K cannot matter in seven digits.
    """

    alpha: FloatArray
    intercept: float
    lower_bound: float
    upper_bound: float
    objective: float
    kkt_violation: float
    n_iter: int
    status: SolveStatus
    dual_coef: FloatArray
    kappa: float
    function_values: FloatArray
    n_kernel_rows: int = 0
    backend: str = "smo"
    log: tuple[str, ...] = field(default=())
    stretch: float = 0.0
    negative_part: float | None = None

    @property
    def gap(self) -> float:
        """Return ``(upper − lower) / max(|upper|, |lower|)``, 0 when both are 0."""
        scale = max(abs(self.upper_bound), abs(self.lower_bound))
        return (self.upper_bound - self.lower_bound) / scale if scale > 0.0 else 0.0


def warn_unless_converged(solution: DualSolution, *, tol: float) -> None:
    """Warn with the status text, the gap and violation left and the certified interval."""
    if solution.status is SolveStatus.CONVERGED:
        return
    warnings.warn(
        f"the dual solve stopped early ({solution.status.value}): {solution.status.message}. "
        f"After {solution.n_iter} iterations of {solution.backend} the relative gap is "
        f"{solution.gap:.3g} (tol={tol:g}), the violation {solution.kkt_violation:.3g}, and the "
        f"optimum is in [{solution.lower_bound:.9g}, {solution.upper_bound:.9g}]",
        convergence_warning(),
        stacklevel=3,
    )
