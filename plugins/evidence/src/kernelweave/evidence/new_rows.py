"""What a fit expects of each kind of new rows, from the one factorisation that it has.

Rows that come in groups or one after the other look better on rows held out at random than they
are on new groups or later rows. With S = K + σ²/w of all rows and a = S⁻¹y, the rows g are
predicted from all others with the residuals (S⁻¹_gg)⁻¹a_g, whatever g is: a group, or all that came
later. The mean that targets are centred by is that of the others too. With the mean of all rows,
and kernels that are centred on them, levels of groups sum to zero, and all others would tell that
of the one left out. Scales, and components of texts, are those that all rows chose, so that a line
is an upper estimate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning, clock
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.exceptions import Message
from scipy.stats import spearmanr

from .columns import Dimension
from .copies import alike_groups
from .leave_out import PairsLeaveOut
from .leaving import (
    FEWEST,
    SOME,
    LeavesOut,
    LeftTogether,
    leave_groups_out,
    leave_kind_out,
    leave_later_groups_out,
    leave_later_out,
    leave_one_out,
    some_groups,
)
from .rows import Rows
from .scores import margin_of_error

# values that a column must have to name groups, and rows of one in the median
_LEVELS, _ROWS = 8, 2.0
# Neighbouring groups of white noise have squared differences of twice their variance. Whole numbers
# whose neighbours are alike are quantities, such as hours and ages, and name no groups.
_ALIKE = 1.0
_YEARS = (1800.0, 2100.0)
_CALLED_YEARS = re.compile(r"(?i)year|jahr|ann[ée]e|\byr\b")
# of a line that is doubted by chance, in one fit of fifty
_CHANCE = 0.02
# squares of 20 times the size say no more of a group or block: a jump is not to hide the others
_MOST = 3.0
# a smaller share of what separates a right prediction from a constant one is not worth a word
_WORTH = 0.02
# of many rows: so many for a kind of new rows at least and at most
_SOME_EACH = 250, 1000


class HeldOutWarning(KernelWeaveWarning):
    """New groups or later rows are predicted worse than the held-out score says.

    ``held_out_`` has both figures: ignore this category where you show them.

    `finding`: which rows, and how much worse; `remedy`: what to do if such rows will be predicted.

    Examples
    --------
    >>> from kernelweave.evidence import HeldOutWarning
    >>> from kernelweave.kernels_core import KernelWeaveWarning
    >>> issubclass(HeldOutWarning, KernelWeaveWarning)
    True
    """

    def __init__(self, finding: str, remedy: str = "") -> None:
        super().__init__(finding, remedy)
        self.finding, self.remedy = finding, remedy

    def __str__(self) -> str:
        return ". If you will predict such rows, ".join(filter(None, (self.finding, self.remedy)))


@dataclass(frozen=True)
class Kind:
    """A kind of new rows.

    `name`: for the table; `phrase`: for a sentence, after "on"; `argument`: what tells `fit` of it;
    `groups` of shape (n,): which row goes with which, −1 with none; or `order` of shape (n,): what
    comes before what. With both: rows of later blocks, where `known` those of groups that were
    there before, else all, without these. Without an order rows of a `known` group are left out
    alone; so are rows with `counts` of shape (n,): how many each stands for.
    """

    name: str
    phrase: str
    argument: str
    groups: Index | None = None
    order: FloatArray | None = None
    known: bool | None = None
    counts: Index | None = None


# later rows of a table are later in time
IN_THE_FILE = Message("{by_the_lines}", by_the_lines="order=np.arange(len(y))")
USUAL = Kind("rows like these", "rows like these", "")
# rank correlation of the samples' targets and their places from which a file is sorted by these
_SORTED = 0.95
# the value of `groups` that groups near-duplicate rows, as no column names these groups
ALIKE = "rows alike"
WITHOUT_ALIKE = Kind(
    f"without {ALIKE}", "rows that are near copies of no other", Message(f"{{groups}}={ALIKE!r}")
)

AS_THEY_RECUR = Kind("as rows recur here", "rows of which some recur", "")


class Expectation(NamedTuple):
    """What is expected of a kind of new rows.

    `error`: standard error of the score, over groups or blocks; `least`: the least difference to
    the score of usual rows that is worth a warning, infinite where it may be chance.
    """

    kind: Kind
    score: float
    error: float
    n_rows: int
    n_groups: int
    least: float = np.inf


# held-out values of rows, those to calibrate by, and groups or blocks, to a score and its error
Judge = Callable[[Rows, FloatArray, FloatArray, Index], tuple[float, float]]


def kinds_of(rows: Rows, dimensions: Sequence[Dimension], first: Index) -> list[Kind]:
    """Return the kinds of new rows that a table may meet.

    `first` of shape (n,): where each row stands first in the user's table.
    """
    kinds, n_numbers = [], rows.n_numbers
    for j, each in enumerate(dimensions):
        if each.kind == "category":
            codes = rows.codes[:, j - n_numbers]
            named = [
                k for k, label in enumerate(each.categories) if label not in ("(rare)", "(missing)")
            ]
            kinds += _new(each.source, np.where(np.isin(codes, named), codes, -1))
        elif each.name.endswith("days since 1970"):
            days = np.floor(rows.numeric[:, j])
            kinds += _new(each.source, np.unique(days, return_inverse=True)[1].ravel(), "day of ")
            kinds.append(_later(each.source, rows.numeric[:, j]))
        elif each.kind == "number" and (rows.numeric[:, j] == np.floor(rows.numeric[:, j])).all():
            codes = np.unique(rows.numeric[:, j], return_inverse=True)[1].ravel()
            if codes.max() < len(rows) / _ROWS and not _are_quantities(codes, rows):
                kinds += _new(each.source, codes)
            if _are_years(each.source, rows.numeric[:, j], first):
                kinds.append(_later(each.source, rows.numeric[:, j]))
    alike = _alike(rows, [each.groups for each in kinds if each.groups is not None])
    kinds += alike
    orders = [np.argsort(each.order, kind="stable") for each in kinds if each.order is not None]
    in_the_file = any(np.array_equal(np.argsort(first), by) for by in orders)
    by_samples = any(_are_sorted(each.groups, rows, first) for each in alike)
    if not (in_the_file or by_samples or _is_sorted(rows, first)):
        phrase = "rows that come later in the table"
        order = first.astype(np.float64)
        kinds.append(Kind("later in the file", phrase, IN_THE_FILE, order=order))
    return kinds


def _new(column: str, groups: Index, what: str = "") -> list[Kind]:
    """Return groups where they are many enough and most have several rows."""
    counts = np.bincount(groups[groups >= 0])
    counts = counts[counts > 0]
    if len(counts) < _LEVELS or np.median(counts) < _ROWS:
        return []
    phrase = f"rows of a new {what}{column!r}"
    argument = Message("{groups}={column!r}", column=column)
    return [Kind(f"new {what}{column}", phrase, argument, groups=groups)]


def _later(column: str, order: FloatArray) -> Kind:
    phrase = f"rows that are later by {column!r}"
    argument = Message("{order}={column!r}", column=column)
    return Kind(f"later by {column}", phrase, argument, order=order)


def _are_years(column: str, values: FloatArray, first: Index) -> bool:
    """Return whether whole numbers are called years, or rise through the file, several rows each.

    Counts and prices may lie between the same bounds, but in no order.
    """
    if not _YEARS[0] <= values.min() <= values.max() <= _YEARS[1]:
        return False
    rises = (np.diff(values[np.argsort(first)]) >= 0.0).all()
    several = len(values) >= _ROWS * len(np.unique(values))
    return _CALLED_YEARS.search(column) is not None or bool(rises and several)


def _alike(rows: Rows, named: Sequence[Index]) -> list[Kind]:
    """Return `WITHOUT_ALIKE` with the groups of near copies; none where a column names these."""
    if rows.recurring:
        return []
    alike = alike_groups(rows.numbers, rows.codes)
    counts = np.bincount(alike)
    for groups in named:
        n_pairs, n_groups = len(np.unique([groups, alike], axis=1).T), len(np.unique(groups))
        if n_pairs == len(counts) < 2 * n_groups:
            return []
    groups = np.where(counts[alike] > 1, alike, -1)
    return [replace(WITHOUT_ALIKE, groups=groups)] if (groups >= 0).any() else []


def _are_quantities(codes: Index, rows: Rows) -> bool:
    counts = np.bincount(codes, weights=rows.mass)
    if len(counts) < _LEVELS:
        return True
    means = np.array([np.bincount(codes, weights=rows.mass * y) / counts for y in rows.targets])
    rest = means - means.mean(axis=1, keepdims=True)
    spread = np.sum(rest**2, axis=1)
    ratio = np.sum(np.diff(means, axis=1) ** 2, axis=1) / np.where(spread > 0.0, spread, 1.0)
    return bool(ratio.min() < _ALIKE)


def _is_sorted(rows: Rows, first: Index) -> bool:
    """Return whether the table is in the order of its targets or of words: in no order of time."""
    by, classes = np.argsort(first), rows.targets.argmax(axis=0)
    targets = rows.targets if len(rows.targets) == 1 else classes[None]
    for column in [*targets[:, by], *rows.codes[by].T]:
        steps = np.diff(column)
        values, runs = len(np.unique(column)), 1 + np.count_nonzero(steps)
        in_blocks = 1 < values == runs <= len(rows) / _ROWS
        if in_blocks or (steps >= 0).all() or (steps <= 0).all():
            return True
    return False


def _are_sorted(groups: Index | None, rows: Rows, first: Index) -> bool:
    """Return whether near copies stand together, one sample after the other by their targets."""
    if groups is None:
        return False
    by = np.argsort(first)
    by = by[groups[by] >= 0]
    own = groups[by]
    starts = np.flatnonzero(np.diff(own, prepend=own[0] - 1))
    if len(starts) != len(np.unique(own)):
        return False
    counts = np.diff(starts, append=len(own))
    means = np.add.reduceat(rows.targets[:, by], starts, axis=1) / counts
    if (np.ptp(means, axis=1) == 0.0).any():
        return False
    # noise of the copies may swap two samples
    return all(abs(spearmanr(each, np.arange(len(each))).statistic) > _SORTED for each in means)


def expected(
    closed: LeavesOut,
    rows: Rows,
    kinds: Sequence[Kind],
    judge: Judge,
    random_state: np.random.RandomState,
    *,
    many: bool = False,
) -> tuple[list[Expectation], list[Kind]]:
    """Return a line for each kind that can be told of, and the kinds that time was not left for.

    - `closed`: leaves rows out
    - `judge`: from rows, their held-out values in units of the targets, values that show how to
      calibrate them, and groups or blocks of the rows, to a score and its standard error
    - `many`: whether a share of the groups and the latest rows are to tell it
    """
    most = int(np.clip(SOME // max(1, len(kinds)), *_SOME_EACH)) if many else None
    lines: list[Expectation] = []
    watch = clock.Stopwatch()
    for k, kind in enumerate(kinds):
        if clock.expired() and watch.seconds > clock.LATE_SECONDS:
            return lines, list(kinds[k:])
        left = _left(closed, kind, random_state, most)
        if left is None or (len(np.unique(left.parts)) < 3 and left.groups is None):
            continue
        lines.append(_line(closed, rows, kind, left, judge, len(kinds)))
    return lines, []


def _left(
    closed: LeavesOut, kind: Kind, random_state: np.random.RandomState, most: int | None
) -> LeftTogether | None:
    """Return rows of a kind left out; ``None`` where there are too few of them, or groups.

    `most`: rows at most, of many.
    """
    groups, order = kind.groups, kind.order
    if order is not None and len(order) < FEWEST:
        return None
    if kind.known is not None and not isinstance(closed, PairsLeaveOut):
        return leave_kind_out(closed, 2 * (order is not None) + (not kind.known))
    if isinstance(closed, PairsLeaveOut) and groups is not None:
        if order is not None:
            return leave_later_groups_out(
                closed, order, groups, known=kind.known is True, most=most
            )
        if kind.known or kind.counts is not None:
            return leave_one_out(closed, groups, kind.counts)
    if groups is not None:
        groups = groups if most is None else some_groups(groups, most, random_state)
        return (
            None if groups.max(initial=-1) < 0 else leave_groups_out(closed, groups, random_state)
        )
    # blocks are few, and each is left out many times beside others
    fewer = None if most is None else most // 2
    return None if order is None else leave_later_out(closed, order, random_state, fewer)


def _line(
    closed: LeavesOut, rows: Rows, kind: Kind, left: LeftTogether, judge: Judge, n_kinds: int
) -> Expectation:
    """Return what is expected of a kind, from its rows left out; `n_kinds`: that are asked."""
    target = closed.targets
    values_of = target.of_rows(rows).values.T[left.rows]
    taken = rows.take(left.rows)

    def judged(values: FloatArray, parts: Index = left.parts) -> tuple[float, float]:
        return judge(taken, target.moments(values, closed.width)[0], usual, parts)

    usual = target.moments(values_of - left.usual[0], closed.width)[0]
    score, error = judged(values_of - left.residuals)
    n_parts = len(np.unique(left.parts))
    if left.groups is not None:
        # rows of a group, and of a block, share what is wrong with their predictions
        over_groups = judged(values_of - left.residuals, left.groups)[1]
        if n_parts < 3 or not error >= over_groups:
            error, n_parts = over_groups, len(np.unique(left.groups))
    least, told = np.inf, kind.known is not None or kind.counts is not None
    if not told and _is_significantly_worse(left, taken.mass, n_kinds):
        # R² of noise is lower where twins are left out too, by 2/n: surely, and no news
        other, *ends = (
            judged(each)[0] for each in (values_of - left.usual[0], values_of, 0.0 * values_of)
        )
        unit = abs(ends[0] - ends[1])
        worth = _WORTH * (unit if np.isfinite(unit) else abs(other))
        least = worth if score < other - worth else np.inf
    named = replace(kind, groups=None, order=None, counts=None)
    return Expectation(named, score, error, len(taken), n_parts, least)


def _is_significantly_worse(left: LeftTogether, mass: FloatArray, n_kinds: int) -> bool:
    """Return whether residuals are larger than usual ones by more than chance and draws explain.

    By the ratios of the mean squares of groups or blocks, as a few of these may be of another size
    than all others. On 120 made panels of 5 to 60 groups the mean difference of squares found 36 %
    of what the ratios find in 78 %; of 120 where groups were drawn at random, either found one.
    """
    new, usual = ((left.residuals**2).mean(axis=-1), (left.usual**2).mean(axis=(0, -1)))
    sums = [np.bincount(left.parts, each * mass) for each in (new, usual)]
    sizes = np.log(np.maximum(sums, np.finfo(np.float64).tiny))
    gains = np.clip(sizes[0] - sizes[1], -_MOST, _MOST)
    n = len(gains)
    error = float(gains.std(ddof=1) / np.sqrt(n))
    # one side of it, of every kind
    return bool(gains.mean() > margin_of_error((error, n), chance=2.0 * _CHANCE / n_kinds))
