"""Rows that a fit did not see, with its predictions of them."""

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
from .scores import Score, score

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


_OPTIONAL = ("proba", "decision", "groups")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of rows by fits that did not see them.

    - `rows`, `fold` of shape (n_held_out,): which rows of the table, in its order, and the fold
      that held each out
    - `truth`, `predicted` of shape (n_held_out,): of these rows
    - `weight` of shape (n_held_out,): what each counts
    - `task`: ``"classification"`` or ``"regression"``
    - `proba` of shape (n_held_out, n_classes): probabilities, where the model has them
    - `decision` of shape (n_held_out, n_classes): its decision values, where it has none
    - `labels` of shape (n_classes,): of a classification, where rows held out may lack one
    - `groups` of shape (n_held_out,): rows of one number went together; errors are over them
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

    @property
    def score(self) -> Score:
        """R² or accuracy, with its standard error."""
        return score(self.truth, self.predicted, self.weight, self.task, self.groups)

    @property
    def n_parts(self) -> int:
        """Number of rows, or of groups, that standard errors are computed over."""
        return len(self.truth) if self.groups is None else len(np.unique(self.groups))

    @property
    def ranks_nothing(self) -> bool:
        """Whether all rows of a fold have the same probabilities, or decision values."""
        values = self.decision if self.proba is None else self.proba
        parts = [] if values is None else [values[self.fold == k] for k in np.unique(self.fold)]
        return bool(parts) and all((each == each[0]).all() for each in parts)

    @property
    def classes(self) -> Labels:
        """Labels in the order of probabilities."""
        return np.unique(self.truth) if self.labels is None else self.labels

    def part(self, which: NDArray[np.bool_]) -> HeldOut:
        """Return the predictions of the rows that ``which`` selects."""
        named: dict[str, Any] = vars(replace(self, labels=None))
        for name, each in named.items():
            named[name] = each[which] if isinstance(each, np.ndarray) else each
        return HeldOut(**named | {"labels": self.classes})

    @property
    def of_one_answer(self) -> HeldOut:
        """The mean, or the most frequent class and the shares of all, for every row.

        They are those of the rows themselves.
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
        """The mean, or the class that each row is least likely to have."""
        if self.task == "regression":
            return self.of_one_answer
        proba, decision = self.proba, self.decision
        if proba is not None:
            proba = 1.0 / np.maximum(proba, np.finfo(np.float64).tiny ** 0.5)
            proba /= proba.sum(axis=1, keepdims=True)
        decision = None if decision is None else -decision
        next_codes = (np.searchsorted(self.classes, self.predicted) + 1) % len(self.classes)
        scores = proba if proba is not None else decision
        codes = next_codes if scores is None else scores.argmax(axis=1)
        return replace(self, predicted=self.classes[codes], proba=proba, decision=decision)

    def mixed_with(self, other: HeldOut, which: NDArray[np.bool_]) -> HeldOut:
        """Return these predictions, and another's of the same rows where ``which`` says so."""
        named: dict[str, Any] = {}
        for name in ("predicted", "proba", "decision"):
            mine, others = getattr(self, name), getattr(other, name)
            if mine is not None:
                named[name] = np.where(which if mine.ndim == 1 else which[:, None], others, mine)
        return replace(self, **named)

    def as_json(self) -> dict[str, object]:
        """Return plain lists by name."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
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
        kinds |= {"decision": "f"}
        if made.task == "regression":
            kinds |= {"truth": "if", "predicted": "if"}
        for name, values in arrays.items():
            if name in ("task", "labels") or (values is None and name in _OPTIONAL):
                continue
            wide = name in ("proba", "decision")
            if not (
                isinstance(values, np.ndarray)
                and values.ndim == 1 + wide
                and len(values) == len(made.rows) > 0
                and values.dtype.kind in kinds.get(name, "iufbUO")
            ):
                raise ValueError(f"{name} of validation rows must have one value per row")
        return made

    def __str__(self) -> str:
        n, rows = int(self.fold.max()) + 1, f"{len(self.truth)} rows"
        return f"{rows} held out" if n == 1 else f"{rows}, cross-validated in {n} folds"


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold holds each row out, and what a fit without it may learn from.

    - `fold` of shape (n_rows,): -1 where none does
    - `groups` of shape (n_rows,): rows of one number are held out together
    - `order` of shape (n_rows,): a fold is predicted by fits to the rows before it
    - `kind`: of rows that are held out, for people; empty where they are drawn at random
    - `name`: of these rows in a table of kinds, likewise
    """

    fold: Index
    groups: Index | None = None
    order: FloatArray | None = None
    kind: str = ""
    name: str = ""

    def training(self, k: int) -> NDArray[np.bool_]:
        """Return which rows a fit that predicts fold ``k`` may learn from."""
        if self.order is None:
            return np.asarray(self.fold != k)
        return np.asarray(self.order < self.order[self.fold == k].min())

    @property
    def parts(self) -> Index | None:
        """What goes together, so that a score's error is over groups, or over blocks of time."""
        return self.groups if self.order is None else self.fold

    def given(self, model: object, rows: Index) -> dict[str, Labels]:
        """Return groups and order of some rows, where the model's ``fit`` takes them."""
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
    """Return folds of whole groups, or of later rows, or at random where neither is given.

    `groups`, `order`: the name of a column of ``X``, or a value per row. Raises ValueError if there
    is one group only, or no row is later than others.
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
    """Return a fold for each row, drawn at random; classes keep their shares.

    Rows of weight zero are in no fold: -1.
    """
    state = np.random.RandomState(seed)
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    order = state.permutation(counted)
    if task == "classification":
        # dealing out rows class by class keeps the shares
        order = order[np.argsort(np.unique(y[order], return_inverse=True)[1], kind="stable")]
    fold = np.full(len(y), -1, dtype=np.intp)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def held_out_by(
    estimator: BaseEstimator, y: Labels, task: str, weight: FloatArray, parts: Index | None = None
) -> HeldOut | None:
    """Return what a fitted estimator itself held out; ``None`` where it held out nothing.

    `parts`: which rows went together, as the estimator's own score is computed.
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
        rows, fold[rows], y[rows], predicted, weight[rows], task, proba, None, labels, groups
    )


def cross_predict(
    make: Callable[[], Any], X: pd.DataFrame, y: Labels, task: str, folds: Folds, weight: FloatArray
) -> HeldOut:
    """Fit a model without each fold and predict that fold: the same rows, whatever the model.

    `make`: returns an unfitted model with ``fit(X, y, sample_weight)``. Rows of weight zero are
    learned from by nobody.
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
    # a fold that did not see a class has no decision on it
    has_proba = bool(len(classes)) and bool(np.all(proba[rows].sum(axis=1) > 0))
    decided = bool(len(classes)) and bool(np.all(np.isfinite(decision[rows])))
    return HeldOut(
        rows, fold[rows], y[rows], predicted[rows], weight[rows], task,
        proba[rows] if has_proba else None, decision[rows] if decided else None, labels,
        None if folds.parts is None else folds.parts[rows],
    )  # fmt: skip


def decision_of_classes(model: BaseEstimator, X: pd.DataFrame) -> FloatArray:
    """Return a column of decision values for each class, also where there are two."""
    decision = np.asarray(model.decision_function(X))
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision
