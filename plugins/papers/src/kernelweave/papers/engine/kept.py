"""Results of cells on disk, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.files import replacing

from .. import __version__
from ..plan import Cell


@dataclass(frozen=True)
class Outcome:
    """What a cell gave.

    Parameters
    ----------
    value : object
        What it returned; None if it failed.
    seconds : float
        How long it took.
    error : str
        Why it failed, or nothing.
    """

    value: Any
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class KeptCells:
    """A folder with one JSON file a cell, named by what the cell computes.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    def path(self, table: str, cell: Cell) -> Path:
        """Return the file of a cell: the same for the same function, arguments and version.

        Tables that need the same figure share it.
        """
        function = f"{cell.compute.__module__}.{cell.compute.__qualname__}"
        what = [__version__, function, dict(cell.arguments)]
        try:
            text = json.dumps(what, sort_keys=True)
        except TypeError as error:
            raise CommandError(f"the cell {cell.key!r} of {table} is broken: {error}") from error
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        return self.folder / f"{cell.compute.__name__}-{name}.json"

    def get(self, table: str, cell: Cell) -> Outcome | None:
        """Return the result that is kept, or None; a damaged file counts as none."""
        try:
            found = json.loads(self.path(table, cell).read_text(encoding="utf-8"))
            return Outcome(found["value"], float(found["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, table: str, cell: Cell, outcome: Outcome) -> None:
        """Keep the result of a cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"key": cell.key, "value": outcome.value, "seconds": outcome.seconds}
        with replacing(self.path(table, cell)) as stream:
            stream.write(json.dumps(kept).encode())
