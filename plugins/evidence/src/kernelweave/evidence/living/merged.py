"""Sums of several places added up: coefficients, errors, and what an estimator keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.special import ndtri

from ..classes import Calibration, class_codes, class_targets, per_class
from ..exact import ExactPredictor
from ..intervals import Range
from ..large.landmarks import LandmarkPredictor
from ..large.levels import GroupLevels
from ..large.sums import NormalEquations
from ..new_rows import USUAL, Expectation, Kind
from ..rows import Rows, Standardised, natural_range
from ..scores import grouped_ratio
from ..tasks import Classification, Regression, Task
from .basis import Basis
from .parts import (
    ABOVE_LOW,
    BELOW_HIGH,
    NEAR_ONE,
    NEAR_ZERO,
    NOT_ABOVE_ONE,
    NOT_NEGATIVE,
    WHOLE,
    PartSums,
    packed,
    summed,
    unpacked,
)

if TYPE_CHECKING:
    from ..base import EvidenceModel

# points of a normal distribution that stand for residuals, at most
_MEMBERS = 2000
_NEW_PLACE = Kind("new place", "rows of a new place", "")


class Left(NamedTuple):
    """Parts that were left out together with others, and what is known of their errors.

    `parts`: which they are; `losses`, `units` of shape (n_parts, n_outputs): Σ w (v − f)² and
    Σ w (v − mean)² of each; `expected` of shape (n_parts,): Σ w of the variance of f and the noise.
    """

    parts: Index
    losses: FloatArray
    units: FloatArray
    expected: FloatArray

    @property
    def squares(self) -> FloatArray:
        """What squared residuals are times what is expected of them, shape (n_outputs,)."""
        total = self.expected.sum()
        if total == 0.0:
            return np.ones(self.losses.shape[1])
        return np.asarray(self.losses.sum(axis=0) / total)


@dataclass(frozen=True, eq=False)
class Pool:
    """Parts of all places; `place` of shape (n_parts,): whose each of them is."""

    basis: Basis
    parts: tuple[PartSums, ...]
    place: Index

    @cached_property
    def total(self) -> NormalEquations:
        """The equations of all rows."""
        return self._equations(self.parts)

    def _equations(self, parts: Sequence[PartSums]) -> NormalEquations:
        inner, right = summed(parts)
        return NormalEquations(
            self.basis.root, unpacked(inner, len(self.basis)), np.asfortranarray(right)
        )

    def folds_left_out(self) -> Left:
        """Return the judged parts, each predicted by all parts of other folds, of every place."""
        return self._left_out(np.array([part.fold for part in self.parts]))

    def places_left_out(self) -> Left:
        """Return the judged parts, each predicted by the other places."""
        return self._left_out(self.place)

    def _left_out(self, key: Index) -> Left:
        """Return the judged parts, each predicted by those of another key."""
        judged = np.array([part.judged for part in self.parts])
        which, losses, expected = [], [], []
        for k in np.unique(key[judged]):
            others = [self.parts[i] for i in np.flatnonzero(key != k)]
            if not others:
                continue
            equations = self._equations(others)
            solved = equations.solve(self.basis.ridge)
            if solved is None:
                # rounding: what a little more noise hides
                continue
            gamma = self.basis.root.T @ solved[0]
            inverse = cho_solve((solved[1], True), np.eye(len(gamma)), check_finite=False)
            for i in np.flatnonzero(judged & (key == k)):
                which.append(i)
                losses.append(_loss(self.parts[i], gamma))
                expected.append(_expected(self.parts[i], self.basis, inverse))
        at, n_outputs = np.array(which, dtype=np.intp), len(self.basis.units.centre)
        units = self._units([self.parts[i] for i in which])
        return Left(at, np.reshape(losses, (-1, n_outputs)), units, np.array(expected))

    def _units(self, parts: Sequence[PartSums]) -> FloatArray:
        """Return Σ w (v − mean)² of parts, by the mean of all these rows."""
        n_outputs = len(self.basis.units.centre)
        if not parts:
            return np.empty((0, n_outputs))
        mass, (total, squares) = np.array([part.mass for part in parts])[:, None], moments(parts)
        mean = total.sum(axis=0) / mass.sum()
        return np.asarray(np.maximum(squares - 2.0 * mean * total + mean**2 * mass, 0.0))

    def score(self, left: Left, *, by: Index | None = None) -> tuple[float, float]:
        """Return R² of parts left out, and its standard error over them, or over groups of them.

        A few parts may differ less by chance than draws of rows do: over parts the error is no less
        than that of normal residuals, √(2/n) of the loss. NaN where there are none.
        """
        if not len(left.parts):
            return np.nan, np.nan
        parts = [self.parts[i] for i in left.parts]
        mass = np.array([part.mass for part in parts])
        losses, units = (each / mass[:, None] for each in (left.losses, left.units))
        groups = np.arange(len(mass)) if by is None else np.unique(by, return_inverse=True)[1]
        score, error = grouped_ratio(losses, units, mass, groups.ravel())
        least = float((1.0 - score) * np.sqrt(2.0 / sum(part.n_rows for part in parts)))
        return score, max(error, least) if np.isfinite(error) else least


def moments(parts: Sequence[PartSums]) -> tuple[FloatArray, FloatArray]:
    """Return Σ w v and Σ w v² of each part, shapes (n_parts, n_outputs)."""
    return np.array([part.total for part in parts]), np.array([part.squares for part in parts])


def _loss(part: PartSums, gamma: FloatArray) -> FloatArray:
    """Return Σ w (v − zᵀγ)², shape (n_outputs,)."""
    inner = _whole(part.inner, len(gamma))
    curved = np.einsum("ij,ij->j", gamma, inner @ gamma)
    loss = part.squares - 2.0 * np.sum(gamma * part.right, axis=0) + curved
    return np.asarray(np.maximum(loss, 0.0))


def _expected(part: PartSums, basis: Basis, inverse: FloatArray) -> float:
    """Return Σ w (variance of f + noise) with zᵀz of k(x, x) seen, and ρ zᵀ(A + ρI)⁻¹z left.

    `inverse` of shape (m, m): (A + ρI)⁻¹ without the part.
    """
    inner = _whole(part.inner, len(inverse))
    unseen = max(part.prior - float(np.trace(inner)), 0.0)
    levels = 0.0 if basis.ratio is None else basis.ridge / basis.ratio
    return (
        unseen + basis.ridge * float(np.sum(inner * inverse)) + (basis.ridge + levels) * part.mass
    )


def _whole(triangle: FloatArray, m: int) -> FloatArray:
    lower: FloatArray = np.tril(unpacked(triangle, m))
    return np.asarray(lower + np.tril(lower, -1).T)


@dataclass(frozen=True)
class MergedRegression(Regression):
    """A regression whose targets were seen elsewhere; `held`: what none of them leaves."""

    held: Range | None = None

    def range_of(self, rows: Rows) -> Range:
        """Return what new targets never leave."""
        return Regression.range_of(self, rows) if self.held is None else self.held


def attributes_of_sums(
    model: EvidenceModel, pool: Pool, facts: Sequence[NDArray[np.bool_]], own_rows: Rows | None
) -> dict[str, Any]:
    """Return what an estimator keeps of sums.

    `model`: has the kernel; `facts`: of each place; `own_rows`: the model's rows, where they are
    among the sums: its groups keep their levels.
    """
    left = pool.folds_left_out()
    known = _known(np.array(facts))
    units = _units(pool, model._task, known)
    predictor = _predictor(pool, units, left, model._predictor.rows)
    if own_rows is not None and predictor.levels is not None:
        levels = _levels(own_rows, predictor)
        predictor = predictor if levels is None else replace(predictor, levels=levels)
    task = _task(model, known, units)
    lines, work = _lines(pool, left, task), _work(pool)
    first = lines[0]
    certificate = replace(
        model.certificate_, held_out_score=first.score, held_out_error=first.error,
        work=f"{model.certificate_.work}; {work}", relearn=None, forgotten=None,
    )  # fmt: skip
    shape: tuple[int, ...] = (0,) if task.flat else (0, len(units.centre))
    if isinstance(task, Classification) and task.labels is not None:
        shape = (0, len(task.labels))
    return {
        "_predictor": predictor, "_task": task, "_owner": np.empty(0, dtype=np.intp),
        "_importance": None, "_new_rows": lines, "_from_sums_": True,
        "_living": getattr(model, "_living", None),
        "certificate_": certificate, "noise_": predictor.noise,
        "held_out_score_": first.score, "held_out_error_": first.error,
        "held_out_prediction_": np.empty(shape), "held_out_fold_": np.empty(0, dtype=np.intp),
    }  # fmt: skip


def _work(pool: Pool) -> str:
    """Return what the predictor was learned from, for a sentence."""
    n_rows, n_places = sum(part.n_rows for part in pool.parts), len(np.unique(pool.place))
    places = "one place" if n_places == 1 else f"{n_places} places"
    return f"predictor from sums of {n_rows:,} rows of {places} over {len(pool.basis):,} landmarks"


def _known(facts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the facts of all places together, shape (7, n_outputs)."""
    together: NDArray[np.bool_] = np.asarray(facts.all(axis=0))
    for fact in (NEAR_ZERO, NEAR_ONE):
        together[fact] = facts[:, fact].any(axis=0)
    return together


def _units(pool: Pool, task: Task, known: NDArray[np.bool_]) -> Standardised:
    """Return the units of the targets with the ends that none of the places leaves."""
    units = pool.basis.units
    if isinstance(task, Classification):
        assert task.labels is not None
        n_classes = len(task.labels)
        codes = class_targets(np.arange(n_classes), n_classes, task.ranks)
        ends = natural_range(codes, codes.min(axis=1), codes.max(axis=1), _spread(pool))
        return replace(units, low=ends[0], high=ends[1])
    positive = known[NOT_NEGATIVE] & known[NEAR_ZERO]
    share = known[NOT_NEGATIVE] & known[NOT_ABOVE_ONE] & known[NEAR_ONE]
    # an end that many rows of the kernel share holds where no other place is beyond it
    other_low = np.where(known[ABOVE_LOW] & (units.low != 0.0), units.low, -np.inf)
    other_high = np.where(known[BELOW_HIGH] & (units.high != 1.0), units.high, np.inf)
    low = np.where(positive, np.maximum(0.0, other_low), other_low)
    high = np.where(share, np.minimum(1.0, other_high), other_high)
    return replace(units, low=low, high=high)


def _spread(pool: Pool) -> FloatArray:
    """Return the standard deviation of all targets, which no power bends, shape (n_outputs,)."""
    mass, (total, squares) = sum(part.mass for part in pool.parts), moments(pool.parts)
    variance = squares.sum(axis=0) / mass - (total.sum(axis=0) / mass) ** 2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) * pool.basis.units.spread)


def _predictor(pool: Pool, units: Standardised, left: Left, rows: Rows) -> LandmarkPredictor:
    """Return what predicts; `rows`: those of the kernel, which explanations compare with.

    Residuals are not known one by one: those of a normal distribution stand for them, as large as
    the parts left out say, and as many as these have rows.
    """
    basis, total = pool.basis, pool.total
    dual = _solved(total, basis.ridge)
    posterior = basis.posterior(basis.ridge, packed(total.inner), total.right)
    n_outputs, n = dual.shape[1], sum(pool.parts[i].n_rows for i in left.parts)
    n = min(n or sum(part.n_rows for part in pool.parts), _MEMBERS)
    scores = np.repeat(ndtri((np.arange(n) + 0.5) / n)[:, None], n_outputs, axis=1)
    inflation = np.maximum(left.squares, np.finfo(np.float64).tiny)
    levels = None
    if basis.ratio is not None and basis.column is not None:
        # a group that no row has: the groups of the places stay there
        nobody = np.array([np.nan]), np.zeros(1), np.zeros((1, n_outputs))
        levels = GroupLevels(basis.column, *nobody, basis.ratio, basis.ridge)
    aside = replace(rows, times=None)
    return LandmarkPredictor(
        basis.landmarks, basis.ridge, dual, posterior, units, basis.width, inflation, scores, aside,
        np.full((len(rows), n_outputs), np.nan), np.full(len(rows), -1, dtype=np.intp), (),
        levels=levels,
    )  # fmt: skip


def _solved(total: NormalEquations, ridge: float) -> FloatArray:
    """Return β; raises LinAlgError where rounding leaves none."""
    solved = total.solve(ridge)
    if solved is None:
        raise np.linalg.LinAlgError(
            f"a ridge of {ridge:.1e} does not make the added sums positive definite: fit the "
            "kernel to noisier targets, or give fewer rows"
        )
    return solved[0]


def _levels(rows: Rows, predictor: LandmarkPredictor) -> GroupLevels | None:
    """Return the levels of the groups of some rows; ``None`` where no row has a group's name."""
    assert predictor.levels is not None
    bare = replace(predictor, levels=None)
    rows = replace(rows, group=predictor.levels.column)
    found = GroupLevels.of(rows, bare.residuals, predictor.levels.ratio, predictor.ridge)
    return found if len(found.names) else None


def _task(model: EvidenceModel, known: NDArray[np.bool_], units: Standardised) -> Task:
    """Return the task: numbers in their range, classes as rows of the kernel calibrate them.

    A likelihood of classes, which no sum has, falls away: least squares are calibrated alone.
    """
    task: Task = model._task
    predictor: Any = model._predictor
    if isinstance(task, Classification):
        if isinstance(predictor, ExactPredictor):
            return replace(task, calibration=_calibration(predictor))
        return task
    held = Range(units.low, units.high, known[WHOLE])
    return MergedRegression(task.scorer, task.flat, held)


def _calibration(predictor: ExactPredictor) -> Calibration:
    """Return the calibration of least squares by the rows that the folds of the kernel held out."""
    rows, parts = predictor.rows, predictor.unseen_rows()
    which = np.concatenate([np.empty(0, dtype=np.intp), *(each.rows for each in parts)])
    empty = np.empty((0, len(rows.targets)))
    values = np.vstack([empty, *(each.target.restore(each.latent) for each in parts)])
    codes = class_codes(rows.targets)[which]
    return Calibration.of(per_class(values), codes, rows.mass[which])


def _lines(pool: Pool, left: Left, task: Task) -> list[Expectation]:
    """Return what is expected of rows like these, and of a new place's where there are three.

    No score of classes, or of a scorer that was asked for, follows from sums: NaN.
    """
    n_rows = sum(pool.parts[i].n_rows for i in left.parts)
    if isinstance(task, Classification) or task.scoring is not None:
        return [Expectation(USUAL, np.nan, np.nan, 0, 0)]
    lines = [Expectation(USUAL, *pool.score(left), n_rows, len(left.parts))]
    judged = np.array([part.judged for part in pool.parts])
    if len(np.unique(pool.place[judged])) > 2:
        away = pool.places_left_out()
        by = pool.place[away.parts]
        line = pool.score(away, by=by)
        lines.append(Expectation(_NEW_PLACE, *line, n_rows, len(np.unique(by))))
    return lines


def places_of(counts: Sequence[int]) -> Index:
    """Return the place of each part, `counts`: parts of each place."""
    return np.repeat(np.arange(len(counts)), counts)
