"""Series from a file, for the command line."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, warn
from kernelweave.tables import Table, TableError, plan_columns, read_table
from kernelweave.tables.columns import Numbers
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import did_you_mean
from kernelweave.tables.frames import read_columns
from kernelweave.tables.table import gaps_of

# Fewer steps may all rise by chance: a random walk does so in eight once in 256.
_ENOUGH = 8


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """A column per series, indexed by times if there are any; each row's replicate."""

    frame: pd.DataFrame
    replicates: list[str] | None


def read_series(
    path: str, replicate: str | None, drop: list[str], *, allow_missing: bool = False
) -> SeriesTable:
    """Read a table with one row per point in time, of any kind that `read_table` reads.

    `drop`: columns that are no nodes; `allow_missing`: whether missing cells are NaN, and no
    error. The first column of dates is the time, by which rows are sorted, with a warning, where
    they are not. Raises ValueError if the file cannot be read, if a column asked for is missing,
    or for the first cell that is not a finite number, naming it, or if fewer than two columns vary.
    """
    table = read_table(path)
    labels = None
    if replicate is not None:
        labels = _column(table, replicate).astype(str)
    unused = {replicate, *drop}
    for name in drop:
        _column(table, name)
    names = [name for name in table.columns if name not in unused]
    times = _times(table, names)
    if times is not None:
        names.remove(str(times.name))
    if len(names) < 2:
        raise TableError(f"{path} needs at least two series, it has {len(names)}")
    frame = pd.DataFrame(
        {name: _numbers(table, name, allow_missing=allow_missing) for name in names}
    )
    if len(frame) > 1 and (varying := int((frame.nunique() > 1).sum())) < 2:
        raise TableError(
            f"{path} needs at least two series that vary, it has {varying}: a constant column is "
            "left out"
        )
    if times is None:
        _warn_of_a_time(frame, labels)
    else:
        frame.index = pd.DatetimeIndex(times, name=times.name)
        frame, labels = _in_order(path, frame, labels)
    return SeriesTable(frame, None if labels is None else labels.tolist())


def _column(table: Table, name: str) -> pd.Series:
    if name not in table.columns:
        hint = did_you_mean(name, table.columns, what="columns")
        raise TableError(f"{table.source} has no column {name!r}; {hint}")
    return table.frame[name].reset_index(drop=True)


def _times(table: Table, names: list[str]) -> pd.Series[pd.Timestamp] | None:
    """Return the first column of dates, if there is one; raise where one of them is missing."""
    given = table.inputs(names)
    with warnings.catch_warnings():
        # what is no number is refused below
        warnings.simplefilter("ignore", KernelWeaveWarning)
        plans = plan_columns(given)
    for plan, raw in zip(plans, read_columns(given).columns, strict=True):
        if isinstance(plan.reading, DateParts) and not isinstance(raw, Numbers):
            moments = plan.reading.moments(raw).rename(plan.column)
            if moments.isna().any():
                raise TableError(
                    f"{table.source}: column {plan.column!r} has no date in "
                    f"{table.where(int(moments.isna().argmax()))}: correct it; --drop "
                    f"{plan.column!r} leaves the column out"
                )
            if plan.remark:
                text = f"column {plan.column}: {plan.remark[0].lower()}{plan.remark[1:-1]}"
                warn(text)
            return moments
    return None


def _numbers(table: Table, name: str, *, allow_missing: bool) -> npt.NDArray[np.float64]:
    """Return a column as numbers, NaN where one is missing."""
    rest = f"--drop {name!r} leaves the column out"
    try:
        if not allow_missing:
            return table.numbers(name)
        present = ~gaps_of(table.frame[name])
        numbers = table.take(np.flatnonzero(present)).numbers(name)
    except TableError as error:
        missing = "the value is missing" in str(error)
        remedy = f"--missing skip leaves such rows out, {rest}" if missing else rest
        raise TableError(f"{str(error).partition(': fill it in')[0]}; {remedy}") from error
    values = np.full(len(table.frame), np.nan)
    values[present] = numbers
    return values


def _in_order(
    path: str, frame: pd.DataFrame, labels: pd.Series[str] | None
) -> tuple[pd.DataFrame, pd.Series[str] | None]:
    """Return rows in order of time, replicates in order of appearance."""
    replicate = np.zeros(len(frame)) if labels is None else pd.factorize(labels)[0]
    order = np.lexsort((frame.index, replicate))
    if (order == np.arange(len(order))).all():
        return frame, labels
    warn(
        f"the rows of {path} are not in order of time: they were sorted by column "
        f"{frame.index.name}"
    )
    return frame.iloc[order], None if labels is None else labels.iloc[order]


def _warn_of_a_time(frame: pd.DataFrame, labels: pd.Series[str] | None) -> None:
    """Say if a column rises from each row of a replicate to the next, as a time does.

    Without replicates it may begin anew where one ends.
    """
    together: npt.NDArray[np.bool_] = np.ones(len(frame) - 1, dtype=bool)
    if labels is not None:
        together = labels.to_numpy()[1:] == labels.to_numpy()[:-1]
    steps = np.diff(frame, axis=0)[together]
    if len(steps) < _ENOUGH:
        return
    rises = (steps > 0).all(axis=0)
    again = (steps == steps.max(axis=0, initial=0.0)) | (frame[1:][together] == frame.min())
    # single events between zeros rise in half of the rows at most
    again = again.all(axis=0).to_numpy() & ((steps > 0).mean(axis=0) > 0.5) & (labels is None)
    timelike = rises if rises.any() else again
    if not timelike.any():
        return
    name = frame.columns[int(np.argmax(timelike))]
    counts, remedy = ("rises in every row, as a time does,", "")
    if not rises.any():
        counts = "counts in equal steps and begins again, as the time of several runs does,"
        remedy = ", and --replicate names the column that tells the runs apart"
    warn(
        f"column {name} {counts} and was taken for a series: --drop {name!r} leaves it out{remedy}"
    )
