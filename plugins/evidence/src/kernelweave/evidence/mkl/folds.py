"""Weights on all rows and without a fold of them, and how those of a path are combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from kernelweave.kernels_core import Problem, Result, clock
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
    (q + 1,); `proved`: the result of a search that ends with a proof, and its descent.
    """

    samples: Samples
    formula: Formula
    problem: Problem
    rows: Rows
    places: Index
    target: Standardised
    members: list[FloatArray]
    proved: Proved | None

    @classmethod
    def of(
        cls, formula: Formula, search: Search, samples: Samples, rows: Rows, places: Index
    ) -> AllRows:
        """Learn the weights on all rows."""
        target = standardised(rows)
        problem = formula.problem(samples, target.values)
        return cls(samples, formula, problem, rows, places, target, *search(problem))

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
            result, value = solved_at(problem, np.tensordot(shares, self.members, 1))
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
        return attributes, PairsLeaveOut(Inverse(factor), target, rows, self.places)


@dataclass(frozen=True, eq=False)
class Fold:
    """Weights that were found without some rows, and what they say of these.

    `others`: the rows held out; `members`: see `AllRows`; `errors` of shape (n_members,): of each,
    summed over the rows held out and the outputs, in units of the targets' variance.
    """

    training: Index
    others: Index
    target: Standardised
    members: list[FloatArray]
    errors: FloatArray

    @classmethod
    def of(cls, whole: AllRows, search: Search, training: Index, others: Index) -> Fold:
        """Learn the weights on some rows."""
        part, family = whole.rows.take(training), whole.problem.family
        target = standardised(part)
        grams = np.stack([K[np.ix_(training, training)] for K in whole.grams])
        family = replace(family, stored=PrecomputedDictionary(grams), share=1.0 / part.mass)
        places = training.astype(np.float64)[:, None]
        old = whole.problem
        problem = Problem(family, old.learner, old.constraint, places, target.values, part.weight)
        members, _ = search(problem)
        fold = cls(training, others, target, members, np.zeros(len(members)))
        if len(members) == 1:
            return fold
        out = whole.rows.take(others)
        rest = [(fold.predict(whole, each).T - out.targets) for each in members]
        scaled = [each / whole.target.spread[:, None] for each in rest]
        return replace(fold, errors=np.array([np.sum(each**2 * out.mass) for each in scaled]))

    def predict(self, whole: AllRows, parameters: FloatArray) -> FloatArray:
        """Return predictions of the rows held out, at weights and noise, shape (n_others, T)."""
        grams, mass = whole.grams, whole.rows.mass[self.training]
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


def shares_of(folds: Sequence[Fold], n_members: int) -> FloatArray:
    """Return how the members are combined by their errors in folds; equally where there is none."""
    errors = sum((fold.errors for fold in folds), np.zeros(n_members))
    return path_weights(errors) if errors.any() else np.full(n_members, 1.0 / n_members)


def standardised(rows: Rows) -> Standardised:
    """Return targets in units of their own spread; predictions are not cut to their range."""
    first, mass = rows.targets[:, :1], rows.mass
    # the mean of equal numbers is that number
    centre = first[:, 0] + (rows.targets - first) @ (mass / mass.sum())
    rest = rows.targets - centre[:, None]
    spread, endless = spread_of(rest, mass), np.full(len(rest), np.inf)
    return Standardised(rest / spread[:, None], centre, spread, -endless, endless)


def without_folds(whole: AllRows, search: Search, splits: Sequence[Split]) -> list[Fold]:
    """Learn the weights without each of the folds, while there is time."""
    folds: list[Fold] = []
    for training, others in splits:
        if clock.expired():
            break
        folds.append(Fold.of(whole, search, training, others))
    return folds


def combined(whole: AllRows, folds: Sequence[Fold]) -> FloatArray:
    """Return predictions of rows held out, (n, T), each fold combined by the errors of others."""
    n_members, values = len(whole.members), np.full(whole.rows.targets.T.shape, np.nan)
    for fold in folds:
        rest = [each for each in folds if each is not fold] or folds
        parameters = np.tensordot(shares_of(rest, n_members), fold.members, 1)
        values[fold.others] = fold.predict(whole, parameters)
    return values
