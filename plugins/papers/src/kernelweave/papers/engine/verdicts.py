"""What figures say: ours beside the paper's, and what the paper says in words, by one rule each.

A claim holds where every difference, or the 95 % interval of their mean, has the direction that the
paper says; it does not hold where they have the other; else it cannot be decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from ..data import printed
from ..measuring import interval, mean
from ..plan import PAPER, Sheet, Value

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"
BETTER, WITHIN, WORSE = "better", "within the printed deviation", "worse"
# differences of fewer pairs have no interval worth the name
_FEWEST = 3

# what every γ is divided by, as columns show it
WIDTHS = {"γ": False, "γ/m": True}
# half of the last digit that the paper prints
LAST_DIGIT = 0.005


class Compared(NamedTuple):
    """A row of ``compared.csv``: a column of ours and the paper's, and what is better.

    That is less, more, or the same.
    """

    table: str
    ours: str
    theirs: str
    better: str


class Claim(NamedTuple):
    """A row of ``claims.csv``: a sentence of a paper on a table, and what decides it.

    ``first`` is said to be less or more than the best of ``second``. With a ``column`` they name
    rows, else columns, of one ``row`` or of all; ``printed`` are the paper's columns of the same.
    Figures that do not vary from run to run are ``exact``. Without a ``first`` nothing here
    decides it, and ``why`` says so.
    """

    table: str
    says: str
    first: str = ""
    second: tuple[str, ...] = ()
    better: str = "less"
    column: str = ""
    printed: tuple[str, ...] = ()
    exact: bool = False
    row: str = ""
    why: str = ""


@cache
def claims_on(table: str) -> list[Claim]:
    """Return what the paper says of a table."""
    claims = []
    for row in printed("", "claims.csv"):
        if row["table"] == table:
            names = {each: tuple(row.get(each, "").split("|")) for each in ("second", "printed")}
            lists = {name: each for name, each in names.items() if each != ("",)}
            claims.append(Claim(**{**row, **lists, "exact": "exact" in row}))
    return claims


@cache
def compared_in(table: str) -> list[Compared]:
    """Return the columns of a table that stand beside the paper's."""
    return [Compared(**row) for row in printed("", "compared.csv") if row["table"] == table]


@dataclass(frozen=True)
class Pair:
    """Two figures that a claim compares, and the sum of their deviations where it is known."""

    first: float
    second: float
    spread: float | None = None


def judge(low: float | None, high: float | None, claimed: float) -> str:
    """Return what an interval of a difference says of the sign that a paper gives it.

    Examples
    --------
    >>> judge(0.5, 2.0, claimed=1.0), judge(-2.0, -0.5, claimed=1.0), judge(-1.0, 1.0, claimed=1.0)
    ('holds', 'does not hold', 'cannot be decided')
    """
    if low is None or high is None or low <= 0.0 <= high or claimed == 0.0:
        return OPEN
    return HOLDS if (low > 0.0) == (claimed > 0.0) else FAILS


def decide(pairs: Sequence[Pair], claim: Claim) -> tuple[str, str]:
    """Return the verdict of a claim, and the differences in words."""
    sign = -1.0 if claim.better == "less" else 1.0
    differences = [_difference(pair, claim.better) for pair in pairs]
    agree = sum(sign * each > 0.0 for each in differences)
    against = sum(sign * each < 0.0 for each in differences)
    counts = f"{agree} as said, {against} the other way, {len(pairs) - agree - against} equal"
    if claim.exact or len(pairs) < _FEWEST:
        shown = [
            sign * each
            for each, pair in zip(differences, pairs, strict=True)
            if claim.exact
            or (pair.spread is not None and abs(pair.first - pair.second) > pair.spread)
        ]
        # one pair beyond its deviation refutes what is said of all
        if any(each < 0.0 for each in shown) and not any(each > 0.0 for each in shown):
            return FAILS, counts
        every = len(shown) == len(pairs) and agree > 0 and against == 0
        return HOLDS if every else OPEN, counts
    low, middle, high = interval(differences)
    unit = "%" if claim.better == "less" else "points"
    words = f"{middle:+.3g} {unit} ({low:+.3g} to {high:+.3g}); {counts}"
    return judge(low, high, sign), words


def _difference(pair: Pair, better: str) -> float:
    """Return first less second: in points, or in per cent of the larger where less is better."""
    if pair.first == pair.second:
        return 0.0
    if better == "more":
        return pair.first - pair.second
    if math.isinf(pair.first) or math.isinf(pair.second):
        return 100.0 if pair.first > pair.second else -100.0
    return 100.0 * (pair.first - pair.second) / max(abs(pair.first), abs(pair.second))


def compare_with_theirs(ours: Value, theirs: Value, spread: Value, better: str) -> str | None:
    """Return whether a figure of ours is better than a printed one, by its deviation or last digit.

    Examples
    --------
    >>> compare_with_theirs(84.0, 85.0, 1.5, "more"), compare_with_theirs(0.26, 0.25, None, "less")
    ('within the printed deviation', 'worse')
    """
    if not _is_figure(ours) or not _is_figure(theirs):
        return None
    digit = 0.5 * 10.0 ** int(Decimal(str(theirs)).normalize().as_tuple().exponent)
    width = float(spread) if isinstance(spread, int | float) else min(0.5, digit)
    over = ours - theirs
    if abs(over) <= width * (1.0 + 1e-9):
        return WITHIN if isinstance(spread, int | float) else "as printed"
    if better == "same":
        return "higher" if over > 0.0 else "lower"
    return BETTER if (over > 0.0) == (better == "more") else WORSE


def _is_figure(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def with_verdicts(
    sheet: Sheet, compared: Sequence[Compared], unreduced: Sequence[Sequence[Value]]
) -> Sheet:
    """Return the sheet with a verdict for each of its compared columns.

    ``unreduced``: the rows as they are without the cells that do less than the paper did. A figure
    that is another there, or not there, has no verdict.
    """
    heads = list(sheet.columns)
    mine = [each for each in compared if {each.ours, each.theirs} <= set(heads)]
    figures = {(_names(row), i, value) for row in unreduced for i, value in enumerate(row)}
    rows = [list(row) for row in sheet.rows]
    for each in mine:
        ours, theirs = heads.index(each.ours), heads.index(each.theirs)
        follows = heads[theirs + 1] if theirs + 1 < len(heads) else ""
        at = theirs + 1 if follows == f"± {PAPER}" else None
        for row in rows:
            spread = None if at is None else row[at]
            decision = compare_with_theirs(row[ours], row[theirs], spread, each.better)
            row.append(decision if (_names(row), ours, row[ours]) in figures else None)
    names = [f"verdict, {each.ours}" if len(mine) > 1 else "verdict" for each in mine]
    return replace(sheet, columns=(*heads, *names), rows=rows)


def _names(row: Sequence[Value]) -> tuple[str, ...]:
    """Return the texts that a row begins with: what it is about."""
    return tuple(value for value in row[:2] if isinstance(value, str))


def pairs_of(sheets: Sequence[Sheet], claim: Claim, labels: Sequence[str]) -> list[Pair]:
    """Return the pairs that a claim compares; ``labels``: of the first and of the others."""
    for sheet in sheets:
        pairs = list(_in_rows(sheet, claim) if claim.column else _in_columns(sheet, claim, labels))
        if pairs:
            return pairs
    return []


def _in_columns(sheet: Sheet, claim: Claim, labels: Sequence[str]) -> Iterator[Pair]:
    heads = list(sheet.columns)
    if not set(labels) <= set(heads):
        return
    for row in sheet.rows:
        if claim.row and row[0] != claim.row:
            continue
        first, *second = (row[heads.index(label)] for label in labels)
        others = [number for each in second if (number := _number(each)) is not None]
        mine = _number(first)
        if mine is not None and others:
            yield Pair(mine, (min if claim.better == "less" else max)(others))


def _in_rows(sheet: Sheet, claim: Claim) -> Iterator[Pair]:
    heads = list(sheet.columns)
    if claim.column not in heads:
        return
    at = heads.index(claim.column)
    spreads = [i for i, (_, head) in enumerate(pairwise(heads), 1) if head == "±" and i == at + 1]
    groups: dict[str, dict[str, Sequence[Value]]] = {}
    wanted = {claim.first, *claim.second}
    for row in sheet.rows:
        names = [str(value) for value in row[: min(2, at)]]
        label = next((name for name in names if name in wanted), None)
        if label is not None:
            group = "/".join(name for name in names if name != label)
            groups.setdefault(group, {})[label] = row
    best = min if claim.better == "less" else max
    for rows in groups.values():
        figures = {name: _number(row[at]) for name, row in rows.items()}
        numeric = {name: value for name, value in figures.items() if value is not None}
        others = [name for name in claim.second if name in numeric]
        if claim.first in numeric and others:
            second = best(others, key=lambda name: numeric[name])
            width = [rows[name][i] for name in (claim.first, second) for i in spreads]
            sums = [each for each in width if isinstance(each, int | float)]
            spread = float(sum(sums)) if len(sums) == 2 else None
            yield Pair(numeric[claim.first], numeric[second], spread)


def _number(value: Value) -> float | None:
    if value == "not reached":
        return math.inf
    return float(value) if _is_figure(value) else None


def verdict(sheets: Sequence[Sheet], claim: Claim, partial: str) -> list[Value]:
    """Return what is said, our differences, the paper's, and the verdict; ``partial`` withholds."""
    if not claim.first:
        return [claim.says, claim.why, None, OPEN]
    labels = (claim.first, *claim.second)
    pairs = pairs_of(sheets, claim, labels)
    theirs = None
    if claim.printed:
        pairs_printed = pairs_of(sheets, claim, [f"{name} {PAPER}" for name in claim.printed])
        theirs = mean(_difference(pair, claim.better) for pair in pairs_printed)
    if partial or not pairs:
        return [claim.says, partial or "no figures to compare", theirs, OPEN]
    word, ours = decide(pairs, claim)
    return [claim.says, ours, theirs, word]


def lead(first: str, second: str, differences: Iterable[float], *printed: Value) -> list[Value]:
    """Return a row: who over whom, the mean difference, its interval, what is printed, in words.

    A single difference has no interval, which the row says. The words are the verdict on the lead
    that is printed; where none is, who leads.
    """
    theirs = printed[0] if printed else None
    *figures, words = _judged_mean(differences, theirs if isinstance(theirs, float) else 1.0)
    if theirs is None:
        words = {HOLDS: f"{first} leads", FAILS: f"{second} leads"}.get(str(words), words)
    return [first, second, *figures, *printed, words]


def heads() -> list[str]:
    """Return the heads of what `claim` returns after its name."""
    fields = ("mean", "from", "to", "verdict")
    return [f"{field}, {width}" for width in WIDTHS for field in fields]


def claim(name: str, theirs: float, differences: Mapping[str, Iterable[float]]) -> list[Value]:
    """Return a row: what is compared, and the mean, its interval and a verdict for each width.

    ``theirs`` has the sign of the paper's difference. A single difference has no interval, which
    the row says; one below half of the last digit that is printed decides nothing.
    """
    rounded = round(theirs, 6)
    parts = (_judged_mean(differences[width], rounded, LAST_DIGIT) for width in WIDTHS)
    return [name, *(value for part in parts for value in part)]


def _judged_mean(differences: Iterable[float], claimed: float, least: float = 0.0) -> list[Value]:
    """Return the mean, the ends of its interval, and whether they have the sign that is said."""
    low, middle, high = interval(differences)
    if middle is None:
        return [None] * 4
    if low is None:
        return [middle, "of one alone", "of one alone", OPEN]
    return [middle, low, high, OPEN if abs(middle) < least else judge(low, high, claimed)]
