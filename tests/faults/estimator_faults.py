"""The faults of the estimators: data, samples, weights, parameters, points to predict."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from expectations import SAME, WORKS, Case, Faults, either, error

FAULTS = Faults()
add = FAULTS.add
N = 20


def sound(task: str) -> Case:
    """Return a sound case: N points in the plane on a grid of eighths, overlapping classes.

    Eighths are exact in float32, so that a change of the type changes nothing else.
    """
    rng = np.random.default_rng(7)
    X = np.round(8 * rng.uniform(-1, 1, (N, 2))) / 8
    value = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(N)
    if task == "classification":
        y: Any = np.where(value > np.median(value), 1, -1)
    else:
        y = np.round(64 * value) / 64
    return Case(task, X, y, X[:6] + 0.0625)


# values in X and y


@add("values", error("NaN"))
def _(case: Case) -> None:
    """a NaN in X."""
    case.X[3, 1] = np.nan


@add("values", error("infinity"))
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


@add("kinds", error("could not convert"))
def _(case: Case) -> None:
    """words in X."""
    case.X = np.array([["a", "b"]] * N)


@add("kinds", error("could not convert"))
def _(case: Case) -> None:
    """objects in X, one of them a word."""
    case.X = case.X.astype(object)
    case.X[0, 0] = "a"


@add("kinds", SAME)
def _(case: Case) -> None:
    """objects in X, all of them numbers."""
    case.X = case.X.astype(object)


@add("kinds", error("could not convert"))
def _(case: Case) -> None:
    """a category of words in X."""
    import pandas as pd

    words = pd.Series(["a", "b"] * (N // 2), dtype="category")
    case.X = pd.DataFrame({"number": case.X[:, 0], "word": words})


@add("kinds", WORKS)
def _(case: Case) -> None:
    """a boolean X."""
    rng = np.random.default_rng(0)
    case.X = rng.random((N, 2)) < 0.5
    case.X[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    case.X_new = case.X[:6]


@add("kinds", error("[Ss]parse|dense", "TypeError", "ValueError"))
def _(case: Case) -> None:
    """a sparse X."""
    case.X = scipy.sparse.csr_matrix(case.X)


@add("kinds", error("[Ss]parse|dense", "TypeError", "ValueError"))
def _(case: Case) -> None:
    """a sparse array to predict."""
    case.X_new = scipy.sparse.csr_array(case.X_new)


@add("kinds", error("[Cc]omplex"))
def _(case: Case) -> None:
    """a complex X."""
    case.X = case.X + 1j


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """words as labels."""
    case.y = np.where(case.y == 1, "good", "bad")


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """boolean labels."""
    case.y = case.y == 1


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """labels as a category."""
    import pandas as pd

    case.y = pd.Series(np.where(case.y == 1, "good", "bad"), dtype="category")


@add("kinds", WORKS, "y", task="classification")
def _(case: Case) -> None:
    """labels as objects."""
    case.y = np.where(case.y == 1, "good", "bad").astype(object)


@add(
    "kinds",
    error("could not convert|Unknown label|unknown", "ValueError", "TypeError"),
    "y",
    task="regression",
)
def _(case: Case) -> None:
    """words as targets."""
    case.y = np.array(["a"] * N)


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


# weights


@add("weights", error("NaN"), "weight")
def _(case: Case) -> None:
    """a NaN among the weights."""
    case.weight = np.ones(N)
    case.weight[1] = np.nan


@add("weights", error("infinity"), "weight")
def _(case: Case) -> None:
    """an infinity among the weights."""
    case.weight = np.ones(N)
    case.weight[1] = np.inf


@add("weights", error("sample_weight"), "weight")
def _(case: Case) -> None:
    """a negative weight."""
    case.weight = np.ones(N)
    case.weight[1] = -1


@add("weights", error("weight"), "weight")
def _(case: Case) -> None:
    """all weights zero."""
    case.weight = np.zeros(N)


@add("weights", error("sample_weight"), "weight")
def _(case: Case) -> None:
    """too few weights."""
    case.weight = np.ones(N - 1)


@add("weights", error("1D|1d|scalar"), "weight")
def _(case: Case) -> None:
    """weights as a matrix."""
    case.weight = np.ones((N, 2))


@add("weights", error("could not convert"), "weight")
def _(case: Case) -> None:
    """words as weights."""
    case.weight = np.array(["a"] * N)


@add("weights", error("class"), "weight", task="classification")
def _(case: Case) -> None:
    """no weight on one class."""
    case.weight = (case.y == 1).astype(float)


@add("weights", WORKS, "weight")
def _(case: Case) -> None:
    """some weights zero."""
    case.weight = np.ones(N)
    case.weight[:3] = 0.0


@add("weights", SAME, "weight")
def _(case: Case) -> None:
    """weights of one."""
    case.weight = np.ones(N, dtype=np.int64)


@add("weights", either("overflow|large|weight|C "), "weight")
def _(case: Case) -> None:
    """one weight of 1e300."""
    case.weight = np.ones(N)
    case.weight[1] = 1e300


@add("weights", either("underflow|small|weight"), "weight")
def _(case: Case) -> None:
    """weights of 1e-300."""
    case.weight = np.full(N, 1e-300)


# parameters

FAULTS.values("C", error(r"\bC\b"), 0, -1.0, math.nan, math.inf)
FAULTS.values("C", error(r"\bC\b|float", "ValueError", "TypeError"), "much", None)
FAULTS.values("C", either(r"\bC\b|overflow|large"), 1e300)
FAULTS.values("C", either(r"\bC\b|underflow|small"), 1e-300)
FAULTS.values("lam", error("lam"), -1.0, math.nan, math.inf)
FAULTS.values("lam", error("lam", "ValueError", "TypeError"), "much")
FAULTS.values("lam", either("lam|overflow|large"), 1e300)
FAULTS.values("lam", either("lam|underflow|small"), 1e-300)
FAULTS.values("epsilon", error("epsilon"), -1.0, math.nan, math.inf)
FAULTS.values("epsilon", WORKS, 1e6)
FAULTS.values("tol", error("tol"), -1.0, math.nan, math.inf)
FAULTS.values("tol", error("tol", "ValueError", "TypeError"), "tight")
FAULTS.values("tol", WORKS, 0.0)
FAULTS.values("max_iter", error("max_iter"), -1, 2.5)
FAULTS.values("max_time", error("max_time"), 0, -1.0, math.nan)
FAULTS.values("max_time", WORKS, 1e-9)
FAULTS.values("memory_limit", error("memory_limit|GiB", "ValueError", "MemoryBudgetError"), -1)
FAULTS.values("memory_limit", error("GiB", "MemoryBudgetError"), 100)
FAULTS.values("on_interrupt", error("on_interrupt"), "ignore")
FAULTS.values("algorithm", error("no-such", "ValueError", "UnknownNameError"), "no-such")
FAULTS.values("kernels", error("kernels"), "no-such")
FAULTS.values("class_weight", error("class_weight"), "heavy", {7: 1.0}, {1: -1.0})
FAULTS.values("random_state", WORKS, None, 0, np.int64(3))
FAULTS.values("random_state", error("random_state|[Ss]eed"), "seed", -1)


@add("parameters", WORKS, "random_state")
def _(case: Case) -> None:
    """random_state = a RandomState."""
    case.params["random_state"] = np.random.RandomState(0)


@add("parameters", error("random_state|[Ss]eed"), "random_state")
def _(case: Case) -> None:
    """random_state = a Generator, which scikit-learn refuses."""
    case.params["random_state"] = np.random.default_rng(0)


# points to predict


@add("prediction", error("3 features"))
def _(case: Case) -> None:
    """one feature too many to predict."""
    case.X_new = np.column_stack([case.X_new, case.X_new[:, 0]])


@add("prediction", error("NaN"))
def _(case: Case) -> None:
    """a NaN to predict."""
    case.X_new[0, 0] = np.nan


@add("prediction", error("0 sample|minimum of"))
def _(case: Case) -> None:
    """nothing to predict."""
    case.X_new = case.X_new[:0]


@add("prediction", error("Expected 2D"))
def _(case: Case) -> None:
    """one dimension to predict."""
    case.X_new = case.X_new[0]


@add("prediction", error("feature names"))
def _(case: Case) -> None:
    """other names of the features to predict."""
    import pandas as pd

    case.X = pd.DataFrame(case.X, columns=["a", "b"])
    case.X_new = pd.DataFrame(case.X_new, columns=["a", "c"])


@add("prediction", error("not fitted", "NotFittedError"))
def _(case: Case) -> None:
    """a model that was never fitted."""
    case.fitted = False


# Gram matrices of the training samples, which the estimator is told to take as they are


def two_grams(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return a Gaussian and a linear matrix, shape (2, n, m)."""
    square = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
    return np.stack([np.exp(-square), X @ Y.T])


def precompute(case: Case) -> None:
    """Replace points by Gram matrices."""
    case.params["kernels"] = "precomputed"
    points = case.X
    case.X, case.X_new = two_grams(points, points), two_grams(case.X_new, points)


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """precomputed Gram matrices."""
    precompute(case)


@add("grams", error("finite|NaN"), "grams")
def _(case: Case) -> None:
    """a NaN in a Gram matrix."""
    precompute(case)
    case.X[0, 1, 2] = np.nan


@add("grams", error("finite|infinity"), "grams")
def _(case: Case) -> None:
    """an infinity in a Gram matrix."""
    precompute(case)
    case.X[0, 1, 2] = case.X[0, 2, 1] = np.inf


@add("grams", error("square|shape"), "grams")
def _(case: Case) -> None:
    """Gram matrices that are not square."""
    precompute(case)
    case.X = case.X[:, :, :-1]


@add("grams", error("symmetric"), "grams")
def _(case: Case) -> None:
    """an asymmetric Gram matrix."""
    precompute(case)
    case.X[1, 0, 1] += 1.0


@add("grams", either("semidefinite|negative eigenvalue", "ValueError", "NotPSDError"), "grams")
def _(case: Case) -> None:
    """an indefinite Gram matrix."""
    precompute(case)
    case.X[1] = np.diag(np.linspace(-1.0, 1.0, N))


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """Gram matrices of rank one."""
    precompute(case)
    case.X[:] = np.ones((N, N))


@add("grams", either("zero|trace|diagonal"), "grams")
def _(case: Case) -> None:
    """Gram matrices of zeros."""
    precompute(case)
    case.X[:] = 0.0


@add("grams", error("shape|Gram"), "grams")
def _(case: Case) -> None:
    """one matrix where a stack is needed."""
    precompute(case)
    case.X = case.X[0]


@add("grams", error("shape|Gram"), "grams")
def _(case: Case) -> None:
    """an empty stack of Gram matrices."""
    precompute(case)
    case.X = case.X[:0]


@add("grams", error("real numbers|dtype|could not convert"), "grams")
def _(case: Case) -> None:
    """Gram matrices of words."""
    precompute(case)
    case.X = np.full((2, N, N), "a")


@add("grams", either("overflow|large|finite|scale"), "grams")
def _(case: Case) -> None:
    """Gram matrices times 1e200."""
    precompute(case)
    case.X, case.X_new = 1e200 * case.X, 1e200 * case.X_new


@add("grams", either("underflow|small|zero|trace|diagonal"), "grams")
def _(case: Case) -> None:
    """Gram matrices times 1e-200."""
    precompute(case)
    case.X, case.X_new = 1e-200 * case.X, 1e-200 * case.X_new


@add("grams", error("shape"), "grams")
def _(case: Case) -> None:
    """cross-Gram matrices of another width to predict."""
    precompute(case)
    case.X_new = case.X_new[:, :, :-1]


@add("grams", error("inconsistent"), "grams")
def _(case: Case) -> None:
    """Gram matrices and y of different lengths."""
    precompute(case)
    case.y = case.y[:-1]
