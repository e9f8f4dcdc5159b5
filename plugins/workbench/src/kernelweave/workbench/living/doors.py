"""What happens to a model after its fit: new rows, fewer rows, other rows, several models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.evidence import HeldOutWarning
from kernelweave.evidence.living.forgetting import places_to_forget
from kernelweave.evidence.living.reading import read_new
from kernelweave.kernels_core import UnderfitWarning
from kernelweave.kernels_core.arrays import Index
from kernelweave.tables import ColumnWarning, Table
from kernelweave.tables.errors import did_you_mean

from ..errors import CommandError, locate_cell_errors
from ..models import Model
from .following import followed, kernel_rows, of_sums
from .given import GivenRows, read_given
from .known import KnownTargets

if TYPE_CHECKING:
    from kernelweave.evidence import SharedSums

Notes = Callable[[str], None]


def updated(model: Model, table: Table, on_note: Notes = lambda _: None) -> tuple[Model, int]:
    """Return a model that has learned from more rows with its kernel, and how many these are.

    The estimator of ``model`` is changed. `on_note`: called with a sentence on rows without a
    target. Raises CommandError, or what the estimator raises, if the rows cannot be read or learned
    from; then the model is as it was.
    """
    known = KnownTargets.of_model(model)
    rows = read_given(model, table, on_note, n_before=model.header.n_samples)
    with _of_rows(rows):
        model.machine.update(*rows.arguments, **rows.division)
        return followed(model, known.and_others(rows.known)), len(rows)


def refitted(model: Model, table: Table, on_note: Notes = lambda _: None) -> Model:
    """Return the model of the rows of a table with the kernel of another model.

    The estimator of ``model`` is changed. Raises as `updated` does.
    """
    rows = read_given(model, table, on_note, n_before=0)
    with _of_rows(rows):
        model.machine.refit(*rows.arguments, **rows.division)
        return followed(model, rows.known)


def forgotten(
    model: Model,
    *,
    rows: Sequence[int] | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    table: Table | None = None,
    on_note: Notes = lambda _: None,
) -> tuple[Model, Index]:
    """Return a model that never had some rows, and the places that these had, from 0.

    The estimator of ``model`` is changed. `rows`: places of rows in the order in which the model
    was given them, from 0; `where`: values of columns, all of which must hold; `table`: the rows
    themselves. Raises CommandError if a column is unknown, or what the estimator raises if no row
    is meant, or all are.
    """
    machine, known = model.machine, KnownTargets.of_model(model)
    conditions, living = _conditions(model, where or {}), machine._living_model(settled=True)
    new = None if table is None else read_given(model, table, on_note, n_before=0)
    with _silent() if new is None else _of_rows(new):
        given = None
        if new is not None:
            X, y, weight = new.arguments
            given = read_new(living, living.encoder, X, y, weight, None, None, alone=True)
        places = places_to_forget(living, rows, conditions, given)
        machine.forget(places)
        kept = np.delete(np.arange(len(known)), places)
        return followed(model, known.take(kept)), places


def _conditions(model: Model, where: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return values by column, of "groups" where the groups are no column of the kernel."""
    header, conditions = model.header, {}
    groups = header.asked.get("groups")
    columns = [*header.columns]
    if groups is not None and groups not in columns:
        columns.append(groups)
    for name, values in where.items():
        if name not in columns:
            hint = did_you_mean(name, columns, what="columns")
            raise CommandError(f"--where: the model has no column {name!r}; {hint}")
        conditions[name if name in header.columns else "groups"] = list(values)
    return conditions


@contextmanager
def _silent() -> Iterator[None]:
    """Silence what the summary says anyway."""
    with warnings.catch_warnings():
        for category in (HeldOutWarning, ColumnWarning, UnderfitWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def _of_rows(rows: GivenRows) -> Iterator[None]:
    """Name the line of a cell that is refused; silence what the summary says anyway."""
    with locate_cell_errors(rows.table), _silent():
        yield


def merged(parts: Sequence[Model | SharedSums], kernel: Model | None = None) -> Model:
    """Return the model of the rows of several models and sums that have one kernel.

    `kernel`: has it where none of the parts is a model, or its own rows are not to count. Raises
    CommandError, or what merging raises, if they have several kernels or targets.
    """
    from kernelweave.evidence import merge

    models = [each for each in parts if isinstance(each, Model)]
    home = kernel if kernel is not None else next(iter(models), None)
    if home is None:
        raise CommandError(
            "none of the files is a model: add the one whose kernel they have by --kernel MODEL"
        )
    for each in models:
        if each.header.target != home.header.target:
            raise CommandError(
                f"the models predict {home.header.target!r} and {each.header.target!r}: merge "
                "models of one kernel"
            )
    estimators = [each.estimator if isinstance(each, Model) else each for each in parts]
    with _silent():
        estimator = merge(estimators, kernel=None if kernel is None else kernel.estimator)
        made = replace(home, estimator=estimator)
        if len(estimator.held_out_fold_) and len(models) == len(parts):
            return followed(
                made, reduce(KnownTargets.and_others, map(KnownTargets.of_model, models))
            )
        sizes = [e.header.n_samples if isinstance(e, Model) else e.n_rows for e in parts]
        return of_sums(made, sum(sizes), kernel_rows(home))
