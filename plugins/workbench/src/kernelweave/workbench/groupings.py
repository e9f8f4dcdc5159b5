"""Several groups of a command, and effects that differ by them: which one is held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelweave.tables import Table
from kernelweave.tables.errors import did_you_mean

from .errors import CommandError


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
