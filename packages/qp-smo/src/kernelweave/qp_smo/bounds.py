"""Proved lower and upper bounds of the dual optimum, with every rounding error accounted for.

`certify`, at the end, makes both from one exactly feasible point u: the dual value at u, and the
primal value at f = Ku and the best intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams.psd import NEARLY_SYMMETRIC
from kernelweave.kernels_core.rounding import UNIT

from . import _njit_product
from . import point as passes
from .point import GridPoint, to_grid
from .problem import BoxProblem


def gamma(n: float) -> float:
    """Return a bound of the relative error of n roundings, itself rounded up."""
    return 1.01 * n * UNIT


@dataclass(frozen=True)
class FunctionValues:
    """``f = Ku`` in float64 and a bound of the error of each entry.

    `f`, `error` of shape (n,); `n_rows`: rows of K that were read.
    """

    f: FloatArray
    error: FloatArray
    n_rows: int


class SuspectGramError(Exception):
    """K has an entry that no Gram matrix has, or is less symmetric than rounding leaves it."""


def function_values(problem: BoxProblem, u: FloatArray) -> FunctionValues:
    """Compute ``f = Ku`` and ``|error| ≤ γ |K||u| + ½ asymmetry ‖u‖₁`` from the rows with u ≠ 0.

    With `reach` all of K is read instead, and `_both_sides` raises SuspectGramError where it should
    be looked at.
    """
    if problem.reach is not None:
        return _both_sides(problem, u, problem.reach)
    f, error, n_rows, n_roundings = passes.product(problem.K, u)
    error *= 1.01 * UNIT * (n_roundings + 11.0)
    error += 0.51 * problem.asymmetry * float(np.abs(u).sum())
    return FunctionValues(f, error, n_rows)


def _both_sides(problem: BoxProblem, u: FloatArray, reach: FloatArray) -> FunctionValues:
    """Compute ``f = Ku``, and its distance from ``½(K + Kᵀ)u``, in one pass that checks K.

    Half the difference of Ku and Kᵀu is that distance, up to rounding: nothing is assumed of the
    entries that it is the sum of. Asymmetry where u is 0, which changes nothing, shows between Kw
    and Kᵀw for a fixed w of random numbers.
    """
    n, block = u.size, _njit_product.BLOCK
    n_roundings = block - (-n // block) + 2
    witness = np.random.default_rng(0).uniform(0.5, 1.5, n)
    witness[1::2] *= -1.0
    out, part = np.zeros((6, n)), np.zeros(n)
    odd = _njit_product.products_of_both_sides(problem.K, u, reach, witness, out, part)
    f, size, other, other_size, seen, other_seen = out
    rounding = 1.01 * UNIT * (n_roundings + 11.0) * (size + other_size)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(f - other)
        usual = rounding + NEARLY_SYMMETRIC * reach * float(reach @ np.abs(u))
        usual_seen = (NEARLY_SYMMETRIC + 3.0 * n * UNIT) * reach * float(reach @ np.abs(witness))
        alike = (apart <= usual) & (np.abs(seen - other_seen) <= usual_seen)
    if odd > 0 or not alike.all():
        raise SuspectGramError
    return FunctionValues(f, 0.505 * (rounding + apart), n)


def best_intercept(problem: BoxProblem, f: FloatArray) -> float:
    """Minimise the primal objective over b exactly: a sort of its breakpoints.

    ``Σ upperᵢ(pᵢ − fᵢ − b − ε)₊ − Σ lowerᵢ(fᵢ + b − pᵢ − ε)₊`` is convex and piecewise linear in
    b. Where a whole interval is optimal, its middle is returned.
    """
    residual = problem.p - f
    if problem.epsilon == 0.0:
        points, jumps = residual, problem.upper - problem.lower
    else:
        points = np.concatenate([residual - problem.epsilon, residual + problem.epsilon])
        jumps = np.concatenate([problem.upper, -problem.lower])
    # methods, not functions of numpy: a third of the time at a hundred samples
    order = points.argsort()
    slopes = jumps[order].cumsum()
    total = float(problem.upper.sum())
    slack = 1e-12 * float(slopes[-1])
    left = int(slopes.searchsorted(total - slack))
    right = int(slopes.searchsorted(total + slack, side="right"))
    last = points.size - 1
    return float(0.5 * (points[order[min(left, last)]] + points[order[min(right, last)]]))


def _loss_upper(problem: BoxProblem, values: FunctionValues, b: float) -> float:
    """Return a proven upper bound of the primal's loss terms at b, for any f within the error."""
    p, f, lower, upper, eps = problem.p, values.f, problem.lower, problem.upper, problem.epsilon
    # values of a damaged Gram matrix may be infinite: the sum says so
    with np.errstate(invalid="ignore", over="ignore"):
        residual = p - f - b
        widen = values.error + 4.5 * UNIT * (np.abs(p) + np.abs(f) + (abs(b) + eps))
        above = residual - eps + widen
        below = -residual - eps + widen
        # a zero weight times an infinite residual would be NaN
        over = (upper > 0.0) & ~(above <= 0.0)
        under = (lower < 0.0) & ~(below <= 0.0)
        loss = float((upper[over] * above[over]).sum() - (lower[under] * below[under]).sum())
    return loss * (1.0 + gamma(2 * problem.n_samples + 8))


@dataclass(frozen=True)
class DualProof:
    """The interval that holds the dual optimum, and what it was made from.

    `kappa`: ``pᵀu − ε‖u‖₁``, rounded down; `objective`: the dual value in plain floating point;
    `stretch`: ``upper`` is the primal value at ``(1 + stretch) u``, so that −1 means at 0.
    """

    kappa: float
    objective: float
    lower: float
    upper: float
    intercept: float
    kkt_violation: float
    stretch: float = 0.0


@dataclass(frozen=True)
class DualValue:
    """The two parts of the dual value at u.

    `kappa`, `quadratic`: ``pᵀu − ε‖u‖₁`` and ``uᵀKu`` in plain floating point; `kappa_down`,
    `quadratic_up`: the first rounded down, the second rounded up.
    """

    kappa: float
    quadratic: float
    kappa_down: float
    quadratic_up: float


def dual_value(problem: BoxProblem, u: FloatArray, values: FunctionValues) -> DualValue:
    """Evaluate the dual at u. κ is exact when ``p`` is ±1, ``ε`` is 0 and u lies on a grid."""
    absolute, linear, square = np.abs(u), problem.p * u, u * values.f
    penalty = problem.epsilon * float(absolute.sum())
    kappa, quadratic = float(linear.sum()) - penalty, float(square.sum())
    rounding = gamma(problem.n_samples + 6)
    down = kappa
    if not problem.exact_kappa:
        down = kappa - rounding * (float(np.abs(linear).sum()) + penalty)
    margin = float((absolute * values.error).sum())
    up = quadratic + 1.001 * margin + rounding * float(np.abs(square).sum())
    return DualValue(kappa, quadratic, down, up)


@dataclass(frozen=True)
class FeasiblePoint:
    """An exactly feasible point, and what its proved bounds are computed from.

    `violation`: of the optimality conditions, from a gradient computed at this very point.
    """

    point: GridPoint
    values: FunctionValues
    violation: float
    dual: DualValue


def make_feasible(problem: BoxProblem, u: FloatArray) -> FeasiblePoint:
    """Make a nearly feasible u exactly feasible and evaluate it: `to_grid`, ``Ku``, the sums."""
    point = to_grid(u, problem.lower, problem.upper)
    values = function_values(problem, point.u)
    violation = kkt_violation(problem, point, values.f)
    return FeasiblePoint(point, values, violation, dual_value(problem, point.u, values))


def kkt_violation(problem: BoxProblem, point: GridPoint, f: FloatArray) -> float:
    """Return ``max over up-moves − min over down-moves`` of the gradient, at least 0."""
    return passes.violation(problem.p, f, point.u, point.lower, point.upper, problem.epsilon)


def _stretched(
    problem: BoxProblem, values: FunctionValues, dual: DualValue, stretch: float
) -> float:
    """Return the primal value at ``(1 + stretch) u`` with its best intercept, rounded up."""
    f = values.f * (1.0 + stretch)
    error = values.error * (1.0 + stretch) + 4.0 * UNIT * np.abs(f)
    longer = FunctionValues(f, error, 0)
    loss = _loss_upper(problem, longer, best_intercept(problem, f))
    upper = 0.5 * dual.quadratic_up * (1.0 + stretch) ** 2 * (1.0 + gamma(8)) + loss
    return float(upper + gamma(4) * (abs(upper) + abs(dual.quadratic_up)))


class PrimalBound(NamedTuple):
    """A proven upper bound, the intercept at f, and the point ``(1 + stretch) u`` it is from."""

    upper: float
    intercept: float
    stretch: float


def primal_bound(
    problem: BoxProblem, values: FunctionValues, dual: DualValue, violation: float = 0.0
) -> PrimalBound:
    """Return a proven upper bound of the dual optimum and the intercept of u itself.

    The primal value ``½uᵀKu + loss(Ku + b)`` at the best b, rounded up, or the one at ``u = 0``
    where that is smaller. Any u serves, feasible or not; K must be positive semidefinite, or the
    arguments be those of `for_indefinite`.

    For classes ``(1 + τ)u`` is tried too, τ being what the margins may be short of 1 by
    half the ``violation`` and rounding: where C is large, a loss of τ at each sample on the margin
    costs far more than ``τ uᵀKu``.
    """
    intercept = best_intercept(problem, values.f)
    upper = 0.5 * dual.quadratic_up + _loss_upper(problem, values, intercept)
    upper += gamma(4) * (abs(upper) + abs(dual.quadratic_up))
    chosen = 0.0
    if problem.exact_kappa:
        short = 2.0 * float(values.error.max(initial=0.0))
        for stretch in {short, short + 0.5 * violation}:
            value = _stretched(problem, values, dual, stretch) if 0.0 < stretch < 0.5 else np.inf
            if value < upper:
                upper, chosen = value, stretch
    if not upper <= 2.0 * abs(dual.quadratic):
        zero = FunctionValues(np.zeros_like(values.f), _growth(problem), 0)
        trivial = _loss_upper(problem, zero, best_intercept(problem, zero.f))
        upper, chosen = (upper, chosen) if upper < trivial else (trivial, -1.0)
    return PrimalBound(upper, intercept, chosen)


def _growth(problem: BoxProblem) -> FloatArray:
    """Return ``½ δᵢ Cᵢ``, by which κ grows per unit of uᵢ if only K + diag(δ) is definite."""
    if problem.negative is None:
        return np.zeros(problem.n_samples)
    return 0.51 * problem.negative * np.maximum(problem.upper, -problem.lower)


def for_indefinite(
    problem: BoxProblem, u: FloatArray, values: FunctionValues, dual: DualValue
) -> tuple[FunctionValues, DualValue]:
    """Return values and dual value for an upper bound if only K + diag(δ) ⪰ 0, and not K.

    For every feasible v, ``κ(v) − ½vᵀKv = κ(v) + ½Σ δᵢvᵢ² − ½vᵀ(K + diag δ)v``, and
    ``½δᵢvᵢ² ≤ ½δᵢCᵢ|vᵢ|``: the primal of K + diag(δ) with a tube narrower, or margins wider, by
    ``½δᵢCᵢ`` is an upper bound, its decision values are off by another ``δᵢ|uᵢ|``.
    """
    if problem.negative is None or not problem.negative.any():
        return values, dual
    error = values.error + _growth(problem) + 1.01 * problem.negative * np.abs(u)
    more = 1.01 * float(np.sum(problem.negative * u * u))
    up = dual.quadratic_up + more + gamma(4) * abs(dual.quadratic_up)
    return replace(values, error=error), replace(dual, quadratic_up=up)


def certify(problem: BoxProblem, feasible: FeasiblePoint) -> DualProof:
    """Prove an interval around the dual optimum from one exactly feasible point.

    Lower end: ``κ(u) − ½uᵀKu`` with ``uᵀKu`` rounded up; it holds for any symmetric K. Upper end:
    `primal_bound`, with `for_indefinite` if K is known not to be positive semidefinite.
    """
    dual = feasible.dual
    lower = dual.kappa_down - 0.5 * dual.quadratic_up
    lower -= gamma(4) * (abs(dual.kappa_down) + abs(dual.quadratic_up))
    values, up = for_indefinite(problem, feasible.point.u, feasible.values, dual)
    primal = primal_bound(problem, values, up, feasible.violation)
    return DualProof(
        dual.kappa_down,
        dual.kappa - 0.5 * dual.quadratic,
        lower if lower > 0.0 else 0.0,
        primal.upper,
        primal.intercept,
        feasible.violation,
        primal.stretch,
    )
