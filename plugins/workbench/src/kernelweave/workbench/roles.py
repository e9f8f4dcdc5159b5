"""What each column of a table is for: features, sample weights, and groups or order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from kernelweave.evidence.new_rows import ALIKE
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables import Event, Table
from kernelweave.tables.errors import did_you_mean

from .errors import CommandError
from .model_catalog import model_kind
from .scoring.held_out import Folds


def feature_columns(
    table: Table,
    target: str,
    drop: Sequence[str] = (),
    weights: str | None = None,
    event: Event | None = None,
) -> list[str]:
    """Return the names of the features in the order of the table.

    Neither the target nor the column of an event is one. Raises CommandError if a column that is
    dropped, or of weights, does not exist or is one of these, if the target is told its kind, or no
    feature is left.
    """
    if target in table.kinds:
        raise CommandError(f"{target!r} is the target: use --task to say what it is")
    if event is not None and event.column in table.kinds:
        raise CommandError(f"{event.column!r} is the event: it is never a feature")
    left_out = [("--drop", name) for name in drop]
    left_out += [("--weights", weights)] if weights is not None else []
    for option, name in left_out:
        if name == target:
            raise CommandError(f"{option} {name!r} is the target")
        if event is not None and name == event.column:
            raise CommandError(f"{option} {name!r} is the event: it is never a feature")
        if name not in table.columns:
            hint = did_you_mean(name, table.columns, what="columns")
            raise CommandError(f"{option}: {table.source} has no column {name!r}; {hint}")
    unused = {target, *(name for _, name in left_out)}
    unused |= set() if event is None else {event.column}
    columns = [name for name in table.columns if name not in unused]
    if not columns:
        rest = f" without those of {' and '.join(dict(left_out))}" if left_out else ""
        raise CommandError(f"{table.source} has no column but the target {target!r}{rest}")
    return columns


def read_weights(table: Table, column: str) -> FloatArray:
    """Return the sample weights; CommandError if one is missing or negative, or all are zero."""
    values = table.numbers(column)
    if values.min() < 0 or not values.any():
        least = f"{values.min():g} in {table.where(int(values.argmin()))}"
        what = least if values.any() else "zeros only"
        raise CommandError(f"--weights {column!r}: weights must be >= 0, not all 0, got {what}")
    return values


def groups_held_out(
    table: Table, columns: Sequence[str], model: str, groups: str | None, slopes: str | None,
    new: str | None,
) -> tuple[str | None, dict[str, Any]]:  # fmt: skip
    """Return the column of the groups that are held out, and what `fit` gets beside it.

    - `columns`: the features, among which all of these must be
    - `model`: its name, for those that are no evidence kernels have no effects of groups
    - `groups`, `slopes`: a column, or several with commas between them
    - `new`: which groups are held out, the first by default

    Raises CommandError if a name is no feature, or one is given without groups.
    """
    names, sloped = _names(table, groups), _names(table, slopes)
    for option, given in (("slopes", slopes), ("new", new)):
        if given is not None and not names:
            raise CommandError(
                f"--{option} needs --groups COLUMN, the column that names the groups"
            )
    if len(names) < 2 and not sloped and new is None:
        return groups, {}
    if model != "evidence":
        raise CommandError(
            f"--slopes, --new and several --groups are for the evidence kernel, and --model "
            f"{model} has no effects of groups: give one column as --groups"
        )
    for option, listed in (("groups", names), ("slopes", sloped)):
        for name in listed:
            if name not in columns:
                hint = did_you_mean(name, list(columns), what="features")
                raise CommandError(f"--{option}: {table.source} has no feature {name!r}; {hint}")
    if new is not None and new not in names:
        raise CommandError(f"--new must be one of --groups, {', '.join(names)}, got {new!r}")
    held = names[0] if new is None else new
    return held, {"groups": names, "slopes": sloped or None, "new": held}


def _names(table: Table, given: str | None) -> list[str]:
    """Return names of columns; commas are between names unless a column is called so."""
    if given is None:
        return []
    return [given] if given in table.columns else [each.strip() for each in given.split(",")]


def read_division(
    table: Table,
    columns: Sequence[str],
    cv: int | str | None,
    groups: str | None,
    order: str | None,
) -> dict[str, Any]:
    """Return groups or order of the rows as `fit` takes them, empty for folds at random.

    - `columns`: the features; a feature is returned by name, any other column by its values
    - `cv`: a number of folds, ``"group"``, ``"time"`` (of ``order``, or of the lines of the file)
    - `groups`, `order`: columns of the table; with both, later rows are held out as they come, of
      known groups and of new ones

    Raises CommandError if there is no such column, or two of them contradict each other.
    """
    if isinstance(cv, int) and cv < 2:
        raise CommandError(f"--cv must be at least 2, group or time, got {cv}")
    if isinstance(cv, int) and cv > len(table.frame):
        raise CommandError(f"--cv must be at most the number of rows, {len(table.frame)}, got {cv}")
    if cv == "group" and groups is None:
        raise CommandError("--cv group needs --groups COLUMN, the column that names the groups")
    if cv == "group" and order is not None:
        raise CommandError(
            "--cv group holds out whole groups, and --order later rows of all: leave out --cv, and "
            "the table of scores has both, or leave out --order"
        )
    division: dict[str, Any] = {"order": np.arange(len(table.frame))} if cv == "time" else {}
    for option, column in (("groups", groups), ("order", order)):
        if column is None:
            continue
        if column not in table.columns:
            if option == "groups" and column == ALIKE:
                division[option] = column
                continue
            hint = did_you_mean(column, table.columns, what="columns")
            raise CommandError(f"--{option}: {table.source} has no column {column!r}; {hint}")
        values = table.inputs([column])[column].to_numpy()
        if option == "groups" and len({*values.tolist()}) < 2:
            raise CommandError(
                f"--groups {column!r} is {values[0]!r} in every row: at least two groups are needed"
            )
        division[option] = column if column in columns else values
    return division


def fit_division(name: str, division: dict[str, Any], folds: Folds) -> dict[str, Any]:
    """Return groups and order as the fit of a model takes them: evidence kernels take columns."""
    return (
        division
        if model_kind(name).reads_tables
        else {"groups": folds.groups, "order": folds.order}
    )
