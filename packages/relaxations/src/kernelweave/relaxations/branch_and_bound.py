"""The certified global optimum of sparse kernel weights: branch and bound on supports."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import check_limits
from kernelweave.kernels_core.clock import Stopwatch, expired, time_limit
from kernelweave.kernels_core.grams import Stack
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse import SparseSimplex
from kernelweave.mkl_sparse.algorithm import oracle_of
from kernelweave.qp_smo.learners import BoxLearner
from kernelweave.qp_smo.saddle import CutPool, KernelWeights, on_simplex
from numpy.typing import ArrayLike, NDArray

from .search import SupportSearch, sparse_part
from .settings import BranchAndBound
from .sparse_problem import as_problem


@dataclass(frozen=True)
class GlobalOptimum(KernelWeights):
    """Sparse kernel weights, at most k₀ of them not 0, and the interval of the global optimum.

    Attributes
    ----------
    n_svm_solves_relaxation : int
        Learner solves of the relaxation, which ``n_svm_solves`` counts too.
    n_nodes : int
        Branches and supports that were bounded.
    n_screened : int
        Kernels that no optimum uses, or every one uses, by a bound at the root.
    relaxation_bound : float
        The proven lower bound of the convex relaxation at the root; where it was not needed, so
        that ``n_svm_solves_relaxation`` is 0, what the cuts there are say of it.
    """

    n_svm_solves_relaxation: int
    n_nodes: int
    n_screened: int
    relaxation_bound: float

    @property
    def support(self) -> NDArray[np.intp]:
        """Return which kernels are used."""
        return np.flatnonzero(self.weights)


def solve_global(
    grams: ArrayLike | Sequence[ArrayLike] | Stack,
    y: ArrayLike,
    *,
    C: float | None = None,
    lam: float,
    k0: int,
    views: Sequence[Hashable] | None = None,
    n_views: int | None = None,
    learner: BoxLearner | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_time: float | None = None,
    max_nodes: int = 10_000_000,
    pool: CutPool | None = None,
    weights0: FloatArray | None = None,
    check: bool = True,
) -> GlobalOptimum:
    """Solve ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of max κ(u) − ½uᵀK(β)u + λ‖β‖²`` globally.

    Cutting planes for the convex relaxation, then branch and bound on the support with the same
    cuts. Both ends are proven: the upper one is the learner's primal value plus the penalty, the
    lower one the dual of the master problem of the lowest branch.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n), sequence of (n, n) arrays, or Stack
        Symmetric positive semidefinite.
    y : ndarray of shape (n,) or (t, n)
        Labels ±1 or targets; rows are tasks that share the weights.
    C : float, optional
        Of ``SVC(C)``; give either this or ``learner``.
    lam : float
        λ ≥ 0.
    k0 : int
        Kernels at most; with ``n_views``, of each view.
    views : sequence of shape (q,), optional
        The view of each kernel: names or numbers.
    n_views : int, optional
        Views at most; needs ``views``.
    learner : BoxLearner, optional
        E.g. ``SVR(C=1.0, epsilon=0.1)``.
    sample_weight : ndarray of shape (n,), optional
    tol : float
        Relative gap at which to stop.
    max_time : float, optional
        Seconds; what is proven by then is returned.
    max_nodes : int
        Branches and supports at most.
    pool : CutPool, optional
        Cuts of the same Grams, targets, weights and learner: those of another λ or k₀.
    weights0 : ndarray of shape (q,), optional
        Where to start, of which the largest weights that are allowed count: such as the optimum
        with fewer kernels.
    check : bool
        Whether to check that the Grams are finite, symmetric and positive semidefinite: n³/3
        flops each. Those of a `KernelDictionary` have been checked where it is needed.

    Returns
    -------
    GlobalOptimum

    Raises
    ------
    NotPSDError
        If a Gram matrix has a negative eigenvalue; no bound would hold.
    ValueError
        If an argument is out of range.

    Notes
    -----
    The problem is (4) of Bertsimas, Iglesias, Johnson, *Sparse multiple kernel learning:
    alternating best response and semidefinite relaxations*, 2025. The search follows Quesada and
    Grossmann, Computers and Chemical Engineering 1992: one tree, cuts added at sparse points.
    Of 100 supports or more all are enumerated in compiled code, after those around the best, and a
    relaxation is solved only where that takes long; with one kernel at most the learner is solved
    at each, roughly where that rules it out. From 200 kernels on the relaxation comes first, is
    solved over some of them, and the others are priced.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.relaxations import solve_global
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4), np.ones((4, 4))])
    >>> s = solve_global(grams, np.sign(x), C=10.0, lam=0.1, k0=1)
    >>> s.support, s.gap <= 1e-4
    (array([0]), True)
    """
    problem = as_problem(
        grams, y, lam=lam, k0=k0, C=C, learner=learner, sample_weight=sample_weight, check=check
    )
    check_limits(tol, 1, None)
    watch, oracle = Stopwatch(), problem.oracle(pool)
    penalty = SparseSimplex(k0, lam, views, n_views).relaxed(len(problem.grams))
    search = SupportSearch(oracle, penalty, tol)
    with time_limit(max_time):
        if weights0 is not None:
            search.visit(sparse_part(on_simplex(weights0, len(problem.grams)), penalty))
        status = _run(search, max_nodes)
    search.refine()
    return GlobalOptimum(
        weights=search.parameters,
        lower_bound=search.lower,
        upper_bound=search.upper,
        gap=search.gap,
        status=status,
        n_svm_solves_relaxation=search.n_relaxation_solves,
        n_nodes=search.n_nodes,
        n_screened=search.n_screened,
        relaxation_bound=search.relaxed_bound,
        solution=search.solution,
        pool=oracle.pool,
        counts=oracle.counts,
        seconds=watch.seconds,
    )


def _run(search: SupportSearch, max_nodes: int) -> Status:
    """Search until the gap is closed or a limit is reached; there is always a best point."""
    search.step()
    while search.gap > search.tol:
        if search.outcome:
            return search.outcome
        if search.n_nodes >= max_nodes:
            return Status.MAX_ITER
        if expired():
            return Status.MAX_TIME
        search.step()
    return Status.CONVERGED


_DEFAULTS = BranchAndBound()


def global_search(
    problem: Problem, random_state: np.random.RandomState, settings: BranchAndBound = _DEFAULTS
) -> SupportSearch:
    """Return the search at its first sparse weights.

    `problem`: a dictionary, a learner and a `SparseSimplex`; `random_state`: not used.
    """
    accuracy = 1e-5 if settings.accuracy is None else settings.accuracy
    oracle, _ = oracle_of(problem)
    search = SupportSearch(oracle, problem.constraint.relaxed(len(oracle.grams)), accuracy)
    search.step()
    return search
