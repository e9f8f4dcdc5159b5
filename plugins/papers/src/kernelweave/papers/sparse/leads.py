"""Leads of one method over another, with an interval and in words."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.verdicts import FAILS, HOLDS, OPEN, judge
from ..measuring import interval
from ..plan import Value


def lead(first: str, second: str, differences: Iterable[float], *printed: Value) -> list[Value]:
    """Return a row: who over whom, the mean difference, its interval, what is printed, in words.

    A single difference has no interval, which the row says. The words are the verdict on the lead
    that is printed; where none is, who leads.
    """
    low, middle, high = interval(differences)
    if middle is None:
        return [first, second, None, None, None, *printed, None]
    if low is None:
        return [first, second, middle, *["of one alone"] * 2, *printed, OPEN]
    theirs = printed[0] if printed else None
    words = judge(low, high, theirs if isinstance(theirs, float) else 1.0)
    if theirs is None:
        words = {HOLDS: f"{first} leads", FAILS: f"{second} leads"}.get(words, words)
    return [first, second, middle, low, high, *printed, words]
