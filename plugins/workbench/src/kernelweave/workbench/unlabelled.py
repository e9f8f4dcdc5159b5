"""Rows of a table whose target is missing: what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelweave.tables import Table


def without_target(
    known: Table, unknown: Table, column: str, path: Path | None = None, *, hint: str = ""
) -> str:
    """Return what to say of rows whose target is missing.

    `path`: where they are predicted; `hint`: ends the sentence where they are not.
    """
    n_unknown = len(unknown.frame)
    have, are = ("has", "is") if n_unknown == 1 else ("have", "are")
    then = f" and predicted into {path}" if path else ""
    return (
        f"{n_unknown} of {len(known.frame) + n_unknown} rows of {known.source} {have} no "
        f"{column!r} (the first is {unknown.where(0)}) and {are} left out{then or hint}"
    )
