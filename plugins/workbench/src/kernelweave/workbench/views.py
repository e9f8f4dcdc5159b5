"""Views of a table: groups of columns that a file names, each with kernels of its own."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from kernelweave.kernels_core import KernelDictionary
from kernelweave.tables.errors import did_you_mean

from .errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

Views = dict[str, tuple[str, ...]]
_KERNELS = ("linear", "rbf")


@dataclass(frozen=True)
class EncodedFrom:
    """Finds in an encoded table what came of columns, as scikit-learn's selectors do."""

    columns: tuple[str, ...]

    def __call__(self, X: pd.DataFrame) -> list[str]:
        """Return the names of the encoded columns of a DataFrame."""
        return [name for name in X.columns if name.rpartition(".")[0] in self.columns]


def dictionary_of(views: Views) -> KernelDictionary:
    """Return a linear kernel and a Gaussian on each view of a table from `TableMatrix`."""
    columns = {name: EncodedFrom(tuple(group)) for name, group in views.items()}
    return KernelDictionary(list(_KERNELS), columns=columns)


def read_views(path: Path, columns: Sequence[str]) -> Views:
    """Read the views of a table, in the order of the file, columns in the order of the table.

    `path`: TOML or JSON, a list of columns for each name; ``*`` stands for any letters. Raises
    CommandError if the file is no such file, or a column is not there.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CommandError(f"--views must be a .toml or .json file, got {path}")
    try:
        given = reader(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"--views {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"--views {path}: {error}") from error
    if not isinstance(given, dict) or not given or not all(map(_is_group, given.values())):
        raise CommandError(
            f'--views {path} must give a list of columns for each name, as in body = ["height", '
            f'"weight"]'
        )
    return {name: _found(path, name, group, columns) for name, group in given.items()}


def _is_group(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _found(path: Path, view: str, group: list[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are meant; a name that is there is no pattern."""
    kept: set[str] = set()
    for each in group:
        hits = [each] if each in columns else [name for name in columns if fnmatchcase(name, each)]
        if not hits:
            hint = did_you_mean(each, columns, what="columns")
            raise CommandError(f"--views {path}: no column of {view} matches {each!r}; {hint}")
        kept.update(hits)
    return tuple(name for name in columns if name in kept)


_READERS: dict[str, Callable[[str], object]] = {".toml": tomllib.loads, ".json": json.loads}
