"""Small problems with a known seed, for every triple that an algorithm accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray
from ..formula.problem import Problem
from ..registry import AlgorithmSpec, accepted_triples, get_component


def make_classification(n_samples: int = 40, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return points in the unit square and noisy ±1 labels of a checkerboard.

    Parameters
    ----------
    n_samples : int, default=40
        How many points.
    seed : int, default=0
        Of the generator.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Uniform points.
    y : ndarray of shape (n_samples,)
        Labels −1 and +1, both present.

    Examples
    --------
    >>> from kernelweave.kernels_core.testing import make_classification
    >>> make_classification(10)[0].shape
    (10, 2)
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, 2))
    noise = 0.05 * rng.standard_normal(n_samples)
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + noise > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def make_regression(n_samples: int = 40, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return points in the unit square and a noisy smooth function with a kink.

    Parameters
    ----------
    n_samples : int, default=40
        How many points.
    seed : int, default=0
        Of the generator.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Uniform points.
    y : ndarray of shape (n_samples,)
        Targets.

    Examples
    --------
    >>> from kernelweave.kernels_core.testing import make_regression
    >>> make_regression(10)[1].shape
    (10,)
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, 2))
    y = np.sin(4 * X[:, 0]) + np.abs(X[:, 1] - 0.5) + 0.05 * rng.standard_normal(n_samples)
    return X, y


def small_problems(spec: AlgorithmSpec, n_samples: int = 40) -> Iterator[Problem]:
    """Yield one problem per triple of installed parts that ``spec`` accepts.

    Parameters
    ----------
    spec : AlgorithmSpec
        Whose needs the parts have.
    n_samples : int, default=40
        Samples per problem.

    Yields
    ------
    Problem
        With default parts.
    """
    for triple in accepted_triples(spec):
        yield _problem(triple, n_samples)


def _problem(triple: tuple[str, str, str], n_samples: int) -> Problem:
    family, learner, constraint = (
        get_component(kind, name).load()
        for kind, name in zip(("families", "learners", "constraints"), triple, strict=True)
    )
    make = make_classification if learner.task == "classification" else make_regression
    X, y = make(n_samples)
    return Problem(family.from_data(X), learner(), constraint(), X, y)


def permuted(problem: Problem) -> Problem:
    """Return the problem with its samples in another order."""
    order = np.random.default_rng(1).permutation(problem.n_samples)
    return replace(problem, X=problem.X[order], y=problem.targets[:, order])
