"""From rows of any number to a predictor: metric from some, sums over all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.memory import require

from ..candidates import coarse_starts
from ..copies import Known, Line
from ..objective import start
from ..path import Fit, PathPlan, fit_path
from ..powers import powers_of_a_part
from ..rows import Rows, Standardised
from ..steps import Stopped
from .features import Landmarks
from .landmarks import LandmarkPredictor
from .plan import BLOCK, LargePlan
from .row_equations import RowEquations
from .source import NOTHING, BlockSource, HeldApart, Source
from .sums import Normal, Sums, block_sums
from .survey import Survey
from .trial import Equations, Trial

# what is summed over, rows done, all rows
Told = Callable[[str, int, int], None]
# rows of a class that the metric is learned on, at least, where there are so many
_FEW = 10
# ridges that few landmarks are tried with
_RIDGES = tuple(10.0**k for k in range(-5, 2))


class Doubling(NamedTuple):
    """What some number of landmarks achieved on rows held out."""

    n_landmarks: int
    n_rows: int
    ridge: float
    score: float
    error: float


@dataclass(frozen=True)
class LearnedLarge:
    """What a fit leaves.

    - `fits`: the path on the rows of the metric
    - `weights` of shape (n_fits,): one for the λ that the rows held out prefer
    - `errors` of shape (n_fits,): held-out mean squared error of each λ, in units of the targets'
      variance
    - `missing`: what the time limit or a Ctrl-C left undone, empty if nothing
    """

    predictor: LandmarkPredictor
    fits: list[Fit]
    weights: FloatArray
    errors: FloatArray
    metric_rows: int
    record: list[Doubling]
    missing: str = ""

    def __str__(self) -> str:
        steps = ", ".join(
            f"{each.n_landmarks} landmarks and {each.n_rows} rows {each.score:z.4f} ± "
            f"{each.error:.4f}"
            for each in self.record
        )
        powers = ", skewed columns under a power" if any(self.predictor.views.bends) else ""
        return f"metric from {self.metric_rows} rows{powers}; held-out score: {steps}"


def learn_large(
    source: Rows | Source,
    plan: LargePlan,
    random_state: np.random.RandomState,
    *,
    stratify: bool = False,
    powers: bool = False,
    n_jobs: int | None = None,
    tell: Told | None = None,
) -> LearnedLarge:
    """Learn the metric on some rows, and the predictor on all by landmarks.

    - `source`: the rows, or what reads them
    - `random_state`: draws the rows of the metric, those held out and the landmarks
    - `stratify`: whether the targets are ±1 of classes, each of which the rows of the metric must
      show
    - `powers`: whether skewed columns, and skewed targets of a regression, are tried under a power
      on the rows of the metric; rows held out of them decide
    - `n_jobs`: threads of the sums over rows in memory
    - `tell`: called with what is summed over, the rows done and all of them
    """
    whole = BlockSource(partial(_cut, source), n_jobs) if isinstance(source, Rows) else source
    seen = whole.survey(plan.sample_rows, random_state.randint(2**31 - 1))
    roles = _Roles.of(seen, plan, stratify)
    sizes = plan.sizes(seen.n_rows, len(roles.landmarks))
    whole_sample = len(seen.sample) == seen.n_rows <= plan.all_rows
    _refuse(None if whole_sample else sizes[-1], seen, plan)
    targets = seen.targets
    if powers:
        metric = powers_of_a_part(roles.metric, plan.path, random_state)
        roles, seen = replace(roles, metric=metric), seen.bent() if metric.bent else seen
        targets = _warped(seen) if metric.warped else targets
    fits, finished = _fit_metric(seen, roles, plan.path, random_state)
    work = _Work(seen, targets, roles, plan, whole, n_jobs, tell)
    work.start(fits)
    undone = [] if seen.complete else ["some rows never read"]
    undone += [] if finished else ["the search cut short"]
    try:
        if work.double(sizes[1:]) and whole_sample:
            work.take_all()
        work.finish()
    except Stopped:
        undone.append("some rows not learned from")
    predictor = work.best.predictor(roles.held_out, targets)
    if isinstance(source, Rows):
        predictor = _placed(predictor, source, roles.places)
    weights = np.eye(len(fits))[work.chosen]
    return LearnedLarge(
        predictor, fits, weights, work.errors, len(roles.metric), work.record, ", ".join(undone)
    )


def _warped(seen: Survey) -> Standardised:
    """Return the sample's targets under a power, to be cut at the range of all rows."""
    own = Standardised.of(replace(seen.sample, warped=True))
    return replace(own, low=seen.targets.low, high=seen.targets.high)


def _cut(rows: Rows) -> Iterator[Rows]:
    for begin in range(0, len(rows), BLOCK):
        yield rows.take(np.arange(begin, min(len(rows), begin + BLOCK)))


def _placed(predictor: LandmarkPredictor, rows: Rows, index: Index) -> LandmarkPredictor:
    held_out = np.full((len(rows), len(rows.targets)), np.nan)
    held_out[index] = predictor.held_out
    return replace(predictor, rows=rows, held_out=held_out)


@dataclass(frozen=True)
class _Roles:
    """The sample's rows by their use; those held out have no other.

    `others`: all but those held out; `places` of shape (n_held_out,): where these are among all
    rows; `apart`: keeps them, and their copies, out of sums over all rows.
    """

    held_out: Rows
    others: Rows
    metric: Rows
    landmarks: Rows
    places: Index
    apart: HeldApart

    @classmethod
    def of(cls, seen: Survey, plan: LargePlan, stratify: bool) -> _Roles:
        sample = seen.sample
        groups = sample.twins
        held_out, others = _parted(groups, min(plan.held_out, max(1, seen.n_rows // 10)))
        distinct = np.sort(np.unique(groups[others], return_index=True)[1])
        chosen = others[: plan.metric_rows]
        if stratify:
            chosen = others[_stratified(sample.targets[:, others], plan.metric_rows)]
        known = None
        if not sample.recurring:
            line = Line.of(sample.numeric, sample.codes)
            one_each = held_out[np.unique(groups[held_out], return_index=True)[1]]
            known = Known.of(line, sample.numeric[one_each], sample.codes[one_each])
        apart = HeldApart(np.sort(seen.index[held_out]), known)
        return cls(
            sample.take(held_out), sample.take(others), sample.take(chosen),
            sample.take(others[distinct]), seen.index[held_out], apart,
        )  # fmt: skip


def _parted(groups: Index, size: int) -> tuple[Index, Index]:
    """Return rows to hold out and the others; no group of copies is on both sides.

    `groups` of shape (n,): those whose rows come first are held out, so many that their rows are
    ``size`` or more, but no more than half of the groups.
    """
    first, counts = np.unique(groups, return_index=True, return_counts=True)[1:]
    order = np.argsort(first)
    n_held = 1 + int(np.searchsorted(np.cumsum(counts[order]), size))
    held = np.isin(groups, groups[first[order[: max(1, min(n_held, len(order) // 2))]]])
    return np.flatnonzero(held), np.flatnonzero(~held)


def _stratified(targets: FloatArray, size: int) -> Index:
    """Return rows, of each class its share and at least a few, the first of them."""
    codes = targets.argmax(axis=0) if len(targets) > 1 else (targets[0] > 0).astype(np.intp)
    counts = np.bincount(codes)
    sizes = np.maximum(np.minimum(counts, _FEW), counts * size // len(codes))
    chosen = [np.flatnonzero(codes == k)[: sizes[k]] for k in range(len(counts))]
    return np.sort(np.concatenate(chosen))


def _refuse(most: int | None, seen: Survey, plan: LargePlan) -> None:
    """Raise where the largest model would not fit the memory limit.

    `most`: landmarks, ``None`` for all rows. Of all rows it is their kernel, the factors of the
    first ridge and of one more, and the two of half as many landmarks.
    """
    n_landmarks, matrices = (seen.n_rows, 3.5) if most is None else (most, 6.0)
    n_held = min(plan.held_out, seen.n_rows)
    width = np.dtype(plan.dtype).itemsize
    numbers = matrices * n_landmarks**2 + 6 * plan.metric_rows**2
    require(
        int(8 * numbers) + width * n_landmarks * n_held,
        f"{n_landmarks} landmarks of {seen.n_rows} rows",
        alternative="raise memory_limit or give fewer n_landmarks",
    )


def _fit_metric(
    seen: Survey, roles: _Roles, plan: PathPlan, random_state: np.random.RandomState
) -> tuple[list[Fit], bool]:
    """Return the path on the rows of the metric; whether it was finished."""
    own = roles.metric
    views = own.views()
    fits: list[Fit] = []
    try:
        starts = coarse_starts(own, plan, random_state)
        fit_path(views, own, replace(plan, tol=plan.polish_tol) if starts else plan, starts, fits)
    except Stopped:
        theta = start(views.n_dimensions)
        return fits or [Fit(plan.precisions[0], theta, np.nan, np.inf, 0)], False
    return fits, True


@dataclass
class _Work:
    """Trials with more and more landmarks, and the best of them."""

    seen: Survey
    targets: Standardised
    roles: _Roles
    plan: LargePlan
    source: Source
    n_jobs: int | None
    tell: Told | None
    record: list[Doubling] = field(default_factory=list)

    def start(self, fits: Sequence[Fit]) -> None:
        """Try each λ with few landmarks and the sample's rows; keep the best."""
        size = self.plan.sizes(self.seen.n_rows, len(self.roles.landmarks))[0]
        others = self._others(self.plan.first_rows)
        trials = []
        for fit in fits:
            landmarks = self._landmarks(fit, size)
            # never cut short: it is what a stopped fit returns
            sums = block_sums(landmarks, others, self.targets, stop=lambda: False)
            trials.append(self._trial(landmarks, sums, (fit.scales.noise, *_RIDGES)))
        mass = self.roles.held_out.mass
        self.errors = np.array([trial.losses @ mass for trial in trials]) / mass.sum()
        self.chosen = int(np.argmin(self.errors))
        self.fits, self.best = fits, trials[self.chosen]
        self._note(self.best)
        near = self.errors <= self.errors[self.chosen] + self.record[-1].error
        self.open = [k for k in range(len(fits)) if k >= self.chosen and near[k]]

    def double(self, sizes: Sequence[int]) -> bool:
        """Take twice the landmarks while that gains more than its error on the sample's rows.

        Returns whether it did so to the end.
        """
        others, mass = self._others(), self.roles.held_out.mass
        drawn = BlockSource(partial(_cut, others), self.n_jobs)
        for size in sizes:
            # the next weaker λ has finer scales, which few landmarks cannot use
            near = [k for k in self.open if k >= self.chosen][:2]
            trials = {k: self._sum(k, size, drawn, NOTHING, len(others)) for k in near}
            chosen = min(near, key=lambda k: float(trials[k].losses @ mass))
            gain, error = trials[chosen].gain_over(self.best, mass)
            self._note(trials[chosen])
            if gain > 0.0:
                self.chosen, self.best = chosen, trials[chosen]
            if gain <= error:
                return False
        return True

    def take_all(self) -> None:
        """Try all rows of the sample as landmarks."""
        if clock.expired():
            raise Stopped
        rows, fit = self._others(), self.fits[self.chosen]
        points = self.seen.views.points(rows.numeric, rows.codes)
        landmarks = Landmarks(self.seen.views, points, (fit.scales,), self.plan.dtype)
        values = self.targets.of_rows(rows).values
        equations = RowEquations(landmarks, rows, values)
        trial = self._judged(landmarks, equations, len(rows), (self.best.ridge,))
        self._note(trial)
        if trial.gain_over(self.best, self.roles.held_out.mass)[0] > 0.0:
            self.best = trial

    def finish(self) -> None:
        """Sum over all rows, once, where the best has not seen them."""
        n_rows, sample = self.seen.n_rows, self.seen.sample
        if len(sample) < n_rows or self.best.n_rows < len(self.roles.others):
            size, apart = len(self.best.landmarks), self.roles.apart
            self.best = self._sum(self.chosen, size, self.source, apart, n_rows)
            self._note(self.best)

    def _sum(self, k: int, size: int, source: Source, apart: HeldApart, n_rows: int) -> Trial:
        def tell(done: int) -> None:
            if self.tell is not None:
                self.tell(f"{size} landmarks", done, n_rows)

        landmarks = self._landmarks(self.fits[k], size)
        sums = source.sums(landmarks, apart, self.targets, n_rows, tell)
        return self._trial(landmarks, sums, (self.best.ridge,))

    def _others(self, most: int | None = None) -> Rows:
        """Return the sample without the rows held out and their copies."""
        rows = self.roles.others
        return rows if most is None else rows.take(np.arange(min(len(rows), most)))

    def _landmarks(self, fit: Fit, size: int) -> Landmarks:
        rows, views = self.roles.landmarks, self.seen.views
        points = views.points(rows.numeric[:size], rows.codes[:size])
        return Landmarks(views, points, (fit.scales,), self.plan.dtype)

    def _trial(self, landmarks: Landmarks, sums: Sums, ridges: Sequence[float]) -> Trial:
        n_rows, normal = sums.n_rows, Normal.of(landmarks.gram(), sums)
        return self._judged(landmarks, normal, n_rows, ridges)

    def _judged(
        self, landmarks: Landmarks, equations: Equations, n_rows: int, ridges: Sequence[float]
    ) -> Trial:
        return Trial.of(
            landmarks, equations, n_rows, self.roles.held_out, self.targets,
            self.seen.targets.spread, ridges,
        )  # fmt: skip

    def _note(self, trial: Trial) -> None:
        share = self.roles.held_out.mass / self.roles.held_out.mass.sum()
        loss = float(share @ trial.losses)
        error = float(np.sqrt(np.sum((share * (trial.losses - loss)) ** 2)))
        self.record.append(
            Doubling(len(trial.landmarks), trial.n_rows, trial.ridge, 1.0 - loss, error)
        )
