"""Lower bounds of sparse multiple kernel learning: five relaxations, each with its proof.

For positive semidefinite K, ``u = Σ vₗ`` and shares ``aₗ > 0`` with ``Σ aₗ ≤ 1``, Cauchy's
inequality gives ``uᵀKu ≤ Σ vₗᵀKvₗ/aₗ``. The multipliers of a conic relaxation suggest vₗ and aₗ;
that the parts add up to u exactly is seen to here: nothing depends on the accuracy of a solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, check_limits, integer, one_of
from kernelweave.kernels_core.clock import Stopwatch, time_limit
from kernelweave.kernels_core.grams import Stack
from kernelweave.kernels_core.rounding import UNIT
from kernelweave.qp_smo.learners import BoxLearner
from kernelweave.qp_smo.point import starting_point, to_grid
from kernelweave.qp_smo.saddle import KSupport, SaddleSearch, lower_bound_from, run_search
from numpy.typing import ArrayLike

from .conic import CLOSE, Attempt, Epigraph, attempts, report
from .model import ConicModel, Couple, base_model, couple_matrix, couple_pairs, couple_vectors
from .sparse_problem import SparseProblem, as_problem

if TYPE_CHECKING:
    from cvxpy import Constraint


RELAXATIONS = ("saddle", "full-sdp", "sdp-3x3", "soc", "soc-random")


@dataclass(frozen=True)
class Bound:
    """A lower bound of the sparse optimum.

    Attributes
    ----------
    bound : float
        Proven: computed here from a feasible dual point, rounded down, whatever the solver did.
    value : float
        The relaxation's value as its solver reports it (for ``"saddle"`` its upper bound); not a
        proof.
    weights : ndarray of shape (q,)
        The relaxation's β, dense in general.
    gap : float
        ``(value − bound)/max(|value|, |bound|)``: what the proof lost.
    relaxation, solver : str
    seconds : float
    n_svm_solves : int
        Of ``"saddle"``, else 0.
    attempts : tuple of str
        The conic solvers that were tried, in turn, each with how it ended.
    """

    bound: float
    value: float
    weights: FloatArray
    gap: float
    relaxation: str
    solver: str
    seconds: float
    n_svm_solves: int = 0
    attempts: tuple[str, ...] = ()


def lower_bound(
    grams: ArrayLike | Sequence[ArrayLike] | Stack,
    y: ArrayLike,
    *,
    C: float | None = None,
    lam: float,
    k0: int,
    relaxation: str = "saddle",
    solver: str | None = None,
    learner: BoxLearner | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-5,
    n_vectors: int = 100,
    random_state: int = 0,
    max_time: float | None = None,
    check: bool = True,
) -> Bound:
    """Bound ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of max κ(u) − ½uᵀK(β)u + λ‖β‖²`` from below.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n), sequence of (n, n) arrays, or Stack
        Symmetric positive semidefinite.
    y : ndarray of shape (n,) or (t, n)
        Labels ±1 or targets; rows are tasks.
    C : float, optional
        Of ``SVC(C)``; give either this or ``learner``.
    lam : float
    k0 : int
    relaxation : str
        ``"saddle"``: cutting planes with the squared k-support norm; it has the value of the full
        semidefinite relaxation (14) and needs no conic solver. ``"full-sdp"``: (14) as a linear
        matrix inequality, for n up to about 150. ``"sdp-3x3"``: (18). ``"soc"``: (16).
        ``"soc-random"``: (17).
    solver : str, optional
        A cvxpy solver to try first; then come ``"CLARABEL"`` and ``"SCS"``, until one is content.
        ``"MOSEK"`` needs a licence; where it has one, it comes first for matrix inequalities, where
        it is the faster, without being named.
    learner : BoxLearner, optional
    sample_weight : ndarray of shape (n,), optional
    tol : float
        Relative gap of ``"saddle"``.
    n_vectors, random_state : int
        Of ``"soc-random"``: how many unit vectors, from ``numpy.random.default_rng``.
    max_time : float, optional
        Seconds; those that cvxpy needs to state a program are not limited.
    check : bool
        Whether to check that the Grams are finite, symmetric and positive semidefinite: n³/3
        flops each. Those of a `KernelDictionary` have been checked where it is needed.

    Returns
    -------
    Bound

    Raises
    ------
    NotPSDError
        If a Gram matrix has a negative eigenvalue; no bound would hold.
    ValueError
        If an argument is out of range.
    RuntimeError
        If no conic solver leaves a number.

    Warns
    -----
    KernelWeaveWarning
        If the first solver was not content; the message says how each one ended.

    Notes
    -----
    Bertsimas, Iglesias, Johnson, *Sparse multiple kernel learning*, 2025, section 4. From the
    solver's multipliers come u and a split ``u = Σ vₗ`` with shares ``aₗ``; for positive
    semidefinite K, ``uᵀKu ≤ Σ vₗᵀKvₗ/aₗ``, so that ``κ(u) − ½Σⱼβⱼ Σₗ vₗᵀKⱼvₗ/aₗ`` plus the least
    penalty is a bound for any u and any split. That is what is evaluated, with u exactly feasible.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.relaxations import lower_bound
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4)])
    >>> b = lower_bound(grams, np.sign(x), C=10.0, lam=0.1, k0=1)
    >>> b.bound <= 0.6 <= b.value * (1 + 1e-4)
    True
    """
    one_of(*RELAXATIONS).check("relaxation", relaxation)
    COUNT.check("n_vectors", n_vectors)
    integer(0).check("random_state", random_state)
    problem = as_problem(
        grams, y, lam=lam, k0=k0, C=C, learner=learner, sample_weight=sample_weight, check=check
    )
    if relaxation == "saddle":
        return _saddle(problem, tol, max_time)
    if relaxation == "full-sdp":
        return _conic(problem, relaxation, solver, max_time, couple_matrix(problem), None)
    if relaxation == "sdp-3x3":
        return _conic(problem, relaxation, solver, max_time, couple_pairs(problem), None)
    vectors = _vectors(problem, relaxation, n_vectors, random_state)
    matrices = (np.asarray(K, dtype=np.float64) for K in problem.grams.matrices)
    forms = np.stack([np.einsum("li,ij,lj->l", vectors, K, vectors) for K in matrices])
    tie = couple_vectors(vectors, forms)
    return _conic(problem, relaxation, solver, max_time, tie, vectors)


def _saddle(problem: SparseProblem, tol: float, max_time: float | None) -> Bound:
    check_limits(tol, 1, None)
    watch, oracle = Stopwatch(), problem.oracle()
    penalty = KSupport(problem.lam, problem.k0).on(len(problem.grams))
    search = SaddleSearch(oracle, penalty, tol)
    with time_limit(max_time):
        run_search(search, max_iter=1000)
    assert search.best is not None
    return Bound(
        bound=search.lower,
        value=search.upper,
        weights=search.best.weights,
        gap=search.gap,
        relaxation="saddle",
        solver="kernelweave",
        seconds=watch.seconds,
        n_svm_solves=oracle.counts.n_svm_solves,
    )


def _vectors(problem: SparseProblem, name: str, n_vectors: int, random_state: int) -> FloatArray:
    """Return the unit vectors of a second-order cone relaxation as rows."""
    n = problem.grams.n_samples
    if name == "soc":
        return np.eye(n)
    rows = np.random.default_rng(random_state).standard_normal((n_vectors, n))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.vstack([rows, np.eye(n)])


def _conic(
    problem: SparseProblem,
    name: str,
    solver: str | None,
    max_time: float | None,
    couple: Couple,
    vectors: FloatArray | None,
) -> Bound:
    """Return the best bound that the multipliers of the solvers prove."""
    model = base_model(problem, couple)
    tried: list[Attempt] = []
    best: Bound | None = None
    with time_limit(max_time):
        for attempt in attempts(model.problem, solver):
            tried.append(attempt)
            if attempt.is_usable:
                proved = _from_multipliers(problem, name, model, attempt, vectors)
                best = proved if best is None or proved.bound > best.bound else best
                if abs(best.gap) <= CLOSE:
                    break
    report(tried, is_close=best is not None and abs(best.gap) <= CLOSE)
    assert best is not None
    seconds = sum(attempt.seconds for attempt in tried)
    return replace(best, seconds=seconds, attempts=tuple(map(str, tried)))


def _from_multipliers(
    problem: SparseProblem,
    name: str,
    model: ConicModel,
    attempt: Attempt,
    vectors: FloatArray | None,
) -> Bound:
    bound = _proven(problem, model.learner, name, vectors)
    weights = np.maximum(np.asarray(model.weights.value, dtype=np.float64), 1e-300)
    scale = max(abs(attempt.value), abs(bound))
    return Bound(
        bound=bound,
        value=attempt.value,
        weights=weights / weights.sum(),
        gap=(attempt.value - bound) / scale if scale > 0.0 else 0.0,
        relaxation=name,
        solver=attempt.solver,
        seconds=attempt.seconds,
    )


def _proven(
    problem: SparseProblem, learner: Epigraph, name: str, vectors: FloatArray | None
) -> float:
    """Return the bound of the solver's multipliers, evaluated here.

    With u also tu is feasible, 0 ≤ t ≤ 1, and the best t of a few is taken: multipliers that are
    far off prove little, but never less than t = 0 does. Powers of two round nothing.
    """
    kappa, forms = 0.0, np.zeros(len(problem.grams))
    for t, (box, raw) in enumerate(zip(problem.boxes(), learner.dual_points(), strict=True)):
        u = to_grid(starting_point(raw, box.lower, box.upper), box.lower, box.upper).u
        terms = np.append(box.p * u, -box.epsilon * np.abs(u))
        kappa += float(terms.sum()) - 4.0 * u.size * UNIT * float(np.abs(terms).sum())
        if name == "full-sdp":
            forms += problem.grams.quadratic_forms(u)
        elif vectors is not None:
            forms += _split_by_vectors(problem, learner.coupling[t][0], vectors, u)
        else:
            forms += _split_by_pairs(problem, learner.coupling[t][0], u)
    penalty = KSupport(problem.lam, problem.k0).on(len(problem.grams))
    return max(
        lower_bound_from(np.array([t * kappa]), 0.5 * t * t * forms[None, :], np.ones(1), penalty)
        for t in (*np.ldexp(1.0, -np.arange(8)), 0.0)
    )


def _split_by_vectors(
    problem: SparseProblem, cones: Constraint, vectors: FloatArray, u: FloatArray
) -> FloatArray:
    """Return the forms that the multipliers of the cones of `couple_vectors` prove."""
    first, rest = cones.dual_value
    multiplier = np.asarray(rest).reshape(2, -1)
    share = np.maximum(np.asarray(first).ravel() + multiplier[1], 0.0)
    along = 2.0 * multiplier[0]
    if float((vectors.T @ along) @ u) < 0.0:
        along = -along
    return forms_by_vectors(problem.grams, vectors, along, share, u)


def _split_by_pairs(problem: SparseProblem, tie: Constraint, u: FloatArray) -> FloatArray:
    """Return the forms that the multipliers of `couple_pairs` prove."""
    duals = np.asarray(tie.dual_value)
    parts = -2.0 * duals[:, 0, 1:]
    pairs = np.stack(np.triu_indices(u.size, 1), axis=1)
    held = np.bincount(pairs.ravel(), weights=parts.ravel(), minlength=u.size)
    if float(held @ u) < 0.0:
        parts = -parts
    return forms_by_pairs(problem.grams, parts, np.maximum(duals[:, 0, 0], 0.0), u)


# Shares below this part of their sum are raised to it: the proof divides by them.
_SMALLEST_SHARE = 1e-12
# The share of what rounding leaves over in the pairs; the bound loses as much.
_LEFT_OVER = 1e-10


def positive_shares(share: FloatArray) -> FloatArray:
    """Return shares at least 1e-12 that sum to at most 1, proportional to ``share`` elsewhere.

    `share` of shape (L,): at least 0, not all 0.
    """
    raised = share / share.sum() + _SMALLEST_SHARE
    lowered: FloatArray = raised / (raised.sum() * (1.0 + 4.0 * share.size * UNIT))
    return lowered


def forms_by_vectors(
    grams: Stack, vectors: FloatArray, along: FloatArray, share: FloatArray, u: FloatArray
) -> FloatArray:
    """Return upper bounds of ``uᵀKⱼu`` by ``u = Σ cₗxₗ``, shape (q,).

    - `vectors` of shape (L, n): the rows x; the last n are the unit vectors, which take up what the
      others leave of u
    - `along` of shape (L,): c, of which the last n entries are not used
    - `share` of shape (L,): a before normalisation
    - `u` of shape (n,)
    """
    n = u.size
    extra = len(vectors) - n
    others, coefficient = vectors[:extra], along[:extra]
    margin = 2.0 * (extra + 4) * UNIT
    left = np.abs(u - others.T @ coefficient)
    left += margin * (np.abs(others.T) @ np.abs(coefficient) + np.abs(u))
    a = positive_shares(share)
    forms = (grams.diagonals * (left**2 / a[extra:])).sum(axis=1)
    for x, c, part in zip(others, coefficient, a[:extra], strict=True):
        if c != 0.0:
            forms += grams.quadratic_forms(x) * (c * c / part)
    raised: FloatArray = forms + 4.0 * (len(vectors) + 8) * UNIT * np.abs(forms)
    return raised


def forms_by_pairs(grams: Stack, parts: FloatArray, share: FloatArray, u: FloatArray) -> FloatArray:
    """Return upper bounds of ``uᵀKⱼu`` by parts on two samples each, shape (q,).

    `parts` of shape (n(n − 1)/2, 2): roughly what each pair, in the order of
    ``numpy.triu_indices``, holds of u; `share` of shape (n(n − 1)/2,): a before normalisation; `u`
    of shape (n,).
    """
    n = u.size
    first, second = np.triu_indices(n, 1)
    pairs = np.stack([first, second], axis=1)
    a = positive_shares(share)
    mass = np.bincount(pairs.ravel(), weights=np.repeat(a, 2), minlength=n)
    held = np.bincount(pairs.ravel(), weights=parts.ravel(), minlength=n)
    # what the parts miss of u is spread over the pairs of each sample by their shares
    v = parts + a[:, None] * ((u - held) / mass)[pairs]
    held = np.bincount(pairs.ravel(), weights=v.ravel(), minlength=n)
    size = np.bincount(pairs.ravel(), weights=np.abs(v).ravel(), minlength=n)
    # rounding leaves a little of each sample over, which gets a share of its own
    left = np.abs(u - held) + 2.0 * (n + 4) * UNIT * (size + np.abs(u))
    forms = (grams.diagonals * left**2).sum(axis=1) * (n / _LEFT_OVER)
    for j, K in enumerate(grams.matrices):
        diagonal = grams.diagonals[j]
        off = np.asarray(K[first, second], dtype=np.float64)
        squares = v[:, 0] ** 2 * diagonal[first] + v[:, 1] ** 2 * diagonal[second]
        mixed = 2.0 * v[:, 0] * v[:, 1] * off
        terms = np.maximum(squares + mixed, 0.0) + 8.0 * UNIT * (squares + np.abs(mixed))
        forms[j] += float((terms / a).sum()) * (1.0 + 2.0 * _LEFT_OVER)
    raised: FloatArray = forms + 4.0 * (a.size + 8) * UNIT * np.abs(forms)
    return raised
