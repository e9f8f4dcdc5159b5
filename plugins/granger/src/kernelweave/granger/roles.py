"""What each column of a series may do: drive, be driven, or only stand beside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index

from .pairs import Pair
from .series import Groups, make_groups

# one or several of the columns
Names: TypeAlias = int | Iterable[object] | None


@dataclass(frozen=True, eq=False)
class Roles:
    """Nodes of the graph, exogenous series beside them, and the links that may be.

    - `nodes`: groups of columns that the graph is about
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
        columns: Index = np.concatenate([self.nodes.members[i] for i in self.driven])
        return columns

    def seen(self, target: int, owner: Index, pairs: list[Pair]) -> Index:
        """Return the kernels that the model of a target sees, by the source of each kernel."""
        allowed = self.allowed[target]
        both = [allowed[a] and allowed[b] for a, b in pairs]
        may = np.concatenate([allowed, np.ones(len(self.exogenous)), both]).astype(bool)
        return np.flatnonzero(may[owner])

    def stays(self, target: int, owner: Index) -> npt.NDArray[np.bool_]:
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
) -> Roles:
    """Return the roles of the columns of a series.

    - `names`: of the columns
    - `groups`: a label per column that is not exogenous
    - `exogenous`, `never_targets`: names of columns, and of nodes
    - `forbidden`: (source, target) by name

    Raises ValueError if a name is unknown, no node is left to be driven, or a node shall not drive
    itself.
    """
    beside = _places("exogenous", exogenous, names)
    kept = np.setdiff1d(np.arange(len(names)), beside)
    if len(kept) == 0:
        raise ValueError("exogenous names every series: at least one must be a node")
    local = make_groups(groups, [names[j] for j in kept])
    nodes = Groups(local.names, [kept[members] for members in local.members])
    others = Groups([names[j] for j in beside], [np.array([j]) for j in beside])
    never = _places("never_targets", never_targets, nodes.names)
    driven = np.setdiff1d(np.arange(len(nodes)), never)
    if len(driven) == 0:
        raise ValueError("never_targets names every node: at least one must be driven")
    allowed = np.ones((len(nodes), len(nodes)), dtype=bool)
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
    """Return where names stand."""
    if wanted is None:
        return np.array([], dtype=np.intp)
    asked = [str(wanted)] if isinstance(wanted, str | int) else [str(each) for each in wanted]
    unknown = [each for each in asked if each not in names]
    if unknown:
        raise ValueError(
            f"{parameter} must name series of X, got {unknown[0]!r}: there are "
            f"{', '.join(names[:12])}"
        )
    found = np.array([names.index(each) for each in asked], dtype=np.intp)
    return found if keep_order else np.unique(found)
