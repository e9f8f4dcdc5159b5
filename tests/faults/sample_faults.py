"""The faults of the samples: values, shapes, degenerate content, containers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from expectations import SAME, WORKS, Case, Faults, either, error
from kind_faults import KINDS
from sound_cases import N

SAMPLES = Faults(KINDS)
add = SAMPLES.add
# values in X and y


@add("values", error("NaN"))
def _(case: Case) -> None:
    """a NaN in X."""
    case.X[3, 1] = np.nan


@add("values", error("infinity|not finite"))
def _(case: Case) -> None:
    """an infinity in X."""
    case.X[3, 1] = np.inf


@add("values", error("NaN"), "y")
def _(case: Case) -> None:
    """a NaN in y."""
    case.y = case.y.astype(float)
    case.y[2] = np.nan


@add("values", error("infinity|[Uu]nknown label type|continuous"), "y")
def _(case: Case) -> None:
    """an infinity in y."""
    case.y = case.y.astype(float)
    case.y[2] = -np.inf


@add("values", error("NaN|continuous|[Uu]nknown label"), "y")
def _(case: Case) -> None:
    """None in y."""
    case.y = case.y.astype(object)
    case.y[2] = None


@add("values", error("not both a NaN|NaN|could not|float", "ValueError", "TypeError"))
def _(case: Case) -> None:
    """None in X."""
    case.X = case.X.astype(object)
    case.X[3, 1] = None


@add("values", either("overflow|too large|large|finite|scale|range"))
def _(case: Case) -> None:
    """X times 1e200."""
    case.X, case.X_new = case.X * 1e200, case.X_new * 1e200


@add("values", either("underflow|too small|small|zero|scale|range|constant"))
def _(case: Case) -> None:
    """X times 1e-200."""
    case.X, case.X_new = case.X * 1e-200, case.X_new * 1e-200


@add("values", either("overflow|too large|large|finite|scale|range"))
def _(case: Case) -> None:
    """X times 1e8."""
    case.X, case.X_new = case.X * 1e8, case.X_new * 1e8


@add("values", either("overflow|too large|large|finite|scale|range"))
def _(case: Case) -> None:
    """one outlier of 1e200 in X."""
    case.X[0, 0] = 1e200


@add("values", either("overflow|too large|large|finite|scale|range"), "y", task="regression")
def _(case: Case) -> None:
    """y times 1e200."""
    case.y = case.y * 1e200


@add("values", either("underflow|too small|small|scale|range"), "y", task="regression")
def _(case: Case) -> None:
    """y times 1e-200."""
    case.y = case.y * 1e-200


# shapes and kinds of X and y


@add("shapes", error("0 sample|[Ee]xpected 2D|minimum of"))
def _(case: Case) -> None:
    """no sample."""
    case.X, case.y = case.X[:0], case.y[:0]


@add("shapes", error(r"0 feature"))
def _(case: Case) -> None:
    """no feature."""
    case.X = case.X[:, :0]


@add("shapes", error("class"), "y", task="classification")
def _(case: Case) -> None:
    """one sample, classified."""
    case.X, case.y = case.X[:1], case.y[:1]


@add("shapes", either("sample"), "y", task="regression")
def _(case: Case) -> None:
    """one sample, regressed."""
    case.X, case.y = case.X[:1], case.y[:1]


@add("shapes", error("class"), "y", task="classification")
def _(case: Case) -> None:
    """one class."""
    case.y = np.ones(N, dtype=int)


@add("shapes", error("continuous|[Uu]nknown label type"), "y", task="classification")
def _(case: Case) -> None:
    """real numbers as labels."""
    case.y = np.linspace(0.1, 0.9, N)


@add("shapes", either("n_folds|folds|members|sample", "ValueError"), "y", task="classification")
def _(case: Case) -> None:
    """two samples, fewer than there are folds."""
    at = [int(np.argmax(case.y == 1)), int(np.argmax(case.y == -1))]
    case.X, case.y = case.X[at], case.y[at]


@add("shapes", either("n_folds|folds|n_splits|sample"), "y", task="regression")
def _(case: Case) -> None:
    """two samples, regressed."""
    case.X, case.y = case.X[:2], case.y[:2]


@add("shapes", WORKS)
def _(case: Case) -> None:
    """one feature."""
    case.X, case.X_new = case.X[:, :1], case.X_new[:, :1]


@add("shapes", error("Expected 2D"))
def _(case: Case) -> None:
    """X with one dimension."""
    case.X = case.X[:, 0]


@add("shapes", error("dim 3"))
def _(case: Case) -> None:
    """X with three dimensions."""
    case.X = case.X[:, :, None]


@add("shapes", error("inconsistent numbers of samples"), "y")
def _(case: Case) -> None:
    """X and y of different lengths."""
    case.y = case.y[:-1]


@add("shapes", error("requires y|y cannot be None|should be a 1d array|NoneType"), "y")
def _(case: Case) -> None:
    """y = None."""
    case.y = None


@add("shapes", WORKS, "y")
def _(case: Case) -> None:
    """y as one column."""
    case.y = case.y[:, None]


@add(
    "shapes",
    error("1d array|multilabel|multiclass-multioutput|not supported"),
    "y",
    task="classification",
)
def _(case: Case) -> None:
    """two columns of labels."""
    case.y = np.column_stack([case.y, case.y])


@add("shapes", either("1d array|multioutput|multi-output|not supported"), "y", task="regression")
def _(case: Case) -> None:
    """two columns of targets."""
    case.y = np.column_stack([case.y, -case.y])


# content that degenerates


@add("content", either("constant"))
def _(case: Case) -> None:
    """a constant column."""
    case.X = np.column_stack([case.X[:, 0], np.full(N, 3.0)])
    case.X_new = case.X[:6]


@add("content", either("constant|distinct"))
def _(case: Case) -> None:
    """all columns constant."""
    case.X = np.full((N, 2), 3.0)
    case.X_new = case.X[:6]


@add("content", WORKS)
def _(case: Case) -> None:
    """a duplicate column."""
    case.X = np.column_stack([case.X[:, 0], case.X[:, 0]])
    case.X_new = case.X[:6]


@add("content", WORKS)
def _(case: Case) -> None:
    """collinear columns."""
    case.X = np.column_stack([case.X[:, 0], 2 * case.X[:, 0] - 1])
    case.X_new = case.X[:6]


@add("content", WORKS)
def _(case: Case) -> None:
    """more features than samples."""
    case.X = np.random.default_rng(0).random((N, 4))
    case.X, case.y = case.X[:3], case.y[[0, 1, 2]]
    if case.task == "classification":
        case.y = np.array([1, -1, 1])
    case.X_new = case.X


@add("content", WORKS, "y")
def _(case: Case) -> None:
    """every sample twice."""
    case.X, case.y = np.repeat(case.X, 2, axis=0), np.repeat(case.y, 2)


@add("content", WORKS, "y")
def _(case: Case) -> None:
    """every sample twice, with conflicting labels."""
    case.X, case.y = np.repeat(case.X, 2, axis=0), np.repeat(case.y, 2)
    case.y[1::2] *= -1


@add("content", WORKS, "y", task="regression")
def _(case: Case) -> None:
    """constant targets."""
    case.y = np.full(N, 2.5)


@add("content", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """one sample of the second class."""
    case.y = np.ones(N, dtype=int)
    case.y[4] = -1


@add("content", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """four classes."""
    case.y = np.arange(N) % 4


# layouts: the same numbers in another container


@add("layouts", WORKS)
def _(case: Case) -> None:
    """float32."""
    case.X = case.X.astype(np.float32)


@add("layouts", WORKS)
def _(case: Case) -> None:
    """integers."""
    case.X, case.X_new = (8 * case.X).astype(np.int32), (8 * case.X_new).astype(np.int32)


@add("layouts", SAME)
def _(case: Case) -> None:
    """Fortran order."""
    case.X = np.asfortranarray(case.X)


@add("layouts", SAME)
def _(case: Case) -> None:
    """every second row and column of a larger array."""
    large = np.full((2 * N, 4), np.nan)
    large[::2, ::2] = case.X
    case.X = large[::2, ::2]


@add("layouts", SAME)
def _(case: Case) -> None:
    """negative strides."""
    case.X = case.X[::-1].copy()[::-1]


@add("layouts", SAME)
def _(case: Case) -> None:
    """read-only arrays."""
    case.X.setflags(write=False)
    case.y.setflags(write=False)


@add("layouts", SAME)
def _(case: Case) -> None:
    """bytes in the other order."""
    case.X = case.X.astype(case.X.dtype.newbyteorder())


@add("layouts", SAME)
def _(case: Case) -> None:
    """a memory-mapped file."""
    case.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    path = Path(case.scratch.name) / "X.npy"
    np.save(path, case.X)
    case.X = np.load(path, mmap_mode="r")


@add("layouts", SAME)
def _(case: Case) -> None:
    """lists."""
    case.X, case.y, case.X_new = case.X.tolist(), case.y.tolist(), case.X_new.tolist()


@add("layouts", SAME, "y")
def _(case: Case) -> None:
    """y as every second entry of a larger array."""
    large = np.zeros(2 * N, dtype=case.y.dtype)
    large[::2] = case.y
    case.y = large[::2]


@add("layouts", SAME)
def _(case: Case) -> None:
    """pandas."""
    import pandas as pd

    case.X = pd.DataFrame(case.X, columns=["a", "b"], index=np.arange(N)[::-1])
    case.y = pd.Series(case.y, index=np.arange(N) + 5)
    case.X_new = pd.DataFrame(case.X_new, columns=["a", "b"])


@add("layouts", SAME)
def _(case: Case) -> None:
    """polars."""
    import polars as pl

    case.X = pl.DataFrame(case.X, schema=["a", "b"])
    case.y = pl.Series(case.y)
    case.X_new = pl.DataFrame(case.X_new, schema=["a", "b"])
