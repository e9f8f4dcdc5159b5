"""Does a learner keep what algorithms rely on?"""

from __future__ import annotations

from dataclasses import is_dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..formula.learner import Learner, Solution
from .intervals import SLACK, check_overlap
from .problems import make_classification, make_regression

# Tight enough for a wrong number to show, and within reach of a learner's rounding.
_TOL = 1e-8


def check_learner(learner: Learner, *, n_samples: int = 24) -> None:
    """Check a learner on small problems: every number of its solution is what it says.

    The bounds enclose one optimum, at a loose tolerance and a tight one. The cut of its dual
    point, and of multiples of it, lies below the optimum of other kernels; ``margin`` pays for
    an error of the Gram matrix; three tasks are their sum; a warm start and the order of the
    samples do not matter; a weight of two is a sample twice, one of five five times, a hundred of
    0.01 one, and a weight of zero, where the learner takes it, none. The cuts are also those of 80
    and 250 samples, and of C, or what ``strength`` names, a hundred times smaller and larger.

    Parameters
    ----------
    learner : Learner
        With parameters for targets and kernel values of about one.
    n_samples : int, default=24
        Of each problem.

    Raises
    ------
    AssertionError
        Naming the learner and what failed.

    Examples
    --------
    >>> from kernelweave.kernels_core.testing import check_learner
    >>> from kernelweave.qp_smo import Ridge
    >>> check_learner(Ridge(C=10.0))
    """
    assert isinstance(learner, Learner), (
        f"{learner!r} must have name, task, validate() and solve(), see "
        "kernelweave.kernels_core.Learner"
    )
    assert learner.task in ("classification", "regression"), f"{learner.name}: task {learner.task}"
    learner.validate()
    make = make_classification if learner.task == "classification" else make_regression
    X, y = make(n_samples)
    kernels = [_gaussian(X, gamma) for gamma in (0.5, 4.0, 30.0)]
    best = [learner.solve(K, y, tol=_TOL) for K in kernels]
    for K, solution in zip(kernels, best, strict=True):
        _check_solution(learner, K, y, solution)
    _check_cuts(learner, kernels, best)
    _check_margin(learner, kernels[1], y, best[1])
    _check_tasks(learner, kernels[1], y)
    _check_weights(learner, kernels[1], y)
    for other, size in ((learner, 80), (learner, 250), *((each, 24) for each in _scaled(learner))):
        X, y = make(size)
        grams = [_gaussian(X, gamma) for gamma in (4.0, 30.0)]
        _check_cuts(other, grams, [other.solve(K, y, tol=_TOL) for K in grams])


def _scaled(learner: Learner) -> list[Learner]:
    """Return the learner with a hundredth of its C and a hundred times it, where it has one."""
    field = getattr(learner, "strength", "C")
    value = getattr(learner, field, None)
    if not (isinstance(value, float) and is_dataclass(learner) and not isinstance(learner, type)):
        return []
    return [replace(learner, **{field: value * factor}) for factor in (0.01, 100.0)]


def _gaussian(X: FloatArray, gamma: float) -> FloatArray:
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-gamma * squares))


def _check_solution(learner: Learner, K: FloatArray, y: FloatArray, best: Solution) -> None:
    name = learner.name
    assert best.dual_coef.shape == best.function_values.shape == best.slope.shape == (1, len(y)), (
        f"{name}: dual_coef, function_values and slope must have shape (t, n)"
    )
    gap = best.upper_bound - best.lower_bound
    assert 0.0 <= gap <= 1e-4 * abs(best.upper_bound), (
        f"{name}: at tol={_TOL:g} the interval is [{best.lower_bound}, {best.upper_bound}]"
    )
    assert np.allclose(best.function_values[0], K @ best.dual_coef[0], rtol=1e-9, atol=1e-9), (
        f"{name}: function_values must be K u, without the intercept"
    )
    check_overlap(f"{name}, a loose tolerance", best, learner.solve(K, y, tol=0.1))
    check_overlap(
        f"{name}, a warm start", best, learner.solve(K, y, dual0=best.dual_coef, tol=_TOL)
    )
    order = np.random.default_rng(1).permutation(len(y))
    check_overlap(
        f"{name}, permuted", best, learner.solve(K[np.ix_(order, order)], y[order], tol=_TOL)
    )


def _check_cuts(learner: Learner, kernels: list[FloatArray], best: list[Solution]) -> None:
    """The dual point found at one kernel bounds the optimum at each of the others."""
    for at in best:
        for K, other in zip(kernels, best, strict=True):
            form = float(np.einsum("ti,ij,tj->", at.dual_coef, K, at.dual_coef))
            slack = SLACK * abs(other.upper_bound)
            assert at.kappa - 0.5 * form <= other.upper_bound + slack, (
                f"{learner.name}: kappa − ½uᵀKu = {at.kappa - 0.5 * form} lies above the optimum "
                f"{other.upper_bound} of another kernel: is kappa the value without the quadratic?"
            )
            for s in (0.3, 0.7, min(at.longest, 2.0)):
                value = s * at.linear - 0.5 * s * s * (at.quadratic + form)
                assert value <= other.upper_bound + slack, (
                    f"{learner.name}: {s:g} times the dual point claims {value}, above the optimum "
                    f"{other.upper_bound}: check linear, quadratic and longest"
                )


def _check_margin(learner: Learner, K: FloatArray, y: FloatArray, best: Solution) -> None:
    """Matrices within the spread have their optimum below the upper bound and the margin."""
    rng = np.random.default_rng(2)
    for size in (1e-3, 0.1):
        factor = size * rng.random(len(y))
        for sign in (1.0, -1.0):
            near = K + sign * np.outer(factor, factor)
            if np.linalg.eigvalsh(near)[0] < 0.0:
                continue
            answer = learner.solve(near, y, tol=_TOL)
            raised = best.upper_bound + best.margin(factor)
            assert answer.lower_bound <= raised * (1.0 + SLACK), (
                f"{learner.name}: a matrix off by {size:g} has an optimum of at least "
                f"{answer.lower_bound}, above upper_bound + margin = {raised}: check slope and bend"
            )


def _check_tasks(learner: Learner, K: FloatArray, y: FloatArray) -> None:
    """Three tasks are the sum of each."""
    targets = np.stack([np.roll(y, 5 * t) for t in range(3)])
    together = learner.solve(K, targets, tol=_TOL)
    alone = [learner.solve(K, task, tol=_TOL) for task in targets]
    low = sum(each.lower_bound for each in alone)
    high = sum(each.upper_bound for each in alone)
    slack = SLACK * abs(high)
    assert low <= together.upper_bound + slack, f"{learner.name}: three tasks must be their sum"
    assert together.lower_bound <= high + slack, f"{learner.name}: three tasks must be their sum"


def _check_weights(learner: Learner, K: FloatArray, y: FloatArray) -> None:
    """A weight is how often a sample counts, so samples in rows of their own say the same."""
    n = len(y)
    hundred = np.where(np.arange(n) < 2, 100, 1)
    cases = (
        ("two for a sample twice", np.resize([2.0, 1.0], n), np.resize([2, 1], n)),
        ("five for a sample five times", np.resize([1.0, 5.0], n), np.resize([1, 5], n)),
        ("one for a hundred of 0.01", np.ones(n), hundred),
    )
    for label, weight, copies in cases:
        rows = np.repeat(np.arange(n), copies)
        spread = (weight / copies)[rows] if copies is hundred else np.ones(len(rows))
        weighted = learner.solve(K, y, sample_weight=weight, tol=_TOL)
        repeated = learner.solve(K[np.ix_(rows, rows)], y[rows], sample_weight=spread, tol=_TOL)
        check_overlap(f"{learner.name}, a weight of {label}", weighted, repeated)
    kept = np.resize([True, True, False], n)
    try:
        without = learner.solve(K, y, sample_weight=kept.astype(float), tol=_TOL)
    except ValueError:
        return
    left = learner.solve(K[np.ix_(kept, kept)], y[kept], tol=_TOL)
    check_overlap(f"{learner.name}, a weight of zero for no sample", without, left)
