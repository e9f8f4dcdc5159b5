"""The faults of the solvers: Gram matrices, targets, weights, numbers."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import shared_faults as changes
from expectations import SAME, WORKS, Case, Faults, either, error
from sound_cases import N, sound

SOLVERS = Faults()
add = SOLVERS.add
RANGE = "overflow|large|small|underflow|finite|range"


def sound_grams(task: str) -> Case:
    """Return a sound case of two Gram matrices, a Gaussian and a linear one."""
    case = sound(task)
    square = ((case.X[:, None, :] - case.X[None, :, :]) ** 2).sum(axis=2)
    case.X = np.stack([np.exp(-square), case.X @ case.X.T])
    case.y = case.y.astype(float)
    return case


for change, expected in {
    changes.nan_in_gram: error("finite|NaN"),
    changes.infinity_in_gram: error("finite|infinity"),
    changes.oblong_grams: error("square|shape"),
    changes.asymmetric_gram: error("symmetric"),
    changes.grams_of_rank_one: WORKS,
    changes.zero_grams: either("zero|trace|scale"),
    changes.grams_of_words: error("real numbers|dtype|convert"),
    changes.huge_grams: either(RANGE),
    changes.tiny_grams: either(RANGE),
}.items():
    add("grams", expected)(change)

add("grams", error("shape|grams|kernels"), "stack")(changes.no_grams)


@add("grams", error("semidefinite|eigenvalue", "ValueError", "NotPSDError"), "psd")
def _(case: Case) -> None:
    """an indefinite Gram matrix, where positive semidefinite ones are needed."""
    case.X[1] = np.diag(np.linspace(-1.0, 1.0, N))


@add("grams", either("semidefinite|eigenvalue", "ValueError", "NotPSDError"))
def _(case: Case) -> None:
    """an indefinite Gram matrix, first in the stack."""
    case.X[0] = np.diag(np.linspace(-1.0, 1.0, N))


@add("grams", error("shape|square"))
def _(case: Case) -> None:
    """one row of a Gram matrix."""
    case.X = case.X[:, 0]


@add("grams", error("class|sample"), "y", task="classification")
def _(case: Case) -> None:
    """one sample, classified."""
    case.X, case.y = case.X[:, :1, :1], case.y[:1]


@add("grams", either("sample"), task="regression")
def _(case: Case) -> None:
    """one sample, regressed."""
    case.X, case.y = case.X[:, :1, :1], case.y[:1]


@add("grams", WORKS, "y")
def _(case: Case) -> None:
    """every sample twice, with conflicting labels."""
    case.X = np.repeat(np.repeat(case.X, 2, axis=1), 2, axis=2)
    case.y = np.repeat(case.y, 2)
    case.y[1::2] *= -1


@add("grams", error("no samples|empty|shape|sample"))
def _(case: Case) -> None:
    """Gram matrices of no sample."""
    case.X, case.y = case.X[:, :0, :0], case.y[:0]


@add("grams", error("[Cc]omplex|real numbers|dtype"))
def _(case: Case) -> None:
    """complex Gram matrices."""
    case.X = case.X + 0j


@add("layouts", WORKS)
def _(case: Case) -> None:
    """Gram matrices in float32."""
    case.X = case.X.astype(np.float32)


@add("layouts", WORKS)
def _(case: Case) -> None:
    """Gram matrices of integers."""
    case.X = np.stack([2 * np.eye(N, dtype=np.int64), np.ones((N, N), dtype=np.int64)])


@add("layouts", SAME)
def _(case: Case) -> None:
    """Gram matrices in Fortran order."""
    case.X = np.stack([np.asfortranarray(K) for K in case.X]).transpose(0, 2, 1)


@add("layouts", SAME)
def _(case: Case) -> None:
    """Gram matrices that are read-only."""
    case.X.setflags(write=False)
    case.y.setflags(write=False)


@add("layouts", SAME)
def _(case: Case) -> None:
    """every second entry of larger Gram matrices."""
    large = np.full((2, 2 * N, 2 * N), np.nan)
    large[:, ::2, ::2] = case.X
    case.X = large[:, ::2, ::2]


@add("layouts", SAME)
def _(case: Case) -> None:
    """memory-mapped Gram matrices."""
    case.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    path = Path(case.scratch.name) / "grams.npy"
    np.save(path, case.X)
    case.X = np.load(path, mmap_mode="r")


@add("layouts", SAME)
def _(case: Case) -> None:
    """Gram matrices and y as lists."""
    case.X, case.y = case.X.tolist(), case.y.tolist()


@add("layouts", SAME, "y")
def _(case: Case) -> None:
    """y as a pandas series with another index."""
    import pandas as pd

    case.y = pd.Series(case.y, index=np.arange(N)[::-1])


@add("layouts", SAME, "y")
def _(case: Case) -> None:
    """y as every second entry of a larger array."""
    large = np.full(2 * N, np.nan)
    large[::2] = case.y
    case.y = large[::2]


@add("layouts", SAME, "y")
def _(case: Case) -> None:
    """y in float32."""
    case.y = case.y.astype(np.float32)


@add("targets", error("finite|NaN"), "y")
def _(case: Case) -> None:
    """a NaN in y."""
    case.y[3] = np.nan


@add("targets", error("finite|infinity"), "y")
def _(case: Case) -> None:
    """an infinity in y."""
    case.y[3] = np.inf


@add("targets", error("shape|sample|inconsistent"), "y")
def _(case: Case) -> None:
    """y that is too short."""
    case.y = case.y[:-1]


@add("targets", error("real numbers|convert"), "y")
def _(case: Case) -> None:
    """words in y."""
    case.y = np.array(["a"] * N)


@add("targets", error("class"), "y", task="classification")
def _(case: Case) -> None:
    """one class."""
    case.y = np.ones(N)


@add("targets", error(r"-1 and \+1"), "y", task="classification")
def _(case: Case) -> None:
    """labels of 0 and 1."""
    case.y = (case.y + 1) / 2


@add("targets", either(RANGE), "y", task="regression")
def _(case: Case) -> None:
    """y times 1e200."""
    case.y = 1e200 * case.y


for change, expected in {
    changes.nan_weight: error("sample_weight"),
    changes.infinite_weight: error("sample_weight"),
    changes.negative_weight: error("sample_weight"),
    changes.zero_weights: error("sample_weight|weight 0|class"),
    changes.too_few_weights: error("sample_weight"),
    changes.matrix_of_weights: error("sample_weight"),
    changes.words_as_weights: error("sample_weight"),
    changes.some_zero_weights: WORKS,
    changes.list_of_ones: SAME,
    changes.huge_weight: either("weight|overflow|large"),
}.items():
    add("weights", expected, "weight")(change)


SOLVERS.values("C", error(r"\bC\b"), 0.0, -1.0, math.nan, math.inf, "much")
SOLVERS.values("C", either(r"\bC\b"), 1e300, 1e-300)
SOLVERS.values("lam", error("lam|ridge"), -1.0, math.nan, math.inf)
SOLVERS.values("lam", error("lam|ridge", "ValueError", "TypeError"), "much")
SOLVERS.values("lam", either("lam|ridge"), 1e300, 1e-300)
SOLVERS.values("k0", error("k0"), 0, -1, 1.5)
SOLVERS.values("epsilon", error("epsilon"), -1.0, math.nan)
SOLVERS.values("tol", error("tol"), -1.0, math.nan)
SOLVERS.values("tol", either("tol"), 0.0, math.inf)
SOLVERS.values("max_iter", error("max_iter"), 0, -1, 2.5)
SOLVERS.values("max_iter", WORKS, 1)
SOLVERS.values("n_folds", error("n_folds"), 1, 0, -1, 2.5)
SOLVERS.values("method", error("method"), "no-such")
SOLVERS.values("relaxation", error("relaxation"), "no-such")
SOLVERS.values("backend", error("backend"), "no-such")
SOLVERS.values("random_state", error("random_state|[Ss]eed"), "seed", -1)
SOLVERS.values("random_state", WORKS, 0, np.int64(3))
SOLVERS.values("max_time", error("max_time"), -1.0, math.nan)
SOLVERS.values("max_time", WORKS, 1e-9)
