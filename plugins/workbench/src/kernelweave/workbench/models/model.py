"""A fitted estimator together with the names of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Labels
from kernelweave.kernels_core.checks import integer
from kernelweave.tables import (
    ColumnPlan,
    Event,
    Table,
    Target,
    choose_target,
    read_table,
    read_target,
)
from kernelweave.tables.columns import Raw
from kernelweave.tables.errors import did_you_mean, one_line
from kernelweave.tables.frames import read_columns
from kernelweave.tables.new_cells import check_unit
from kernelweave.tables.plans import extent
from kernelweave.tables.table import check_units

from ..console import message_text
from ..errors import CommandError, locate_cell_errors
from ..machines import encoder_of, kernel_machine
from ..scoring.held_out import HeldOut
from .header import Header, versions

if TYPE_CHECKING:
    import pandas as pd
    from kernelweave.evidence import ShapleyValues
    from sklearn.base import BaseEstimator

_REGRESSION = "regression with the evidence kernel has"
_CLASSIFICATION = "classification with the evidence kernel has"


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted estimator with its columns and target, as saved by ``kernelweave fit``.

    Tables are a `Table`, a data frame of pandas, polars or Arrow, a file, or the name of a data
    set. They need every column that the model was fitted on, in any order, matched by name; other
    columns are ignored. Methods raise CommandError if a column is absent, a cell cannot be used, or
    the model has no such predictions.

    Attributes
    ----------
    estimator : object
        Fitted; a pipeline's last step is the kernel machine.
    header : Header
        Names and provenance.
    """

    estimator: BaseEstimator
    header: Header

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        *,
        columns: Sequence[str],
        target: Target,
        table: Table,
        name: str = "",
        held_out: HeldOut | None = None,
        notes: Sequence[str] = (),
        on_note: Callable[[str], None] = lambda _: None,
    ) -> Model:
        """Return a model with the header that belongs to a fitted estimator.

        `name`: the model's name on the command line; `held_out`: its predictions of rows that it
        did not see; `notes`: what a person would ask about the table; `on_note`: called with a
        sentence on each column that cannot be described.
        """
        machine = kernel_machine(estimator)
        result = machine.result_
        classes = getattr(machine, "classes_", None)
        named = {*columns, target.column}
        units = {each: unit for each, unit in table.units.items() if each in named}
        if target.unit:
            units[target.column] = target.unit
        header = Header(
            columns=tuple(columns),
            target=target.column,
            task=target.task,
            algorithm=result.algorithm,
            estimator=type(machine).__name__,
            source=table.source,
            n_samples=len(target.values),
            classes=None if classes is None else tuple(classes.tolist()),
            model=name,
            certificate=certificate_of(result),
            prepared=_prepared(estimator, table, on_note),
            held_out=None if held_out is None else held_out.as_json(),
            notes=tuple(notes),
            units=units,
            half_known="" if target.ends is None else target.reason,
            versions=versions(type(machine).__module__),
        )
        return cls(estimator, header)

    @property
    def held_out(self) -> HeldOut | None:
        """Predictions of rows that the fit did not see."""
        record = self.header.held_out
        return None if record is None else HeldOut.from_json(record)

    @property
    def machine(self) -> BaseEstimator:
        """The estimator that learned the kernel."""
        return kernel_machine(self.estimator)

    @property
    def event(self) -> Event | None:
        """What says which times ended, of a model of times up to an event."""
        asked = self.header.asked.get("event")
        return None if asked is None else Event(asked["column"], asked["value"])

    def inputs(self, table: object) -> pd.DataFrame:
        """Return the rows of a table as the estimator takes them, the columns of the fit."""
        left_out = {row["name"] for row in self.header.prepared if row["done"] != "used"}
        return _rows(table).inputs(self.header.columns, left_out)

    def targets(self, table: Table, column: str | None = None) -> Target:
        """Return the targets of a table, for the model's task.

        `column`: their name; the one that the model was fitted to without it. Raises CommandError
        as `choose_target` and `read_target` do, if they are in another unit than the model's, if
        the column of the event is absent, or some are known by half and none was in the fit.
        """
        name, event = choose_target(table, column or self.header.target), self.event
        if event is not None and event.column not in table.columns:
            hint = did_you_mean(event.column, table.columns, what="columns")
            raise CommandError(
                f"{table.source} has no column {event.column!r}, which says which times ended by "
                f"the event; {hint}"
            )
        target = read_target(table, name, self.header.task, least=1, event=event)
        unit = self.header.units.get(self.header.target, "")
        if target.ends is not None and event is None:
            check_unit(name, target.unit, unit, f"{table.source}: ")
        elif self.header.task == "regression":
            check_units(table, [name], {name: unit})
        if target.ends is not None and not self.header.half_known:
            raise CommandError(
                f"{table.source}: {target.reason}, and the model was fitted to known targets: "
                "remove these rows"
            )
        if self.header.half_known and target.ends is None:
            return replace(target, ends=np.array([target.values, target.values]))
        return target

    def predict(self, table: object) -> Labels:
        """Return a label or a number per row of a table."""
        return np.asarray(self._ask("predict", table))

    def predict_interval(
        self, table: object, confidence: float = 0.9
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the ends of prediction intervals that should hold a share of new observations.

        They are infinite where the training rows are too few for the confidence.
        """
        self._require("predict_interval", "intervals", _REGRESSION, held_out=True)
        low, high = self._ask("predict_interval", table, confidence)
        return low, high

    def kinds_of_rows(self, table: object) -> Labels | None:
        """Return which kind of new rows each is, of a model that was told groups and an order.

        ``None`` of any other.
        """
        names = getattr(self.machine, "_row_kinds", ())
        return np.asarray(self._ask("kinds_of_rows", table)) if len({*names}) == 4 else None

    def predict_quantiles(
        self, table: object, quantiles: Sequence[float]
    ) -> npt.NDArray[np.float64]:
        """Return quantiles of new targets, shape (n_rows, n_quantiles), none crossing another.

        `quantiles`: each between 0 and 1. Infinite where the training rows are too few for one.
        """
        self._require("predict_quantiles", "quantiles", _REGRESSION, held_out=True)
        return np.asarray(self._ask("predict_quantiles", table, quantiles))

    def predict_set(
        self, table: object, confidence: float = 0.9, *, by_class: bool = False
    ) -> list[list[object]]:
        """Return the classes that each row may have, the most probable always among them.

        `confidence`: share of new rows whose class the sets should hold, of all rows together;
        `by_class`: of the rows of each class.
        """
        self._require("predict_set", "sets", _CLASSIFICATION, held_out=True)
        sets = self._ask("predict_set", table, confidence, by_class)
        labels = self.header.classes or ()
        return [[labels[k] for k in np.flatnonzero(row)] for row in sets]

    def predict_proba(self, table: object) -> npt.NDArray[np.float64]:
        """Return the probability of each class, in the order of the header's classes."""
        what = "classification with the evidence kernel, or fitted with --set probability=true, has"
        self._require("predict_proba", "probabilities", what)
        return np.asarray(self._ask("predict_proba", table))

    def reasons(self, table: object, n_reasons: int = 3) -> list[list[str]]:
        """Return the columns that change each prediction most, the strongest first.

        Such as ``"age = 63: +1.2"``: the change of the prediction, or of the probability of the
        predicted class, from the mean over all columns' values. Fewer than ``n_reasons`` where
        fewer columns change anything.
        """
        integer(1).check("n_reasons", n_reasons)
        self._require("explain", "reasons for its predictions", "the evidence kernel has")
        rows = _rows(table)
        with locate_cell_errors(rows):
            inputs = self.inputs(rows)
            explanation = self.estimator.explain(inputs, scale="response")
            labels = self.estimator.predict(inputs)
        return for_predicted_class(explanation, labels, self.header.classes).reasons(n_reasons)

    def outside(self, table: object) -> tuple[int, list[str]]:
        """Return how many rows lie outside what the model learned from, and in which columns.

        They have a number beyond the range of training, or a word that it had not; columns with
        most such rows come first.
        """
        encoder = encoder_of(self.estimator)
        if encoder is None:
            return 0, []
        rows = _rows(table)
        with locate_cell_errors(rows):
            beyond = encoder.outside(encoder.transform(self.inputs(rows)))
        counts: Counter[str] = Counter()
        for dimension, cells in zip(encoder.dimensions_, beyond.T, strict=True):
            counts[dimension.source] += int(cells.sum())
        return int(beyond.any(axis=1).sum()), [name for name, n in counts.most_common() if n]

    def _ask(self, method: str, table: object, *given: object) -> Any:
        """Return what a method of the estimator says of a table."""
        rows = _rows(table)
        with locate_cell_errors(rows):
            return getattr(self.estimator, method)(self.inputs(rows), *given)

    def _require(self, method: str, what: str, having: str, *, held_out: bool = False) -> None:
        if not hasattr(self.estimator, method):
            raise CommandError(
                f"a {self.header.task} with {self.header.estimator} has no {what}: {having} them"
            )
        # sums tell how large residuals are, and of no row
        judged = any(row["n_rows"] for row in self.header.new_rows)
        if held_out and self.header.certificate and self.header.held_out is None and not judged:
            raise CommandError(
                f"the fit stopped before its first fold, so there are no {what}: fit again "
                "with a larger --max-time"
            )


def for_predicted_class(
    shapley: ShapleyValues, labels: Labels, classes: tuple[object, ...] | None
) -> ShapleyValues:
    """Return the explanations of the class of each row; of a regression as they are."""
    if classes is None:
        return shapley
    values = shapley.values
    if values.ndim == 2:
        values = values[:, :, None] * (-1.0, 1.0)
    which = [classes.index(label) for label in labels.tolist()]
    return replace(shapley, values=values[np.arange(len(values)), :, which])


def _rows(table: object) -> Table:
    return table if isinstance(table, Table) else read_table(table)


def _prepared(
    estimator: BaseEstimator, table: Table, on_note: Callable[[str], None]
) -> tuple[dict[str, object], ...]:
    """Return what each column holds and what was done with it, where the estimator says so."""
    encoder = encoder_of(estimator)
    if encoder is None:
        return ()
    rows = read_columns(table.inputs(encoder.names_))
    return tuple(
        described(plan, _extent(plan, raw, rows.comma, on_note))
        for plan, raw in zip(encoder.report_, rows.columns, strict=True)
    )


def certificate_of(result: Any) -> dict[str, object]:
    """Return what a result proves, as the header of a file has it."""
    names = ("lower_bound", "upper_bound", "gap", "n_iter")
    return {each: getattr(result, each) for each in names} | {"status": result.status.label}


def described(plan: ColumnPlan, found: Mapping[str, object]) -> dict[str, object]:
    """Return what was done with a column; `found`: the range of its cells, and how many lack."""
    done = "used" if plan.used else "left out"
    facts = {"name": plan.column, "seen": plan.seen, **found, "done": done}
    return {**facts, "sentence": message_text(plan.remark)}


def _extent(
    plan: ColumnPlan, raw: Raw, comma: str, on_note: Callable[[str], None]
) -> dict[str, object]:
    """Return the range of a column, empty with a note if it cannot be found."""
    try:
        return extent(plan, raw, comma)
    except Exception as error:  # noqa: BLE001
        on_note(f"the range of column {plan.column!r} is not known: {one_line(error)}")
        return {"range": "", "missing": 0}
