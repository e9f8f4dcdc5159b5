"""Sparse weights along a grid of C, λ and k₀ that shares the Gram matrices and the cuts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, check_limits, check_sample_weight, one_of
from kernelweave.kernels_core.clock import expired, time_limit
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.grams import Stack, as_stack
from kernelweave.kernels_core.result import Status, check_bounds, relative_gap
from kernelweave.qp_smo import SVC
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    SaddleOracle,
    SaddleSearch,
    run_search,
    solve_cut_master,
)
from numpy.typing import ArrayLike, NDArray

from .best_response import BestResponseRun, Ending, largest_kept, relaxations
from .constraint import SparseSimplex

if TYPE_CHECKING:
    from kernelweave.kernels_core.formula import Learner


# Maximum number of rounds of Algorithm 1 at one point of a path. Most runs end earlier, at a fixed
# point, in a cycle or when patience runs out.
_RUN_LIMIT = 50
ALGORITHMS = ("smkl-best-response", "smkl-global")


@dataclass(frozen=True)
class PathPoint:
    """Sparse weights at one setting.

    Attributes
    ----------
    C, lam : float
        The penalty of the loss, and λ, the ridge penalty of the weights.
    k0 : int
        The maximum number of kernels.
    weights : ndarray of shape (q,)
    lower_bound, upper_bound : float
        The global optimum lies between them; the upper one is the objective at ``weights``.
    status : Status
    n_svm_solves : int
        Learner solves that this setting added.
    solution : Solution
        Duals and intercepts at ``weights``.
    """

    C: float
    lam: float
    k0: int
    weights: FloatArray
    lower_bound: float
    upper_bound: float
    status: Status
    n_svm_solves: int
    solution: Solution

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return relative_gap(self.lower_bound, self.upper_bound)

    @property
    def support(self) -> NDArray[np.intp]:
        """Return which kernels are used."""
        return np.flatnonzero(self.weights)


@dataclass(frozen=True)
class SparseMKLPath:
    """Sparse weights along a grid.

    Attributes
    ----------
    points : tuple of PathPoint
        C ascending, then k₀ ascending, then λ descending. Fewer than the grid has where
        ``max_time`` ended the work.
    """

    points: tuple[PathPoint, ...]

    @property
    def weights(self) -> FloatArray:
        """Return the weights of every point, shape (n_points, q)."""
        return np.stack([point.weights for point in self.points])

    @property
    def n_svm_solves(self) -> int:
        """Return the learner solves of the whole path."""
        return sum(point.n_svm_solves for point in self.points)


def sparse_mkl_path(
    grams: ArrayLike | Sequence[ArrayLike] | Stack,
    y: ArrayLike,
    *,
    Cs: Iterable[float] = (1.0,),
    lams: Iterable[float] = (1.0,),
    k0s: Iterable[int] = (3,),
    views: Sequence[Hashable] | None = None,
    n_views: int | None = None,
    learner: Learner | None = None,
    algorithm: str = "smkl-best-response",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_time: float | None = None,
    check: bool = True,
) -> SparseMKLPath:
    """Minimise ``max κ(u) − ½uᵀK(β)u + λ‖β‖²`` over sparse β at every C, λ and k₀ of a grid.

    A cut holds for every λ and k₀, and after scaling for another C, so that most settings need
    few new learner solves. Every point carries bounds of its own global optimum.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n), sequence of (n, n) arrays, or Stack
        Symmetric positive semidefinite.
    y : ndarray of shape (n,) or (t, n)
        Labels ±1 or targets; rows are tasks that share the weights.
    Cs, lams : iterable of float
    k0s : iterable of int
    views : sequence of shape (q,), optional
        The view of each kernel.
    n_views : int, optional
        Maximum number of views, each with at most k₀ kernels; for ``"smkl-global"`` only.
    learner : SVC or SVR, optional
        ``SVC()`` by default; its C is replaced by those of the grid.
    algorithm : {"smkl-best-response", "smkl-global"}
        Algorithm 1, started from the relaxation and from the weights of the previous setting, or
        branch and bound, which needs kernelweave-relaxations.
    sample_weight : ndarray of shape (n,), optional
        Multiplies C per sample.
    tol : float
        Relative gap of the relaxation, or of the optimum.
    max_time : float, optional
        Seconds for the whole grid; settings that are not reached are left out.
    check : bool
        Whether to check the Grams (`GramStack`).

    Returns
    -------
    SparseMKLPath

    Raises
    ------
    ValueError
        If an argument is out of range.
    NotPSDError
        If a Gram matrix has a negative eigenvalue.
    ImportError
        If ``"smkl-global"`` is asked for without kernelweave-relaxations.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.mkl_sparse import sparse_mkl_path
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4), np.ones((4, 4))])
    >>> path = sparse_mkl_path(grams, np.sign(x), lams=[0.1, 10.0], k0s=[1, 2])
    >>> [(point.k0, point.lam, point.support.tolist()) for point in path.points]
    [(1, 10.0, [0]), (1, 0.1, [0]), (2, 10.0, [0, 1]), (2, 0.1, [0])]
    """
    one_of(*ALGORITHMS).check("algorithm", algorithm)
    stack = as_stack(grams, check=check)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if targets.shape[1] != stack.n_samples:
        raise ValueError(f"y must have {stack.n_samples} samples, got shape {np.shape(y)}")
    settings = [(lam, k0) for k0 in sorted(set(k0s)) for lam in sorted(set(lams), reverse=True)]
    for lam, k0 in settings:
        constraint = SparseSimplex(k0, lam, views, n_views)
        constraint.validate()
        constraint.relaxed(len(stack))
    if n_views is not None and algorithm != "smkl-global":
        raise ValueError(f"n_views={n_views} needs algorithm='smkl-global', got {algorithm!r}")
    check_limits(tol, 1, None)
    weight = check_sample_weight(sample_weight, stack.n_samples)
    walk = Walk(stack, targets, learner or SVC(), weight, tol, (views, n_views))
    solve = walk.globally if algorithm == "smkl-global" else walk.by_best_response
    points: list[PathPoint] = []
    with time_limit(max_time):
        for C in sorted(set(Cs)):
            walk.move_to(C)
            for lam, k0 in settings:
                if points and expired():
                    return SparseMKLPath(tuple(points))
                points.append(solve(float(lam), min(COUNT.check("k0", k0), len(stack))))
    return SparseMKLPath(tuple(points))


@dataclass(eq=False, repr=False)
class Walk:
    """The walk along the grid, with what the next setting reuses: cuts, and the last weights.

    `views`: the view of each kernel, and how many of them at most.
    """

    grams: Stack
    targets: FloatArray
    learner: Any
    sample_weight: FloatArray | None
    tol: float
    views: tuple[Sequence[Hashable] | None, int | None]
    pool: CutPool | None = None
    C: float | None = None
    last: FloatArray | None = None
    oracle: SaddleOracle = field(init=False)

    def move_to(self, C: float) -> None:
        """Go to another C with the cuts scaled."""
        self.learner = replace(self.learner, C=float(C))
        self.learner.validate()
        if self.pool is not None and self.C is not None:
            # rounded down, so that no scaled dual point leaves its box
            self.pool = self.pool.rescaled(float(np.nextafter(C / self.C, 0.0)))
        self.C = float(C)
        self.oracle = SaddleOracle(
            self.grams, self.targets, self.learner, self.sample_weight, self.pool
        )
        self.pool = self.oracle.pool

    def globally(self, lam: float, k0: int) -> PathPoint:
        """Return the certified optimum at a setting."""
        assert self.C is not None
        optimum = relaxations("algorithm='smkl-global'").solve_global(
            self.grams,
            self.targets,
            learner=self.learner,
            lam=lam,
            k0=k0,
            views=self.views[0],
            n_views=self.views[1],
            sample_weight=self.sample_weight,
            tol=self.tol,
            pool=self.pool,
            weights0=self.last,
        )
        self.last = optimum.weights
        return PathPoint(
            self.C,
            lam,
            k0,
            optimum.weights,
            optimum.lower_bound,
            optimum.upper_bound,
            optimum.status,
            optimum.n_svm_solves,
            optimum.solution,
        )

    def by_best_response(self, lam: float, k0: int) -> PathPoint:
        """Return the best run of Algorithm 1, from the relaxation and from the last weights."""
        assert self.C is not None
        before = self.oracle.counts.n_svm_solves
        relaxed = KSupport(lam, k0).on(len(self.grams))
        search = SaddleSearch(self.oracle, relaxed, self.tol)
        run_search(search, max_iter=200)
        assert search.best is not None
        starts = [largest_kept(search.best.weights, k0)]
        if self.last is not None and np.count_nonzero(self.last) <= k0:
            starts.append(self.last)
        runs: list[BestResponseRun] = []
        for start in starts:
            runs.append(self._run(start, lam, k0, search.lower))
            if relative_gap(search.lower, runs[-1].upper) <= self.tol:
                break
        best = min(runs, key=lambda run: run.upper)
        assert best.best is not None
        self.last = best.best.weights
        lower = max(search.lower, solve_cut_master(self.oracle.pool, relaxed).lower_bound)
        check_bounds("best response", lower, best.upper)
        return PathPoint(
            self.C,
            lam,
            k0,
            self.last,
            min(lower, best.upper),
            best.upper,
            _status_of(best, relative_gap(lower, best.upper) <= self.tol),
            self.oracle.counts.n_svm_solves - before,
            best.best.solution,
        )

    def _run(self, start: FloatArray, lam: float, k0: int, lower: float) -> BestResponseRun:
        """Run Algorithm 1 until it ends, or the gap to the lower bound is at most ``tol``."""
        run = BestResponseRun(
            oracle=self.oracle,
            penalty=KSupport(lam).on(len(self.grams)),
            lam=lam,
            k0=k0,
            tol=1e-2,
            patience=3,
            cap=None,
            weights=start,
        )
        run.evaluate()
        while run.ending is Ending.RUNNING and len(run.objectives) <= _RUN_LIMIT:
            is_proven = relative_gap(lower, run.upper) <= self.tol
            if is_proven or expired():
                break
            run.step()
        else:
            if run.ending is Ending.RUNNING:
                run.ending = Ending.MAX_ITER
        return run


def _status_of(run: BestResponseRun, is_proven: bool) -> Status:
    if is_proven:
        return Status.CONVERGED
    if run.ending in (Ending.FIXED_POINT, Ending.CYCLE, Ending.PATIENCE):
        return Status.STATIONARY
    return Status.MAX_TIME if run.ending is Ending.RUNNING else Status.MAX_ITER
