"""Results of cells on disk, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.files import replacing

from .. import __version__
from ..plan import Cell


@dataclass(frozen=True)
class CellOutcome:
    """What a cell gave and how long it took, or why it failed."""

    value: object
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class KeptCells:
    """A folder with one JSON file a cell, named by what the cell computes."""

    folder: Path

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell: the same for the same function, arguments and version.

        Tables that need the same figure share it.
        """
        function = f"{cell.compute.__module__}.{cell.compute.__qualname__}"
        try:
            text = json.dumps([__version__, function, dict(cell.arguments)], sort_keys=True)
        except TypeError as error:
            raise CommandError(f"the cell {cell.key!r} of {function} is broken: {error}") from error
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        return self.folder / f"{cell.compute.__name__}-{name}.json"

    def get(self, cell: Cell) -> CellOutcome | None:
        """Return the result that is kept, or None; a damaged file counts as none."""
        try:
            found = json.loads(self.path(cell).read_text(encoding="utf-8"))
            return CellOutcome(found["value"], float(found["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, cell: Cell, outcome: CellOutcome) -> None:
        """Keep the result of a cell, unless it failed."""
        if outcome.error:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"key": cell.key, "value": outcome.value, "seconds": outcome.seconds}
        with replacing(self.path(cell)) as stream:
            stream.write(json.dumps(kept).encode())
