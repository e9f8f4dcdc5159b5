"""Proof files of sparse optima: a tree over supports whose leaves are closed by dual points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import check_limits, check_sample_weight
from kernelweave.kernels_core.clock import expired, time_limit
from kernelweave.kernels_core.grams import GramStack, Stack, as_stack
from kernelweave.mkl_sparse import SparseSimplex
from kernelweave.qp_smo.learners import BoxLearner
from kernelweave.qp_smo.proof import (
    SLACK,
    BoxTasks,
    Line,
    Proof,
    UnprovedError,
    decimal,
    factor,
    on_grid,
    proof_of,
    triangle,
    vector,
)
from kernelweave.qp_smo.saddle import (
    CutPool,
    MasterSolution,
    NestedPenalty,
    SaddleOracle,
    WeightPenalty,
    as_learner,
    solve_cut_master,
)
from numpy.typing import ArrayLike

from .branch_and_bound import GlobalOptimum, solve_global

# Bits of the weights of kernels and of the multipliers of cuts, which sum to a power of two.
_WEIGHT_BITS = 40
# Multipliers below this share of their sum are left out.
_NOTHING = 1e-12
# Maximum number of cuts that are taken over from the search; leaves add cuts if they need more.
_MOST_CUTS = 1000


def prove_sparse(
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
    optimum: GlobalOptimum | None = None,
    max_time: float | None = None,
    check: bool = True,
) -> Proof:
    """Prove the global optimum of sparse kernel weights by numbers that anybody can check.

    The problem is that of `solve_global`; with one kernel and ``lam=0`` it is the dual of a support
    vector machine. The matrices are rounded to 48 bits relative to their largest entry. The proof
    is about the rounded ones, which are in the file.

    Parameters
    ----------
    grams, y, C, lam, k0, views, n_views, learner, sample_weight
        As for `solve_global`.
    tol : float
        Relative gap to prove.
    optimum : GlobalOptimum, optional
        The result of `solve_global` for the same problem, to start from; computed if None.
    max_time : float, optional
        Maximum time in seconds.
    check : bool
        Whether to check the Gram matrices.

    Returns
    -------
    Proof

    Raises
    ------
    UnprovedError
        If the gap is not closed within the time, or rounding forbids it.
    ValueError, NotPSDError
        As `solve_global`.

    Notes
    -----
    A tree over supports whose leaves are closed by means of dual points, as the certificates of
    Cheung, Gleixner and Steffy, *Verifying integer programming results*, IPCO 2017, do it for
    integer programs.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.relaxations import prove_sparse
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4), np.ones((4, 4))])
    >>> proof = prove_sparse(grams, np.sign(x), C=10.0, lam=0.1, k0=1)
    >>> proof.lower <= 0.6 <= proof.upper
    True
    """
    check_limits(tol, 1, max_time)
    stack = as_stack(grams, check=check)
    rounded = [on_grid(np.asarray(K, dtype=np.float64)) for K in stack.matrices]
    exact = GramStack([np.ldexp(K, e) for K, e in rounded], check=False)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    weight = check_sample_weight(sample_weight, exact.n_samples)
    chosen = as_learner(C, learner)
    tasks = BoxTasks.of(chosen, targets, weight)
    with time_limit(max_time):
        if optimum is None:
            optimum = solve_global(
                exact,
                targets,
                lam=lam,
                k0=k0,
                views=views,
                n_views=n_views,
                learner=chosen,
                sample_weight=weight,
                tol=0.5 * tol,
                check=False,
            )
        oracle = SaddleOracle(exact, targets, chosen, weight, _pool_on(exact, optimum.pool, chosen))
        root = SparseSimplex(k0, lam, views, n_views).relaxed(len(exact))
        upper = _prove_upper_bound(oracle, root, tasks, optimum.weights, 1e-3 * tol)
        target = upper.value - (1.0 - 1e-3) * tol * abs(upper.value)
        tree = _Tree(oracle, root, target)
        tree.close(root)
    parameters = {
        "k0": int(k0),
        "lambda": decimal(lam),
        "views": root.view.tolist() if isinstance(root, NestedPenalty) else [0] * len(exact),
        "n_views": root.n_views if isinstance(root, NestedPenalty) else 1,
    }
    lines = [*({"kernel": triangle(K, e)} for K, e in rounded), *upper.rows, *tree.rows()]
    sizes, bounds = (exact.n_samples, len(exact)), (float(tree.lower), upper.value)
    counts = len(tree.used), tree.n_leaves
    return proof_of("sparse", sizes, tasks, bounds, parameters, lines, counts)


def _pool_on(stack: Stack, pool: CutPool, learner: BoxLearner) -> CutPool:
    """Return the cuts of a pool with the forms of these Gram matrices."""
    cuts = CutPool(len(stack))
    first = max(len(pool) - _MOST_CUTS, 0)
    for kappa, u in zip(pool.kappa[first:], pool.dual_coef[first:], strict=True):
        forms = sum(stack.quadratic_forms(row) for row in u)
        cuts.add(float(kappa), np.asarray(forms), u)
    return cuts


@dataclass(frozen=True)
class _ProvedUpperBound:
    """An upper bound of the optimum, and the lines of a proof file that prove it."""

    value: float
    rows: tuple[Line, ...]


def _prove_upper_bound(
    oracle: SaddleOracle, root: WeightPenalty, tasks: BoxTasks, weights: FloatArray, tol: float
) -> _ProvedUpperBound:
    """Evaluate weights rounded to few bits; return their objective and its proof."""
    whole = _summing_to(weights, _WEIGHT_BITS)
    beta = np.ldexp(whole, -_WEIGHT_BITS)
    first = oracle.evaluate(beta, np.inf)
    evaluation = oracle.evaluate(beta, tol * abs(first.upper_bound))
    K = oracle.grams.combine(beta)
    line, delta = factor(K)
    u = evaluation.solution.dual_coef
    value = root.lam * float(beta @ beta) + tasks.primal(evaluation.solution, u @ K, delta)
    kernel = {"weights": {"exponent": -_WEIGHT_BITS, "values": [int(each) for each in whole]}}
    return _ProvedUpperBound(value, (tasks.upper_line(evaluation.solution, kernel), line))


@dataclass
class _Tree:
    """Branches over supports, depth first, each closed by a mean of cuts."""

    oracle: SaddleOracle
    root: WeightPenalty
    target: float
    lower: float = np.inf
    n_leaves: int = 0
    used: dict[int, int] = field(default_factory=dict)
    branches: list[Line] = field(default_factory=list)

    def close(self, penalty: WeightPenalty) -> None:
        """Close a branch: by a mean of cuts, by a new cut, or by branching on a kernel."""
        while True:
            if expired():
                raise UnprovedError("the proof is not closed within max_time: raise it, or tol")
            master = solve_cut_master(self.oracle.pool, penalty)
            if self._leaf(penalty, master):
                return
            if not self.root.is_met(master.weights > 0.0):
                break
            if not self._learns(master.weights):
                raise UnprovedError(
                    f"a branch has a bound of {master.lower_bound:.10g} and needs "
                    f"{self.target:.10g}: rounding allows no smaller gap, raise tol"
                )
        at = int(np.argmax(np.where(penalty.free, master.weights, -1.0)))
        chosen = np.arange(penalty.required.size) == at
        self.branches.append({"branch": at})
        for required, excluded in ((chosen, ~chosen & chosen), (~chosen & chosen, chosen)):
            part = penalty.restricted(penalty.required | required, penalty.excluded | excluded)
            if part.allowed.any():
                self.close(part)
            else:
                self.branches.append({"cuts": [0], "weights": [1], "tau": "0"})
                self.n_leaves += 1

    def _learns(self, weights: FloatArray) -> bool:
        want = 0.05 * abs(self.target - self.oracle.pool.model(weights))
        floor = 1e-13 * abs(self.target)
        return any(self.oracle.evaluate(weights, w).is_new for w in (max(want, floor), floor))

    def _leaf(self, penalty: WeightPenalty, master: MasterSolution) -> bool:
        """Close a branch with multipliers of few bits, if they prove enough."""
        if master.lower_bound < self.target:
            return False
        share = np.where(master.multipliers > _NOTHING, master.multipliers, 0.0)
        whole = _summing_to(share / share.sum(), _WEIGHT_BITS)
        mean = np.ldexp(whole, -_WEIGHT_BITS)
        pool = self.oracle.pool
        at = np.flatnonzero(whole)
        h = mean[at] @ pool.half_forms[at]
        beta, least = penalty.best_response(h)
        bound = float(mean[at] @ pool.kappa[at]) + least
        if bound < self.target:
            return False
        top = int(np.argmax(beta))
        self.branches.append(
            {
                "cuts": [self.used.setdefault(int(i), len(self.used)) for i in at],
                "weights": [int(whole[i]) for i in at],
                # without λ the proof needs a τ that no form exceeds
                "tau": decimal(h[top] - 2.0 * penalty.lam * beta[top] + SLACK * abs(bound) / 4.0),
            }
        )
        self.n_leaves += 1
        self.lower = min(self.lower, bound)
        return True

    def rows(self) -> list[Line]:
        """Return the lines of the cuts that were used, then those of the tree."""
        cuts = [{"cut": [vector(u) for u in self.oracle.pool.dual_coef[i]]} for i in self.used]
        return [*cuts, *self.branches]


def _summing_to(shares: FloatArray, bits: int) -> FloatArray:
    """Return whole numbers in the ratios of nonnegative shares that sum to 2^bits; zeros stay."""
    whole = np.rint(np.ldexp(shares / shares.sum(), bits))
    whole[np.argmax(whole)] += 2.0**bits - whole.sum()
    return np.asarray(whole)
