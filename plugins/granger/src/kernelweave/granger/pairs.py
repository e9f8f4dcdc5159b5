"""Pairs of histories, whose product drives what neither drives alone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray

from .series import Groups

Pair = tuple[int, int]
_MOST = 100  # pairs: all of 14 groups
_COPIES = 3  # of products: as formed, centred, scaled
_CONSTANT = 1e-9  # deviation of a product beside its size


def takes_all(n_groups: int) -> bool:
    """Tell whether all pairs of so many groups are few enough."""
    return n_groups * (n_groups - 1) // 2 <= _MOST


def choose_pairs(history: Matrix, targets: Matrix, nodes: Groups, n_lags: int) -> list[Pair]:
    """Return the pairs of groups whose histories are multiplied: all of them, where they are few.

    Else those whose products go most with what a linear model of all histories misses, in any
    target.

    - `history` of shape (n_samples, n_columns * n_lags): standardised
    - `targets` of shape (n_samples, n_targets): next values
    - `nodes`: groups of columns
    - `n_lags`: lags of a history

    Raises MemoryBudgetError if the products of one pair are more than the limit.
    """
    if len(nodes) < 2:
        return []
    views = nodes.columns(n_lags)
    widest = sorted(len(view) for view in views)[-2:]
    memory.require(
        _COPIES * history.itemsize * len(history) * widest[0] * widest[1],
        f"products of {widest[0]} and {widest[1]} columns of histories of {len(history)} samples",
        alternative="give smaller groups, fewer lags or pairs=False, or raise memory_limit",
    )
    pairs = [
        (a, b)
        for a, b in combinations(range(len(nodes)), 2)
        if _varies(history[:, views[a]], history[:, views[b]])
    ]
    if takes_all(len(nodes)):
        return pairs
    design = np.column_stack([np.ones(len(history)), history])
    ridge = len(history) * np.eye(design.shape[1])
    rest = targets - design @ np.linalg.solve(design.T @ design + 0.01 * ridge, design.T @ targets)
    rest = rest / np.maximum(np.sqrt((rest**2).sum(axis=0)), 1e-300)
    found = np.empty(len(pairs))
    for k, (a, b) in enumerate(pairs):
        Z = pair_features(history[:, views[a]], history[:, views[b]])
        found[k] = ((Z.T @ rest) ** 2).sum(axis=0).max() / len(history)
    return [pairs[k] for k in np.sort(np.argsort(-found, kind="stable")[:_MOST])]


def _varies(first: Matrix, second: Matrix) -> bool:
    """Tell whether any product of two columns is more than a constant."""
    Z = first[:, :, None] * second[:, None, :]
    return bool(Z.std(axis=0).max() > _CONSTANT * np.abs(Z).max())


def pair_features(first: Matrix, second: Matrix) -> Matrix:
    """Return Z with Z Zᵀ the product of two linear kernels, centred and of trace n.

    `first`, `second` of shape (n_samples, n_columns): histories. A column for each pair of columns.
    """
    Z = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
    Z = Z - Z.mean(axis=0)
    size = float((Z**2).sum()) / len(Z)
    scaled: Matrix = Z / np.sqrt(size) if size > 0.0 else Z
    return scaled


def shares(unit: Index, n_units: int, pairs: list[Pair]) -> RealArray:
    """Return which share of each kernel's weight belongs to each unit.

    The two histories of a pair have half of its weight each.

    `unit` of shape (n_kernels,): the unit of each kernel, pairs being counted after the others.
    Returns shape (n_kernels, n_units).
    """
    share = np.zeros((len(unit), n_units))
    for row, each in zip(share, unit, strict=True):
        if each < n_units:
            row[each] = 1.0
        else:
            row[list(pairs[each - n_units])] = 0.5
    return share
