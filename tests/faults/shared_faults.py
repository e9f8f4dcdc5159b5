"""Changes of weights and of Gram matrices that estimators and solvers meet alike."""

from __future__ import annotations

import numpy as np
from expectations import Case
from sound_cases import N


def nan_weight(case: Case) -> None:
    """a NaN among the weights."""
    case.weight = np.ones(N)
    case.weight[1] = np.nan


def infinite_weight(case: Case) -> None:
    """an infinity among the weights."""
    case.weight = np.ones(N)
    case.weight[1] = np.inf


def negative_weight(case: Case) -> None:
    """a negative weight."""
    case.weight = np.ones(N)
    case.weight[1] = -1.0


def zero_weights(case: Case) -> None:
    """all weights zero."""
    case.weight = np.zeros(N)


def too_few_weights(case: Case) -> None:
    """too few weights."""
    case.weight = np.ones(N - 1)


def matrix_of_weights(case: Case) -> None:
    """weights as a matrix."""
    case.weight = np.ones((N, 2))


def words_as_weights(case: Case) -> None:
    """words as weights."""
    case.weight = np.array(["a"] * N)


def some_zero_weights(case: Case) -> None:
    """some weights zero."""
    case.weight = np.ones(N)
    case.weight[:3] = 0.0


def list_of_ones(case: Case) -> None:
    """a list of weights of one."""
    case.weight = [1] * N


def huge_weight(case: Case) -> None:
    """one weight of 1e300."""
    case.weight = np.ones(N)
    case.weight[1] = 1e300


def nan_in_gram(case: Case) -> None:
    """a NaN in a Gram matrix."""
    case.X[0, 1, 2] = np.nan


def infinity_in_gram(case: Case) -> None:
    """an infinity in a Gram matrix."""
    case.X[0, 1, 2] = case.X[0, 2, 1] = np.inf


def oblong_grams(case: Case) -> None:
    """Gram matrices that are not square."""
    case.X = case.X[:, :, :-1]


def asymmetric_gram(case: Case) -> None:
    """an asymmetric Gram matrix."""
    case.X[0, 0, 1] += 1.0


def indefinite_gram(case: Case) -> None:
    """an indefinite Gram matrix."""
    case.X[1] = np.diag(np.linspace(-1.0, 1.0, N))


def grams_of_rank_one(case: Case) -> None:
    """Gram matrices of rank one."""
    case.X[:] = 1.0


def zero_grams(case: Case) -> None:
    """Gram matrices of zeros."""
    case.X[:] = 0.0


def no_grams(case: Case) -> None:
    """an empty stack of Gram matrices."""
    case.X = case.X[:0]


def grams_of_words(case: Case) -> None:
    """Gram matrices of words."""
    case.X = np.full((2, N, N), "a")


def huge_grams(case: Case) -> None:
    """Gram matrices times 1e200."""
    case.X, case.X_new = 1e200 * case.X, 1e200 * case.X_new


def tiny_grams(case: Case) -> None:
    """Gram matrices times 1e-200."""
    case.X, case.X_new = 1e-200 * case.X, 1e-200 * case.X_new
