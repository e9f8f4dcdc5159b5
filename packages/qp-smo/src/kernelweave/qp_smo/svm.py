"""C-SVC, ε-SVR and quantile regression on a Gram matrix, both ends of the interval certified."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import NONNEGATIVE, check_limits, check_vector
from kernelweave.kernels_core.clock import expired, time_limit
from kernelweave.kernels_core.formula.learner import SolveStatus
from kernelweave.kernels_core.grams import KernelArray, as_gram, check_gram
from kernelweave.kernels_core.grams.psd import (
    LARGEST_REACH,
    NEARLY_SYMMETRIC,
    negative_part,
    reach_of,
)
from kernelweave.kernels_core.rounding import UNIT
from numpy.typing import ArrayLike

from .bounds import SuspectGramError, certify
from .engine import Backend, Outcome, solve_box
from .problem import (
    QUANTILE,
    BoxProblem,
    Budget,
    DualSolution,
    check_bounds,
    check_labels,
    classification,
    quantile_regression,
    regression,
    warn_unless_converged,
)

# As LIBSVM's own least limit: a guard against endless runs, not a setting that one should meet.
DEFAULT_MAX_ITER = 10_000_000
# Samples up to which a factorisation costs nothing beside the solve, and is affordable at all.
_SMALL, _MOST_PROVED = 128, 4000
# Samples of each side that show at once a matrix that nobody meant to be symmetric.
_FEW = 32
# The finest tolerance for which the product that checks K is precise enough.
_COARSE = 1e-6
# What the rounding of K may add to an upper bound, relative to κ, before it is looked at, or a
# hundredth of the tolerance where that is more.
_NOTHING = 1e-7
# The smallest violation that is tried for a gap: below it rounding decides.
_FINEST = 1e-12


def solution_from(problem: BoxProblem, outcome: Outcome) -> DualSolution:
    """Certify an outcome: α is ``|u|`` of a classification, and else u itself."""
    proof = certify(problem, outcome.feasible)
    u = outcome.feasible.point.u
    return DualSolution(
        alpha=np.abs(u) if problem.exact_kappa else u,
        intercept=proof.intercept,
        lower_bound=proof.lower,
        upper_bound=proof.upper,
        objective=proof.objective,
        kkt_violation=proof.kkt_violation,
        n_iter=outcome.n_iter,
        status=outcome.status,
        dual_coef=u,
        kappa=proof.kappa,
        function_values=outcome.feasible.values.f,
        n_kernel_rows=math.ceil(outcome.rows),
        backend=outcome.backend,
        log=outcome.log,
        stretch=proof.stretch,
        negative_part=None if problem.negative is None else float(problem.negative.max()),
    )


def _looks_symmetric(K: KernelArray) -> bool:
    """Return whether a few rows and their columns are alike."""
    step = -(-len(K) // _FEW)
    few = K[::step, ::step]
    return bool((np.abs(few - few.T) <= NEARLY_SYMMETRIC * np.abs(few).max()).all())


def _to_check(problem: BoxProblem, tol: float) -> BoxProblem:
    """Return the problem with the asymmetry of K, or with what its products need to check K.

    A pass over a large K takes longer than many solves. The product that the bounds are from may
    read all entries too and check K, see `bounds.function_values`: it has more roundings, which a
    fine tolerance would notice.
    """
    K, reach = problem.K, reach_of(problem.K)
    top = float(reach.max())
    may_wait = len(K) > _SMALL and K.dtype == np.float64 and tol >= _COARSE
    if may_wait and top < LARGEST_REACH and _looks_symmetric(K):
        rounding = NEARLY_SYMMETRIC * top * top * (1.0 + 4.0 * UNIT)
        return replace(problem, asymmetry=rounding, reach=reach)
    return _checked(problem)


def _checked(problem: BoxProblem) -> BoxProblem:
    """Return the problem with the asymmetry of K, or raise where K is no Gram matrix."""
    return replace(problem, asymmetry=check_gram(problem.K), reach=None)


def _proved(problem: BoxProblem) -> BoxProblem:
    """Return the problem with what K lacks to a positive semidefinite matrix, by a factor of K.

    With more samples than are affordable, K is taken to lack nothing.
    """
    n = problem.n_samples
    if n > _MOST_PROVED:
        return replace(problem, negative=None)
    if problem.reach is not None:
        problem = _checked(problem)
    more = 0.51 * n * problem.asymmetry
    return replace(problem, negative=negative_part(problem.K) + more)


def _known(problem: BoxProblem, tol: float) -> tuple[BoxProblem, bool]:
    """Return the problem with what K lacks to a positive semidefinite matrix, and whether proved.

    Rounding of its entries leaves K ⪰ −δ diag(K), and a factor proves an upper bound to be off by
    ``½δC`` at most, relative to κ: not worth a factorisation where that is a hundredth of the gap.
    There, what rounding of each entry to ``2u √(Kᵢᵢ Kⱼⱼ)`` can leave is charged without proof.
    """
    n = problem.n_samples
    caps = np.maximum(problem.upper, -problem.lower)
    reach = float(np.max(problem.diagonal * caps))
    room = 2.0 * n * n * UNIT * reach + 0.51 * n * problem.asymmetry * float(np.max(caps))
    if n <= _SMALL or (room > max(_NOTHING, 0.01 * tol) and n <= _MOST_PROVED):
        return _proved(problem), True
    rounding = 2.02 * n * UNIT * np.maximum(problem.diagonal, 0.0) + 0.51 * n * problem.asymmetry
    return replace(problem, negative=rounding), False


def _solve_to_gap(
    problem: BoxProblem,
    start: FloatArray | None,
    tol: float,
    max_iter: int,
    backend: Backend,
    *,
    check: bool,
) -> DualSolution:
    """Return the solution once its relative gap is within tol, or nothing more can be done.

    A violation of tol comes first, and where it leaves more of a gap, smaller ones from there on.
    ``check``: whether the bounds are to hold for K as it is, and not as a semidefinite one.
    """
    problem, is_proved = _known(_to_check(problem, tol), tol) if check else (problem, True)

    def solved(start: FloatArray | None, budget: Budget) -> Outcome:
        nonlocal problem, is_proved
        try:
            # entries of K may not have been looked at yet
            with np.errstate(invalid="ignore", over="ignore"):
                return solve_box(problem, start, budget, backend)
        except SuspectGramError:
            problem, is_proved = _known(_checked(problem), tol)
            return solve_box(problem, start, budget, backend)

    def certified(outcome: Outcome) -> DualSolution:
        nonlocal problem, is_proved
        solution = solution_from(problem, outcome)
        if not is_proved and solution.gap > tol:
            uncharged = replace(problem, negative=None)
            if solution_from(uncharged, outcome).gap <= tol:
                # what was charged for rounding is all that is left of the gap
                problem, is_proved = _proved(problem), True
                solution = solution_from(problem, outcome)
        return solution

    outcome = solved(start, Budget(tol, max_iter))
    solution = certified(outcome)
    finer = tol
    while solution.gap > tol and outcome.status is SolveStatus.CONVERGED and finer > _FINEST:
        left = max_iter - solution.n_iter
        if left <= 0 or expired():
            break
        finer = max(_FINEST, finer * min(0.1, max(1e-3, 0.1 * tol / solution.gap)))
        outcome = solved(solution.dual_coef, Budget(finer, left, solution.n_kernel_rows))
        again = certified(outcome)
        better = again if again.gap < solution.gap else solution
        solution = replace(
            better,
            n_iter=solution.n_iter + again.n_iter,
            n_kernel_rows=solution.n_kernel_rows + again.n_kernel_rows,
            log=(*solution.log, *again.log),
        )
    negative = solution.negative_part if is_proved else None
    return replace(solution, status=_status(solution, outcome, tol), negative_part=negative)


def _status(solution: DualSolution, outcome: Outcome, tol: float) -> SolveStatus:
    """Return that the gap is closed, if it is, or why it stayed open."""
    if solution.gap <= tol:
        return SolveStatus.CONVERGED
    if outcome.status is not SolveStatus.CONVERGED:
        return outcome.status
    return SolveStatus.MAX_TIME if expired() else SolveStatus.STALLED


def solve_svc(
    K: ArrayLike,
    y: ArrayLike,
    *,
    C: float,
    alpha0: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = DEFAULT_MAX_ITER,
    max_time: float | None = None,
    backend: Backend = "auto",
    check: bool = True,
) -> DualSolution:
    """Solve ``max 1ᵀα − ½(y∘α)ᵀK(y∘α)`` over ``0 ≤ αᵢ ≤ Cᵢ``, ``yᵀα = 0``.

    It is the dual of ``min ½‖f‖² + Σ Cᵢ max(0, 1 − yᵢ(f(xᵢ) + b))`` with ``Cᵢ = C·wᵢ``: the C of
    scikit-learn's SVC.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32
        Symmetric; never copied when it is contiguous. Bounds are computed in float64 either way.
        What an indefinite K can add is in the upper bound, see ``negative_part`` of the result.
    y : ndarray of shape (n,)
        Labels -1 and +1, both present.
    C : float
    alpha0 : ndarray of shape (n,), optional
        A warm start; an infeasible one is clipped and balanced.
    sample_weight : ndarray of shape (n,), optional
        At least 0. A sample of weight 0 has ``α = 0`` and changes nothing.
    tol : float
        The relative gap that is left between both bounds. A maximal violating pair of tol, in units
        of y, is where the solver looks first.
    max_iter : int
    max_time : float, optional
        Seconds; the deadline of the running solve (`kernelweave.kernels_core.clock`) holds too.
    backend : {"auto", "smo", "interior-point", "libsvm"}
        ``auto``: SMO, and the interior point where SMO is slow.
    check : bool
        Whether to check that K is finite and symmetric and that no two of its rows show a
        negative eigenvalue, which costs n² loads. With False the caller vouches for it: the
        bounds then take K as exactly symmetric.

    Returns
    -------
    DualSolution

    Raises
    ------
    ValueError
        If an argument is out of range, a class is missing, or K is not finite and symmetric.
    NotPSDError
        If two rows of K show a negative eigenvalue, ``Kᵢⱼ² > KᵢᵢKⱼⱼ``.

    Notes
    -----
    Fan, Chen, Lin, *Working set selection using second order information for training support
    vector machines*, JMLR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import solve_svc
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> s = solve_svc(np.outer(x, x), np.sign(x), C=10.0)
    >>> s.alpha
    array([0. , 0.5, 0.5, 0. ])
    >>> s.lower_bound <= 0.5 <= s.upper_bound
    True
    """
    kernel = as_gram(K)
    check_limits(tol, max_iter, max_time, exact=False)
    bound = check_bounds(C, sample_weight, kernel.shape[0])
    labels = check_labels(y, bound)
    start = None if alpha0 is None else labels * check_vector("alpha0", alpha0, labels.size)
    problem = classification(kernel, labels, bound)
    with time_limit(max_time):
        solution = _solve_to_gap(problem, start, tol, max_iter, backend, check=check)
    warn_unless_converged(solution, tol=tol)
    return solution


def solve_svr(
    K: ArrayLike,
    y: ArrayLike,
    *,
    C: float,
    epsilon: float,
    alpha0: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = DEFAULT_MAX_ITER,
    max_time: float | None = None,
    backend: Backend = "auto",
    check: bool = True,
) -> DualSolution:
    """Solve ``max yᵀα − ε‖α‖₁ − ½αᵀKα`` over ``|αᵢ| ≤ Cᵢ``, ``Σα = 0``.

    It is the dual of ``min ½‖f‖² + Σ Cᵢ max(0, |yᵢ − f(xᵢ) − b| − ε)`` with ``Cᵢ = C·wᵢ``: C and
    ε of scikit-learn's SVR. There are n signed variables, not 2n.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32
        As in `solve_svc`.
    y : ndarray of shape (n,)
        Targets.
    C : float
    epsilon : float
        At least 0: the half-width of the tube.
    alpha0, sample_weight, tol, max_iter, max_time, backend, check
        As in `solve_svc`; ``alpha0`` is signed.

    Returns
    -------
    DualSolution

    Raises
    ------
    ValueError
        If an argument is out of range, or K is not finite and symmetric.
    NotPSDError
        If two rows of K show a negative eigenvalue, ``Kᵢⱼ² > KᵢᵢKⱼⱼ``.

    Notes
    -----
    The same second-order working set as `solve_svc`; a step follows the pair over the kinks of
    ``‖α‖₁`` instead of stopping at them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import solve_svr
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> s = solve_svr(np.outer(x, x), x, C=10.0, epsilon=0.5)
    >>> s.alpha
    array([-0.25,  0.  ,  0.25])
    """
    kernel = as_gram(K)
    check_limits(tol, max_iter, max_time, exact=False)
    bound = check_bounds(C, sample_weight, kernel.shape[0])
    targets = check_vector("y", y, bound.size)
    width = float(NONNEGATIVE.check("epsilon", epsilon))
    start = None if alpha0 is None else check_vector("alpha0", alpha0, targets.size)
    problem = regression(kernel, targets, bound, width)
    with time_limit(max_time):
        solution = _solve_to_gap(problem, start, tol, max_iter, backend, check=check)
    warn_unless_converged(solution, tol=tol)
    return solution


def solve_quantile_svr(
    K: ArrayLike,
    y: ArrayLike,
    *,
    C: float,
    quantile: float = 0.5,
    alpha0: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = DEFAULT_MAX_ITER,
    max_time: float | None = None,
    backend: Backend = "auto",
    check: bool = True,
) -> DualSolution:
    """Solve ``max yᵀα − ½αᵀKα`` over ``(τ − 1)Cᵢ ≤ αᵢ ≤ τCᵢ``, ``Σα = 0``.

    It is the dual of kernel quantile regression, ``min ½‖f‖² + Σ Cᵢ ρ(yᵢ − f(xᵢ) − b)`` with the
    pinball loss ``ρ(r) = max(τr, (τ − 1)r)``, τ = ``quantile`` and ``Cᵢ = C·wᵢ``.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32
        As in `solve_svc`.
    y : ndarray of shape (n,)
        Targets.
    C : float
    quantile : float, default=0.5
        τ in (0, 1). At most nτ samples lie below ``f + b`` and at most n(1 − τ) above it.
    alpha0, sample_weight, tol, max_iter, max_time, backend, check
        As in `solve_svc`; ``alpha0`` is signed, and LIBSVM has no such loss.

    Returns
    -------
    DualSolution

    Raises
    ------
    ValueError
        If an argument is out of range, K is not finite and symmetric, or the backend is LIBSVM.
    NotPSDError
        If two rows of K show a negative eigenvalue, ``Kᵢⱼ² > KᵢᵢKⱼⱼ``.

    Notes
    -----
    Takeuchi, Le, Sears, Smola, *Nonparametric quantile estimation*, JMLR 2006, equation 10. At
    τ = ½ it is `solve_svr` with ``C/2`` and no tube.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import solve_quantile_svr
    >>> y = np.array([0.0, 1.0, 2.0, 10.0])
    >>> solve_quantile_svr(np.zeros((4, 4)), y, C=1.0, quantile=0.9).intercept
    10.0
    """
    kernel = as_gram(K)
    check_limits(tol, max_iter, max_time, exact=False)
    bound = check_bounds(C, sample_weight, kernel.shape[0])
    targets = check_vector("y", y, bound.size)
    tau = float(QUANTILE.check("quantile", quantile))
    start = None if alpha0 is None else check_vector("alpha0", alpha0, targets.size)
    problem = quantile_regression(kernel, targets, bound, tau)
    with time_limit(max_time):
        solution = _solve_to_gap(problem, start, tol, max_iter, backend, check=check)
    warn_unless_converged(solution, tol=tol)
    return solution
