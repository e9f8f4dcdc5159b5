"""Tables larger than memory, read in batches as often as a fit needs them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import Labels, row_slices
from kernelweave.kernels_core.checks import integer
from kernelweave.kernels_core.exceptions import warn
from kernelweave.tables.frames import as_pandas, levels_of
from kernelweave.tables.table import hold_codes, without_a_name
from kernelweave.tables.text import Dialect, dialect_of, empty_row_of, may_hold_codes
from numpy.typing import NDArray

from ..censored.ends import refuse_in_parts

# Rows that are read and summed over at a time: with 2000 landmarks, 33 million kernel values.
BLOCK = 16_384
_SIZE = integer(1)
_Read = Callable[[], Iterator[Any]]
# bytes at the end of a CSV file that hold its last row
_TAIL = 2**20


class Batch(NamedTuple):
    """Some rows of a table, their targets and weights.

    Attributes
    ----------
    X : pandas DataFrame or ndarray of shape (n, n_columns)
    y : ndarray of shape (n,) or (n, n_outputs), or None
    weight : ndarray of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import Batch
    >>> Batch(np.array([[1.0], [2.0]]), np.array([3.0, 4.0])).take(np.array([1])).y
    array([4.])
    """

    X: Any
    y: Any
    weight: Any = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: NDArray[np.intp]) -> Batch:
        """Return some of the rows."""
        y = None if self.y is None else self.y[rows]
        weight = None if self.weight is None else self.weight[rows]
        X = (
            self.X[rows]
            if isinstance(self.X, np.ndarray)
            else self.X.iloc[rows].reset_index(drop=True)
        )
        return Batch(X, y, weight)

    def and_others(self, other: Batch) -> Batch:
        """Return these rows and, behind them, others of the same columns."""
        arrays = isinstance(self.X, np.ndarray)
        X = np.concatenate if arrays else partial(pd.concat, ignore_index=True)
        y = None if self.y is None else np.concatenate([self.y, other.y])
        weighted = self.weight is not None
        weight = np.concatenate([self.weight, other.weight]) if weighted else None
        return Batch(X([self.X, other.X]), y, weight)


class Batches:
    r"""A table of any length, read in batches, for `fit`.

    A fit holds only a few batches and some ten thousand sampled rows in memory. To predict, loop
    over the batches: ``[model.predict(batch.X) for batch in Batches(path, "price")]``.

    Parameters
    ----------
    source : path, dataset, lazy frame, pair of arrays, or callable
        The path of a CSV file with a header, of a parquet file or of a folder of them; a pyarrow
        dataset; a polars LazyFrame; a table; a pair ``(X, y)`` of arrays or memory maps; or a
        function without arguments that returns a new iterator over tables or pairs ``(X, y)``,
        always in the same order.
    target : str or list of str, optional
        The columns to predict. None if the source yields pairs, or for prediction.
    weight : str, optional
        The column of weights.
    size : int, default=16384
        Maximum number of rows of a batch, if the source has no batches of its own.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kernelweave.evidence import Batches
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("size,price\n1,10\n2,20\n3,30\n")
    ...     [batch.y.tolist() for batch in Batches(path, "price", size=2)]
    [[10, 20], [30]]
    """

    def __init__(
        self,
        source: object,
        target: str | Sequence[str] | None = None,
        *,
        weight: str | None = None,
        size: int = BLOCK,
    ) -> None:
        _SIZE.check("size", size)
        self.source, self.target, self.weight, self.size = source, target, weight, size
        self._read: Callable[[], Iterator[Any]] = _reader_of(source, size)

    def __repr__(self) -> str:
        shown = self.source if isinstance(self.source, str | Path) else type(self.source).__name__
        return f"Batches({shown!r}, target={self.target!r})"

    def __iter__(self) -> Iterator[Batch]:
        for part in self._read():
            yield self._batch(part)

    @property
    def levels(self) -> list[Any] | None:
        """The classes of an ordered categorical target, lowest first; None of other targets."""
        part: Any = next(self._read(), ())
        if isinstance(part, tuple):
            return levels_of(part[1]) if len(part) > 1 else None
        return levels_of(part[self.target]) if isinstance(self.target, str) else None

    def _batch(self, part: Any) -> Batch:
        if isinstance(part, tuple):
            if self.target is not None or self.weight is not None:
                raise ValueError(
                    f"target and weight must be None where the source gives pairs (X, y), got "
                    f"target={self.target!r}, weight={self.weight!r}"
                )
            if len(part) not in (2, 3):
                raise ValueError(
                    f"source must give tables, pairs (X, y) or triples (X, y, weight), got a tuple "
                    f"of {len(part)}"
                )
            X, y, *others = part
            if len(X) != len(y):
                raise ValueError(f"a batch has {len(X)} rows and {len(y)} targets")
            if np.ndim(y) == 2:
                refuse_in_parts(y)
            return Batch(X, np.asarray(y), *map(np.asarray, others))
        if not hasattr(part, "columns"):
            raise TypeError(
                "source must give tables, pairs (X, y) or triples (X, y, weight), got "
                f"{type(part).__name__}"
            )
        several = isinstance(self.target, list | tuple)
        names = [] if self.target is None else list(self.target) if several else [self.target]
        taken = names if self.weight is None else [*names, self.weight]
        for name in taken:
            if name not in part:
                raise ValueError(
                    f"target and weight must be columns of the table, got {name!r}; it has "
                    f"{', '.join(map(str, part.columns))}"
                )
        if several:
            refuse_in_parts(part[names])
        y = part[names if several else names[0]].to_numpy() if names else None
        weight = None if self.weight is None else part[self.weight].to_numpy()
        return Batch(part.drop(columns=taken), y, weight)


def _reader_of(source: object, size: int) -> _Read:
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
    if nw.dependencies.is_into_dataframe(source):
        return partial(_frame, source, size)
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "to_batches"):
        return partial(_dataset, source, size)
    if isinstance(source, tuple) and all(hasattr(part, "__getitem__") for part in source):
        return partial(_arrays, source, size)
    if callable(source):
        return partial(_parts, source)
    hint = "; a fit reads several times: give a function that begins anew"
    raise TypeError(
        "source must be a path, a pyarrow dataset, a polars LazyFrame, a table, a pair of arrays "
        f"or a function, got {type(source).__name__}{hint if hasattr(source, '__iter__') else ''}"
    )


def _file(path: Path, size: int) -> _Read:
    if path.suffix == ".csv":
        return _Csv(path, size)
    if path.suffix == ".parquet" or path.is_dir():
        return partial(_parquet, path, size)
    raise ValueError(f"path must end in .parquet or .csv or be a folder, got {path.name}")


def _parquet(path: Path, size: int) -> Iterator[pd.DataFrame]:
    from pyarrow import dataset

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
    for rows in row_slices(len(whole), size):
        yield whole[rows].to_pandas()


def _arrays(parts: tuple[Labels, ...], size: int) -> Iterator[tuple[Labels, ...]]:
    X, *others = parts
    for rows in row_slices(len(X), size):
        yield np.asarray(X[rows]), *(part[rows] for part in others)


def _parts(source: Callable[[], Iterable[object]]) -> Iterator[object]:
    for part in source():
        if isinstance(part, tuple):
            X, *others = part
            yield (_as_pandas(X), *others)
        else:
            yield _as_pandas(part)


def _as_pandas(part: object) -> Any:
    """Return a table of any library as pandas; arrays stay what they are."""
    frame = as_pandas(part)
    return np.asarray(part) if frame is None else frame


class _Csv:
    """A CSV file; a column that holds words anywhere is read as words everywhere."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.words: dict[str, type[str]] | None = None
        self.has_empty_rows, self.unused = False, set[str]()

    def __call__(self) -> Iterator[pd.DataFrame]:
        if self.words is None:
            self.dialect = dialect_of(self.path)
            _refuse_half_a_row(self.path, self.dialect)
            self.words = self._words()
        used = [name for name in self.dialect.names if name not in self.unused]
        for part in self._parts(dtype=self.words or None, usecols=used):
            # what a comma in 1,234 is, as `read_table` says it
            part.attrs["comma"] = "thousands" if self.dialect.separator == "," else "decimal"
            yield part

    def _parts(self, **options: Any) -> Iterator[pd.DataFrame]:
        """Yield the rows in parts, without those of separators alone, which spreadsheets write."""
        with pd.read_csv(
            self.path,
            chunksize=self.size,
            sep=self.dialect.separator,
            encoding=self.dialect.encoding,
            skiprows=self.dialect.n_above,
            names=self.dialect.names,
            header=0,
            index_col=False,
            skipinitialspace=True,
            **options,
        ) as parts:
            for part in parts:
                # where no line is empty, a row of missing values is one of words such as NA
                rows = part.dropna(how="all") if self.has_empty_rows else part
                if len(rows):
                    yield rows

    def _words(self) -> dict[str, type[str]]:
        """Return the columns of words: in one part only, or codes of numbers such as 01067."""
        led, self.has_empty_rows = self._look_at_lines()
        kinds: dict[str, set[str]] = {}
        for part in self._parts():
            for name in map(str, part):
                kinds.setdefault(name, set()).update(_kind(part[name]))
        words = {name for name, of_column in kinds.items() if len(of_column) > 1}
        numbers = [name for name, of_column in kinds.items() if of_column == {"numbers"}]
        if numbers and led:
            others = set[str]()
            for part in self._parts(usecols=numbers, dtype=str):
                words.update(name for name in numbers if hold_codes(part[name]))
                others.update(name for name in numbers if not _are_digits(part[name]))
            words -= others
        if self.dialect.has_index:
            is_left_out = "index" in numbers and "index" not in words
            warn(without_a_name(self.path.name, is_left_out=is_left_out))
            self.unused = {"index"} if is_left_out else set()
        return dict.fromkeys(words, str)

    def _look_at_lines(self) -> tuple[bool, bool]:
        """Return whether a zero leads a cell, and whether a line is of separators alone."""
        led, empty, separator = False, False, self.dialect.separator
        with self.path.open(encoding=self.dialect.encoding) as file:
            while lines := "".join(file.readlines(_TAIL)):
                led = led or may_hold_codes(lines, separator)
                empty = empty or empty_row_of(lines, separator) is not None
        return led, empty


def _are_digits(column: pd.Series) -> bool:
    return bool(column.dropna().str.fullmatch("[0-9]+").all())


def _kind(column: pd.Series) -> set[str]:
    """Return what a part of a column holds: nothing is no kind."""
    if column.isna().all():
        return set()
    if column.dtype.kind in "iuf":
        return {"numbers"}
    return {pd.api.types.infer_dtype(column, skipna=True)}


def _refuse_half_a_row(path: Path, dialect: Dialect) -> None:
    """Raise where the last row has fewer fields than the header: pandas would fill it up."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size // 2 * 2 - _TAIL))
        lines = file.read().decode(dialect.encoding, errors="replace").splitlines()
    if len(lines) < 2 or lines[-1].count('"') % 2:
        return
    line = [lines[-1] or '""']
    last = len(next(csv.reader(line, delimiter=dialect.separator, skipinitialspace=True)))
    width = len(dialect.names)
    if 1 < last < width or (last == 1 < width and lines[-1]):
        raise ValueError(
            f"{path.name} ends in the middle of a row: its last line has {last} of {width} fields; "
            "write the file again, or delete that line"
        )
