"""Small problems with a known seed, for every triple that an algorithm accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..formula.problem import Problem
from ..kernels.dictionary import KernelDictionary
from ..kernels.standard import RBF
from ..registry import AlgorithmSpec, accepted_triples, get_component


def make_classification(n_samples: int = 40, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return points in the unit square and noisy ±1 labels of a checkerboard.

    Parameters
    ----------
    n_samples : int, default=40
        How many points.
    seed : int, default=0
        Seed of the random numbers.

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
        Seed of the random numbers.

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
    """Yield one problem per triple (family, learner, constraint) that ``spec`` accepts.

    Parameters
    ----------
    spec : AlgorithmSpec
        An algorithm; the triples are those of installed parts that have what it needs.
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


@dataclass(frozen=True)
class ProblemVariant:
    """How a small problem differs from the plain one, which has 40 samples and default parts.

    - `label`: a description for messages
    - `n_samples`: number of samples; `size_for` has those of an algorithm of few
    - `strength`: factor of the learner's C
    - `n_tasks`: number of rows of targets
    - `weights`: sample weights, repeated over the samples; empty for none
    - `n_kernels`: number of kernels of a dictionary; 0 for its default
    """

    label: str
    n_samples: int = 40
    strength: float = 1.0
    n_tasks: int = 1
    weights: tuple[float, ...] = ()
    n_kernels: int = 0


PLAIN = ProblemVariant("plain")
# A false bound that holds on the plain problem is likely to fail on one of these.
VARIANTS = (
    ProblemVariant("sample weights 0.01, 1, 2 and 5", weights=(1.0, 0.01, 5.0, 2.0)),
    ProblemVariant("sample weights 0 and 1", weights=(1.0, 1.0, 0.0)),
    ProblemVariant("three tasks", n_tasks=3),
    ProblemVariant("fifteen kernels", n_kernels=15),
    ProblemVariant("C = 0.01", strength=1e-2),
    ProblemVariant("C = 100", strength=1e2),
)


def size_for(spec: AlgorithmSpec) -> int:
    """Return the samples of a plain problem: 40, or a quarter of the most that `spec` takes."""
    few = spec.max_samples
    return PLAIN.n_samples if few is None else min(PLAIN.n_samples, few // 4)


def variant_of(triple: tuple[str, str, str], variant: ProblemVariant) -> Problem | None:
    """Return a problem of a triple, or None if the variant sets the number of kernels and the
    family is not a dictionary.
    """
    plain = _problem(triple, variant.n_samples)
    family, learner = plain.family, plain.learner
    if variant.n_kernels:
        if not hasattr(family, "fit_grams"):
            return None
        family = _with_kernels(family, variant.n_kernels)
    if variant.strength != 1.0:
        field = getattr(learner, "strength", "C")
        power = -1.0 if field == "lam" else 1.0
        learner = replace(learner, **{field: getattr(learner, field) * variant.strength**power})
    # further tasks have the same targets, moved by seven samples each
    shifts = [np.roll(plain.targets[0], 7 * t) for t in range(variant.n_tasks)]
    y = plain.targets if variant.n_tasks == 1 else np.stack(shifts)
    weight = np.resize(variant.weights, plain.n_samples) if variant.weights else None
    return replace(plain, family=family, learner=learner, y=y, sample_weight=weight)


def _with_kernels(family: Any, n_kernels: int) -> Any:
    """Return the family with ``n_kernels`` Gaussian kernels."""
    if hasattr(family, "dictionary"):
        return replace(family, dictionary=_with_kernels(family.dictionary, n_kernels))
    return KernelDictionary([RBF(gamma=g) for g in np.geomspace(0.1, 100.0, n_kernels)])


def covering(triples: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return a few of the triples that together contain every part of all of them."""
    seen: set[tuple[int, str]] = set()
    chosen = []
    for triple in triples:
        parts = set(enumerate(triple))
        if not parts <= seen:
            chosen.append(triple)
            seen |= parts
    return chosen


def permuted(problem: Problem) -> Problem:
    """Return the problem with its samples in another order."""
    order = np.random.default_rng(1).permutation(problem.n_samples)
    weight = problem.sample_weight
    return replace(
        problem,
        X=problem.X[order],
        y=problem.targets[:, order],
        sample_weight=None if weight is None else np.asarray(weight)[order],
    )
