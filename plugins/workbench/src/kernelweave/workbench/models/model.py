"""A fitted estimator together with the names of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Table, Target, read_table
from ..machines import kernel_machine
from .header import Header


@dataclass(frozen=True, eq=False)
class Model:
    """What `fit` makes and `predict` uses.

    Attributes
    ----------
    estimator : object
        Fitted; a pipeline's last step is the kernel machine.
    header : Header
        Names and provenance.
    """

    estimator: Any
    header: Header

    @classmethod
    def of(cls, estimator: Any, *, columns: Sequence[str], target: Target, source: str) -> Model:
        """Return a model with the header that belongs to a fitted estimator.

        Parameters
        ----------
        estimator : object
            Fitted; a pipeline that begins with a `TableMatrix` says what it did with the columns.
        columns : sequence of str
            Features in order.
        target : Target
            What it was fitted to.
        source : str
            What messages call the data.

        Returns
        -------
        Model
            Ready to save.
        """
        machine = kernel_machine(estimator)
        result = machine.result_
        classes = getattr(machine, "classes_", None)
        header = Header(
            columns=tuple(columns),
            target=target.column,
            task=target.task,
            algorithm=result.algorithm,
            estimator=type(machine).__name__,
            source=source,
            n_samples=len(target.values),
            classes=None if classes is None else tuple(classes.tolist()),
            certificate={
                "lower_bound": result.lower_bound,
                "upper_bound": result.upper_bound,
                "gap": result.gap,
                "status": result.status.label,
                "n_iter": result.n_iter,
                "seconds": result.seconds,
            },
            prepared=_prepared(estimator),
        )
        return cls(estimator, header)

    @property
    def machine(self) -> Any:
        """The estimator that learned the kernel."""
        return kernel_machine(self.estimator)

    def inputs(self, table: Any) -> Any:
        """Return the rows of a table as the estimator takes them.

        Parameters
        ----------
        table : Table, DataFrame or str
            Anything that `read_table` reads, or a table that it returned.

        Returns
        -------
        DataFrame of shape (n_rows, n_columns)
            The columns that the model was fitted on.
        """
        return _rows(table).inputs(self.header.columns)

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return a prediction per row; columns are matched by name and others passed over.

        Parameters
        ----------
        table : Table, DataFrame or str
            Holds every column that the model was fitted on, in any order: a table, a data frame
            of pandas, polars or Arrow, a file, or the name of a data set.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.

        Raises
        ------
        CommandError
            If a column is absent or a cell cannot be used.
        """
        rows = _rows(table)
        with rows.speaking():
            return np.asarray(self.estimator.predict(self.inputs(rows)))

    def outside(self, table: Any) -> tuple[int, list[str]]:
        """Return how many rows lie outside what the model learned from, and in which columns.

        Parameters
        ----------
        table : Table, DataFrame or str
            As for `predict`.

        Returns
        -------
        n_rows : int
            Rows with a number beyond the range of training, or a word that it had not.
        columns : list of str
            Where, those with most such rows first.
        """
        encoder = getattr(getattr(self.estimator, "steps", [("", None)])[0][1], "encoder_", None)
        if encoder is None:
            return 0, []
        beyond = encoder.outside(encoder.transform(self.inputs(table)))
        counts: Counter[str] = Counter()
        for dimension, cells in zip(encoder.dimensions_, beyond.T, strict=True):
            counts[dimension.source] += int(cells.sum())
        return int(beyond.any(axis=1).sum()), [name for name, n in counts.most_common() if n]


def _rows(table: Any) -> Table:
    return table if isinstance(table, Table) else read_table(table)


def _prepared(estimator: Any) -> tuple[tuple[str, str, str, str], ...]:
    """Return what the first step of a pipeline did with each column, where it says so."""
    steps = getattr(estimator, "steps", [("", None)])
    encoder = getattr(steps[0][1], "encoder_", None)
    return () if encoder is None else tuple(tuple(row) for row in encoder.report_)
