"""What the regressor and the classifier share: a table to rows, rows to a predictor."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from kernelweave.kernels_core import (
    History,
    Progress,
    Result,
    SolveInterrupted,
    Status,
    clock,
    config_context,
    interrupts,
)
from kernelweave.kernels_core.arrays import FloatArray, Index, RandomState
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import (
    COUNT,
    FLAG,
    ON_INTERRUPT,
    SECONDS,
    Rule,
    integer,
    number,
)
from kernelweave.kernels_core.clock import expired, time_limit
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.estimators.base import Estimator, assigned_last
from kernelweave.kernels_core.estimators.samples import merge_samples
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.kernels_core.progress import notify
from kernelweave.tables import ColumnPlan
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from .columns import ColumnEncoder, Dimension, Encoded
from .division import Division, division_of, hold_out
from .exact import ExactPredictor
from .explaining.mixin import Explained
from .explaining.notebook import fit_html
from .kernel import EvidenceKernel
from .large.batches import Batches
from .large.dask_parts import DaskParts, is_dask
from .large.drawing import first_reading
from .large.landmark_search import ProgressPrinter
from .large.landmarks import LandmarkPredictor
from .large.learning import LearnedLarge, learn_large
from .large.plan import LargePlan
from .large.reading import ClassTargets, NumberTargets, Reader, batches_alone, targets_of
from .large.source import Source
from .learn import Learned, learn
from .new_rows import (
    ALIKE,
    Closed,
    Expectation,
    HeldOutWarning,
    Kind,
    LeavesOut,
    expected,
    kinds_of,
)
from .objective import evidence_bytes
from .path import PRECISIONS, PathPlan
from .rows import Rows, Split, normalise_weights
from .scores import grouped_ratio
from .scoring import Scoring
from .screening import KEPT
from .targets import check_weight

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.utils import Tags


Predictor = ExactPredictor | LandmarkPredictor
# more rows than these are learned by landmarks: all pairs would take minutes
EXACT_ROWS = 2000
# fewer rows than these are also predicted by ridge regression
FEW_ROWS = 150
# what intervals of later rows are tried with
_ASKED = 0.9
# of a table in batches, what tells the encoder its levels and medians
DRAWN_ROWS = 20_000
# of a wide table: numbers for each cell, of views of all rows and of the folds, also of the fit to
# the noise, and what trees read; and bytes for each dimension, of its plan and the arrays' heads
_VIEWS, _HEADS = 40, 4096
# of a table: read, encoded, without the rows of no weight, and those of a part
_COPIES = 4
_LANDMARKS = Rule(
    f'"auto" or {COUNT.words}',
    lambda value: value == "auto" if isinstance(value, str) else COUNT.holds(value),
)


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
    """

    precisions: tuple[float, ...]
    ends: tuple[str, ...]
    evidence: tuple[float, ...]
    slopes: tuple[float, ...]
    weights: tuple[float, ...]
    held_out_score: float
    held_out_error: float
    work: str

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
        return (
            f"held-out score {self.held_out_score:z.4f} ± {self.held_out_error:.4f} ({self.work}); "
            f"the scales {scales}; at these scales the predictor is the minimiser of a convex "
            "problem over its features"
        )


def _notify_unless_over(progress: Progress) -> None:
    """Tell whoever watches, who might press Ctrl-C a second time, nothing more after the first."""
    if not expired():
        notify(progress, None, 0)


class EvidenceModel(Explained, Estimator):
    """Base of the estimators whose kernel is chosen by the evidence."""

    n_folds: int = parameter(
        "Folds whose held-out rows decide how the path is combined. Above 2,000 rows the first "
        "decides and the others judge.",
        default=3,
        rule=integer(2),
    )
    cv: Any = parameter(
        "How rows are held out where it is not `n_folds` at random: a number of folds, a splitter "
        "of scikit-learn or pairs of training and held-out places. Above 2,000 rows its first "
        "splits choose and judge, as many as leave rows for the scales.",
        default=None,
        kind="int, splitter, iterable or None",
    )
    scoring: Any = parameter(
        "The scorer of scikit-learn, by its name or itself, that combines the path and that the "
        "held-out score is of; R² or accuracy without one. Above 2,000 rows it also chooses the "
        "ridge.",
        default=None,
        kind="str, callable or None",
    )
    precisions: tuple[float, ...] = parameter(
        "λ, the strength of the prior that pulls the scales of all columns together; strongest "
        "first.",
        default=PRECISIONS,
    )
    max_levels: int = parameter(
        "Words that a column keeps apart at most; the rarest share a level.",
        default=10_000,
        rule=integer(2),
    )
    min_frequency: float = parameter(
        "Words in fewer rows, or as a fraction in a smaller share of them, share a level.",
        default=1,
        kind="int or float",
    )
    kinds: Mapping[str, str] | None = parameter(
        "What columns are, by name, where they are not what they seem: number, category, text, "
        "date or ignore.",
        default=None,
        kind="dict",
    )
    tol: float = parameter(
        "A fit of the scales stops when a step improves the evidence by less than this share.",
        default=1e-5,
        rule=number(least=0.0),
    )
    max_iter: int = parameter("Steps a fit of the scales at most.", default=200, rule=COUNT)
    n_landmarks: int | str = parameter(
        "Landmarks at most where there are more than 2,000 rows; 500 double while rows held out "
        'gain. "auto": 4,000, but 2,000 of a million rows, and all of up to 8,000 rows.',
        default="auto",
        rule=_LANDMARKS,
    )
    warp: bool = parameter(
        "Whether skewed columns, and skewed targets of a regression, are also tried under a power "
        "(Box and Cox; Yeo and Johnson), as prices ask for, and counts by a Poisson likelihood; "
        "held-out rows decide.",
        default=True,
        rule=FLAG,
    )
    max_time: float | None = parameter(
        "Seconds at most; the best model so far is kept, with a warning that says what is missing.",
        default=None,
        rule=SECONDS,
    )
    memory_limit: int | None = parameter(
        "Bytes that a fit may take; more is refused before it starts.", default=None, rule=COUNT
    )
    n_jobs: int | None = parameter("Processes for the folds.", default=None, kind="int")
    on_interrupt: str = parameter(
        "What Ctrl-C does once the best model so far of these data is stored, whole, in place of "
        "an earlier fit.",
        default="raise",
        rule=ON_INTERRUPT,
    )
    random_state: RandomState = parameter(
        "Draws the folds; the same number gives the same model.",
        default=0,
        kind="int, RandomState or None",
    )
    verbose: int = parameter(
        "Positive: a line for each part of the work.", default=0, rule=integer()
    )

    kernel_: EvidenceKernel = fitted("EvidenceKernel", "The learned kernel, a value.")
    noise_: float = fitted("float", "Variance of the noise, in units of the target's variance.")
    relevance_: FloatArray = fitted(
        "ndarray of shape (n_dimensions,)",
        "Largest inverse length scale of each dimension along the path, weighted.",
    )
    dimensions_: list[Dimension] = fitted("list of Dimension", "What the kernel sees of the table.")
    columns_: list[ColumnPlan] = fitted("list of ColumnPlan", "What was done with each column.")
    encoder_: ColumnEncoder = fitted("ColumnEncoder", "Turns tables into what the kernel sees.")
    path_weights_: FloatArray = fitted(
        "ndarray", "How the path, and the Gaussian kernels after it, are combined."
    )
    held_out_score_: float = fitted("float", "Score of rows by the fold that did not see them.")
    held_out_error_: float = fitted(
        "float",
        "Its standard error over draws of the rows. Scores of other such tables spread more, as "
        "their fits differ too: R² 1.1 to 1.6 times as much at 60 rows, 1.1 to 1.4 times at 300.",
    )
    held_out_prediction_: FloatArray = fitted("ndarray", "The predictions behind it.")
    held_out_fold_: NDArray[np.intp] = fitted(
        "ndarray of shape (n_samples,)",
        "The fold that did not see a row and predicted it; -1 where none did.",
    )
    certificate_: EvidenceCertificate = fitted(
        "EvidenceCertificate", "What is proved, and what is not."
    )
    result_: Result = fitted("Result", "How the fit ended; no lower bound is claimed.")
    n_iter_: int = fitted("int", "Evaluations of the evidence on all rows.")

    def fit(
        self,
        X: Table | Batches,
        y: object = None,
        sample_weight: object = None,
        *,
        groups: object = None,
        order: object = None,
    ) -> Self:
        """Learn the kernel and what predicts with it.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns), or Batches
            A pandas or polars data frame, an array, a sparse matrix: numbers, words, booleans,
            dates and gaps as they are. `Batches` of a table larger than memory name their targets
            and weights; with a dask array or data frame, y and sample_weight are so too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets, of any size; several share the kernel. Labels of any kind for a
            classifier, two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Divides the variance of a row's noise: a weight of 2 is the row twice. A common factor
            says nothing.
        groups : str or array-like of shape (n_samples,), optional
            Name of a column, or group of each row, such as the patient of a visit. Whole groups
            are then held out, so the score is for rows of new groups. "rows alike" groups
            near-duplicate rows, such as visits of a patient whose number is not known.
        order : str or array-like of shape (n_samples,), optional
            Name of a column of numbers or dates, or a time for each row. Blocks of the later half
            are then held out, each predicted from the rows before it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        with assigned_last(self) as draft:
            if isinstance(X, Batches) or is_dask(X):
                draft._fit_parts(X, y, sample_weight, groups, order)
                return self
            n_rows = _num_samples(X)
            weight = check_weight(sample_weight, n_rows)
            draft._fit_encoder(X, weight)
            targets, weight = draft._read_targets(y, n_rows, weight)
            draft._division = division_of(X, y, groups, order, self.cv)
            draft._learn(lambda _: draft._rows(X, targets, weight))
        return self

    def _read_targets(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Check targets and keep what they are; return them and the weights of their rows."""
        raise NotImplementedError

    def _learn(self, read: Callable[[np.random.RandomState], Rows | Source]) -> None:
        """Read, fit the path, keep what it leaves, also where it was cut short."""
        state = check_random_state(self.random_state)
        missing: str | None = None
        cut = False
        with config_context(memory_limit=self.memory_limit), time_limit(self.max_time):
            try:
                # one thread: the same bits whatever the machine's number of cores
                with interrupts.defer_interrupt(), one_blas_thread():
                    missing = self._fit_source(read(state), state)
            except KeyboardInterrupt as stop:
                cut = True
                if missing is None:
                    raise
                self.result_ = replace(self.result_, status=Status.INTERRUPTED)
                if self.on_interrupt == "raise":
                    raise SolveInterrupted(self.result_) from stop
        self._warn_of_a_limit(missing or "")
        if not cut:
            self._warn_if_underfit()
            self._warn_of_new_rows()

    def _warn_of_a_limit(self, missing: str) -> None:
        """Warn where time or steps ended a search before it was at rest."""
        if self.result_.status is Status.MAX_TIME:
            said = Message(
                f"{{max_time}} of {self.max_time} s ended the fit early ({missing}): the best "
                "model so far is kept; raise {max_time}, or give fewer rows"
            )
        elif self.result_.status is Status.MAX_ITER:
            ends = self.certificate_.ends
            n_open = ends.count(Status.MAX_ITER.label)
            said = Message(
                f"{{max_iter}} of {self.max_iter} ended {n_open} of {len(ends)} searches of the "
                "scales before they were stationary: raise {max_iter} or {tol}"
            )
        else:
            return
        warnings.warn(said, ConvergenceWarning, stacklevel=4)

    def _fit_source(self, source: Rows | Source, state: np.random.RandomState) -> str:
        """Fit by all pairs of rows or by landmarks; return what was left undone."""
        classes = is_classifier(self)
        scoring = self._scoring()
        loss = None if scoring is None else scoring.loss
        plan = PathPlan(tuple(self.precisions), self.tol, self.max_iter, classes=classes, loss=loss)
        division: Division | None = self.__dict__.pop("_division", None)
        learned: Learned | LearnedLarge
        if not isinstance(source, Rows) or len(source) > EXACT_ROWS:
            splits: list[Split] | None = None
            if division is not None and division.cv is not None:
                if not isinstance(source, Rows):
                    raise ValueError(
                        "a splitter as cv is for tables in memory: give a number of folds"
                    )
                splits = self._divide(division, source, state)
            if isinstance(source, Rows) and division is not None:
                source = replace(source, member=self._member(division))
            learned = learn_large(
                source, LargePlan.of(plan, self.n_landmarks, self._n_folds), state,
                stratify=classes, splits=splits, powers=self.warp,
                varying_noise=not classes and (division is None or division.order is None),
                n_jobs=self.n_jobs,
                tell=partial(self._tell_rows, ProgressPrinter()),
            )  # fmt: skip
            if self.verbose > 0:
                print(f"[evidence] {learned}")  # noqa: T201
            rows = learned.predictor.rows
            if isinstance(source, Rows):
                # the last is that of rows without a weight
                at = np.full(len(source) + 1, -1, dtype=np.int32)
                at[learned.places] = np.arange(len(rows))
                self._owner = at[self.__dict__["_owner"]]
            else:
                self._owner = np.arange(len(rows))
            self._store(learned.predictor, learned, rows, division)
            if division is not None and division.order is not None and not classes:
                self._doubt_later_intervals(learned.predictor)
            return learned.missing
        rows = source
        plan = replace(plan, linear=not classes and len(rows) < FEW_ROWS)
        refuse_what_cannot_fit(rows)
        if division is None:
            splits = self._splits(rows, state)
        else:
            splits = self._divide(division, rows, state)
            member = self._member(division)
            only = _only_folds_tell(division, rows, splits)
            rows = replace(rows, by_folds=only, member=member)
        learned = learn(
            rows, splits, plan, state, powers=self.warp, n_jobs=self.n_jobs, tell=self._tell,
            random=division is None,
        )  # fmt: skip
        predictor, missing = self._last_step(ExactPredictor.of(learned), state)
        learned = replace(learned, missing=", ".join(filter(None, (learned.missing, missing))))
        self._store(predictor, learned, rows, division)
        if division is not None and division.order is not None and not classes:
            self._doubt_later_intervals(predictor)
        return learned.missing

    def _member(self, division: Division) -> int:
        """Return which dimension names the groups, −1 if none does."""
        named = [each.name for each in self.encoder_.dimensions_]
        return named.index(division.column) if division.column in named else -1

    def _rows(self, X: Table, targets: FloatArray, weight: FloatArray | None) -> Rows:
        """Return the encoded rows that count and remember whose they are; equal ones merged.

        But not where rows recur: folds are to divide them.
        """
        n_rows, n_dimensions = targets.shape[1], len(self.encoder_.dimensions_)
        require(
            8 * _COPIES * n_rows * n_dimensions,
            f"{n_rows} rows of {n_dimensions} dimensions",
            alternative="raise {memory_limit} or give Batches, or fewer rows or columns",
        )
        numeric, codes = self.encoder_.transform(X, estimator=self)
        mass = np.ones(len(numeric)) if weight is None else weight
        kept = np.flatnonzero(mass > 0)
        coding = self.encoder_.coding
        division: Division | None = self.__dict__.get("_division")
        groups = None if division is None else division.groups
        times = None if division is None else division.order
        own = Rows(numeric, codes, targets, weight, coding=coding, groups=groups, times=times).take(
            kept
        )
        if len(numeric) > EXACT_ROWS or own.recurring:
            self._owner = np.full(len(mass), -1)
            self._owner[kept] = np.arange(len(kept))
            return replace(own, weight=normalise_weights(own.weight))
        equal = Rows(numeric, codes, targets).with_equal_copies()
        # rows that are held out apart are not one
        keys = np.zeros((len(mass), 0)) if division is None else division.keys
        merged = merge_samples(np.hstack([equal.numeric, codes, keys]), equal.targets, mass)
        self._owner = merged.owner
        first = np.unique(merged.owner[kept], return_index=True)[1]
        n_numbers, n_encoded = numeric.shape[1], numeric.shape[1] + codes.shape[1]
        return Rows(
            np.ascontiguousarray(merged.X[:, :n_numbers]),
            np.ascontiguousarray(merged.X[:, n_numbers:n_encoded].astype(np.int64)),
            merged.targets,
            normalise_weights(merged.weight),
            coding=coding,
            groups=None if groups is None else groups[kept][first],
        )

    @property
    def _n_folds(self) -> int:
        return int(self.cv) if isinstance(self.cv, int | np.integer) else self.n_folds

    def _divide(self, division: Division, rows: Rows, state: np.random.RandomState) -> list[Split]:
        """Return the splits of the rows that count, as the user says."""
        codes = None
        if is_classifier(self):
            codes = np.searchsorted(self.classes_, np.ravel(division.y))
        return hold_out(rows, self._owner, division.splits(self._n_folds, codes, state))

    def _fit_parts(
        self, X: Any, y: object, weight: object, groups: object = None, order: object = None
    ) -> None:
        """Fit by several readings of a table in parts."""
        if not isinstance(groups, str | None) or not isinstance(order, str | None):
            raise ValueError("groups and order must name columns of a table that is read in parts")
        if groups == ALIKE:
            raise ValueError(f"groups={ALIKE!r} compares all rows: give a table in memory")
        of = DaskParts.of if is_dask(X) else batches_alone
        table: Source = of(X, y, weight)
        self._learn(partial(self._read_parts, table, groups, order))

    def _read_parts(
        self,
        table: Source,
        groups: str | None,
        order: str | None,
        state: np.random.RandomState,
    ) -> Rows | Source:
        """Draw rows for the encoder; return all rows where they are few, else their blocks."""
        twin = np.random.RandomState()
        # a copy of the state: the survey of large tables will draw the same rows from it again
        twin.set_state(state.get_state())
        seed = twin.randint(2**31 - 1)
        seen, targets = first_reading(table, self._targets(), DRAWN_ROWS, seed)
        self._set_target_info(targets)
        with seen.place_errors():
            self._fit_encoder(seen.batch.X, seen.batch.weight)
        self._division = division_of(seen.batch.X, seen.batch.y, groups, order, self.cv)
        if seen.n_rows > EXACT_ROWS or not seen.complete:
            reader = Reader(self.encoder_, targets, groups or "", order or "")
            return table.encoded(reader, self.n_jobs)
        return self._rows(seen.batch.X, *targets_of(seen.batch, targets))

    def _targets(self) -> NumberTargets | ClassTargets:
        """Return an empty summary of targets, which is updated batch by batch."""
        raise NotImplementedError

    def _set_target_info(self, targets: Any) -> None:
        """Check the summary of all targets and keep what prediction needs of it."""
        raise NotImplementedError

    def _fit_encoder(self, X: Table, weight: FloatArray | None) -> None:
        self.encoder_ = ColumnEncoder(self.max_levels, self.min_frequency, self.kinds)
        self.encoder_.fit(X, normalise_weights(weight), estimator=self)

    def _tell(self, done: int, parts: int) -> None:
        """Report the share of the work that is done to callbacks, and print it if verbose."""
        if self.verbose > 0:
            print(f"[evidence] {done} of {parts} parts")  # noqa: T201
        now = Progress("evidence", done, -np.inf, np.inf, np.inf, 0.0, np.nan, done / parts)
        _notify_unless_over(now)

    def _tell_rows(self, lines: ProgressPrinter, what: str, rows: int, n_rows: int) -> None:
        """Report how many rows have been summed to callbacks, and print it if verbose."""
        if self.verbose > 0:
            lines(what, rows, n_rows)
        now = Progress("evidence", rows, -np.inf, np.inf, np.inf, 0.0, np.nan, rows / n_rows)
        _notify_unless_over(now)

    def _splits(self, rows: Rows, state: np.random.RandomState) -> list[Split]:
        raise NotImplementedError

    def _last_step(
        self, predictor: ExactPredictor, state: np.random.RandomState
    ) -> tuple[ExactPredictor, str]:
        """Return the final predictor on the learned kernel, and what the time limit left undone."""
        raise NotImplementedError

    def _store(
        self,
        predictor: Predictor,
        learned: Learned | LearnedLarge,
        rows: Rows,
        division: Division | None = None,
    ) -> None:
        self._predictor = predictor
        self._importance = None
        scoring, usual = self._scoring(), "accuracy" if is_classifier(self) else "R²"
        self._score_name = usual if scoring is None else scoring.name
        self.kernel_ = EvidenceKernel(predictor.views, tuple(predictor.scales))
        self.noise_ = predictor.noise
        self.relevance_ = learned.weights @ np.array([fit.scales.ell for fit in learned.fits])
        self.dimensions_ = list(self.encoder_.dimensions_)
        self.columns_ = list(self.encoder_.report_)
        if isinstance(learned, Learned):
            self.columns_ = _with_screening_remarks(self.columns_, self.dimensions_, learned)
        self.path_weights_ = learned.weights
        self.n_iter_ = max(1, sum(fit.n_evaluations for fit in learned.fits))
        self.held_out_score_, self.held_out_error_ = self._judge(rows, predictor.held_out)
        self._new_rows = self._expected(predictor, learned, rows, division)
        self.held_out_error_ = self._new_rows[0].error
        self.held_out_prediction_ = self._format_held_out(predictor.held_out, rows)
        kept = self._owner >= 0
        self.held_out_fold_ = np.full(len(self._owner), -1, dtype=np.intp)
        self.held_out_fold_[kept] = predictor.fold[self._owner[kept]]
        # no lower bound of a problem that is not convex is known
        value = float(learned.weights @ np.nan_to_num([fit.value for fit in learned.fits]))
        self.result_ = Result(
            value=value,
            lower_bound=-np.inf,
            upper_bound=value,
            gap=np.inf,
            status=_status_of(learned),
            n_iter=self.n_iter_,
            history=History(),
            parameters=tuple(predictor.scales),
            algorithm="evidence",
        )
        self.certificate_ = EvidenceCertificate(
            tuple(fit.precision for fit in learned.fits),
            tuple(fit.status.label for fit in learned.fits),
            tuple(-fit.value for fit in learned.fits),
            tuple(fit.slope for fit in learned.fits),
            tuple(learned.weights.tolist()),
            self.held_out_score_,
            self.held_out_error_,
            str(learned),
        )

    def _expected(
        self,
        predictor: Predictor,
        learned: Learned | LearnedLarge,
        rows: Rows,
        division: Division | None,
    ) -> list[Expectation]:
        """Return what is expected of each kind of new rows, first of those that folds held out."""
        seen = np.flatnonzero(~np.isnan(predictor.held_out[:, 0]))
        usual, kinds = Kind("rows like these", "rows like these", ""), []
        scoring = self._scoring()
        if scoring is not None and len(seen):
            held_out = self._answers_held_out(predictor.held_out, rows)[seen]
            judged = scoring.score(rows.take(seen), held_out)
            self.held_out_score_, self.held_out_error_ = judged
        asked, error, n_groups = usual, self.held_out_error_, len(seen)
        if division is not None and len(seen):
            asked = division.kind
        if division is not None and len(seen) and not division.random:
            parts = predictor.fold[seen] if rows.groups is None else rows.groups[seen]
            parts = np.unique(parts, return_inverse=True)[1]
            own, n_groups = rows.take(seen), int(parts.max()) + 1
            losses = self._losses(own, predictor.held_out[seen])
            error = grouped_ratio(*losses, own.mass, parts)[1]
            if scoring is not None:
                error = scoring.score(own, self._answers(predictor.held_out[seen]), parts)[1]
            kinds = [replace(usual, groups=np.arange(len(rows)))]
        lines = [Expectation(asked, self.held_out_score_, error, len(seen), n_groups)]
        if not len(seen):
            return lines
        closed: LeavesOut
        if isinstance(learned, Learned):
            closed, mixture = Closed.of(learned.mixture), learned.mixture
            target, width = mixture.target, mixture.width
            kept = np.flatnonzero(self._owner >= 0)
            first = np.full(len(rows), len(self._owner))
            np.minimum.at(first, self._owner[kept], kept)
        elif learned.left_out is None:
            return lines
        else:
            closed, width = learned.left_out, learned.predictor.width
            rows, first, target = closed.rows, closed.places, learned.predictor.targets
            kinds = [replace(each, groups=np.arange(len(rows))) for each in kinds]
        in_order = division is not None and division.order is not None
        kinds += [
            each
            for each in kinds_of(rows, self.dimensions_, first)
            if each.argument != asked.argument and not (in_order and "in the file" in each.name)
        ]
        state = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        return lines + expected(
            closed, target, width, rows, kinds, self._judge_new, state,
            many=not isinstance(learned, Learned),
        )  # fmt: skip

    @property
    def held_out_(self) -> pd.DataFrame:
        """What to expect of each kind of new rows.

        A row for each: those that the folds held out, whose score is `held_out_score_`; rows of a
        new group, for every column that could name one; rows that are later by a date, a year or in
        the table. The columns: the score, its standard error over groups or blocks of rows, and of
        how many rows and groups. All but the first are closed forms at the scales that all rows
        chose, so a little too good. Of more than 50,000 rows in batches there is only the first, as
        nothing leaves rows out that are not in memory.
        """
        import pandas as pd

        check_is_fitted(self, "kernel_")
        names = pd.Index([line.kind.name for line in self._new_rows], name="new rows")
        columns = ("score", "error", "n_rows", "n_groups")
        return pd.DataFrame([line[1:5] for line in self._new_rows], names, columns)

    def _answers_of_new(self, rows: Rows, values: FloatArray, usual: FloatArray) -> FloatArray:
        """Return least squares as predictions, or logits of the classes calibrated by others."""
        return values

    def _judge_new(
        self, rows: Rows, values: FloatArray, usual: FloatArray, parts: Index
    ) -> tuple[float, float]:
        """Return the score of rows left out together, and its error over groups or blocks."""
        answers, scoring = self._answers_of_new(rows, values, usual), self._scoring()
        if scoring is not None:
            return scoring.score(rows, answers, parts)
        return grouped_ratio(*self._losses_of(rows, answers), rows.mass, parts)

    def _losses_of(self, rows: Rows, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of answers and their units."""
        raise NotImplementedError

    def _warn_of_new_rows(self) -> None:
        """Warn where a kind of new rows is surely predicted worse than those held out."""
        first, *others = self._new_rows
        doubted = [line for line in others if line.doubt and line.score < first.score]
        if not doubted:
            return
        worst = min(doubted, key=lambda line: line.score)
        what = f"{'an' if self.scoring is None else 'a'} {self._score_name}"
        more = f"; {{held_out_}} has {len(doubted) - 1} more of such" if len(doubted) > 1 else ""
        finding = (
            f"expect {what} of {worst.score:.2f} on {worst.kind.said}, not the "
            f"{first.score:.2f} of {first.kind.said}"
        )
        remedy = Message(
            "fit with {how}, so that they are held out and learned for" + more,
            how=worst.kind.argument,
        )
        warnings.warn(HeldOutWarning(finding, remedy), stacklevel=4)

    def _doubt_later_intervals(self, predictor: Predictor) -> None:
        """Warn where intervals from earlier blocks hold too little of the last."""
        held, n_rows = predictor.held_by_the_last(_ASKED)
        if held < _ASKED - 2.0 * np.sqrt(_ASKED * (1.0 - _ASKED) / n_rows):
            warnings.warn(
                f"intervals of later rows may hold less than they say: of the last {n_rows} rows, "
                f"those that earlier rows give for {_ASKED:.0%} held {held:.0%}",
                HeldOutWarning,
                stacklevel=5,
            )

    def _scoring(self) -> Scoring | None:
        """Return the scorer that was asked for."""
        if self.scoring is None:
            return None
        labels = self.classes_ if is_classifier(self) else None
        return Scoring(self.scoring, labels, getattr(self, "_flat", True))

    def _answers(self, values: FloatArray) -> FloatArray:
        """Return held-out values as predictions, or logits of the classes."""
        return values

    def _answers_held_out(self, held_out: FloatArray, rows: Rows) -> FloatArray:
        """Return the same of rows held out, none calibrated by itself."""
        return self._answers(held_out)

    def _judge(self, rows: Rows, held_out: FloatArray) -> tuple[float, float]:
        """Return the held-out score and its standard error."""
        raise NotImplementedError

    def _warn_if_underfit(self) -> None:
        """Warn where rows held out are predicted worse than by no column at all."""
        rows, held_out = self._predictor.rows, self._predictor.held_out
        seen = np.flatnonzero(~np.isnan(held_out[:, 0]))
        if seen.size:
            self._warn_of(rows.take(seen), held_out[seen])

    def _warn_of(self, rows: Rows, values: FloatArray) -> None:
        raise NotImplementedError

    def _format_held_out(self, held_out: FloatArray, rows: Rows) -> FloatArray:
        """Return decision values of held-out rows in the format of `held_out_prediction_`."""
        raise NotImplementedError

    def _encoded(self, X: Table) -> Encoded:
        check_is_fitted(self, "kernel_")
        return self.encoder_.transform(X, estimator=self)

    def encode(self, X: Table) -> FloatArray:
        """Return the rows that `kernel_` takes: numbers, then codes of levels.

        `X` of shape (n_samples, n_columns). Returns shape (n_samples, n_dimensions): equal to X
        where every column is numbers without gaps.
        """
        encoded = self._encoded(X)
        return np.hstack([encoded.numeric, encoded.codes.astype(np.float64)])

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_
        return lambda: diagram() + (fit_html(self) if hasattr(self, "kernel_") else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "kernel_"):
            shown["text/html"] += fit_html(self)
        return shown

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # scikit-learn's table reads every property, and importances cost a tenth of a fit
        kept = {name: value for name, value in vars(self).items() if name.endswith("_")}
        return Estimator._get_fitted_attr_html(SimpleNamespace(**kept), doc_link)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


def _with_screening_remarks(
    plans: Sequence[ColumnPlan], dimensions: Sequence[Dimension], learned: Learned
) -> list[ColumnPlan]:
    """Return what was done with each column, with a remark where it has no scale of its own."""
    sources = np.array([each.source for each in dimensions])
    away = set(sources[learned.without_scales])
    away -= set(np.delete(sources, learned.without_scales))
    remark = f"No scale of its own: trees screened away {len(away)} of {len(plans)} columns."
    return [
        plan._replace(remark=f"{plan.remark} {remark}".strip()) if plan.column in away else plan
        for plan in plans
    ]


def _only_folds_tell(division: Division, rows: Rows, splits: Sequence[Split]) -> bool:
    """Return whether it is the folds, not groups that they keep whole, that tell of new rows."""
    if rows.groups is None or division.order is not None:
        return True
    cut = [np.intersect1d(rows.groups[one], rows.groups[other]) for one, other in splits]
    return any(map(len, cut))


def _status_of(learned: Learned | LearnedLarge) -> Status:
    """Return why a fit ended: by a limit of it all, or that of any search of the scales."""
    if learned.missing:
        # nothing but the clock and who watches stops a fit
        return Status.MAX_TIME if clock.limited() else Status.STOPPED
    found = {fit.status for fit in learned.fits}
    limits = [each for each in (Status.MAX_ITER, Status.STALLED) if each in found]
    return limits[0] if limits else Status.STATIONARY


def refuse_what_cannot_fit(rows: Rows) -> None:
    """Raise MemoryBudgetError where the matrices of a fit pass the memory limit."""
    n, n_dimensions = len(rows), rows.n_dimensions
    # of a wide table the other dimensions have views alone
    own = min(n_dimensions, KEPT[-1])
    require(
        evidence_bytes(own, n, len(rows.targets))
        + (8 * _VIEWS * n + _HEADS) * (n_dimensions - own),
        f"the pairs of {n} rows and the scales of {n_dimensions} dimensions",
        alternative="raise {memory_limit} or give fewer rows or columns",
    )
