"""The one quadratic program behind every learner, in signed variables, and its solution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import POSITIVE, check_sample_weight, check_vector, number
from kernelweave.kernels_core.exceptions import convergence_warning, warn
from kernelweave.kernels_core.formula.learner import SolveStatus
from kernelweave.kernels_core.grams.psd import KernelArray
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class BoxProblem:
    """``max pᵀu − ε‖u‖₁ − ½uᵀKu`` over ``lower ≤ u ≤ upper``, ``Σu = 0``.

    Classification: ``u = y∘α``, ``p = y``, ``ε = 0``, ``u`` between 0 and ``yᵢCᵢ``. Regression:
    ``u = α``, ``p`` the targets, ``|uᵢ| ≤ Cᵢ``. The Fenchel dual, for ``f = Ku`` and any b, is
    ``½uᵀKu + Σ upperᵢ(pᵢ − fᵢ − b − ε)₊ − Σ lowerᵢ(fᵢ + b − pᵢ − ε)₊``.

    - `K` of shape (n, n): C-contiguous and flagged read only, so that compiled code has one
      specialisation
    - `p`, `lower`, `upper` of shape (n,)
    - `asymmetry`: a bound of ``max |Kᵢⱼ − Kⱼᵢ|``; the problem is that of the symmetric part of K
    - `negative` of shape (n,): K + diag(negative) is proved positive semidefinite; None: K is
    - `reach` of shape (n,): where given, K is not checked yet, and each product for a bound also
      checks that ``|Kᵢⱼ| ≤ reachᵢ reachⱼ``; None: K was checked, or need not be
    - `exact_kappa`: whether ``p`` is ±1 and ``ε`` is 0, so that κ has no rounding error on a grid
    """

    K: KernelArray
    p: FloatArray
    lower: FloatArray
    upper: FloatArray
    epsilon: float = 0.0
    asymmetry: float = 0.0
    exact_kappa: bool = False
    negative: FloatArray | None = None
    reach: FloatArray | None = None

    @property
    def n_samples(self) -> int:
        """Return n."""
        return self.p.size

    @cached_property
    def diagonal(self) -> FloatArray:
        """Return the diagonal of K in float64."""
        return self.K.diagonal().astype(np.float64)

    def restricted(self, samples: NDArray[np.intp]) -> BoxProblem:
        """Return the problem of some samples, with a copy of their part of K."""
        K = cast(KernelArray, np.ascontiguousarray(self.K[np.ix_(samples, samples)]))
        K.flags.writeable = False
        return replace(
            self,
            K=K,
            p=self.p[samples],
            lower=self.lower[samples],
            upper=self.upper[samples],
            negative=None if self.negative is None else self.negative[samples],
            reach=None,
        )


@dataclass(frozen=True)
class Budget:
    """How long a solve may go on: a violation to reach, and steps.

    `rows`: rows of K that earlier solves have read; Newton steps may cost as much at once.
    """

    tol: float
    max_iter: int
    rows: float = 0.0

    @property
    def expired(self) -> bool:
        """Return whether the time limit of the running solve has passed, or a Ctrl-C came."""
        return clock.expired()


def classification(K: KernelArray, y: FloatArray, bound: FloatArray) -> BoxProblem:
    """Return the C-SVC dual; ``bound`` (n,) holds the Cᵢ."""
    signed = y * bound
    lower, upper = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
    return BoxProblem(K, y, lower, upper, 0.0, exact_kappa=True)


def regression(K: KernelArray, y: FloatArray, bound: FloatArray, epsilon: float) -> BoxProblem:
    """Return the ε-SVR dual in n signed variables; ``bound`` (n,) holds the Cᵢ."""
    return BoxProblem(K, y, -bound, bound, epsilon)


# The τ of a quantile: at 0 and 1 nothing is charged on one side, and no optimum need exist.
QUANTILE = number(above=0.0, below=1.0)


def quantile_regression(
    K: KernelArray, y: FloatArray, bound: FloatArray, quantile: float
) -> BoxProblem:
    """Return the dual of the pinball loss at the quantile τ; ``bound`` (n,) holds the Cᵢ."""
    return BoxProblem(K, y, (quantile - 1.0) * bound, quantile * bound, 0.0)


def check_bounds(C: float, sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return ``Cᵢ = C · sample_weightᵢ`` of shape (n,)."""
    bound = float(POSITIVE.check("C", C))
    weight = check_sample_weight(sample_weight, n)
    if weight is None:
        return np.full(n, bound)
    with np.errstate(over="ignore"):
        product = bound * weight
    if not np.all(np.isfinite(product)):
        raise ValueError(f"C * sample_weight overflows (C={C!r}): lower C or the weights")
    return product


def check_labels(y: ArrayLike, bound: FloatArray) -> FloatArray:
    """Return labels of ±1 after checking that both have a sample of positive weight."""
    labels = check_vector("y", y, bound.size)
    if not (np.abs(labels) == 1.0).all():
        odd = np.flatnonzero(np.abs(labels) != 1.0)[0]
        raise ValueError(
            f"y must hold -1 and +1 only, got {labels[odd]} at position {odd}: encode the two "
            "classes first"
        )
    signed = labels * bound
    if signed.min() < 0.0 < signed.max():
        return labels
    missing = -1 if signed.min() >= 0.0 else 1
    cause = "all its samples have weight 0" if missing in labels else "there is no such sample"
    raise ValueError(f"y must hold both classes, but class {missing:+d} is missing ({cause})")


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
        what ``negative_part`` can add; where that is None it needs K positive semidefinite, up to
        rounding of its entries by ``2u √(Kᵢᵢ Kⱼⱼ)`` where it was checked (u = 2⁻⁵³).
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
        4,000 rows, and where C is so small that rounding of K cannot matter in seven digits or in a
        hundredth of ``tol``.
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
    warn(
        f"the dual solve stopped early ({solution.status.value}): {solution.status.message}. "
        f"After {solution.n_iter} iterations of {solution.backend} the relative gap is "
        f"{solution.gap:.3g} (tol={tol:g}), the violation {solution.kkt_violation:.3g}, and the "
        f"optimum is in [{solution.lower_bound:.9g}, {solution.upper_bound:.9g}]",
        convergence_warning(),
    )
