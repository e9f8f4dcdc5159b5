"""λ by cross-validation: one for all targets, or one each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Vector
from kernelweave.kernels_core.checks import integer
from kernelweave.kernels_core.estimators.folds import Fold, Scoring, folds_of, scorer_of
from kernelweave.kernels_core.exceptions import Message, warn
from kernelweave.vv_rkhs import PrecomputedFamily
from sklearn.base import BaseEstimator, RegressorMixin

from .shared_grams import LOST, SharedKernels, blocks, factored
from .target import TargetSettings, fit_target
from .together import fit_together, precision

_RISEN = 1.02  # times the least error: smaller λ are not tried then


def make_folds(cv: Any, replicate: Index) -> list[Fold]:
    """Return training and test samples of each fold.

    `cv`: a number k: whole replicates are held out where there are at least three, contiguous
    stretches of time otherwise. Or as in scikit-learn. `replicate` of shape (n_samples,): replicate
    of each sample. Raises ValueError if there are fewer samples than folds.
    """
    n_replicates, n = int(replicate.max()) + 1, len(replicate)
    is_number = isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable))
    if is_number:
        _FOLDS.check("cv", cv)
        if n_replicates < 3 and n < cv:
            raise ValueError(
                f"cv={cv} folds need as many samples, got n_samples={n}: the series is "
                "too short, give a longer one or fewer folds"
            )
    groups = replicate if n_replicates >= (3 if is_number else 2) else None
    rows = np.empty((n, 1))
    return folds_of(cv, rows, replicate, np.ones(n), groups, classifier=False, least=1)


_FOLDS = replace(integer(2), words="an integer >= 2 or a splitter")


@dataclass(frozen=True, eq=False)
class Selection:
    """Held-out errors and what they choose.

    `lams` of shape (n_lams,): candidates that were tried, descending; `errors` of shape (n_lams,
    n_nodes): mean squared error of held-out predictions, in standardised units; `losses` likewise:
    these, or what a scorer makes of the predictions, less being better; `chosen` of shape
    (n_groups,): candidate of each target group; `sums` of shape (n_lams, n_groups): losses by which
    each group chose.
    """

    lams: npt.NDArray[np.float64]
    errors: Matrix
    losses: Matrix
    chosen: Index
    sums: Matrix

    @property
    def end(self) -> str:
        """Return whether the one λ that serves all is the largest or the least candidate."""
        largest, least = self.at_ends()
        if largest.all():
            return "the largest tried"
        return "the least tried" if least.all() else ""

    def at_ends(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which groups chose the largest λ, and the least, where more of it may be better.

        Where the two largest have one error, no kernel has a weight, and a larger one changes
        nothing.
        """
        if len(self.lams) < 2:
            never = np.zeros(len(self.chosen), dtype=bool)
            return never, never
        changes = ~np.isclose(self.sums[0], self.sums[1], rtol=1e-9, atol=0.0)
        return (self.chosen == 0) & changes, self.chosen == len(self.lams) - 1

    @property
    def is_past(self) -> bool:
        """Whether the last error of every group is above its least one for certain."""
        return bool((self.sums[-1] > _RISEN * self.sums.min(axis=0)).all())

    def at_chosen(self, table: Matrix, groups: list[Index]) -> npt.NDArray[np.float64]:
        """Return errors or losses of each node at the chosen λ, shape (n_nodes,)."""
        out = np.full(table.shape[1], np.nan)
        for nodes, each in zip(groups, self.chosen, strict=True):
            out[nodes] = table[each, nodes]
        return out


def held_out_errors(
    grams: RealArray,
    Y: Matrix,
    seen: Index,
    unit: Index,
    apart: bool,
    fold: Fold,
    task: TargetSettings,
    lams: npt.NDArray[np.float64],
    start: Matrix | None = None,
    scoring: Scoring = None,
) -> tuple[RealArray, Matrix | None]:
    """Return sums of squared errors at the held-out samples of a fold, and losses of a scorer.

    `apart`: whether every column is a target of its own, not a node of one group; `lams`:
    candidates, each fit starting at the weights of the one before, the first at `start`; `scoring`:
    a scorer of scikit-learn; without one the losses are the squared errors. Returns shape (2,
    n_lams, n_outputs), and the weights of the last one.
    """
    train, test = fold
    dtype = precision(lams, task) if apart else grams.dtype
    wanted = len(seen) * (len(train) + len(test)) * len(train) * dtype.itemsize
    memory.require(
        wanted,
        f"Gram matrices of {len(seen)} kernels for the {len(train)} samples of a fold",
        alternative="give fewer kernels or lags, or raise {memory_limit}",
    )
    cross = blocks(grams, seen, test, train, dtype)
    if apart:
        error = LOST * task.tol * float(lams.min()) * len(train)
        shared = factored(grams, seen, train, unit[seen], error, dtype)
        path = _predictions_apart(shared, cross, Y[train], lams, task, start)
    else:
        inner = blocks(grams, seen, train, train, grams.dtype)
        path = _predictions_of_group(inner, cross, Y[train], lams, task, start)
    total = np.zeros((2, len(lams), Y.shape[1]))
    for i, (values, weights) in enumerate(path):
        total[0, i], start = ((values - Y[test]) ** 2).sum(axis=0), weights
        total[1, i] = total[0, i] if scoring is None else _losses(values, Y[test], scoring)
    return total, start


class _Identity(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A model that predicts its input, so that a scorer can judge given predictions."""

    def fit(self, X: Matrix, y: Vector) -> _Identity:
        """Return itself: there is nothing to learn."""
        return self

    def predict(self, X: Matrix) -> Vector:
        """Return the rows."""
        return X[:, 0]


def _losses(values: Matrix, wanted: Matrix, scoring: Scoring) -> Vector:
    """Return the negative score of each column of predictions: less is better."""
    model, ones, every = _Identity(), np.ones(len(values)), np.arange(len(values))
    scores = [
        scorer_of(model, scoring, y, ones)(model, column[:, None], every)
        for column, y in zip(values.T, wanted.T, strict=True)
    ]
    return -np.array(scores)


def _predictions_apart(
    grams: SharedKernels,
    cross: RealArray,
    targets: Matrix,
    lams: npt.NDArray[np.float64],
    task: TargetSettings,
    start: Matrix | None,
) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield predictions, and weights, at each λ, for columns that are targets each."""
    mean = targets.mean(axis=0)
    Y = np.ascontiguousarray((targets - mean).T)
    # the largest λ leaves few others
    weights = np.zeros((len(Y), grams.n_kernels)) if start is None else start
    flat = cross.reshape(len(cross), -1)
    for lam in lams:
        fits = fit_together(
            *(grams, Y, np.full(len(Y), lam), task.penalty, weights),
            tol=task.tol,
            max_iter=task.max_iter,
        )
        weights = fits.weights
        K = (weights.astype(cross.dtype) @ flat).reshape(len(Y), *cross.shape[1:])
        values = np.matmul(K, fits.coef.astype(cross.dtype)[:, :, None])[:, :, 0].T
        yield values + mean, weights


def _predictions_of_group(
    inner: RealArray,
    cross: RealArray,
    targets: Matrix,
    lams: npt.NDArray[np.float64],
    task: TargetSettings,
    start: Vector | None,
) -> Iterator[tuple[Matrix, Vector]]:
    """Yield predictions, and weights, at each λ, for the nodes of one group."""
    family = PrecomputedFamily(inner, check=False)
    for lam in lams:
        fit = fit_target(family, targets, float(lam), task, start=start)
        start = fit.weights
        yield fit.predict(cross), start


def search(
    lams: npt.NDArray[np.float64],
    errors_of: Callable[[npt.NDArray[np.float64]], Matrix],
    groups: list[Index],
    shared: bool,
) -> Selection:
    """Return the candidate of least error, without fits at λ far below it.

    The two smallest of five candidates or more are tried last, one by one, unless errors have risen
    before: small λ leave many weights above zero and take most of the time. `errors_of`: from the
    next few candidates to their held-out squared errors, shape (n_lams, n_nodes).
    """
    parts = np.split(lams, [-2, -1]) if len(lams) > 4 else [lams]
    errors = errors_of(parts[0])
    selection = choose(errors, parts[0], groups, shared)
    for part in parts[1:]:
        if selection.is_past:
            break
        errors = np.concatenate([errors, errors_of(part)])
        selection = choose(errors, lams[: len(errors)], groups, shared)
    return selection


def choose(
    errors: Matrix,
    lams: npt.NDArray[np.float64],
    groups: list[Index],
    shared: bool,
    losses: Matrix | None = None,
) -> Selection:
    """Return the candidate of least loss (held-out errors, or what stands in their place).

    Over all nodes if one λ is `shared`, else over the nodes of each group by itself.
    """
    losses = errors if losses is None else losses
    if shared:
        sums = np.repeat(np.nansum(losses, axis=1)[:, None], len(groups), axis=1)
    else:
        sums = np.column_stack([losses[:, nodes].sum(axis=1) for nodes in groups])
    return Selection(lams, errors, losses, sums.argmin(axis=0), sums)


def warn_of_ends(selection: Selection) -> None:
    """Warn where the best λ is the largest or the least candidate: what lies beyond is unknown."""
    lams, (largest, least) = selection.lams, selection.at_ends()
    for ends, at, which, more in (
        (largest, 0, "largest", "larger"),
        (least, -1, "smallest", "smaller"),
    ):
        count = int(np.count_nonzero(ends))
        if count:
            whose = "" if count == len(ends) else f" for {count} of {len(ends)} targets"
            warn(
                Message(
                    f"λ = {lams[at]:.3g}, the {which} of {{lams}}, has the least held-out "
                    f"error{whose}: give {more} ones too, they may have less"
                )
            )
