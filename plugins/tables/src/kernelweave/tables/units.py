"""Columns in the units in which a model learned them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .errors import TableError
from .table import Table
from .written import read_in_unit


def in_units(table: Table, columns: Iterable[str], known: Mapping[str, str]) -> Table:
    """Return a table whose numbers are in the units that a model knows.

    `columns`: those of numbers, where they are here; `known`: the unit of each that had one in
    training. Returns: columns with several units have numbers where the unit is that of training,
    or none is written; other cells stay texts. Raises TableError where numbers stand in another
    unit throughout; warns where one has none.
    """
    read: dict[str, pd.Series] = {}
    for name in columns:
        if table.has_numbers(name):
            _compare(table, name, known.get(name, ""))
        elif name in table.columns:
            unit = known.get(name, "")
            read[name] = read_in_unit(table.frame[name], unit, table.source, table.separator)
    if not read:
        return table
    frame = table.frame.copy(deep=False)
    frame[list(read)] = pd.DataFrame(read)
    return replace(
        table,
        frame=frame,
        units={**table.units, **{name: known[name] for name in read if name in known}},
        texts={**table.texts, **{name: table.frame[name] for name in read}},
    )


def _compare(table: Table, name: str, then: str) -> None:
    """Raise where a column of numbers is in another unit than it was, warn where one has none."""
    now = table.units.get(name, "")
    if now == then:
        return
    if now and then:
        raise TableError(
            f"{table.source}: column {name!r} is in {now}, and was in {then} where the model "
            f"learned: convert it to {then}"
        )
    said = (
        f"has no unit, and was in {then} where the model learned: its numbers are taken as {then}"
        if then
        else f"is in {now}, and had no unit where the model learned: check that it is in the same"
    )
    warnings.warn(f"{table.source}: column {name!r} {said}", KernelWeaveWarning, stacklevel=3)
