"""From an estimator's ``penalty`` parameter to a regulariser."""

from __future__ import annotations

from collections.abc import Sequence

from .base import METHODS, Penalty, is_penalty
from .elastic_net import ElasticNet
from .group import GroupNorm
from .squared_lp import SquaredLpNorm

PENALTIES = ("lp", "elastic-net", "group")


def as_penalty(
    penalty: object, *, p: float = 1.0, mu: float = 0.5, groups: Sequence[int] | None = None
) -> Penalty:
    """Return the regulariser that a name stands for, or the object given.

    - `penalty`: ``"lp"``, ``"elastic-net"``, ``"group"``, or an object with ``start``, ``value``,
      ``update`` and ``conjugate``, and ``prox`` for ``vv-spg``
    - `p`: exponent of ``"lp"`` and ``"group"``
    - `mu`: share of the squared norm in ``"elastic-net"``
    - `groups`: group of each kernel, for ``"group"``

    Raises ValueError if the name is unknown or a parameter does not fit it.
    """
    if penalty == "lp":
        return SquaredLpNorm(p)
    if penalty == "elastic-net":
        return ElasticNet(mu)
    if penalty == "group":
        if groups is None:
            raise ValueError("penalty='group' needs groups, the group of each kernel; got None")
        return GroupNorm(tuple(groups), p)
    if not is_penalty(penalty):
        raise ValueError(
            f"penalty must be one of {', '.join(map(repr, PENALTIES))} or an object with "
            f"{', '.join(METHODS)}, got {penalty!r}"
        )
    return penalty
