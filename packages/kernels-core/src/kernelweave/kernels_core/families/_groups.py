"""Groups of columns whose indicators a tessellated kernel averages, as a short program of sums.

The mean over groups S of ``Π_{j ∈ S} Dⱼ`` is a polynomial of degree one in every D. A program of
steps ``r[target] = a·r[target] + b·r[source]·D[column]`` evaluates it without enumerating what
groups share: all groups of s of n columns take n·s steps, the recursion of elementary symmetric
means, and a list of groups the nodes of its prefix tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checks import integer
from ._box import Float

Order = int | tuple[tuple[int, ...], ...]


class Program(NamedTuple):
    """Steps over registers, of which the first is 1, the others begin at 0, the last is the mean.

    steps (n_steps, 3): target, source and column; factors (n_steps, 2): a and b; roundings:
    relative ones that any term of the mean meets at most, two of them for each D.
    """

    steps: NDArray[np.int64]
    factors: Float
    n_registers: int
    roundings: int


def order_of(order: object, n_features: int) -> Order | None:
    """Return an order below n_features or a tuple of groups; None where all columns are meant."""
    if order is None:
        return None
    if isinstance(order, Iterable) and not isinstance(order, str):
        return _groups(list(order), n_features)
    s = int(integer(1).check("order", order))  # type: ignore[call-overload]
    if s > n_features:
        raise ValueError(f"order must be at most the {n_features} features that there are, got {s}")
    return None if s == n_features else s


def _groups(order: list[object], n_features: int) -> tuple[tuple[int, ...], ...]:
    if not order:
        raise ValueError("order must hold at least one group of columns, got none")
    groups = []
    for group in order:
        columns = list(group) if isinstance(group, Iterable) else []
        whole = all(isinstance(j, int | np.integer) and 0 <= j < n_features for j in columns)
        if not columns or not whole or len(set(columns)) < len(columns):
            raise ValueError(
                f"order must hold groups of different columns from 0 to {n_features - 1}, "
                f"got {group!r}"
            )
        groups.append(tuple(sorted(int(j) for j in columns)))
    if len(set(groups)) < len(groups):
        raise ValueError("order must hold different groups of columns, got one of them twice")
    return tuple(groups)


def program(order: Order, n_features: int) -> Program:
    """Return the program of the mean over groups of columns."""
    if isinstance(order, int):
        return _symmetric(order, n_features)
    return _listed(order)


def _symmetric(s: int, n: int) -> Program:
    """Return ``e_k ← (1 − k/j)·e_k + (k/j)·Dⱼ·e_{k−1}``: e_k stays the mean over k of j columns.

    What cannot become a group of s columns any more is left out, so that s = n is a product.
    """
    steps, factors = [], []
    for j in range(1, n + 1):
        for k in range(min(j, s), max(1, s - n + j) - 1, -1):
            steps.append((k, k - 1, j - 1))
            factors.append((1.0 - k / j, k / j))
    # two factors with their own rounding, a product and a sum, in each of n columns
    return Program(np.array(steps), np.array(factors), s + 1, 6 * n + 4)


def _listed(groups: tuple[tuple[int, ...], ...]) -> Program:
    """Return the sum over the leaves of the prefix tree; a register for each depth."""
    depth = max(len(group) for group in groups)
    total, share = depth, 1.0 / len(groups)
    steps: list[tuple[int, int, int]] = []
    factors: list[tuple[float, float]] = []
    path: tuple[int, ...] = ()
    for group in sorted(groups):
        prefix, shared = group[:-1], 0
        while shared < min(len(path), len(prefix)) and path[shared] == prefix[shared]:
            shared += 1
        for k in range(shared, len(prefix)):
            steps.append((k + 1, k, prefix[k]))
            factors.append((0.0, 1.0))
        path = prefix
        steps.append((total, len(prefix), group[-1]))
        factors.append((1.0, share))
    roundings = 4 * depth + len(groups) + 4
    return Program(np.array(steps), np.array(factors), depth + 1, roundings)


def evaluate(run: Program, D: Float) -> Float:
    """Return the mean for D of shape (n, ...)."""
    registers = np.zeros((run.n_registers, *D.shape[1:]))
    registers[0] = 1.0
    for (target, source, column), (a, b) in zip(run.steps, run.factors, strict=True):
        registers[target] = a * registers[target] + b * registers[source] * D[column]
    mean: Float = registers[-1]
    return mean
