"""The squared hinge: the same dual with a ridge on the Gram matrix and no upper bound."""

from __future__ import annotations

import math

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.checks import check_limits, check_vector
from kernelweave.kernels_core.clock import time_limit
from numpy.typing import ArrayLike

from . import validation
from .bounds import FunctionValues, dual_value, function_values, gamma
from .engine import Backend, Outcome, solve_box
from .problem import BoxProblem, Budget, KernelArray
from .solution import DualSolution, FloatArray, warn_unless_converged
from .svm import DEFAULT_MAX_ITER

_MAX_NEWTON = 60


def _ridged(K: KernelArray, labels: FloatArray, bound: FloatArray) -> BoxProblem:
    """Return the box problem of ``K + diag(1/(2Cᵢ))``; samples of weight 0 are held at 0."""
    n = labels.size
    memory.require(
        8 * n * n,
        f"a copy of the Gram matrix of {n} samples with the ridge of the squared hinge",
        alternative="use solve_svc, which copies nothing",
    )
    matrix = K.astype(np.float64)
    live = bound > 0.0
    matrix[live, live] += 0.5 / bound[live]
    matrix.flags.writeable = False
    end = np.where(live, np.inf, 0.0)
    lower, upper = np.where(labels > 0.0, 0.0, -end), np.where(labels > 0.0, end, 0.0)
    return BoxProblem(matrix, labels, lower, upper, exact_kappa=True)


def _intercept(f: FloatArray, labels: FloatArray, bound: FloatArray) -> float:
    """Minimise ``Σ Cᵢ (1 − yᵢ(fᵢ + b))₊²`` over b by Newton steps; the best b that is seen."""

    def loss(b: float) -> float:
        return float(bound @ np.maximum(1.0 - labels * (f + b), 0.0) ** 2)

    residual = labels - f
    best = b = float(bound @ residual) / float(bound.sum())
    for _ in range(_MAX_NEWTON):
        active = np.where(labels * (f + b) < 1.0, bound, 0.0)
        mass = float(active.sum())
        if mass == 0.0:
            break
        b, old = float(active @ residual) / mass, b
        best = b if loss(b) < loss(best) else best
        if b == old:
            break
    return best


def _primal_above(values: FunctionValues, labels: FloatArray, bound: FloatArray, b: float) -> float:
    """Return the loss terms at b, rounded up."""
    widen = values.error + gamma(4) * (1.0 + np.abs(values.f) + abs(b))
    shortfall = np.maximum(1.0 - labels * (values.f + b) + widen, 0.0)
    return float(bound @ shortfall**2) * (1.0 + gamma(labels.size + 8))


def _certified(
    problem: BoxProblem, ridged: BoxProblem, bound: FloatArray, outcome: Outcome
) -> DualSolution:
    """Bound both ends from the Gram matrix without its ridge."""
    u = outcome.landing.point.u
    values = function_values(problem, u)
    dual = dual_value(ridged, u, values)
    live = bound > 0.0
    # not u²: its underflow, at C near 1e-160, would lift the lower bound
    ridge = float((u[live] / (2.0 * bound[live]) * u[live]).sum())
    ridge_up = ridge * (1.0 + gamma(u.size + 8))
    lower = dual.kappa_down - 0.5 * (dual.quadratic_up + ridge_up)
    lower -= gamma(6) * (abs(dual.kappa_down) + abs(dual.quadratic_up) + ridge_up)
    b = _intercept(values.f, ridged.p, bound)
    upper = 0.5 * dual.quadratic_up + _primal_above(values, ridged.p, bound, b)
    return DualSolution(
        alpha=np.abs(u),
        intercept=b,
        lower_bound=max(lower, 0.0),
        upper_bound=upper * (1.0 + gamma(4)),
        objective=dual.kappa - 0.5 * (dual.quadratic + ridge),
        kkt_violation=outcome.violation,
        n_iter=outcome.n_iter,
        status=outcome.status,
        dual_coef=u,
        kappa=dual.kappa_down,
        function_values=values.f,
        n_kernel_rows=math.ceil(outcome.rows) + values.n_rows,
        backend=outcome.backend,
        log=outcome.log,
    )


def solve_squared_hinge_svc(
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
    """Solve ``max 1ᵀα − ½(y∘α)ᵀK(y∘α) − Σ αᵢ²/(4Cᵢ)`` over ``α ≥ 0``, ``yᵀα = 0``.

    It is the dual of ``min ½‖f‖² + Σ Cᵢ max(0, 1 − yᵢ(f(xᵢ) + b))²`` with ``Cᵢ = C·wᵢ``, and
    ``αᵢ = 2Cᵢ max(0, 1 − yᵢ(f(xᵢ) + b))``. Conversions: with ``½C Σ max(…)²`` instead, pass C/2;
    the form ``max 2·1ᵀα − αᵀY(K + λI)Yα`` is twice this one at ``C = 1/(2λ)``, with the same α.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32
        Copied once, with the ridge ``1/(2Cᵢ)`` added to its diagonal.
    y : ndarray of shape (n,)
        Labels -1 and +1, both present.
    C : float
    alpha0, sample_weight, tol, max_iter, max_time, check
        As in `solve_svc`.
    backend : {"auto", "smo", "interior-point"}

    Returns
    -------
    DualSolution
        ``function_values`` is Ku, without the ridge.

    Raises
    ------
    ValueError
        If an argument is out of range, a class is missing, K is not finite and symmetric, or the
        backend is LIBSVM, which has no squared hinge.
    NotPSDError
        If two rows of K show a negative eigenvalue, ``Kᵢⱼ² > KᵢᵢKⱼⱼ``.
    MemoryBudgetError
        If the copy of K does not fit in the memory limit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import solve_squared_hinge_svc
    >>> s = solve_squared_hinge_svc(np.eye(2), [-1.0, 1.0], C=0.5)
    >>> s.alpha
    array([0.5, 0.5])
    """
    if backend == "libsvm":
        raise ValueError('backend="libsvm" has no squared hinge: use "auto" or "smo"')
    kernel = validation.as_kernel(K)
    check_limits(tol, max_iter, max_time, exact=False)
    bound = validation.check_bounds(C, sample_weight, kernel.shape[0])
    labels = validation.check_labels(y, bound)
    start = None if alpha0 is None else check_vector("alpha0", alpha0, labels.size)
    asymmetry = validation.check_kernel(kernel) if check else 0.0
    budget = Budget(tol, max_iter)
    ridged = _ridged(kernel, labels, bound)
    problem = BoxProblem(
        kernel, labels, ridged.lower, ridged.upper, asymmetry=asymmetry, exact_kappa=True
    )
    with time_limit(max_time):
        outcome = solve_box(ridged, None if start is None else labels * start, budget, backend)
    solution = _certified(problem, ridged, bound, outcome)
    warn_unless_converged(solution, tol=tol)
    return solution
