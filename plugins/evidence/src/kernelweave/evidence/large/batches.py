"""Tables larger than memory, read in batches as often as a fit needs them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.kernels_core.checks import LARGEST

from ..columns import ColumnEncoder
from ..rows import FloatArray, Rows
from .plan import BLOCK, Blocks


class Batch(NamedTuple):
    """Some rows of a table and their targets.

    Attributes
    ----------
    X : pandas DataFrame of shape (n, n_columns)
    y : array-like of shape (n,)
    """

    X: Any
    y: Any


Batches = Callable[[], Iterator[Batch]]
# beside the columns of a table: no name that a user would give
_TARGET = "\0target"


def file_batches(path: str | Path, target: str, *, size: int = BLOCK) -> Batches:
    r"""Return a function that begins to read a file anew, in batches.

    Parameters
    ----------
    path : str or Path
        A parquet file, by pyarrow, or a CSV file with a header.
    target : str
        The column to predict; the others are the table.
    size : int
        Rows of a batch at most.

    Raises
    ------
    ValueError
        If the file is of another kind, or has no such column.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kernelweave.evidence.large.batches import file_batches
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("size,price\n1,10\n2,20\n3,30\n")
    ...     [batch.y.tolist() for batch in file_batches(path, "price", size=2)()]
    [[10, 20], [30]]
    """
    path = Path(path)
    readers = {".parquet": _parquet, ".csv": _csv}
    if path.suffix not in readers:
        raise ValueError(f"path must end in .parquet or .csv, got {path.name}")
    read = readers[path.suffix]

    def batches() -> Iterator[Batch]:
        for frame in read(path, size):
            if target not in frame:
                raise ValueError(
                    f"target must be a column of {path.name}, got {target!r}; it has "
                    f"{', '.join(map(str, frame.columns))}"
                )
            yield Batch(frame.drop(columns=target), frame[target].to_numpy())

    return batches


def _parquet(path: Path, size: int) -> Iterator[pd.DataFrame]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow: pip install pyarrow, or save it as CSV"
        ) from error
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=size):
            yield batch.to_pandas()


def _csv(path: Path, size: int) -> Iterator[pd.DataFrame]:
    with pd.read_csv(path, chunksize=size) as reader:
        yield from reader


def drawn_table(batches: Batches, size: int, random_state: np.random.RandomState) -> Batch:
    """Return rows of all batches, each as likely as any other, for what reads a whole table.

    Parameters
    ----------
    batches : callable
    size : int
        Rows at most.
    random_state : RandomState
    """
    drawn: pd.DataFrame | None = None
    keys = np.empty(0)
    for X, y in batches():
        own = random_state.random_sample(len(y))
        near = np.flatnonzero(own < keys.max()) if len(keys) == size else np.arange(len(y))
        part = pd.DataFrame(X).iloc[near].assign(**{_TARGET: np.asarray(y)[near]})
        drawn = part if drawn is None else pd.concat([drawn, part], ignore_index=True)
        keys = np.concatenate([keys, own[near]])
        kept = np.argsort(keys, kind="stable")[:size]
        drawn, keys = drawn.iloc[kept], keys[kept]
    if drawn is None:
        raise ValueError("the batches must hold at least one row, got none")
    return Batch(drawn.drop(columns=_TARGET), drawn[_TARGET].to_numpy())


def encoded_blocks(batches: Batches, encoder: ColumnEncoder) -> Blocks:
    """Return the batches as `learn_large` reads them: numbers, codes and targets.

    Parameters
    ----------
    batches : callable
        Their targets are numbers.
    encoder : ColumnEncoder
        Fitted. Words that it has not seen, and gaps, become what they are in a small table.
    """

    def blocks() -> Iterator[Rows]:
        n = 0
        for X, y in batches():
            numeric, codes = encoder.transform(X)
            yield Rows(numeric, codes, _numbers(y, n)[None])
            n += len(numeric)

    return blocks


def _numbers(y: Any, first: int) -> FloatArray:
    """Return finite targets; a message counts rows from the first of the whole table."""
    values = np.asarray(pd.to_numeric(pd.Series(y), errors="coerce"), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"y must hold finite numbers of at most {LARGEST:g}, got {pd.Series(y).iloc[row]} in "
            f"row {first + row}"
        )
    return values
