"""What each column of a series may do, and pairs of histories whose product drives a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.exceptions import Message

from .series import Groups, make_groups

# one or several of the columns
Names: TypeAlias = int | Iterable[object] | None

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
    target. Raises MemoryBudgetError if the products of one pair are more than the limit.
    """
    if len(nodes) < 2:
        return []
    views = nodes.columns(n_lags)
    widest = sorted(len(view) for view in views)[-2:]
    memory.require(
        _COPIES * history.itemsize * len(history) * widest[0] * widest[1],
        f"products of {widest[0]} and {widest[1]} columns of histories of {len(history)} samples",
        alternative="give smaller groups, fewer lags or {pairs}=False, or raise {memory_limit}",
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
    scores = np.empty(len(pairs))
    for k, (a, b) in enumerate(pairs):
        Z = pair_features(history[:, views[a]], history[:, views[b]])
        scores[k] = ((Z.T @ rest) ** 2).sum(axis=0).max() / len(history)
    return [pairs[k] for k in np.sort(np.argsort(-scores, kind="stable")[:_MOST])]


def _varies(first: Matrix, second: Matrix) -> bool:
    """Tell whether any product of two columns is more than a constant."""
    Z = first[:, :, None] * second[:, None, :]
    return bool(Z.size and Z.std(axis=0).max() > _CONSTANT * np.abs(Z).max())


def pair_features(first: Matrix, second: Matrix) -> Matrix:
    """Return Z with Z Zᵀ the product of two linear kernels on histories, centred and of trace n."""
    Z = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
    Z = Z - Z.mean(axis=0)
    size = float((Z**2).sum()) / len(Z)
    scaled: Matrix = Z / np.sqrt(size) if size > 0.0 else Z
    return scaled


def shares(unit: Index, n_units: int, pairs: list[Pair]) -> RealArray:
    """Return `share`: a pair, whose unit comes after the others, gives half to each of its two."""
    share = np.zeros((len(unit), n_units))
    for row, each in zip(share, unit, strict=True):
        if each < n_units:
            row[each] = 1.0
        else:
            row[list(pairs[each - n_units])] = 0.5
    return share


@dataclass(frozen=True, eq=False)
class Roles:
    """Nodes of the graph, exogenous series beside them, and the links that may be.

    - `nodes`: groups of columns that the graph is about; constant columns are in none, so that a
      node may have no columns, and then no model and no edges
    - `exogenous`: columns whose histories every model sees, that have no model, and no edges
    - `driven`: the nodes that have a model
    - `allowed` of shape (n_nodes, n_nodes): ``allowed[i, j]``: whether j may drive i
    """

    nodes: Groups
    exogenous: Groups
    driven: Index
    allowed: npt.NDArray[np.bool_]

    @property
    def sources(self) -> Groups:
        """Nodes and exogenous columns, in this order."""
        return Groups(
            [*self.nodes.names, *self.exogenous.names],
            [*self.nodes.members, *self.exogenous.members],
        )

    @property
    def driven_columns(self) -> Index:
        """Columns that have a model."""
        return np.concatenate([self.nodes.members[i] for i in self.driven])

    def kernels_of(self, target: int, owner: Index, pairs: list[Pair]) -> Index:
        """Return the kernels that the model of a target sees, by the source of each kernel."""
        allowed = self.allowed[target]
        both = [allowed[a] and allowed[b] for a, b in pairs]
        may = np.concatenate([allowed, np.ones(len(self.exogenous)), both]).astype(bool)
        return np.flatnonzero(may[owner])

    def never_permuted(self, target: int, owner: Index) -> npt.NDArray[np.bool_]:
        """Return the kernels that no draw moves: the target's own and exogenous ones."""
        n = len(self.nodes)
        exogenous = (owner >= n) & (owner < n + len(self.exogenous))
        still: npt.NDArray[np.bool_] = (owner == target) | exogenous
        return still

    def tested(self) -> npt.NDArray[np.bool_]:
        """Return which edges between different nodes may be, shape (n_nodes, n_nodes)."""
        edges = self.allowed & ~np.eye(len(self.nodes), dtype=bool)
        edges[np.setdiff1d(np.arange(len(self.nodes)), self.driven)] = False
        return edges


def make_roles(
    names: list[str],
    groups: Iterable[object] | None,
    exogenous: Names,
    never_targets: Names,
    forbidden: Iterable[object] | None,
    constant: Index,
) -> Roles:
    """Return the roles of the columns of a series, by their names; `groups`: a label per node.

    `constant`: columns that are left out. Raises ValueError if a name is not there, if no node is
    left, or none that is driven.
    """
    extra = _places("exogenous", exogenous, names)
    kept = np.setdiff1d(np.arange(len(names)), extra)
    if len(kept) == 0:
        raise ValueError("exogenous names every series: at least one must be a node")
    local = make_groups(groups, [names[j] for j in kept])
    members = [np.setdiff1d(kept[each], constant) for each in local.members]
    nodes = Groups(local.names, members)
    others = Groups([names[j] for j in extra], [np.setdiff1d(j, constant) for j in extra])
    full = np.array([len(each) > 0 for each in members])
    if not full.any():
        raise ValueError(
            f"every node is constant ({', '.join(names[j] for j in kept[:5])}): a graph needs "
            "series that vary"
        )
    never = _places("never_targets", never_targets, nodes.names)
    driven = np.setdiff1d(np.flatnonzero(full), never)
    if len(driven) == 0:
        raise ValueError("never_targets names every node that varies: at least one must be driven")
    allowed = np.outer(full, full)
    for pair in [] if forbidden is None else forbidden:
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(list(pair)) != 2:
            raise ValueError(f"forbidden must hold pairs (source, target), got {pair!r}")
        source, target = _places("forbidden", list(pair), nodes.names, keep_order=True)
        if source == target:
            raise ValueError(
                f"forbidden must hold pairs of different nodes, got {pair!r}: every model sees "
                "its own past"
            )
        allowed[target, source] = False
    return Roles(nodes, others, driven, allowed)


def _places(parameter: str, wanted: Names, names: list[str], *, keep_order: bool = False) -> Index:
    """Return the positions in ``names`` of the series that a parameter lists."""
    if wanted is None:
        return np.array([], dtype=np.intp)
    series = [str(wanted)] if isinstance(wanted, str | int) else [str(each) for each in wanted]
    unknown = [each for each in series if each not in names]
    if unknown:
        raise ValueError(
            Message(
                f"{{{parameter}}} must name series of X, got {{first!r}}: there are {{names}}",
                first=unknown[0],
                names=", ".join(names[:12]),
            )
        )
    places = np.array([names.index(each) for each in series], dtype=np.intp)
    return places if keep_order else np.unique(places)
