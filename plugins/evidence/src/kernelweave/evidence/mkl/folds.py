"""Weights on all rows and without a fold of them, and how those of a path are combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from kernelweave.kernels_core import Problem, Result, Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.fit import Formula, attributes_of
from kernelweave.kernels_core.grams import PrecomputedDictionary
from scipy.linalg import cho_factor, cho_solve, cholesky

from ..inverse import Inverse
from ..leave_out import PairsLeaveOut
from ..mixture import path_weights
from ..rows import Rows, Split, Standardised, spread_of
from .criteria import FLOOR
from .path import solved_at

# of a search that ends with a proof: its result, and the negative log evidence after each step
Proved: TypeAlias = tuple[Result, list[float]]
# from a problem to weights that are to be combined, each with the noise last, shape (q + 1,)
Search: TypeAlias = Callable[[Problem], tuple[list[FloatArray], Proved | None]]


@dataclass(frozen=True, eq=False)
class AllRows:
    """All rows with the weights that were found on them.

    `problem`: ridge regression on the kernels; `members`: weights, each with the noise last, shape
    (q + 1,); `proved`: the result of a search that ends with a proof, and its descent; `tol`: the
    gap between bounds that is called converged.
    """

    samples: Samples
    formula: Formula
    problem: Problem
    rows: Rows
    places: Index
    target: Standardised
    members: list[FloatArray]
    proved: Proved | None
    tol: float

    @classmethod
    def of(
        cls,
        formula: Formula,
        search: Search,
        samples: Samples,
        rows: Rows,
        places: Index,
        tol: float,
    ) -> AllRows:
        """Learn the weights on all rows."""
        target = standardised(rows)
        problem = formula.problem(samples, target.values)
        return cls(samples, formula, problem, rows, places, target, *search(problem), tol)

    @property
    def grams(self) -> RealArray:
        """The kernels' matrices, shape (q, n, n)."""
        grams: RealArray = self.problem.family.stored.grams
        return grams

    def attributes(self, shares: FloatArray) -> tuple[dict[str, Any], PairsLeaveOut]:
        """Return what a fitted model has, and what leaves rows out of it, at combined weights."""
        target, rows, problem = self.target, self.rows, self.problem
        centre, spread, mass = target.centre, target.spread, rows.mass
        if self.proved is None:
            result, value = solved_at(problem, np.tensordot(shares, self.members, 1), self.tol)
            descent = [value]
        else:
            result, descent = self.proved
        attributes = attributes_of(self.samples, self.formula, problem, result)
        size = float(mass.sum()) * len(spread)
        several, rule = len(spread) > 1, attributes["_predictor"]
        # in the units of the targets
        attributes |= {
            "descent_": np.array(descent),
            "log_evidence_": float(-descent[-1] - 0.5 * size * np.log(2.0 * np.pi)),
            "n_iter_": max(1, len(descent) - 1),
            "path_weights_": shares,
            "dual_coef_": attributes["dual_coef_"] * (spread[:, None] if several else spread[0]),
            "intercept_": centre if several else float(centre[0]),
            "_predictor": replace(rule, coef=rule.coef * spread[:, None], offset=centre),
            "_training": (self.samples.X, 1.0 / mass, spread),
        }
        stored = problem.family.stored
        S = np.array(stored.gram(problem.X, result.parameters[:-1]), dtype=np.float64)
        S[np.diag_indices_from(S)] += attributes["noise_"] / mass
        factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        return attributes, PairsLeaveOut(
            Inverse(factor), target, rows, self.places, 0.0, attributes["noise_"] / mass
        )


@dataclass(frozen=True, eq=False)
class WeightFold:
    """Weights that were found without some rows, and what they say of these.

    `others`: the rows held out; `members`: see `AllRows`.
    """

    whole: AllRows
    training: Index
    others: Index
    target: Standardised
    members: list[FloatArray]

    @classmethod
    def of(cls, whole: AllRows, search: Search, training: Index, others: Index) -> WeightFold:
        """Learn the weights on some rows."""
        part, family = whole.rows.take(training), whole.problem.family
        target = standardised(part)
        grams = np.stack([K[np.ix_(training, training)] for K in whole.grams])
        family = replace(family, stored=PrecomputedDictionary(grams), share=1.0 / part.mass)
        places = training.astype(np.float64)[:, None]
        old = whole.problem
        problem = Problem(family, old.learner, old.constraint, places, target.values, part.weight)
        members, proved = search(problem)
        if proved is not None and proved[0].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return cls(whole, training, others, target, members)

    @cached_property
    def errors(self) -> FloatArray:
        """What each member has on the rows held out, (n_members,).

        Squares in units of the targets' variance, summed over rows and outputs.
        """
        out, spread = self.whole.rows.take(self.others), self.whole.target.spread[:, None]
        rest = [(self.predict(each).T - out.targets) / spread for each in self.members]
        return np.array([np.sum(each**2 * out.mass) for each in rest])

    def predict(self, parameters: FloatArray) -> FloatArray:
        """Return predictions of the rows held out, at weights and noise, shape (n_others, T)."""
        grams, mass = self.whole.grams, self.whole.rows.mass[self.training]
        K = np.zeros((len(self.training), len(self.training)))
        across = np.zeros((len(self.others), len(self.training)))
        for w, each in zip(parameters[:-1], grams, strict=True):
            if w > 0.0:
                K += w * each[np.ix_(self.training, self.training)]
                across += w * each[np.ix_(self.others, self.training)]
        K[np.diag_indices_from(K)] += (FLOOR + parameters[-1]) / mass
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        dual = cho_solve(factor, self.target.values.T, check_finite=False)
        return self.target.restore(across @ dual)


def shares_of(folds: Sequence[WeightFold], n_members: int) -> FloatArray:
    """Return how the members are combined by their errors in folds; equally where there is none."""
    equal = np.full(n_members, 1.0 / n_members)
    if n_members == 1 or not folds:
        return equal
    errors = np.sum([fold.errors for fold in folds], axis=0)
    return path_weights(errors) if errors.any() else equal


def standardised(rows: Rows) -> Standardised:
    """Return targets in units of their own spread; predictions are not cut to their range."""
    first, mass = rows.targets[:, :1], rows.mass
    # the mean of equal numbers is that number
    centre = first[:, 0] + (rows.targets - first) @ (mass / mass.sum())
    rest = rows.targets - centre[:, None]
    spread, endless = spread_of(rest, mass), np.full(len(rest), np.inf)
    return Standardised(rest / spread[:, None], centre, spread, -endless, endless)


def without_folds(whole: AllRows, search: Search, splits: Sequence[Split]) -> list[WeightFold]:
    """Learn the weights without each of the folds, while there is time for a whole one."""
    folds: list[WeightFold] = []
    for training, others in splits:
        if clock.expired():
            break
        fold = WeightFold.of(whole, search, training, others)
        if not clock.expired():
            folds.append(fold)
    return folds


def combined(whole: AllRows, folds: Sequence[WeightFold]) -> FloatArray:
    """Return predictions of rows held out, shape (n, T).

    A fold is combined by the errors of others on rows that it has learned from: not on its own, and
    in an order not on later ones.
    """
    n_members, values = len(whole.members), np.full(whole.rows.targets.T.shape, np.nan)
    for fold in folds:
        known = [each for each in folds if np.isin(each.others, fold.training).all()]
        parameters = np.tensordot(shares_of(known, n_members), fold.members, 1)
        values[fold.others] = fold.predict(parameters)
    return values
