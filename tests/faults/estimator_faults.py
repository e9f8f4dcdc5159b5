"""The faults of the estimators: those of the samples, of weights, parameters, and what follows."""

from __future__ import annotations

import math

import numpy as np
from expectations import SAME, WORKS, Case, Faults, either, error
from sample_faults import SAMPLES
from sound_cases import N

FAULTS = Faults(SAMPLES)
add = FAULTS.add

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


@add("weights", SAME, "weight")
def _(case: Case) -> None:
    """a list of weights of one."""
    case.weight = [1] * N


@add("weights", SAME, "weight")
def _(case: Case) -> None:
    """weights of one as a pandas series with another index."""
    import pandas as pd

    case.weight = pd.Series(np.ones(N), index=np.arange(N)[::-1])


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


@add("grams", error("semidefinite", "NotPSDError"), "grams")
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
