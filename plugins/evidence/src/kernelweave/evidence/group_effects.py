"""Effects of groups: what predictions add for each of them alone, shrunk, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices

from .exact import ExactPredictor

if TYPE_CHECKING:
    import pandas as pd

    from .columns import Dimension
    from .columns.encoded import GroupColumn, GroupTerm
    from .mixture import Expansion
    from .rows import Rows
    from .views import Points

# rows that are set to each group at most; groups whose mean is taken; rows of all of these, and of
# all groups, at most
_ROWS, _OTHERS, _AVERAGED, _SET = 100, 100, 2000, 20_000
# numbers of kernel values that are worked on at a time
_VALUES = 4_000_000
COLUMNS = ("grouping", "group", "effect", "error", "n_rows")


class _OfTerm(NamedTuple):
    """Effects of the groups of one term, standardised.

    `names`, `counts` of shape (n_groups,): as the encoded column has them, and their rows;
    `effects` of shape (n_groups, n_outputs); `variances` of shape (n_groups,).
    """

    names: FloatArray
    counts: Index
    effects: FloatArray
    variances: FloatArray


def counted(term: GroupTerm, rows: Rows, owner: Index | None = None) -> tuple[FloatArray, Index]:
    """Return the names of the groups of a term, ascending, and how many rows each has.

    `owner` of shape (n_given,): which of the rows each of the user's is, −1 of none.
    """
    names = term.column.names(rows.numeric, rows.codes)
    if owner is not None:
        names = names[owner[owner >= 0]]
    found, counts = np.unique(names[~np.isnan(names)], return_counts=True)
    return found, counts


def effects_of(
    predictor: Any, owner: Index, dimensions: Sequence[Dimension], flat: bool
) -> pd.DataFrame:
    """Return a row for each group of each term: grouping, group, effect, error and rows.

    `owner`: as in `counted`; `dimensions`: of the encoded table; `flat`: whether there is one
    output, else another column names it.

    Raises ValueError for a model of landmarks from an older file, which kept no errors of levels.
    """
    import pandas as pd

    if isinstance(predictor, ExactPredictor):
        # of two functions that are averaged, least squares and a likelihood of counts, the first
        own = predictor.mixture, predictor.folds, predictor.weights, predictor.rows
        predictor = ExactPredictor(*own, predictor.held_out)
    expansion = predictor.expansion()
    unit, parts = _unit(expansion), []
    for k, term in enumerate(expansion.views.group_terms):
        told = _of_term(predictor, expansion, owner, k, term)
        source = dimensions[term.column.place]
        # beside landmarks variances are in the unit of a ridge, and rows held out say which that is
        variances = np.outer(expansion.inflation, np.maximum(told.variances, 0.0))
        labels = [_label(source, name) for name in told.names.tolist()]
        name = f"{term.of} by {source.source}" if term.slope >= 0 else source.source
        for t, scale in enumerate(unit.tolist()):
            error = scale * np.sqrt(variances[t])
            columns = (name, labels, scale * told.effects[:, t], error, told.counts)
            part = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
            if not flat:
                part.insert(0, "output", t)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _unit(expansion: Expansion) -> FloatArray:
    """Return what a step of one standardised unit is in the targets at their centre, (n_outputs,).

    Of targets under a power that is the slope of the way back.
    """
    target = expansion.target
    if not target.warps:
        return target.spread
    pairs = zip(target.warps, target.centre.tolist(), strict=True)
    slopes = [warp.slope(warp.inverse(np.array([at])))[0] for warp, at in pairs]
    return np.asarray(target.spread * np.array(slopes))


def _label(dimension: Dimension, name: float) -> object:
    """Return a group's name as the user's table has it."""
    if dimension.kind == "category":
        return dimension.categories[int(name)]
    return int(name) if name.is_integer() else name


def _of_term(
    predictor: Any, expansion: Expansion, owner: Index, k: int, term: GroupTerm
) -> _OfTerm:
    """Return the effects of the groups of the term at place ``k``."""
    levels = expansion.levels if k == 0 else None
    if levels is not None and levels.variances is None:
        raise ValueError(
            "this model was saved by a version that kept no errors of the groups' levels: fit it "
            "again"
        )
    told = getattr(predictor, "group_counts", ())
    names, counts = told[k] if told else counted(term, predictor.rows, owner)
    if term.slope >= 0:
        functional, prior = _slope_functionals(expansion, predictor.rows, term, (names, counts), k)
    else:
        found = LevelFunctionals(expansion, predictor.rows, term, names, counts)
        functional = found(names)
        if levels is not None:
            assert levels.variances is not None
            own = levels.at(names)
            beside = own - found.shares @ levels.at(found.others)
            return _OfTerm(names, counts, functional @ expansion.dual + beside, levels.variances)
        prior = found.prior(names)
    variances = prior - expansion.explained(functional)
    return _OfTerm(names, counts, functional @ expansion.dual, variances)


def _set_to(rows: Rows, column: GroupColumn, names: FloatArray) -> tuple[FloatArray, Index]:
    """Return numbers and codes of the rows once for each group, as if all were of that group."""
    numeric, codes = np.tile(rows.numeric, (len(names), 1)), np.tile(rows.codes, (len(names), 1))
    values = np.repeat(names, len(rows))
    if column.code >= 0:
        codes[:, column.code] = values
    else:
        numeric[:, column.place] = values
        if column.indicator >= 0:
            numeric[:, column.indicator] = 0.0
    return numeric, codes


@dataclass(frozen=True)
class LevelFunctionals:
    """The mean of some rows' predictions if all were of one group, less that of the groups.

    All terms of the kernel take part, for each may learn what a group adds; what all groups have in
    common cancels. That is a linear functional of f: it has a value at each point of an expansion,
    and a variance. The mean of the groups is by their rows, of a hundred groups at most.

    `names`, `counts` of shape (n_groups,): of all groups, and their rows; `rows`: of training.
    """

    expansion: Expansion
    rows: Rows
    term: GroupTerm
    names: FloatArray
    counts: Index

    @cached_property
    def _some(self) -> Rows:
        few = min(_AVERAGED // min(len(self.names), _OTHERS), _SET // len(self.names), _ROWS)
        n = len(self.rows)
        return self.rows.take(np.unique(np.linspace(0, n - 1, max(1, few)).astype(np.intp)))

    @cached_property
    def others(self) -> FloatArray:
        """The groups whose mean is taken, shape (n_others,)."""
        if len(self.names) <= _OTHERS:
            return self.names
        ends = np.cumsum(self.counts) / self.counts.sum()
        middles = (np.arange(_OTHERS) + 0.5) / _OTHERS
        return np.asarray(self.names[np.searchsorted(ends, middles)])

    @cached_property
    def shares(self) -> FloatArray:
        """The weight of each in the mean, shape (n_others,)."""
        if len(self.names) > _OTHERS:
            return np.full(_OTHERS, 1.0 / _OTHERS)
        return np.asarray(self.counts / self.counts.sum())

    @cached_property
    def _others(self) -> Points:
        return self._points(self.others)

    @cached_property
    def _mean(self) -> FloatArray:
        return self.shares @ self._means(self._others, self.expansion.points)

    def _points(self, names: FloatArray) -> Points:
        return self.expansion.points_of(*_set_to(self._some, self.term.column, names))

    def _means(self, left: Points, right: Points) -> FloatArray:
        """Return mean kernel values of the rows of each group, shape (n_groups, n_right)."""
        values = self.expansion.kernel(left, right)
        return np.asarray(values.reshape(-1, len(self._some), right.n_points).mean(axis=1))

    def __call__(self, names: FloatArray) -> FloatArray:
        """Return what groups have with the points of the expansion, shape (n, n_points)."""
        points, size = self.expansion.points, len(self._some)
        found = np.empty((len(names), points.n_points))
        for some in row_slices(len(names), max(1, _VALUES // (size * points.n_points))):
            found[some] = self._means(self._points(names[some]), points) - self._mean
        return found

    def prior(self, names: FloatArray) -> FloatArray:
        """Return variances before any row is known, shape (n,)."""
        size = len(self._some)
        share = np.repeat(self.shares / size, size)
        rest = share @ self.expansion.kernel(self._others, self._others) @ share
        out = np.empty(len(names))
        for k in range(len(names)):
            own = self._points(names[k : k + 1])
            across = self.expansion.kernel(own, self._others).mean(axis=0) @ share
            out[k] = self.expansion.kernel(own, own).mean() - 2.0 * across + rest
        return out


def _slope_functionals(
    expansion: Expansion, rows: Rows, term: GroupTerm, groups: tuple[FloatArray, Index], k: int
) -> tuple[FloatArray, FloatArray]:
    """Return what a slope of groups has with the points of an expansion, and prior variances.

    At one unit of the number's view, less the mean of the groups by their rows: what all groups
    have in common is no effect of one, and other terms of the kernel may learn it as well.

    `groups`: their names, and the numbers of their rows; `k`: the place of the term. Returns shapes
    (n_groups, n_points) and (n_groups,).
    """
    names, counts = groups
    shares = counts / counts.sum()
    left = expansion.points_of(*_set_to(rows.take(np.arange(1)), term.column, names))
    same = left.same_group(expansion.points, term=k).astype(np.float64)
    if expansion.points.Z is not None:
        same *= expansion.points.Z[k]
    weight = sum(float(scales.of_groups[k]) for scales in expansion.scales)
    return weight * (same - shares @ same), weight * (1.0 - 2.0 * shares + shares @ shares)
