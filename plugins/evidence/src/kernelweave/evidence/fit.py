"""One fit, from samples to attributes: by all pairs of rows, or by landmarks where rows are many.

Each step is a function of values. Nothing is assigned to an estimator before all is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from kernelweave.kernels_core import Progress, clock
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.progress import notify
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .candidates import KEPT
from .censored.fit import begun, censored_predictor
from .censored.scale import with_chosen_scale
from .censored.task import CensoredRegression
from .columns import ColumnEncoder
from .division import Division, n_folds_of
from .exact import ExactPredictor
from .findings import Fitted, HeldOutRows, attributes_of, fit_warnings
from .groupings import groupings_of, refuse_monotone
from .large.batches import Batches
from .large.censored import censored_landmarks
from .large.landmark_search import ProgressPrinter
from .large.landmarks import LandmarkPredictor
from .large.learning import learn_large
from .large.plan import LargePlan
from .last_step import with_likelihood, with_poisson
from .learn import METRIC_ROWS, SHARED_METRIC, learn
from .leave_out import PairsLeaveOut
from .living.begin import draws_of, state_of
from .monotone.predictor import monotone_of
from .noise import with_varying_noise
from .objective import evidence_bytes
from .outliers import with_outliers
from .path import PathPlan
from .read_table import ReadTable, read_table
from .rows import Rows, Split
from .tasks import Classification

if TYPE_CHECKING:
    from .base import EvidenceModel

# what is found by then, and what the user is to be warned of
Stage: TypeAlias = tuple[dict[str, Any], list[Warning]]
# share of a fit of numbers before it learns how its noise varies (0.65 to 0.86 measured)
_BEFORE_NOISE = 0.7
# fewer rows than these are also predicted by ridge regression
FEW_ROWS = 150
# of a wide table: numbers for each cell, of views of all rows and of the folds, also of the fit to
# the noise, and what trees read; and bytes for each dimension, of its plan and the arrays' heads
_VIEWS, _HEADS = 40, 4096
# of all rows: their kernel, its factor and inverse, and copies of these
_MATRICES = 5


def fit_table(
    model: EvidenceModel, X: Table | Batches, y: object, weight: object, groups: object,
    order: object, slopes: object = None, new: object = None,
) -> Iterator[Stage]:  # fmt: skip
    """Read a table and fit it; yield the fitted attributes alone, then with the warnings."""
    state, began = check_random_state(model.random_state), process_time()
    encoder = ColumnEncoder(model.max_categories, model.min_frequency, model.kinds)
    beside = groupings_of(X, groups, slopes, new)
    groups = beside.held

    def seed() -> int:
        # a copy of the state: the survey of large tables will draw the same rows from it again
        return int(deepcopy(state).randint(2**31 - 1))

    # one thread: the same bits whatever the machine's number of cores
    with one_blas_thread():
        samples = read_table(
            X, y, weight, model._new_task(y), encoder, groups=groups, order=order,
            cv=model.cv, n_jobs=model.n_jobs, seed=seed, estimator=model, beside=beside,
        )  # fmt: skip
        # refused before there is work
        _refuse_large_panel(samples)
        group = samples.rows.group if isinstance(samples.rows, Rows) else None
        monotone = monotone_of(model.monotone, samples.encoder, samples.task, group)
        refuse_monotone(monotone, beside)
        scoring = samples.task.scoring
        path = PathPlan(
            tuple(model.precisions), model.tol, model.max_iter,
            classes=isinstance(samples.task, Classification),
            loss=None if scoring is None else scoring.loss,
        )  # fmt: skip
        if isinstance(samples.task, CensoredRegression):
            samples = with_chosen_scale(samples, samples.task, path, state)
        by = _by_landmarks if samples.are_many else _by_all_pairs
        fitted = replace(by(samples, path, model, state), monotone=monotone)
        attributes, late = attributes_of(samples, fitted, model.random_state)
        attributes["_living"] = state_of(samples, fitted, groups, order, process_time() - began)
        _notify(len(samples.owner), 1.0)
    yield attributes, []
    with one_blas_thread():
        issued = fit_warnings(samples, fitted, attributes, late, model.max_time, model.max_iter)
    if isinstance(fitted.predictor, ExactPredictor):
        fitted.predictor.mixture.release()
    yield attributes, issued


def _by_all_pairs(
    samples: ReadTable, path: PathPlan, model: EvidenceModel, state: np.random.RandomState
) -> Fitted:
    """Fit the path in every fold, predict by all pairs of rows, and take the last step."""
    rows, division = samples.rows, samples.division
    assert isinstance(rows, Rows)
    refuse_what_cannot_fit(rows)
    if rows.ends is not None:
        rows = begun(rows)
    # a target that is known by half tells as much as a part of one
    n_known = len(rows) if rows.ends is None else rows.precision.sum()
    plan = replace(path, linear=not path.classes and n_known < FEW_ROWS)
    splits = samples.splits(n_folds_of(model), state)
    rows = replace(
        rows, by_folds=division.is_given and _folds_judge_new_rows(division, rows, splits)
    )
    kept = np.flatnonzero(samples.owner >= 0)
    first = kept[np.unique(samples.owner[kept], return_index=True)[1]]
    if len(rows) <= SHARED_METRIC:
        parts = [training for training, _ in splits]
        texts = samples.encoder._learn_folds(samples.table, first, parts)
        rows = rows.with_texts_of_folds(texts, len(splits))
    report = partial(_report_parts, model.verbose, 0.0, 1.0 if path.classes else _BEFORE_NOISE)
    learned = learn(
        rows, splits, plan, state, powers=model.warp, n_jobs=model.n_jobs, report=report,
        random=not division.is_given,
    )  # fmt: skip
    draws = draws_of(state)
    predictor: ExactPredictor
    if rows.ends is not None:
        learned, predictor = censored_predictor(learned, log=samples.task.log)
        rows = learned.rows
    else:
        if model.warp and not path.classes and not division.is_given:
            learned = with_outliers(learned)
        predictor, missing = _last_step(
            ExactPredictor.of(learned), path, model, state, in_order=division.in_order
        )
        learned = replace(learned, missing=", ".join(filter(None, (learned.missing, missing))))
    mixture = learned.mixture
    left_out = partial(
        PairsLeaveOut, mixture.inverse, mixture.target, learned.rows, first, mixture.width,
        mixture.diagonal,
    )  # fmt: skip
    held_out = HeldOutRows(
        rows, predictor.held_out, predictor.fold, samples.owner, samples.encoder.dimensions_,
        left_out,
    )  # fmt: skip
    return Fitted(predictor, learned, held_out, draws)


def _last_step(
    predictor: ExactPredictor, path: PathPlan, model: EvidenceModel, state: np.random.RandomState,
    *, in_order: bool,
) -> tuple[ExactPredictor, str]:  # fmt: skip
    """Return the final predictor on the learned kernel, and what the time limit left undone.

    `in_order`: whether folds hold out later rows. Then no varying noise is learned: rows of one
    block share an error of the time that has passed, which the columns do not explain.
    """
    if path.classes:
        return with_likelihood(predictor), ""
    missing = ""
    if in_order and clock.expired():
        missing = "forecasts of later rows"
    elif in_order:
        predictor = predictor.with_forecasts()
    else:
        predictor, missing = with_varying_noise(predictor, state)
    _report_parts(0, _BEFORE_NOISE, 1.0, 1, 1)
    if missing or not model.warp:
        return predictor, missing
    return with_poisson(predictor, path.loss)


def _by_landmarks(
    samples: ReadTable, path: PathPlan, model: EvidenceModel, state: np.random.RandomState
) -> Fitted:
    """Learn the scales on some rows, and sum over all of them."""
    source, division = samples.rows, samples.division
    owner: NDArray[Any] = samples.owner
    splits = None if division.cv is None else samples.splits(n_folds_of(model), state)
    last_step, draws = None, draws_of(state)
    if isinstance(source, Rows) and source.ends is not None:
        source = begun(source)
        last_step = partial(censored_landmarks, log=samples.task.log)
    learned = learn_large(
        source, LargePlan.of(path, model.n_landmarks, n_folds_of(model)), state,
        stratify=path.classes, splits=splits, powers=model.warp,
        varying_noise=not (path.classes or division.in_order or last_step),
        n_jobs=model.n_jobs, tell=partial(_report_rows, model.verbose, ProgressPrinter()),
        last_step=last_step,
    )  # fmt: skip
    if model.verbose > 0:
        print(f"[evidence] {learned}")  # noqa: T201
    learned = replace(learned, predictor=_with_owner(learned.predictor, owner))
    rows, left_out = learned.predictor.rows, learned.left_out
    if isinstance(source, Rows):
        # the last is that of rows without a weight
        at = np.full(len(source) + 1, -1, dtype=np.int32)
        at[learned.places] = np.arange(len(rows))
        owner = at[owner]
    else:
        owner = np.arange(len(rows))
    held_out = HeldOutRows(
        rows, learned.predictor.held_out, learned.predictor.fold, owner,
        samples.encoder.dimensions_, lambda: left_out,
    )  # fmt: skip
    return Fitted(learned.predictor, learned, held_out, draws)


def _with_owner(predictor: LandmarkPredictor, owner: NDArray[Any]) -> LandmarkPredictor:
    """Return a predictor that knows which of its rows each of the user's rows is."""
    kept = predictor.kept
    if kept is None or not kept.is_whole:
        return predictor
    owner = np.asarray(owner if len(owner) else np.arange(kept.n_rows), dtype=np.intp)
    return replace(predictor, kept=replace(kept, owner=owner))


def _folds_judge_new_rows(division: Division, rows: Rows, splits: Sequence[Split]) -> bool:
    """Return whether it is the folds, not groups that they keep whole, that tell of new rows."""
    # some rows are in neither part of a fold where they are copies of others
    apart = division.cv is None and any(len(a) + len(b) < len(rows) for a, b in splits)
    if rows.groups is None or division.order is not None or apart:
        return True
    cut = [np.intersect1d(rows.groups[one], rows.groups[other]) for one, other in splits]
    return any(map(len, cut))


def _refuse_large_panel(samples: ReadTable) -> None:
    """Raise ValueError for a panel of many rows that are read in parts, or known by half."""
    if not (samples.division.is_panel and samples.are_many):
        return
    if not isinstance(samples.rows, Rows):
        raise ValueError(
            Message(
                "{groups} and {order} together are for tables in memory, got a table read in "
                "parts: the rows of a group may be in all of them; give one of the two, or a table"
            )
        )
    if samples.rows.ends is not None:
        raise ValueError(
            Message(
                "{groups} and {order} together are for at most 2,000 rows of targets known by "
                "half, 5,000 where a column names the groups, got "
                f"{len(samples.owner)}: of more, groups have no levels; give one of the two, or "
                "fewer rows"
            )
        )


def refuse_what_cannot_fit(rows: Rows) -> None:
    """Raise MemoryBudgetError where the matrices of a fit pass the memory limit."""
    n, n_dimensions = len(rows), rows.n_dimensions
    # of a wide table the other dimensions have views alone
    n_kept = min(n_dimensions, KEPT[-1])
    metric = evidence_bytes(n_kept, min(n, METRIC_ROWS), len(rows.targets), len(rows.group_terms))
    require(
        metric + 8 * _MATRICES * n * n + (8 * _VIEWS * n + _HEADS) * (n_dimensions - n_kept),
        f"the pairs of {n} rows and the scales of {n_dimensions} dimensions",
        alternative="raise {memory_limit} or give fewer rows or columns",
    )


def _report_parts(verbose: int, begin: float, end: float, done: int, parts: int) -> None:
    """Report the share that is done to callbacks, and print the parts if verbose.

    They lead from the share `begin` to `end`.
    """
    if verbose > 0:
        print(f"[evidence] {done} of {parts} parts")  # noqa: T201
    _notify(done, begin + (end - begin) * done / parts)


def _report_rows(
    verbose: int, lines: ProgressPrinter, what: str, rows: int, n_rows: int, share: float
) -> None:
    """Report the share that is done to callbacks, and print the rows summed if verbose."""
    if verbose > 0:
        lines(what, rows, n_rows)
    _notify(rows, share)


def _notify(done: int, share: float) -> None:
    """Report to the callback, but nothing more after a first Ctrl-C: a second may come."""
    if not clock.expired():
        now = Progress("evidence", done, -np.inf, np.inf, np.inf, 0.0, np.nan, share)
        notify(now, None, 0)
