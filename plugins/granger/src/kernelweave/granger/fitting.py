"""From histories to the models of all targets: plain functions of frozen values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Vector
from kernelweave.kernels_core.estimators.folds import Folds, Scoring
from kernelweave.vv_rkhs import PrecomputedFamily
from kernelweave.vv_rkhs.leave_one_out import LeaveOneOut

from .histories import Histories
from .selection import Selection, choose, held_out_errors, make_folds, search
from .shared_grams import LOST, factored
from .target import TargetFit, TargetSettings, fit_target
from .together import fit_together, is_fitted_jointly

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Candidates:
    """What λ is chosen among, and by what; without `cv` it is the first of `lams`.

    `lams`: descending; `cv`, `scoring`: see `GrangerGraph`; `shared`: whether all targets have the
    same.
    """

    lams: Vector
    cv: Folds
    scoring: Scoring
    shared: bool


def in_parallel(
    n_jobs: int | None, function: Callable[..., T], *columns: Iterable[object]
) -> list[T]:
    """Return ``function(*row)`` for each row of these columns, several at a time."""
    from joblib import Parallel, delayed

    rows = zip(*columns, strict=True)
    return list(Parallel(n_jobs=n_jobs)(delayed(function)(*row) for row in rows))


def choose_lam(
    histories: Histories, task: TargetSettings, candidates: Candidates, n_jobs: int | None
) -> tuple[Vector, Selection | None]:
    """Return λ of each target, and the held-out errors that chose it, ``None`` without folds."""
    lams, columns = candidates.lams, histories.columns
    if candidates.cv is None:
        return np.full(len(columns), lams[0]), None
    errors_of = _errors_of(histories, task, candidates, n_jobs)
    grouping = columns, candidates.shared
    if candidates.scoring is None:
        selection = search(lams, lambda some: errors_of(some)[0], *grouping)
    else:
        errors, losses = errors_of(lams)
        selection = choose(errors, lams, *grouping, losses)
    return lams[selection.chosen], selection


def _errors_of(
    histories: Histories, task: TargetSettings, candidates: Candidates, n_jobs: int | None
) -> Callable[[Vector], RealArray]:
    """Return a function from the next candidates of λ to held-out errors and losses of nodes.

    It returns shape (2, n_lams, n_nodes).
    """
    samples, scoring = histories.samples, candidates.scoring
    folds, models = make_folds(candidates.cv, samples.replicate), _models_alike(histories, task)
    work = [
        (histories.grams, samples.targets[:, columns], seen, histories.unit, apart, fold, task)
        for columns, seen, apart in models
        for fold in folds
    ]
    starts: list[Vector | None] = [None] * len(work)
    n_held_out = sum(len(test) for _, test in folds)

    def errors_of(lams: Vector) -> RealArray:
        pairs = zip(work, starts, strict=True)
        given = zip(*((*each, lams, start, scoring) for each, start in pairs), strict=True)
        held_out, starts[:] = zip(*in_parallel(n_jobs, held_out_errors, *given), strict=True)
        errors = np.full((2, len(lams), samples.targets.shape[1]), np.nan)
        # squared errors of all samples count alike, and so do scores of the folds
        parts = [n_held_out, n_held_out if scoring is None else len(folds)]
        for k, (columns, _, _) in enumerate(models):
            each = np.sum(held_out[k * len(folds) : (k + 1) * len(folds)], axis=0)
            errors[:, :, columns] = each / np.reshape(parts, (2, 1, 1))
        return errors

    return errors_of


def _models_alike(histories: Histories, task: TargetSettings) -> list[tuple[Index, Index, bool]]:
    """Return columns, kernels that are seen, and whether each column is a target of its own.

    Targets of one node that see the same kernels are fitted together.
    """
    alike: dict[bytes | int, list[tuple[Index, Index]]] = {}
    for k, (columns, seen) in enumerate(zip(histories.columns, histories.seen, strict=True)):
        apart = is_fitted_jointly(task.penalty, len(columns))
        alike.setdefault(seen.tobytes() if apart else k, []).append((columns, seen))
    return [
        (np.concatenate([columns for columns, _ in each]), each[0][1], not isinstance(key, int))
        for key, each in alike.items()
    ]


def fit_targets(
    histories: Histories, task: TargetSettings, lam: Vector, n_jobs: int | None
) -> list[TargetFit]:
    """Return the models of all nodes that have one, fitted on all samples."""
    grams, seen = histories.grams, histories.seen
    starts = _find_together(histories, task, lam)
    # what sees all kernels measures their norms once
    whole = PrecomputedFamily(grams, check=False)
    given = [whole if len(each) == len(grams) else grams for each in seen]
    return in_parallel(
        n_jobs,
        partial(fit_target, exact=True),
        *(given, histories.values, lam.tolist(), [task] * len(seen), seen),
        starts,
    )


def _find_together(histories: Histories, task: TargetSettings, lam: Vector) -> list[Vector | None]:
    """Return the weights of targets that are fitted together, ``None`` for the others."""
    starts: dict[int, Vector] = {}
    grams, samples = histories.grams, histories.samples
    for columns, seen, apart in _models_alike(histories, task):
        if not apart:
            continue
        which = [k for k, each in enumerate(histories.columns) if each[0] in columns]
        Y = samples.targets[:, columns]
        error = LOST * task.tol * float(lam[which].min()) * len(Y)
        fits = fit_together(
            factored(grams, seen, np.arange(len(Y)), histories.unit[seen], error, grams.dtype),
            np.ascontiguousarray((Y - Y.mean(axis=0)).T),
            *(lam[which], task.penalty, None),
            tol=0.5 * task.tol,
            max_iter=task.max_iter,
        )
        starts.update(zip(which, fits.weights, strict=True))
    return [starts.get(k) for k in range(len(histories.columns))]


def left_out_errors(histories: Histories, fits: list[TargetFit], lam: Vector) -> Matrix:
    """Return what models miss at each sample when they are fitted without it, standardised.

    Weights and output kernels are those of all samples. Returns shape (n_samples, n_columns).
    """
    errors = np.zeros(histories.samples.targets.shape)
    family = PrecomputedFamily(histories.grams, check=False)
    for columns, Y, fit, each in zip(
        histories.columns, histories.values, fits, lam.tolist(), strict=True
    ):
        K = family.combine(fit.weights)
        errors[:, columns] = LeaveOneOut(K).errors(Y - fit.mean, each * len(Y), fit.output_kernel)
    return errors
