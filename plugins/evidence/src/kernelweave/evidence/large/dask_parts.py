"""Tables of dask: each part is read where it is, and only sums and drawn rows travel."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.exceptions import ExtrapolationWarning
from kernelweave.tables.frames import levels_of
from numpy.typing import ArrayLike

from ..censored.ends import refuse_in_parts
from ..terms import Stopped
from .batches import Batch
from .source import HEAR, Encode, P, Read

F = TypeVar("F", bound=Callable[..., object])
# what dask has not worked out yet
Delayed: TypeAlias = Any
# results that one task adds up
_FAN = 4


def is_dask(X: object) -> bool:
    """Return whether a table is a dask array or data frame."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "to_delayed")


@dataclass
class DaskParts:
    """The parts of a table, of its targets and weights, side by side.

    `parts`: for each part its rows, targets and weights, delayed; None where there are no weights;
    `firsts`, `kept`: where each part begins, among all rows and among those of positive weight;
    `encode`: makes rows of a part.
    """

    parts: list[tuple[Delayed, ...]]
    firsts: Index
    kept: Index
    encode: Encode | None = None

    @classmethod
    def of(cls, X: object, y: object, weight: object = None) -> DaskParts:
        """Pair the parts of dask arrays or data frames, and count their rows.

        Raises TypeError if the targets or weights are no dask array or series; ValueError if they
        are cut into other parts.
        """
        given = {"X": X, "y": y, **({} if weight is None else {"sample_weight": weight})}
        columns = [delayed_parts(each, name) for name, each in given.items()]
        if len(set(map(len, columns))) > 1:
            # of a Parquet file, dask reads small parts together where few columns are asked for
            columns = [delayed_parts(each, "", optimize_graph=False) for each in given.values()]
        n_parts = len(columns[0])
        for name, column in zip(given, columns, strict=True):
            if len(column) != n_parts:
                raise ValueError(
                    f"X has {n_parts} parts and {name} has {len(column)}: give both the "
                    "same partitions, for instance by repartition or rechunk"
                )
        without = [] if len(columns) > 2 else [[None] * n_parts]
        parts = list(zip(*columns, *without, strict=True))
        counts = np.array(compute(delayed(list)([delayed(_count)(*part) for part in parts])))
        begins = np.vstack([np.zeros((1, 2), dtype=np.intp), np.cumsum(counts, axis=0)])
        return cls(parts, begins[:, 0], begins[:, 1])

    def encoded(self, encode: Encode, n_jobs: int | None = None) -> DaskParts:
        """Return the rows that the parts become where they are."""
        return replace(self, encode=encode)

    @property
    def _begins(self) -> Index:
        """Where each part begins among the rows that count, and how many there are."""
        return self.firsts if self.encode is None else self.kept

    @property
    def n_rows(self) -> int:
        """All rows, or those of positive weight."""
        return int(self._begins[-1])

    def fold(
        self, read: Read[P], *, partly: bool = False, report: Callable[[int], None] | None = None
    ) -> tuple[P | None, bool]:
        """Return the sum over all parts, and True, as no part is left out; or raise Stopped."""
        shared = delayed(self.encode), delayed(read), partly
        places = zip(self.parts, self.firsts, self._begins, strict=False)
        tasks = [delayed(_read)(*part, int(n), int(begin), *shared) for part, n, begin in places]
        total: P | None = compute(_tree(tasks), stoppable=not partly)
        if report is not None:
            report(self.n_rows)
        return total, True


def delayed(each: object) -> Delayed:
    """Return a function or value of dask's graphs."""
    return importlib.import_module("dask").delayed(each)


def delayed_parts(each: Any, name: str, *, optimize_graph: bool = True) -> list[Delayed]:
    """Return the parts of a dask array, cut along its rows only, or of a data frame.

    `name`: for errors; `optimize_graph`: whether dask may join parts.
    """
    if not is_dask(each):
        raise TypeError(
            f"{name} must be a dask array or data frame where X is one, got "
            f"{type(each).__name__}: dask.array.from_array makes one"
        )
    if getattr(each, "ndim", 1) == 2 and hasattr(each, "rechunk"):
        each = each.rechunk({1: -1})
    return list(np.ravel(np.array(each.to_delayed(optimize_graph=optimize_graph), dtype=object)))


def levels_of_parts(y: Any) -> list[Any] | None:
    """Return the classes of ordered categories of dask, lowest first; ``None`` of others.

    Raises ValueError if the parts have different categories, and no part has all of them in an
    order that agrees with the others.
    """
    meta = getattr(y, "_meta", y)
    levels = levels_of(meta)
    if levels is None or (hasattr(meta, "cat") and y.cat.known):
        return levels
    # of a Parquet file dask knows no categories, and where it joins parts their order is lost
    parts = delayed_parts(y, "y", optimize_graph=False)
    found = compute(delayed(list)([delayed(_levels)(part) for part in parts]))
    most: list[Any] = max((each for each in found if each is not None), key=len, default=[])
    for each in found:
        if each is None or [level for level in most if level in each] != each:
            raise ValueError(
                f"the order of the classes of y is not known: a part has the categories {most}, "
                f"another {each or 'none with an order'}. Give levels, all classes, lowest first; "
                "or y.astype(object), whose classes have no order"
            )
    return most


def compute(task: Delayed, *, stoppable: bool = False) -> Any:
    """Return a result, by the client in force if there is one.

    `stoppable`: whether to give up where time is up. Raises Stopped where time is up; RuntimeError
    if a part ends the workers that read it.
    """
    distributed = sys.modules.get("distributed")
    client = _client(distributed)
    if client is None or distributed is None:
        return task.compute()
    future = client.compute(task)
    try:
        while not future.done():
            if stoppable and clock.expired():
                raise Stopped
            try:
                distributed.wait(future, timeout=HEAR)
            except TimeoutError:
                continue
        return future.result()
    except distributed.KilledWorker as error:
        raise RuntimeError(
            "the same part of the table ended several workers, as one out of memory does: cut X "
            "into smaller parts, or give the workers more memory"
        ) from error
    finally:
        future.cancel()


def _client(distributed: ModuleType | None) -> Any:
    try:
        return None if distributed is None else distributed.get_client()
    except ValueError:
        return None


def _tree(tasks: Sequence[Delayed]) -> Delayed:
    """Return the sum of results, neighbours first."""
    while len(tasks) > 1:
        tasks = [delayed(_add)(list(tasks[k : k + _FAN])) for k in range(0, len(tasks), _FAN)]
    return tasks[0]


def _add(parts: list[Any]) -> Any:
    """Return the sum of some results; dask may need each of them again."""
    first, *others = [each for each in parts if each is not None] or [None]
    total: Any = copy.deepcopy(first)
    for each in others:
        total.add(each)
    return total


def _levels(part: Any) -> list[Any] | None:
    """Return the ordered categories of a part, none of one without rows."""
    return levels_of(part) if len(part) else []


def _batch(X: Sized, y: ArrayLike, weight: ArrayLike | None) -> Batch:
    if np.ndim(y) == 2:
        refuse_in_parts(y)
    targets = np.asarray(y)
    if len(targets) != len(X):
        raise ValueError(
            f"a part of X has {len(X)} rows and that of y {len(targets)}: give both the same "
            "partitions"
        )
    return Batch(X, targets, None if weight is None else np.asarray(weight))


def _count(X: Sized, y: ArrayLike, weight: ArrayLike | None) -> tuple[int, int]:
    batch = _batch(X, y, weight)
    return len(batch), len(batch) if weight is None else int(np.sum(batch.weight > 0))


def _read(
    X: Sized, y: ArrayLike, weight: ArrayLike | None, first: int, own: int, encode: Encode | None,
    read: Read[P], partly: bool,
) -> P | None:  # fmt: skip
    if not len(X):
        return None
    batch = _batch(X, y, weight)
    rows = batch if encode is None else encode(batch, first, again=not partly)
    with one_blas_thread():
        return read(rows, own, lambda: False) if len(rows) else None


def by_parts(method: F) -> F:
    """Let a method of an estimator take dask tables: its answers are dask arrays.

    `method`: takes the estimator, rows, and settings.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def answer(self: object, X: Any, *arguments: object, **settings: object) -> object:
        if not is_dask(X):
            return method(self, X, *arguments, **settings)
        bound = signature.bind(self, X, *arguments, **settings).arguments
        _, _, *others = bound.items()
        return predicted_parts(self, method.__name__, X, **dict(others))

    return answer  # type: ignore[return-value]


def predicted_parts(model: object, method: str, X: Any, **settings: object) -> object:
    """Return a prediction of every row of a dask table as dask arrays, not yet worked out.

    `method`: its name; `**settings`: of the method.
    """
    array = importlib.import_module("dask.array")
    framed = hasattr(X, "_meta_nonempty")
    with warnings.catch_warnings():
        # the row is made up
        warnings.simplefilter("ignore", ExtrapolationWarning)
        like = getattr(model, method)(
            X._meta_nonempty if framed else np.ones((1, X.shape[1]), X.dtype), **settings
        )
    several = isinstance(like, tuple)
    shapes = [(each.shape[1:], each.dtype) for each in (like if several else (like,))]
    parts = delayed_parts(X, "X")
    lengths = [np.nan] * len(parts) if framed else X.chunks[0]
    shared = delayed(model)
    tasks = [delayed(_predict)(shared, method, part, shapes, settings) for part in parts]
    out = tuple(
        array.concatenate(
            [
                array.from_delayed(task[k], (length, *shape), dtype=dtype)
                for task, length in zip(tasks, lengths, strict=True)
            ],
            allow_unknown_chunksizes=True,
        )
        for k, (shape, dtype) in enumerate(shapes)
    )
    return out if several else out[0]


def _predict(
    model: object,
    method: str,
    part: Sized,
    shapes: list[tuple[tuple[int, ...], np.dtype]],
    settings: dict[str, object],
) -> tuple[FloatArray | Labels, ...]:
    if not len(part):
        return tuple(np.empty((0, *shape), dtype) for shape, dtype in shapes)
    out = getattr(model, method)(part, **settings)
    return out if isinstance(out, tuple) else (out,)
