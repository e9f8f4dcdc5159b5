"""Tables larger than memory, read in batches as often as a fit needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.checks import integer
from numpy.typing import NDArray

from .plan import BLOCK
from .readers import reader_of

_SIZE = integer(1)


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
        own = self.X[rows] if isinstance(self.X, np.ndarray) else self.X.iloc[rows]
        return Batch(own, y, weight)


class Batches:
    r"""A table of any length in batches: what `fit` takes in place of a table.

    No more than some batches and some ten thousand drawn rows are ever in memory. To predict, go
    through it: ``[model.predict(batch.X) for batch in Batches(path, "price")]``.

    Parameters
    ----------
    source : path, dataset, lazy frame, pair of arrays, or callable
        The path of a CSV file with a header, of a parquet file or of a folder of them; a pyarrow
        dataset; a polars LazyFrame; a table; a pair ``(X, y)`` of arrays or memory maps; or a
        function that begins to read anew whenever it is called, and gives tables or pairs
        ``(X, y)`` in the same order.
    target : str or list of str, optional
        The columns to predict; the others are the table. None where the source gives pairs, or
        where there is nothing to learn from.
    weight : str, optional
        The column of weights.
    size : int, default=16384
        Rows of a batch at most, where the source does not cut itself.

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
        self._read: Callable[[], Iterator[Any]] = reader_of(source, size)

    def __repr__(self) -> str:
        shown = self.source if isinstance(self.source, str | Path) else type(self.source).__name__
        return f"Batches({shown!r}, target={self.target!r})"

    def __iter__(self) -> Iterator[Batch]:
        for part in self._read():
            yield self._batch(part)

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
        y = part[names if several else names[0]].to_numpy() if names else None
        weight = None if self.weight is None else part[self.weight].to_numpy()
        return Batch(part.drop(columns=taken), y, weight)
