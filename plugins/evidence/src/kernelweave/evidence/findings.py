"""What a fit reports: its attributes, scores by kinds of new rows, certificate and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import History, Result, Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index, RandomState
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables import ColumnPlan
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .copies import have_twins
from .division import BY_CV
from .exact import ExactPredictor
from .intervals import held_by_the_last
from .kernel import EvidenceKernel
from .large.landmarks import LandmarkPredictor
from .large.leave_out import LandmarksLeaveOut
from .learn import SHARED_METRIC
from .leave_out import PairsLeaveOut
from .leaving import LeavesOut
from .monotone.finding import MonotoneFinding
from .new_rows import AS_THEY_RECUR, USUAL, Expectation, HeldOutWarning, expected, kinds_of
from .panels import KINDS, NEW_KINDS, PanelResiduals, panel_kinds, told_by_others
from .path import without_scales
from .scores import margin_of_error
from .tasks import Classification, Regression, Task, score_name, score_of

if TYPE_CHECKING:
    from .columns import Dimension
    from .division import Division
    from .large.learning import LearnedLarge
    from .learn import Learned
    from .living.forgetting import Forgotten
    from .living.relearn import Relearn
    from .living.state import HeldOutBy
    from .monotone.predictor import Monotone
    from .read_table import ReadTable
    from .rows import Rows

Predictor = ExactPredictor | LandmarkPredictor
# what intervals of later rows are tried with
_ASKED = 0.9


@dataclass(frozen=True)
class EvidenceCertificate:
    """What is proved about a fit, and what is not.

    - `precisions`: λ of each fit of the path; of the Gaussian kernel of one scale a dimension,
      where it is tried; infinite for the linear kernel, below 150 rows, and for the Gaussian of
      one scale, whose width and ridges leave-one-out errors choose
    - `ends`: why the search for the scales of each ended, as in `Status`: ``"stationary"``,
      ``"max_iter"``, ``"stalled"`` or ``"max_time"``
    - `evidence`: log evidence reached, priors included, up to a constant; NaN for the plain kernel
    - `slopes`: largest entry of its gradient in the logarithms of the scales; 0 at a stationary
      point, NaN for the plain kernel
    - `weights`: how the path is combined
    - `held_out_score`, `held_out_error`: on rows that the fit behind the prediction did not see,
      and its standard error
    - `work`: which rows the metric and the predictor were learned on
    - `relearn`: what learning the kernel again would gain at the rows now there; ``None`` of a fit
    - `forgotten`: what the kernel still has of the rows that were forgotten last; no file has it
    - `monotone`: the columns that predictions are monotone in by construction, and what that did to
      the score; ``None`` where there are none
    """

    precisions: tuple[float, ...]
    ends: tuple[str, ...]
    evidence: tuple[float, ...]
    slopes: tuple[float, ...]
    weights: tuple[float, ...]
    held_out_score: float
    held_out_error: float
    work: str
    relearn: Relearn | None = None
    forgotten: Forgotten | None = None
    monotone: MonotoneFinding | None = None

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "forgotten"}

    def __str__(self) -> str:
        slope = np.nanmax(self.slopes)
        open_ = Counter(each for each in self.ends if each != Status.STATIONARY.label)
        why = ", ".join(f"{n} of {len(self.ends)} searches ended by {e}" for e, n in open_.items())
        why += f", and a slope is {slope:.1e}" if np.isfinite(slope) else ""
        scales = f"are not all stationary points of the evidence: {why}"
        if not open_:
            scales = (
                f"are stationary points of the evidence to {slope:.1e} in its gradient, not proved "
                "to be its global maximum, which nothing bounds"
            )
        again = "" if self.relearn is None else f"; {self.relearn}"
        return (
            f"held-out score {self.held_out_score:z.4f} ± {self.held_out_error:.4f} ({self.work}); "
            f"the scales {scales}; at these scales the predictor is the minimiser of a convex "
            f"problem over its features{again}"
        ) + ("" if self.monotone is None else f"; {self.monotone}")


@dataclass(frozen=True)
class HeldOutRows:
    """Rows as folds held them out, and what leaves others out in closed form.

    - `rows`: those of training; `values` of shape (n_rows, n_outputs): their predictions, NaN where
      no fold held a row out; `fold` of shape (n_rows,): the fold that did, −1 of none
    - `owner` of shape (n_given,): the place of each of the user's rows among these, −1 of none
    - `dimensions`: of the encoded table; `left_out`: makes what leaves out rows, if anything can
    """

    rows: Rows
    values: FloatArray
    fold: Index
    owner: Index
    dimensions: Sequence[Dimension]
    left_out: Callable[[], LeavesOut | None]


@dataclass(frozen=True)
class Fitted:
    """A finished fit, by all pairs of rows or by landmarks.

    `draws`: the state of the random numbers that its last step began with.
    """

    predictor: Predictor
    learned: Learned | LearnedLarge
    held_out: HeldOutRows
    draws: NDArray[np.uint32] | None = None
    monotone: Monotone | None = None


def attributes_of(
    samples: ReadTable, fitted: Fitted, random_state: RandomState
) -> tuple[dict[str, Any], str]:
    """Return what an estimator keeps of a fit, and which new rows time was not left to judge."""
    predictor, learned, encoder = fitted.predictor, fitted.learned, samples.encoder
    dimensions, away = list(encoder.dimensions_), without_scales(learned.fits)
    attributes, late, found = rearranged_attributes(
        samples.task, samples.division, fitted.held_out, predictor, fitted.monotone, random_state,
        learned.missing,
    )  # fmt: skip
    task = attributes["_task"]
    n_iter = max(1, sum(fit.n_evaluations for fit in learned.fits))
    # no lower bound of a problem that is not convex is known
    value = float(learned.weights @ np.nan_to_num([fit.value for fit in learned.fits]))
    result = Result(
        value=value,
        lower_bound=-np.inf,
        upper_bound=value,
        gap=np.inf,
        status=_status_of(learned),
        n_iter=n_iter,
        history=History(),
        parameters=tuple(predictor.scales),
        algorithm="evidence",
    )
    certificate = EvidenceCertificate(
        tuple(fit.precision for fit in learned.fits),
        tuple(fit.status.label for fit in learned.fits),
        tuple(-fit.value for fit in learned.fits),
        tuple(fit.slope for fit in learned.fits),
        tuple(learned.weights.tolist()),
        attributes["held_out_score_"],
        attributes["held_out_error_"],
        str(learned),
        monotone=found,
    )
    classes = isinstance(task, Classification)
    of_classes = {"classes_": task.labels, "levels_": task.ordered} if classes else {}
    attributes |= of_classes | {
        "kernel_": EvidenceKernel(predictor.views, tuple(predictor.scales)),
        "noise_": predictor.noise,
        "relevance_": learned.weights @ np.array([fit.scales.ell for fit in learned.fits]),
        "dimensions_": dimensions,
        "columns_": _with_screening_remarks(encoder.report_, dimensions, away),
        "encoder_": encoder,
        "path_weights_": learned.weights,
        "certificate_": certificate,
        "result_": result,
        "n_iter_": n_iter,
        "_predictor": predictor,
        "_owner": fitted.held_out.owner,
        "_importance": None,
        "_monotone": fitted.monotone,
    }
    return attributes, late


def rearranged_attributes(
    task: Task, division: Division | HeldOutBy, held_out: HeldOutRows, predictor: Predictor,
    monotone: Monotone | None, random_state: RandomState, missing: str = "",
) -> tuple[dict[str, Any], str, MonotoneFinding | None]:  # fmt: skip
    """Return what `held_out_attributes` does of rows held out as they are predicted.

    And which columns predictions are monotone in, ``None`` where there are none.
    """
    if monotone is None:
        return *held_out_attributes(task, division, held_out, random_state, missing), None
    calibrated, before = _first_line(task, division, held_out)
    values, is_whole = monotone.held_out(predictor, calibrated)
    rest = ", ".join(filter(None, (missing, "" if is_whole else "rearranged rows held out")))
    attributes, late = held_out_attributes(
        task, division, replace(held_out, values=values), random_state, rest
    )
    after, error = attributes["held_out_score_"], attributes["held_out_error_"]
    found = MonotoneFinding(monotone.signs, before.score, before.error, after, error)
    return attributes, late, found


def held_out_attributes(
    task: Task, division: Division | HeldOutBy, held_out: HeldOutRows, random_state: RandomState,
    missing: str = "",
) -> tuple[dict[str, Any], str]:  # fmt: skip
    """Return what an estimator keeps of rows held out, and which new rows are not judged.

    `missing`: what time was not left for.
    """
    owner, kept = held_out.owner, held_out.owner >= 0
    task, usual = _first_line(task, division, held_out)
    lines, late = [usual], ""
    left_out = held_out.left_out() if usual.n_rows else None
    if left_out is not None:
        counts = np.bincount(owner[kept], minlength=len(held_out.rows))
        more, late = _other_lines(
            task, division, held_out.dimensions, left_out, counts, random_state
        )
        lines += more
    elif usual.n_rows and missing:
        late = "new groups and later rows"
    kinds = division.row_kinds
    if division.is_panel and isinstance(left_out, LandmarksLeaveOut) and not left_out.in_order:
        # folds of a splitter tell of no later rows
        kinds = (*kinds[:2], *kinds[:2])
    fold = np.full(len(owner), -1, dtype=np.intp)
    fold[kept] = held_out.fold[owner[kept]]
    attributes = {
        "held_out_score_": usual.score,
        "held_out_error_": usual.error,
        "held_out_prediction_": task.in_the_table(held_out.rows, held_out.values, owner),
        "held_out_fold_": fold,
        "_new_rows": lines,
        "_row_kinds": kinds,
        "_task": task,
    }
    return attributes, late


def _first_line(
    task: Task, division: Division | HeldOutBy, held_out: HeldOutRows
) -> tuple[Task, Expectation]:
    """Return the task as rows held out calibrate it, and what is expected of rows like these."""
    rows, values, scoring = held_out.rows, held_out.values, task.scoring
    task, score, error = task.calibrated(rows, values)
    seen = np.flatnonzero(~np.isnan(values[:, 0]))
    if not len(seen):
        return task, Expectation(USUAL, score, error, 0, 0)
    subset, n_groups = rows.take(seen), len(seen)
    if scoring is not None:
        score, error = scoring.score(subset, task.crossed(rows, values)[seen])
    if not division.random:
        error = np.nan
        # rows of a group, and of a block, share what is wrong with their predictions
        of_blocks = subset.groups is None or subset.times is not None
        for each in (subset.groups, held_out.fold[seen] if of_blocks else None):
            if each is not None:
                parts = np.unique(each, return_inverse=True)[1]
                other = score_of(task, subset, task.answers(values[seen]), parts)[1]
                if not error >= other:
                    error, n_groups = other, int(parts.max()) + 1
    return task, Expectation(division.kind, score, error, len(seen), n_groups)


def _other_lines(
    task: Task, division: Division | HeldOutBy, dimensions: Sequence[Dimension],
    left_out: LeavesOut, counts: Index, random_state: RandomState,
) -> tuple[list[Expectation], str]:  # fmt: skip
    """Return what is expected of each kind of new rows that folds did not hold out.

    Last, in words, of which time was not left to tell.

    `counts` of shape (n_rows,): how many of the user's rows each stands for.
    """
    rows = left_out.rows
    kinds = [] if division.random else [replace(USUAL, groups=np.arange(len(rows)))]
    if division.is_panel:
        kinds = panel_kinds(rows, division.row_kinds)
    elif (
        division.random
        and isinstance(left_out, PairsLeaveOut)
        and not rows.recurring
        and have_twins(rows.duplicate_ids, counts)
    ):
        kinds = [replace(AS_THEY_RECUR, groups=rows.duplicate_ids, counts=counts)]
    kinds += [
        each
        for each in kinds_of(rows, dimensions, left_out.places)
        if each.argument != division.kind.argument
        and f"{each.name}, now" not in division.row_kinds
        and not (division.in_order and "in the file" in each.name)
    ]

    def judge(
        rows: Rows, values: FloatArray, usual: FloatArray, parts: Index
    ) -> tuple[float, float]:
        return score_of(task, rows, task.answers_of_new(rows, values, usual), parts)

    seed = check_random_state(random_state).randint(2**31 - 1)
    many = len(rows) > SHARED_METRIC
    lines, late = expected(left_out, rows, kinds, judge, np.random.RandomState(seed), many=many)
    return lines, ", ".join(kind.phrase for kind in late)


def _with_screening_remarks(
    plans: Sequence[ColumnPlan], dimensions: Sequence[Dimension], without_scales: Index
) -> list[ColumnPlan]:
    """Return what was done with each column, with a remark where it has no scale of its own."""
    sources = np.array([each.source for each in dimensions])
    away = set(sources[without_scales]) - set(np.delete(sources, without_scales))
    remark = f"No scale of its own: trees screened away {len(away)} of {len(plans)} columns."
    return [
        plan._replace(remark=f"{plan.remark} {remark}".strip()) if plan.column in away else plan
        for plan in plans
    ]


def _status_of(learned: Learned | LearnedLarge) -> Status:
    """Return why a fit ended: by a limit of it all, or that of any search of the scales."""
    if learned.missing:
        # nothing but the clock and who watches stops a fit
        return Status.MAX_TIME if clock.limited() else Status.STOPPED
    statuses = {fit.status for fit in learned.fits}
    limits = [each for each in (Status.MAX_ITER, Status.STALLED) if each in statuses]
    return limits[0] if limits else Status.STATIONARY


def fit_warnings(
    samples: ReadTable,
    fitted: Fitted,
    attributes: dict[str, Any],
    late: str,
    max_time: float | None,
    max_iter: int,
) -> list[Warning]:
    """Return warnings: limits that ended the fit, poor scores, intervals that hold too little.

    `attributes`, `late`: as `attributes_of` returns; `max_time`, `max_iter`: the limits of the fit.
    """
    task, status = attributes["_task"], attributes["result_"].status
    issued: list[Warning] = []
    if samples.division.order is not None and isinstance(task, Regression):
        issued += _later_intervals_warnings(fitted.predictor)
        if samples.division.is_panel:
            issued += map(HeldOutWarning, _told_by_others(fitted.predictor, samples.division))
    if status is Status.MAX_TIME:
        omissions = fitted.learned.missing + (f", {late} not judged" if late else "")
        message = Message(
            f"{{max_time}} of {max_time} s ended the fit early ({omissions}): the "
            "best model so far is kept; raise {max_time}, or give fewer rows"
        )
        issued.append(ConvergenceWarning(message))
    elif status is Status.MAX_ITER:
        ends = attributes["certificate_"].ends
        n_open = ends.count(Status.MAX_ITER.label)
        message = Message(
            f"{{max_iter}} of {max_iter} ended {n_open} of {len(ends)} searches of the scales "
            "before they were stationary: raise {max_iter} or {tol}"
        )
        issued.append(ConvergenceWarning(message))
    elif late and max_time is not None:
        message = Message(
            f"{{max_time}} of {max_time} s left no time to judge {late}: {{held_out_}} lacks them"
        )
        issued.append(ConvergenceWarning(message))
    rows, values = fitted.held_out.rows, fitted.held_out.values
    seen = np.flatnonzero(~np.isnan(values[:, 0]))
    finding = task.underfit(rows.take(seen), values[seen]) if len(seen) else None
    issued += [] if finding is None else [finding]
    return issued + new_rows_warnings(task, attributes["_new_rows"])


def _told_by_others(predictor: Predictor, division: Division) -> list[str]:
    """Return sentences on kinds of a panel whose intervals rows of other kinds tell."""
    if isinstance(predictor, LandmarkPredictor):
        kinds = predictor.of_kinds
        n_groups, of = [each.n_groups for each in kinds], [each.of for each in kinds]
        # where no column names the groups no new row is of a known one
        asked = KINDS if predictor.views.group is not None else NEW_KINDS
        return told_by_others(division.row_kinds, n_groups, of, asked) if kinds else []
    if type(predictor) is not ExactPredictor:
        return []
    panel = PanelResiduals(predictor)
    return told_by_others(division.row_kinds, panel.n_groups, panel.of, KINDS)


def _later_intervals_warnings(predictor: Predictor) -> list[Warning]:
    """Warn of intervals from earlier blocks that hold too little of the last."""
    scores = predictor.fold_scores()
    if len(scores) < 2:
        return []
    held, n_rows = held_by_the_last(scores, _ASKED)
    if not held < _ASKED - 2.0 * np.sqrt(_ASKED * (1.0 - _ASKED) / n_rows):
        return []
    return [
        HeldOutWarning(
            f"intervals of later rows may hold less than they say: of the last {n_rows} rows, "
            f"those that earlier rows give for {_ASKED:.0%} held {held:.0%}"
        )
    ]


def _margin(*lines: Expectation) -> float:
    return margin_of_error(*((line.error, line.n_groups) for line in lines))


def doubted(lines: Sequence[Expectation]) -> list[Expectation]:
    """Return the kinds of new rows that are surely predicted worse than those held out."""
    first, *others = lines
    # lines are surely below those of rows drawn at random: is it so of what was held out as told?
    is_declared = first.kind.name != USUAL.name
    return [
        line
        for line in others
        if line.score < first.score - max(line.least, _margin(first, line) if is_declared else 0.0)
    ]


def new_rows_warnings(
    task: Task, lines: Sequence[Expectation], then: str = "the score and the intervals are"
) -> list[Warning]:
    """Warn of the score where a kind of new rows is surely predicted worse than those held out.

    `then`: what is right once the fit gets ``groups`` or ``order`` for such rows.
    """
    first, worse = lines[0], doubted(lines)
    if not worse:
        return []
    low = min(worse, key=lambda line: line.score)
    # each patient has an age, so that a new one mostly is a new patient: of lines that are alike,
    # that of the most groups
    alike = [line for line in worse if not line.score > low.score + low.error]
    worst = max(alike, key=lambda line: (line.n_groups, -line.score))
    what = f"{'an' if task.scoring is None else 'a'} {score_name(task)}"
    n_more = len(worse) - 1
    kinds = "kind" if n_more == 1 else "kinds"
    more = f" ({{held_out_}} has {n_more} more such {kinds})" if n_more else ""
    finding = (
        f"expect {what} of at most {worst.score:.2f} on {worst.kind.phrase}, not "
        f"{first.score:.2f} as on {first.kind.phrase}"
    )
    how, alone = worst.kind.argument, ", without {cv}" if first.kind.name == BY_CV.name else ""
    remedy = Message("fit with {how}" + f"{alone}: {then} then for them{more}", how=how)
    return [HeldOutWarning(finding, remedy)]
