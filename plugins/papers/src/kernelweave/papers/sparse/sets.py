"""The ten data sets of Table 1: the authors' settings, their parts, and what the paper prints."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Rows
from numpy.typing import NDArray

from ..data import load, notes, printed
from ..measuring import settled
from ..plan import PAPER, Cell, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_COUNTED = ("n", "train", "test", "positive (%)")
_NOTES = notes("sparse.sets")
_MASK = (1 << 64) - 1


def xoshiro(seed: int) -> Iterator[int]:
    """Yield 64-bit integers; the state is the SHA-256 digest of the seed as a 32-bit word.

    `seed`: below 2³².
    """
    a, b, c, d = struct.unpack("<4Q", hashlib.sha256(struct.pack("<I", seed)).digest())
    while True:
        yield (_rotated((a + d) & _MASK, 23) + a) & _MASK
        shifted = (b << 17) & _MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = _rotated(d, 45)


def _rotated(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


def shuffled(n: int, seed: int = 123) -> NDArray[np.intp]:
    """Return 0 … n − 1 in the order of Julia's ``shuffle(1:n)`` after ``seed!``, shape (n,).

    Examples
    --------
    >>> from kernelweave.papers.sparse.sets import shuffled
    >>> shuffled(10) + 1
    array([ 8,  9,  3,  4,  1,  6,  5,  7,  2, 10])
    """
    draws = xoshiro(seed)
    order = np.arange(n)
    mask = (1 << max(n - 1, 1).bit_length()) - 1
    for i in range(n, 1, -1):
        if mask >> 1 == i:
            mask >>= 1
        j = next((x >> 12) & mask for x in draws if (x >> 12) & mask < i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def split_of(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training rows, the first ⌊0.8 n⌋, and the test rows."""
    order = shuffled(n)
    n_train = int(0.8 * n)
    return order[:n_train], order[n_train:]


class SetSettings(NamedTuple):
    """A set's file, what the authors' cross-validation chose with ten kernels, their features."""

    file: str
    C: float
    lam: float
    k0: int
    columns: list[int] | None = None


SETS = {
    "iris": SetSettings("iris.csv", 10.0, 0.01, 1, [0, 1]),
    "wine": SetSettings("wine.csv", 5.0, 10.0, 2),
    "breastcancer": SetSettings("breastcancer_wdbc.csv", 5.0, 0.01, 2),
    "ionosphere": SetSettings("ionosphere.csv", 10.0, 100.0, 2),
    "spambase": SetSettings("spambase.csv.gz", 5.0, 0.01, 5),
    "banknote": SetSettings("banknote.csv", 5.0, 0.01, 1),
    "heart": SetSettings("heart_cleveland.csv", 100.0, 0.1, 4),
    "haberman": SetSettings("haberman.csv", 5.0, 0.01, 1),
    "mammographic": SetSettings("mammographic.csv", 5.0, 0.01, 3),
    "parkinsons": SetSettings("parkinsons.csv", 100.0, 0.1, 4),
}


class Split(NamedTuple):
    """Standardised features and ±1 labels of the training and the test part."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def read(path: str, columns: list[int] | None, limit: int | None, seed: int = 0) -> Split:
    """Return the parts of a file as the authors split it, ``limit`` training samples at most.

    Another ``seed`` than 0 shuffles the samples once more.
    """
    X, y = load(path, columns)
    train, test = split_of(len(X))
    if seed:
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = order[train], order[test]
    train = train[:limit]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0, ddof=1)
    X = (X - mean) / np.where(spread > 0.0, spread, 1e-8)
    return Split(X[train], y[train], X[test], y[test])


def size_of(request: Request, name: str) -> int:
    """Return how many training samples a cell has."""
    n = int(float(str(theirs(1)["train"][name])))
    return min(n, request.sample_limit or n)


def set_cell(
    request: Request, name: str, what: str, compute: Callable[..., Any], effort: float, **more: Any
) -> Cell:
    """Return a cell of a set at the authors' settings; ``effort`` seconds for 1000 samples."""
    settings, limit = SETS[name]._asdict(), request.sample_limit
    path = request.data_file(settings.pop("file"))
    arguments = {"path": path, "limit": limit, **settings, **more}
    n = size_of(request, name)
    n = min(n, arguments["limit"] or n)
    return Cell(
        key=f"{name}/{what}",
        compute=compute,
        arguments=arguments,
        seconds=max(0.5, effort * (n / 1000.0) ** 2),
        is_reduced=limit is not None,
    )


def report(
    model: BaseEstimator, X: Rows, y: FloatArray, X_test: Rows, y_test: FloatArray
) -> dict[str, float]:
    """Fit and return the accuracy in per cent, kernels that count, seconds, objective and gap."""
    _, seconds = settled(lambda: model.fit(X, y))
    return {
        "accuracy": 100.0 * float(np.mean(model.predict(X_test) == y_test)),
        "n_kernels": int((np.abs(model.weights_) > 1e-3).sum()),
        "seconds": seconds,
        "objective": float(model.result_.value),
        "gap": float(model.result_.gap),
    }


def ours(results: Results, what: str, *fields: str) -> Callable[[str], Any]:
    """Return the function from a set to a field of its result, which may not be there."""

    def find(name: str) -> Any:
        value = results.get(f"{name}/{what}")
        for field in fields:
            value = None if value is None else value[field]
        return value

    return find


@cache
def theirs(table: int) -> dict[str, dict[str, Value]]:
    """Return what a table of the paper prints, by column and set; a set may have no figure."""
    return {row["column"]: row for row in printed("sparse") if row["table"] == table}


def compared_sheet(
    title: str,
    figures: Mapping[str, Callable[[str], Value]],
    table: int,
    columns: Sequence[str],
    notes: Sequence[str],
) -> Sheet:
    """Return a row a set: our columns, each a function of the set's name, and the paper's."""
    rows = [
        [
            name,
            *(value(name) for value in figures.values()),
            *(theirs(table)[c].get(name) for c in columns),
        ]
        for name in SETS
    ]
    return Sheet(title, ("data", *figures, *(f"{c} {PAPER}" for c in columns)), rows, notes)


def count(path: str, columns: list[int] | None) -> dict[str, float]:
    """Count the samples, features and positive labels of a file."""
    X, y = load(path, columns)
    train, test = split_of(len(y))
    share = 100.0 * float(np.mean(y > 0))
    figures = len(y), len(train), len(test), share, X.shape[1]
    return dict(zip((*_COUNTED, "columns"), figures, strict=True))


def table(request: Request) -> Plan:
    """Plan Table 1, the ten tasks; nothing is fitted."""
    cells = [
        cell(f"{name}/counts", 0.1, False, count, request.data_file(about.file), about.columns)
        for name, about in SETS.items()
    ]

    def present(results: Results) -> list[Sheet]:
        figures = {field: ours(results, "counts", field) for field in (*_COUNTED, "columns")}
        return [compared_sheet("The ten tasks", figures, 1, _COUNTED, _NOTES)]

    return Plan(cells, present)
