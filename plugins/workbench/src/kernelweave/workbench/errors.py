"""What a user of the command reads when something is wrong: one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelweave.tables import Table


class CommandError(Exception):
    """Something the user can put right; the message is the sentence they read."""


@contextmanager
def locate_cell_errors(table: Table) -> Iterator[None]:
    """Name the line of a cell of a table that an estimator refuses or warns of."""
    from kernelweave.tables import CellError

    try:
        with CellError.calling_rows(table.where):
            yield
    except CellError as error:
        place = f"{table.source}: column {error.column!r}, {table.where(error.row)}"
        raise CommandError(f"{place}: {error.what}") from error
