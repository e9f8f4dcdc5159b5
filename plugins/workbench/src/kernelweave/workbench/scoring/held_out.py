"""Predictions of rows that were held out of the fit, and the folds that hold them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.evidence.division import division_of
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from ..machines import kernel_machine
from .scores import Score, measure_name, score

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


# fields of `HeldOut` with a value per row that may be None
_OPTIONAL = ("proba", "decision", "groups", "ends")
# fields with several values per row
_WIDE = ("proba", "decision", "ends")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of rows by models that were fitted without them.

    - `rows`, `fold` of shape (n_held_out,): positions of the rows in the table, ascending, and the
      number of the fold that held each out
    - `truth`, `predicted` of shape (n_held_out,): true and predicted labels or numbers
    - `weight` of shape (n_held_out,): sample weights, for scores
    - `task`: ``"classification"`` or ``"regression"``
    - `proba` of shape (n_held_out, n_classes): probabilities; ``None`` if the model has none
    - `decision` of shape (n_held_out, n_classes): decision values of a classifier without
      probabilities, else ``None``
    - `labels` of shape (n_classes,): all classes; ``None`` means those of `truth`
    - `groups` of shape (n_held_out,): rows with the same number were held out together, and
      standard errors are computed over groups, not rows
    - `ends` of shape (n_held_out, 2): the least and the largest value that a target may have, where
      some are known by half; `truth` is then the limit, or the middle of a range
    """

    rows: Index
    fold: Index
    truth: Labels
    predicted: Labels
    weight: FloatArray
    task: str
    proba: FloatArray | None = None
    decision: FloatArray | None = None
    labels: Labels | None = None
    groups: Index | None = None
    ends: FloatArray | None = None

    @property
    def known(self) -> Labels:
        """What is known of the targets: `ends` where some are known by half, else `truth`."""
        return self.truth if self.ends is None else self.ends

    @property
    def measure(self) -> str:
        """What `score` is: R², accuracy or concordance."""
        return measure_name(self.task, half_known=self.ends is not None)

    @property
    def score(self) -> Score:
        """R², accuracy, or concordance with targets known by half, with its standard error."""
        return score(self.known, self.predicted, self.weight, self.task, self.groups)

    @property
    def n_parts(self) -> int:
        """Number of rows, or of groups, that standard errors are computed over."""
        return len(self.truth) if self.groups is None else len(np.unique(self.groups))

    @property
    def ranks_nothing(self) -> bool:
        """Whether probabilities, or decision values, are the same for all rows of each fold."""
        values = self.decision if self.proba is None else self.proba
        parts = [] if values is None else [values[self.fold == k] for k in np.unique(self.fold)]
        return bool(parts) and all((each == each[0]).all() for each in parts)

    @property
    def classes(self) -> Labels:
        """Labels in the order of the columns of `proba` and `decision`."""
        return np.unique(self.truth) if self.labels is None else self.labels

    def part(self, which: NDArray[np.bool_]) -> HeldOut:
        """Return the rows that ``which``, of shape (n_held_out,), selects; classes are kept."""
        named: dict[str, Any] = vars(replace(self, labels=None))
        for name, each in named.items():
            named[name] = each[which] if isinstance(each, np.ndarray) else each
        return HeldOut(**named | {"labels": self.classes})

    @property
    def of_one_answer(self) -> HeldOut:
        """The same rows as predicted by a constant: the weighted mean or most frequent class.

        For classes, the probabilities are their shares. All are computed from `truth`.
        """
        n = len(self.truth)
        if self.task == "regression":
            numbers = np.asarray(self.truth, dtype=np.float64)
            mean = np.full(n, self.weight @ numbers / self.weight.sum())
            return replace(self, predicted=mean)
        shares = np.array([self.weight[self.truth == each].sum() for each in self.classes])
        answer = np.full(n, self.classes[shares.argmax()])
        proba = np.tile(shares / shares.sum(), (n, 1))
        return replace(self, predicted=answer, proba=proba, decision=None)

    @property
    def answered_wrongly(self) -> HeldOut:
        """The same rows answered wrongly: by their mean, or by the least likely class.

        Probabilities and decision values are changed so that the order of the classes is reversed.
        Without either, each row gets the class after the predicted one.
        """
        if self.task == "regression":
            return self.of_one_answer
        proba, decision = self.proba, self.decision
        if proba is not None:
            # inverse, so that the order of the classes is reversed; a floor avoids infinity
            proba = 1.0 / np.maximum(proba, np.finfo(np.float64).tiny ** 0.5)
            proba /= proba.sum(axis=1, keepdims=True)
        decision = None if decision is None else -decision
        next_codes = (np.searchsorted(self.classes, self.predicted) + 1) % len(self.classes)
        scores = proba if proba is not None else decision
        codes = next_codes if scores is None else scores.argmax(axis=1)
        return replace(self, predicted=self.classes[codes], proba=proba, decision=decision)

    def mixed_with(self, other: HeldOut, which: NDArray[np.bool_]) -> HeldOut:
        """Return these predictions with those of ``other``, of the same rows, where ``which``."""
        named: dict[str, Any] = {}
        for name in ("predicted", "proba", "decision"):
            mine, others = getattr(self, name), getattr(other, name)
            if mine is not None:
                named[name] = np.where(which if mine.ndim == 1 else which[:, None], others, mine)
        return replace(self, **named)

    def as_json(self) -> dict[str, object]:
        """Return the fields by name, arrays as lists; without `ends` where there are none.

        So an older program reads what it knows.
        """
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
            if name != "ends" or value is not None
        }

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> HeldOut:
        """Return the predictions that `as_json` wrote; ValueError or TypeError on anything else."""
        arrays: dict[str, Any] = {
            name: np.asarray(value) if isinstance(value, list) else value
            for name, value in record.items()
        }
        made = cls(**arrays)
        kinds = {"rows": "i", "fold": "i", "groups": "i", "weight": "if", "proba": "f"}
        kinds |= {"decision": "f", "ends": "if"}
        if made.task == "regression":
            kinds |= {"truth": "if", "predicted": "if"}
        for name, values in arrays.items():
            if name in ("task", "labels") or (values is None and name in _OPTIONAL):
                continue
            wide = name in _WIDE
            if not (
                isinstance(values, np.ndarray)
                and values.ndim == 1 + wide
                and len(values) == len(made.rows) > 0
                and values.dtype.kind in kinds.get(name, "iufbUO")
            ):
                raise ValueError(f"{name} of validation rows must have one value per row")
        if made.ends is not None and made.ends.shape[1] != 2:
            raise ValueError("ends of validation rows must be two columns")
        return made

    def __str__(self) -> str:
        n, rows = int(self.fold.max()) + 1, f"{len(self.truth)} rows"
        return f"{rows} held out" if n == 1 else f"{rows}, cross-validated in {n} folds"


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold holds each row out, and which rows the model that predicts a fold may learn from.

    - `fold` of shape (n_rows,): number of the fold that holds a row out, -1 if none does
    - `groups` of shape (n_rows,): rows with the same number are held out together
    - `order` of shape (n_rows,): such as times; each fold is predicted from the rows before it
    - `kind`: the rows held out in words, such as "rows of a new 'patient'"; empty for random rows
    - `name`: the same for a cell of a table, such as "new patient"; empty for random rows
    """

    fold: Index
    groups: Index | None = None
    order: FloatArray | None = None
    kind: str = ""
    name: str = ""

    def training(self, k: int) -> NDArray[np.bool_]:
        """Return which rows the model that predicts fold ``k`` may learn from, shape (n_rows,)."""
        if self.order is None:
            return np.asarray(self.fold != k)
        return np.asarray(self.order < self.order[self.fold == k].min())

    @property
    def parts(self) -> Index | None:
        """Groups or blocks of time that standard errors are over, shape (n_rows,); or None."""
        return self.groups if self.order is None else self.fold

    def given(self, model: object, rows: Index) -> dict[str, Labels]:
        """Return groups and order of some rows as those arguments of ``fit`` that the model has."""
        named = {"groups": self.groups, "order": self.order}
        return {
            name: each[rows]
            for name, each in named.items()
            if each is not None and has_fit_parameter(model, name)
        }


def folds_by(
    X: pd.DataFrame, y: Labels, task: str, n_folds: int, seed: int, *,
    weight: FloatArray, groups: object = None, order: object = None,
) -> Folds:  # fmt: skip
    """Return folds of whole groups, of consecutive blocks of the later half, or at random.

    `groups`, `order`: the name of a column of ``X``, or a value per row; with both, later rows;
    `weight` of shape (n_rows,): no fold holds out a row of weight 0. Raises ValueError if there is
    one group only, or no row is later than others.
    """
    if groups is None and order is None:
        return Folds(folds_of(y, task, n_folds, seed, weight))
    division = division_of(X, y, groups, order, None)
    codes = np.unique(y, return_inverse=True)[1] if task == "classification" else None
    fold = np.full(len(y), -1, dtype=np.intp)
    splits = division.splits(n_folds, codes, np.random.RandomState(seed))
    for k, (_, other) in enumerate(splits):
        fold[other] = k
    fold[weight <= 0] = -1
    return Folds(fold, division.groups, division.order, division.kind.phrase, division.kind.name)


def folds_of(
    y: Labels, task: str, n_folds: int, seed: int, weight: FloatArray | None = None
) -> Index:
    """Return the number of a fold for each row, at random and stratified by class, shape (n_rows,).

    Rows of weight 0 get -1: no fold holds them out.
    """
    state = np.random.RandomState(seed)
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    order = state.permutation(counted)
    if task == "classification":
        # Rows are dealt out to the folds in turn, one class after the other: every fold gets the
        # same share of each class.
        order = order[np.argsort(np.unique(y[order], return_inverse=True)[1], kind="stable")]
    fold = np.full(len(y), -1, dtype=np.intp)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def held_out_by(
    estimator: BaseEstimator, y: Labels, task: str, weight: FloatArray, parts: Index | None = None,
    ends: FloatArray | None = None,
) -> HeldOut | None:  # fmt: skip
    """Return the rows that a fitted estimator held out itself; ``None`` if it held out none.

    Such estimators have ``held_out_fold_``, -1 for other rows, and ``held_out_prediction_``,
    probabilities if they classify. `parts` of shape (n_rows,): see `Folds.parts`; `ends` of shape
    (2, n_rows): of targets known by half.
    """
    machine = kernel_machine(estimator)
    fold = machine.held_out_fold_
    rows = np.flatnonzero(fold >= 0)
    if not len(rows):
        return None
    given = np.asarray(machine.held_out_prediction_)[rows]
    proba = given if task == "classification" else None
    predicted = given if proba is None else machine.classes_[proba.argmax(axis=1)]
    labels = None if proba is None else machine.classes_
    groups = None if parts is None else parts[rows]
    return HeldOut(
        rows, fold[rows], y[rows], predicted, weight[rows], task, proba, None, labels, groups,
        None if ends is None else ends.T[rows],
    )  # fmt: skip


def scoring_weights(weight: FloatArray | None, class_weight: object, y: Labels) -> FloatArray:
    """Return the weight of each row in a score: its sample weight times its class weight."""
    from sklearn.utils import compute_sample_weight

    factors: FloatArray = compute_sample_weight(class_weight, y)
    return factors if weight is None else factors * weight


def cross_predict(
    make: Callable[[], Any], X: pd.DataFrame, y: Labels, task: str, folds: Folds, weight: FloatArray
) -> HeldOut:
    """Predict each fold by a model that is fitted to the rows that it may learn from.

    `make`: returns an unfitted model with ``fit(X, y, sample_weight)``; `weight` of shape
    (n_rows,): rows of weight 0 are never learned from.
    """
    predicted = np.empty(len(y), dtype=y.dtype if task == "classification" else np.float64)
    classes = np.unique(y) if task == "classification" else np.empty(0)
    proba, decision = (np.full((len(y), len(classes)), empty) for empty in (0.0, np.nan))
    fold = folds.fold
    for k in range(int(fold.max()) + 1):
        other = np.flatnonzero(fold == k)
        if not len(other):
            continue
        train, model = np.flatnonzero(folds.training(k) & (weight > 0)), make()
        model = model.fit(X.iloc[train], y[train], weight[train], **folds.given(model, train))
        predicted[other] = model.predict(X.iloc[other])
        if len(classes) and hasattr(model, "predict_proba"):
            columns = np.searchsorted(classes, model.classes_)
            proba[np.ix_(other, columns)] = model.predict_proba(X.iloc[other])
        elif len(classes) and hasattr(model, "decision_function"):
            columns = np.searchsorted(classes, model.classes_)
            decision[np.ix_(other, columns)] = decision_of_classes(model, X.iloc[other])
    rows = np.flatnonzero(fold >= 0)
    labels = classes if len(classes) else None
    # A model that saw no row of some class has no decision value for it: NaN is left, and decision
    # values are then left out. Probabilities of such a class are 0.
    has_proba = bool(len(classes)) and bool(np.all(proba[rows].sum(axis=1) > 0))
    decided = bool(len(classes)) and bool(np.all(np.isfinite(decision[rows])))
    return HeldOut(
        rows, fold[rows], y[rows], predicted[rows], weight[rows], task,
        proba[rows] if has_proba else None, decision[rows] if decided else None, labels,
        None if folds.parts is None else folds.parts[rows],
    )  # fmt: skip


def decision_of_classes(model: BaseEstimator, X: pd.DataFrame) -> FloatArray:
    """Return decision values of shape (n_rows, n_classes), also if there are two classes."""
    decision = np.asarray(model.decision_function(X))
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision
