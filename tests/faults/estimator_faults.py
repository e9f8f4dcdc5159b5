"""The faults of the estimators: those of the samples, of weights, parameters, and what follows."""

from __future__ import annotations

import math
from functools import wraps

import numpy as np
import shared_faults as changes
from expectations import SAME, WORKS, Case, Change, Faults, either, error
from sample_faults import SAMPLES
from sound_cases import N

FAULTS = Faults(SAMPLES)
add = FAULTS.add

# weights


for change, expected in {
    changes.nan_weight: error("NaN"),
    changes.infinite_weight: error("infinity"),
    changes.negative_weight: error("sample_weight"),
    changes.zero_weights: error("weight"),
    changes.too_few_weights: error("sample_weight"),
    changes.matrix_of_weights: error("1D|1d|scalar"),
    changes.words_as_weights: error("could not convert"),
    changes.some_zero_weights: WORKS,
    changes.list_of_ones: SAME,
    changes.huge_weight: either("overflow|large|weight|C "),
}.items():
    add("weights", expected, "weight")(change)


@add("weights", error("class"), "weight", task="classification")
def _(case: Case) -> None:
    """no weight on one class."""
    case.weight = (case.y == 1).astype(float)


@add("weights", SAME, "weight")
def _(case: Case) -> None:
    """weights of one."""
    case.weight = np.ones(N, dtype=np.int64)


@add("weights", SAME, "weight")
def _(case: Case) -> None:
    """weights of one as a pandas series with another index."""
    import pandas as pd

    case.weight = pd.Series(np.ones(N), index=np.arange(N)[::-1])


@add("weights", either("underflow|small|weight"), "weight")
def _(case: Case) -> None:
    """weights of 1e-300."""
    case.weight = np.full(N, 1e-300)


# parameters

FAULTS.values("C", error(r"\bC\b"), 0, -1.0, math.nan, math.inf)
FAULTS.values("C", error(r"\bC\b|float", "ValueError", "TypeError"), "much", "1", None)
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
FAULTS.values("max_iter", error("max_iter", "ValueError", "TypeError"), "many", None)
FAULTS.values("max_iter", either("max_iter"), 0)
FAULTS.values("max_iter", WORKS, 1)
FAULTS.values("max_time", error("max_time"), 0, -1.0, math.nan)
FAULTS.values("max_time", WORKS, 1e-9)
FAULTS.values(
    "memory_limit", error("memory_limit|memory limit", "ValueError", "MemoryBudgetError"), -1
)
FAULTS.values("memory_limit", error("memory_limit"), "1 GiB", math.nan)
FAULTS.values("memory_limit", error("memory limit of 100 bytes", "MemoryBudgetError"), 100)
FAULTS.values("on_interrupt", error("on_interrupt"), "ignore")
FAULTS.values("algorithm", error("no-such", "ValueError", "UnknownNameError"), "no-such")
FAULTS.values("verbose", error("verbose"), "yes")
FAULTS.values("n_init", error("n_init"), 0, 1.5)
FAULTS.values("n_views", error("n_views"), 0, 1.5, "two")
FAULTS.values("n_landmarks", error("n_landmarks"), 0, 1.5, True, "many")
FAULTS.values("approximation", error("approximation"), "exact", True)
FAULTS.values("n_components", error("n_components"), 0, 1.5)
FAULTS.values("patience", error("patience"), 0, -1)
FAULTS.values("cap", error("cap"), -1.0, math.nan)
FAULTS.values("n_starts", error("n_starts"), 0, -1)
FAULTS.values("kernels", error("kernels"), "no-such")
FAULTS.values("class_weight", error("class_weight"), "heavy", {7: 1.0}, {1: -1.0})
FAULTS.values("random_state", WORKS, None, 0, np.int64(3))
FAULTS.values("random_state", error("random_state"), "seed", -1)


@add("parameters", WORKS, "random_state")
def _(case: Case) -> None:
    """random_state = a RandomState."""
    case.params["random_state"] = np.random.RandomState(0)


@add("parameters", error("random_state"), "random_state")
def _(case: Case) -> None:
    """random_state = a Generator, which scikit-learn refuses."""
    case.params["random_state"] = np.random.default_rng(0)


# points to predict


@add("prediction", error("3 features"))
def _(case: Case) -> None:
    """one feature too many to predict."""
    case.X_new = np.column_stack([case.X_new, case.X_new[:, 0]])


@add("prediction", error("1 feature"))
def _(case: Case) -> None:
    """one feature too few to predict."""
    case.X_new = case.X_new[:, :1]


@add("prediction", error("feature names"))
def _(case: Case) -> None:
    """another order of the features to predict."""
    import pandas as pd

    case.X = pd.DataFrame(case.X, columns=["a", "b"])
    case.X_new = pd.DataFrame(case.X_new[:, ::-1], columns=["b", "a"])


@add("prediction", either("overflow|too large|large"))
def _(case: Case) -> None:
    """points 1e300 away to predict."""
    case.X_new = case.X_new * 1e300


@add("prediction", error("could not convert|is not a number"))
def _(case: Case) -> None:
    """words to predict."""
    case.X_new = np.array([["a", "b"]])


@add("prediction", SAME)
def _(case: Case) -> None:
    """float32 in Fortran order to predict."""
    case.X_new = np.asfortranarray(case.X_new.astype(np.float32))


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


def precomputed(change: Change) -> Change:
    """Return the change, of the Gram matrices of the points."""

    @wraps(change)
    def changed(case: Case) -> None:
        precompute(case)
        change(case)

    return changed


def precompute(case: Case) -> None:
    """Replace points by Gram matrices."""
    case.params["kernels"] = "precomputed"
    points = case.X
    case.X, case.X_new = two_grams(points, points), two_grams(case.X_new, points)


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """precomputed Gram matrices."""
    precompute(case)


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """precomputed Gram matrices, transposed views that are read-only."""
    precompute(case)
    case.X = np.asfortranarray(case.X).transpose(0, 2, 1)
    case.X.setflags(write=False)


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """precomputed Gram matrices in float32."""
    precompute(case)
    case.X, case.X_new = case.X.astype(np.float32), case.X_new.astype(np.float32)


@add("grams", WORKS, "grams")
def _(case: Case) -> None:
    """precomputed Gram matrices as a list."""
    precompute(case)
    case.X, case.X_new = list(case.X), list(case.X_new)


@add("grams", error("finite|NaN"), "grams")
def _(case: Case) -> None:
    """a NaN in a cross-Gram matrix to predict."""
    precompute(case)
    case.X_new[0, 0, 0] = np.nan


@add("grams", error("kernels|shape"), "grams")
def _(case: Case) -> None:
    """one cross-Gram matrix too few to predict."""
    precompute(case)
    case.X_new = case.X_new[:1]


for change, expected in {
    changes.nan_in_gram: error("finite|NaN"),
    changes.infinity_in_gram: error("finite|infinity"),
    changes.oblong_grams: error("square|shape"),
    changes.asymmetric_gram: error("symmetric"),
    changes.indefinite_gram: error("semidefinite", "NotPSDError"),
    changes.grams_of_rank_one: WORKS,
    changes.zero_grams: either("zero|trace|diagonal"),
    changes.no_grams: error("shape|Gram"),
    changes.grams_of_words: error("real numbers|dtype|could not convert"),
    changes.huge_grams: either("overflow|large|finite|scale"),
    changes.tiny_grams: either("underflow|small|zero|trace|diagonal"),
}.items():
    add("grams", expected, "grams")(precomputed(change))


@add("grams", error("shape|Gram"), "grams")
def _(case: Case) -> None:
    """one matrix where a stack is needed."""
    precompute(case)
    case.X = case.X[0]


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


# problems that are sound and hard: what is said of them must help


@add("hard problems", WORKS, "y")
def _(case: Case) -> None:
    """noise as targets."""
    rng = np.random.default_rng(3)
    case.X = np.round(8 * rng.uniform(-1, 1, (4 * N, 2))) / 8
    noise = rng.standard_normal(4 * N)
    case.y = np.where(noise > 0, 1, -1) if case.task == "classification" else noise


@add("hard problems", either("scale|large|small|underflow"))
def _(case: Case) -> None:
    """columns of very different sizes."""
    sizes = np.array([1e-6, 1e6])
    case.X, case.X_new = case.X * sizes, case.X_new * sizes
