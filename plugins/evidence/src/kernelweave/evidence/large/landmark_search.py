"""Search for the number of landmarks: double it while the score on held-out rows improves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from kernelweave.kernels_core.clock import Stopwatch

from ..mixture import fit_mixture, path_weights, weighted
from ..path import Fit
from ..rows import Rows, Standardised
from ..scores import mean_with_error
from ..terms import Scales
from .batches import BLOCK
from .features import Landmarks, level_of
from .held_out import RowBlock
from .levels import LevelSums, whole_groups
from .plan import LargePlan
from .posterior import root_of
from .solution import LandmarkSolution, RidgeJudge, Trial
from .source import BlockSource, Source
from .sums import NormalEquations, Sums, block_sums, total_sums

if TYPE_CHECKING:
    from .held_out import RowRoles
    from .survey import Survey

# called with the name of the sums, the rows done and all rows
OnProgress = Callable[[int, int, int], None]
# rows whose pairs weigh the path, and where no time is left. With 500 landmarks instead, weights
# were nearly even where the finest scales were five points better (4,600 air fares)
_PATH_ROWS, _FEW_ROWS = 2000, 300
# of the weights
_CLEAR = 0.8
# landmarks of rows held out that come last, for each that was tried
_LATE = 0.5
# Share of the loss that twice the landmarks, at four times the cost, must save, and a gain of R²
# that is always enough: where targets are mostly noise, 1 % of the loss is nearly a point. Without
# them 30,000 rows of Friedman 1 went on to 4,000 landmarks for 0.0001 in R², in 58 CPU s for 7.
_LEAST_SHARE, _ENOUGH = 0.01, 0.002
# ridges that few landmarks are tried with
_RIDGES = tuple(10.0**k for k in range(-5, 2))


class ProgressPrinter:
    """Print progress and the time left after every tenth of the rows.

    Examples
    --------
    >>> from kernelweave.evidence.large.landmark_search import ProgressPrinter
    >>> ProgressPrinter()("500 landmarks", 1000, 1000)
    [evidence] 500 landmarks: 1,000 of 1,000 rows, 0 s left
    """

    def __init__(self) -> None:
        self.what, self.tenths = "", 0

    def __call__(self, what: str, rows: int, n_rows: int) -> None:
        """Report that ``rows`` of ``n_rows`` rows are done."""
        if what != self.what or 10 * rows // n_rows < self.tenths:
            self.what, self.tenths, self.watch = what, 0, Stopwatch()
        tenths = 10 * rows // n_rows
        if tenths > self.tenths:
            self.tenths = tenths
            left = self.watch.seconds * (n_rows - rows) / rows
            print(f"[evidence] {what}: {rows:,} of {n_rows:,} rows, {left:.0f} s left")  # noqa: T201


class SearchStep(NamedTuple):
    """Ridge and score of one number of landmarks, on the rows held out for choosing."""

    n_landmarks: int
    n_rows: int
    ridge: float
    score: float
    error: float


def blocks_of(rows: Rows) -> Iterator[Rows]:
    """Cut rows into blocks."""
    for piece in row_slices(len(rows), BLOCK):
        yield rows.take(np.arange(piece.start, piece.stop))


@dataclass
class LandmarkSearch:
    """What a fit does after the scales are learned, step by step, each of which may be the last.

    - `targets`: centre, spread and warp
    - `source`: all rows
    - `n_jobs`: threads of the sums over rows in memory
    - `report`: called with the landmarks of a sum, the rows done and all of them
    """

    seen: Survey
    targets: Standardised
    roles: RowRoles
    plan: LargePlan
    source: Source
    n_jobs: int | None = None
    report: OnProgress | None = None
    record: list[SearchStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.choosing = self.roles.held_out.choosing
        self._total: tuple[NormalEquations, tuple[FloatArray, FloatArray] | None] | None = None
        self._n_early = 0
        self._grouped = self.seen.views.group is not None

    def start(self, fits: Sequence[Fit]) -> None:
        """Weigh the path by the rows that choose, and try its sum with few landmarks."""
        most = _FEW_ROWS if clock.expired() else _PATH_ROWS
        self.errors = self.path_errors([fit.scales for fit in fits], most)
        self.weights = path_weights(self.errors)
        self.scales = weighted([fit.scales for fit in fits], self.weights)
        # a member with nearly all of the weight is not tried alone: it would tell nothing
        clear = self.weights.max() > _CLEAR
        self._member = None if clear else fits[int(np.argmin(self.errors))].scales
        self.best = self.first_trial(self.scales)
        self._note(self.best)

    def path_errors(self, path: Sequence[Scales], most: int = _PATH_ROWS) -> FloatArray:
        """Return the error of each λ on the rows that choose, by all pairs of some others.

        Few landmarks would hide what the finer scales of a weaker λ are worth. `most`: others.
        """
        rows = self.others(most)
        views = self.seen.views
        points, chosen = (views.points(each.numeric, each.codes) for each in (rows, self.choosing))

        def error(scales: Scales) -> float:
            mixture = fit_mixture(views, rows, (scales,), self.targets, points)
            latent = mixture.latent(chosen)
            return self._judge(lambda _: latent)(scales.noise).loss

        return np.array([error(scales) for scales in path])

    def first_trial(self, scales: Sequence[Scales]) -> Trial:
        """Return the trial of few landmarks; never cut short, as a stopped fit returns it."""
        size = self.plan.sizes(self.seen.n_rows, len(self.roles.landmarks))[0]
        landmarks, rows = self._landmarks(scales, size), self.others(self.plan.first_rows)
        noise = sum(each.noise for each in scales)
        ratio = self._ratio(scales)
        sums = block_sums(landmarks, rows, self.targets, stop=lambda: False, ratio=ratio)
        return self._trial(landmarks, sums, (noise, *_RIDGES), ratio, rows)

    def _ratio(self, scales: Sequence[Scales]) -> float | None:
        """Return κ, the noise over the variance of the groups' levels, if these have a term.

        The evidence's, not the ridge's: of smooth functions far larger ridges do as well.
        """
        return sum(each.noise for each in scales) / level_of(scales) if self._grouped else None

    def rough_losses(self, scales: Sequence[Scales]) -> FloatArray:
        """Return the losses of the rows that choose, from few landmarks and an even mixture."""
        even = weighted(scales, np.full(len(scales), 1.0 / len(scales)))
        return self.first_trial(even).choice.losses

    def grow_landmarks(self, sizes: Sequence[int]) -> bool:
        """Grow the landmarks through ``sizes`` while the gain is sure and worth its time.

        Sure: above its standard error; worth it: at least 1 % of the loss, or 0.002. Returns
        whether the last size was reached.
        """
        for size in sizes:
            trial = self._summed(self.scales, size)
            gain, error = trial.gain_over(self.best, self.choosing.precision)
            loss, _ = mean_with_error(self.best.choice.losses, self.choosing.precision)
            self._note(trial)
            if gain > 0.0:
                self.best = trial
            if gain <= max(error, min(_LEAST_SHARE * loss, _ENOUGH)):
                return False
        return True

    def sharpen(self) -> None:
        """Take the best λ alone where that is surely better with so many landmarks.

        The weights come from fewer rows, which say less of fine scales.
        """
        if self._member is None:
            return
        trial = self._summed((self._member,), len(self.best.landmarks))
        gain, error = trial.gain_over(self.best, self.choosing.precision)
        if gain > error:
            # landmarks of sums have no groups' term
            self.scales = (self._member,)
            self.weights = np.eye(len(self.errors))[int(np.argmin(self.errors))]
            self.best = trial
            self._note(trial)

    def _summed(self, scales: Sequence[Scales], size: int) -> Trial:
        """Return the trial of ``size`` landmarks, solved by sums over the drawn rows."""
        others, landmarks = self.others(), self._landmarks(scales, size)
        cut = whole_groups if self._grouped else blocks_of
        source = BlockSource(partial(cut, others), self.n_jobs)
        report = partial(self._report_rows, size, len(others))
        ridge = self.best.choice.ridge
        ratio = self._ratio(scales)
        sums = total_sums(source, landmarks, self.targets, len(others), report=report, ratio=ratio)
        return self._trial(landmarks, sums, (ridge,), ratio, others)

    def sum_all(self) -> None:
        """Sum over all rows, once, where the best has not seen them."""
        n_rows, size = self.seen.n_rows, len(self.best.landmarks)
        whole = len(self.seen.sample) == n_rows
        seen = whole and self.best.n_rows == self.roles.n_others
        if seen and not len(self.roles.late_landmarks):
            return
        known_rows = self.roles.held_out.known_rows
        landmarks = self._with_late()
        n_late = len(landmarks) - size
        report = partial(self._report_rows, len(landmarks), n_rows)
        ratio = self._ratio(self.scales)
        sums = total_sums(self.source, landmarks, self.targets, n_rows, known_rows, report, ratio)
        copies = None if known_rows is None else sums.copies
        total = NormalEquations.of(root_of(landmarks.gram()), sums)
        without = np.flatnonzero(self.roles.held_out.without[0])
        chosen = landmarks.first(size, self.plan.dtype) if n_late else landmarks
        share = self.roles.held_out.block_of(without, self.targets, copies)._replace(ratio=ratio)
        rest = total.first(size).with_block(chosen, share, -1.0)
        latent = self._latent(chosen, rest, share.rest, ratio)
        choice = self._judge(latent).choose((self.best.choice.ridge,))
        self.best = Trial(landmarks, choice, None, n_rows - len(without), ratio)
        self._total, self._n_early = (total, copies), size
        self._note(self.best)

    @property
    def copies(self) -> tuple[FloatArray, FloatArray] | None:
        """Σw and Σwy over the copies of the rows held out, where they were summed over apart."""
        return None if self._total is None else self._total[1]

    def take_late_landmarks(self) -> None:
        """Add landmarks of rows held out, for what predicts from all rows but not yet has."""
        if not self._n_early:
            landmarks, n_early = self._with_late(), len(self.best.landmarks)
            self.best, self._n_early = replace(self.best, landmarks=landmarks), n_early

    def _with_late(self) -> Landmarks:
        """Return the landmarks of the best, behind which are those of rows held out."""
        size, late = len(self.best.landmarks), self.roles.late_landmarks
        n_late = int(size * min(len(late) / len(self.roles.landmarks), _LATE))
        which = np.concatenate([self.roles.landmarks[:size], late[:n_late]])
        return self._landmarks(self.scales, which)

    @property
    def n_early(self) -> int:
        """How many landmarks of the best are of no row that is held out; the others are last."""
        return self._n_early or len(self.best.landmarks)

    @property
    def landmarks_at(self) -> Index:
        """Which row of the sample each landmark of the best is."""
        late = self.roles.late_landmarks[: len(self.best.landmarks) - self.n_early]
        return np.concatenate([self.roles.landmarks[: self.n_early], late])

    def solution(self) -> LandmarkSolution:
        """Return the coefficients by all rows that were seen, judged by folds without them."""
        held_out, copies = self.roles.held_out, None
        if self._total is not None:
            total, copies = self._total
        else:
            assert self.best.equations is not None
            without = self._share(np.flatnonzero(held_out.without[0]), None)
            total = self.best.equations.with_block(self.best.landmarks, without, 1.0)

        def share(which: Index) -> RowBlock:
            return self._share(which, copies)

        n_late = 0 if self._total is None else len(self.best.landmarks) - self._n_early
        return LandmarkSolution.of_sums(self.best, total, held_out, share, n_late)

    def _share(self, which: Index, copies: tuple[FloatArray, FloatArray] | None) -> RowBlock:
        block = self.roles.held_out.block_of(which, self.targets, copies)
        n_summed = self.best.n_rows if len(self.seen.sample) == self.seen.n_rows else 0
        if self._total is None and n_summed < self.roles.n_others:
            # the others of their groups were not all summed over
            block = block._replace(rest=None)
        return block._replace(ratio=self.best.ratio)

    def _report_rows(self, size: int, n_rows: int, done: int) -> None:
        if self.report is not None:
            self.report(size, done, n_rows)

    def others(self, most: int | None = None) -> Rows:
        """Return the sample without the rows that choose and their copies, or some of it."""
        places = self.roles.order[: self.roles.n_others]
        if most is not None and most < len(places):
            # of all uses of rows alike
            places = places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
        return self.seen.sample.take(places)

    def _landmarks(self, scales: Sequence[Scales], which: int | Index) -> Landmarks:
        """Return some landmarks, or the first so many; sums of rows have their groups' levels."""
        which = self.roles.landmarks[:which] if isinstance(which, int) else which
        rows, views = self.seen.sample.take(which), self.seen.views
        points = views.points(rows.numeric, rows.codes)
        alone = tuple(each.without_levels() if self._grouped else each for each in scales)
        return Landmarks(views, points, alone, self.plan.dtype)

    def _trial(
        self, landmarks: Landmarks, sums: Sums, ridges: Sequence[float], ratio: float | None,
        rows: Rows,
    ) -> Trial:  # fmt: skip
        n_rows, normal = sums.n_rows, NormalEquations.of(root_of(landmarks.gram()), sums)
        latent = self._latent(landmarks, normal, RowBlock.of(rows, self.targets), ratio)
        choice = self._judge(latent).choose(ridges)
        return Trial(landmarks, choice, normal, n_rows, ratio)

    def _latent(
        self,
        landmarks: Landmarks,
        normal: NormalEquations,
        known: RowBlock | None,
        ratio: float | None,
    ) -> Callable[[float], FloatArray | None]:
        """Return what predicts the rows that choose under a ridge.

        `known`: rows that were learned from, all of their groups among them; `ratio`: of the noise
        to the levels of groups, ``None`` where these have none.
        """
        features = landmarks.features(self.choosing.numeric, self.choosing.codes)
        levels = None
        if ratio is not None and known is not None:
            levels = LevelSums.of(landmarks, self.choosing, known.rows, known.cross, ratio)

        def latent(ridge: float) -> FloatArray | None:
            solved = normal.solve(ridge)
            if solved is None:
                return None
            found = features @ solved[0]
            return found if levels is None else found + levels(solved[0])

        return latent

    def _judge(self, latent: Callable[[float], FloatArray | None]) -> RidgeJudge:
        return RidgeJudge(
            latent, self.choosing, self.targets, self.seen.targets.spread, self.plan.path.loss
        )

    def _note(self, trial: Trial) -> None:
        loss, error = mean_with_error(trial.choice.losses, self.choosing.precision)
        self.record.append(
            SearchStep(len(trial.landmarks), trial.n_rows, trial.choice.ridge, 1.0 - loss, error)
        )
