"""Parquet, where pyarrow is installed."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pandas as pd

from ..errors import CommandError, one_line
from .table import Table


def read_parquet(path: Path) -> Table:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Table
        Rows are counted from 1 in messages.

    Raises
    ------
    CommandError
        If pyarrow is missing, or the file is damaged, empty or has a column name twice.
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise CommandError(
            f"reading {path} needs pyarrow: pip install pyarrow, or save it as CSV"
        ) from error
    try:
        names = parquet.read_schema(path).names
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise CommandError(f"{path} has two columns named {twice[0]!r}: rename one")
        frame = pd.read_parquet(path, engine="pyarrow")
    except (ValueError, OSError) as error:
        raise CommandError(f"{path} is not a sound Parquet file: {one_line(error)}") from error
    frame.columns = pd.Index([str(name) for name in frame.columns])
    if frame.empty:
        raise CommandError(f"{path} has no rows or no columns: there is nothing to learn from")
    return Table(str(path), frame.reset_index(drop=True))
