"""What reads a table in parts: files, datasets, lazy frames, memory maps, functions."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import Labels
from kernelweave.tables.text import dialect_of

Read = Callable[[], Iterator[Any]]
# bytes at the end of a CSV file that hold its last row
_TAIL = 2**20


def reader_of(source: object, size: int) -> Read:
    """Return a function that begins to read a source anew, as pandas tables or pairs.

    `source`: see `Batches`; `size`: rows of a part at most, where the source does not cut itself.
    Raises ValueError if a file is of another kind; TypeError if the source is nothing that can be
    read twice.
    """
    import narwhals.stable.v2 as nw

    if isinstance(source, str | Path):
        return _file(Path(source), size)
    if nw.dependencies.is_polars_lazyframe(source):
        return partial(_lazy, source, size)
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "to_batches"):
        return partial(_dataset, source, size)
    if nw.dependencies.is_into_dataframe(source):
        return partial(_frame, source, size)
    if isinstance(source, tuple) and all(hasattr(part, "__getitem__") for part in source):
        return partial(_arrays, source, size)
    if callable(source):
        return partial(_parts, source)
    hint = "; a fit reads several times: give a function that begins anew"
    raise TypeError(
        "source must be a path, a pyarrow dataset, a polars LazyFrame, a table, a pair of arrays "
        f"or a function, got {type(source).__name__}{hint if hasattr(source, '__iter__') else ''}"
    )


def _file(path: Path, size: int) -> Read:
    if path.suffix == ".csv":
        return _Csv(path, size)
    if path.suffix == ".parquet" or path.is_dir():
        return partial(_parquet, path, size)
    raise ValueError(f"path must end in .parquet or .csv or be a folder, got {path.name}")


def _parquet(path: Path, size: int) -> Iterator[pd.DataFrame]:
    try:
        dataset = importlib.import_module("pyarrow.dataset")
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow: pip install pyarrow, or save it as CSV"
        ) from error
    try:
        yield from _dataset(dataset.dataset(path, format="parquet"), size)
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read as parquet: {error}") from error


def _dataset(dataset: Any, size: int) -> Iterator[pd.DataFrame]:
    for batch in dataset.to_batches(batch_size=size):
        if batch.num_rows:
            yield batch.to_pandas()


def _lazy(frame: Any, size: int) -> Iterator[pd.DataFrame]:
    for part in frame.collect_batches(chunk_size=size, maintain_order=True):
        if len(part):
            yield _as_pandas(part)


def _frame(frame: Any, size: int) -> Iterator[pd.DataFrame]:
    import narwhals.stable.v2 as nw

    whole = nw.from_native(frame, eager_only=True)
    for begin in range(0, len(whole), size):
        yield whole[begin : begin + size].to_pandas()


def _arrays(parts: tuple[Labels, ...], size: int) -> Iterator[tuple[Labels, ...]]:
    for begin in range(0, len(parts[0]), size):
        yield tuple(np.asarray(part[begin : begin + size]) for part in parts)


def _parts(source: Callable[[], Iterable[object]]) -> Iterator[object]:
    for part in source():
        if isinstance(part, tuple):
            X, *others = part
            yield (_as_pandas(X), *others)
        else:
            yield _as_pandas(part)


def _as_pandas(part: object) -> Any:
    """Return a table of any library as pandas; arrays stay what they are."""
    import narwhals.stable.v2 as nw

    if isinstance(part, pd.DataFrame | np.ndarray):
        return part
    if nw.dependencies.is_into_dataframe(part):
        return nw.from_native(part, eager_only=True).to_pandas()
    return np.asarray(part)


class _Csv:
    """A CSV file; a column that holds words anywhere is read as words everywhere."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.words: dict[str, type[str]] | None = None
        self.encoding, self.separator = "utf-8-sig", ","

    def __call__(self) -> Iterator[pd.DataFrame]:
        if self.words is None:
            self.encoding, self.separator = dialect_of(self.path)
            _refuse_half_a_row(self.path, self.encoding, self.separator)
            self.words = self._mixed()
        with self._open() as parts:
            for part in parts:
                # what a comma in 1,234 is, as `read_table` says it
                part.attrs["comma"] = "thousands" if self.separator == "," else "decimal"
                yield part

    def _open(self) -> Any:
        # pandas knows this keyword's type for names that are literal only
        types: Any = self.words or None
        return pd.read_csv(
            self.path,
            chunksize=self.size,
            dtype=types,
            sep=self.separator,
            encoding=self.encoding,
            skipinitialspace=True,
        )

    def _mixed(self) -> dict[str, type[str]]:
        """Return the columns that are numbers in one part and words in another."""
        kinds: dict[str, set[str]] = {}
        with self._open() as parts:
            for part in parts:
                for name in part:
                    kinds.setdefault(name, set()).update(_kind(part[name]))
        return {name: str for name, own in kinds.items() if len(own) > 1}


def _kind(column: pd.Series) -> set[str]:
    """Return what a part of a column holds: nothing is no kind."""
    if column.isna().all():
        return set()
    if column.dtype.kind in "iuf":
        return {"numbers"}
    return {pd.api.types.infer_dtype(column, skipna=True)}


def _refuse_half_a_row(path: Path, encoding: str, separator: str) -> None:
    """Raise where the last row has fewer fields than the header: pandas would fill it with gaps."""
    with path.open("rb") as file:
        header = file.read(_TAIL).decode(encoding, errors="replace").partition("\n")[0]
        file.seek(max(0, path.stat().st_size // 2 * 2 - _TAIL))
        lines = file.read().decode(encoding, errors="replace").splitlines()
    if len(lines) < 2 or lines[-1].count('"') % 2:
        return
    width, last = (
        len(next(csv.reader([line], delimiter=separator, skipinitialspace=True)))
        for line in (header, lines[-1] or '""')
    )
    if 1 < last < width or (last == 1 < width and lines[-1]):
        raise ValueError(
            f"{path.name} ends in the middle of a row: its last line has {last} of {width} fields; "
            "write the file again, or delete that line"
        )
