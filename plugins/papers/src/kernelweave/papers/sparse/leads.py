"""Leads of one method over another, with an interval and in words, and what sets have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..measuring import interval
from ..plan import Value
from .sets import SETS


def lead(first: str, second: str, differences: Iterable[float], *printed: Value) -> list[Value]:
    """Return a row: who over whom, the mean difference, its interval, what is printed, in words.

    A single difference has no interval, which the row says.
    """
    low, middle, high = interval(differences)
    words = verdict(first, second, low, high)
    ends: list[Value] = [low, high, words]
    if middle is not None and low is None:
        ends = ["of one alone"] * 3
    return [first, second, middle, *ends[:2], *printed, ends[2]]


def verdict(first: str, second: str, low: float | None, high: float | None) -> str | None:
    """Return what an interval of a lead says, in words."""
    if low is None or high is None:
        return None
    if low > 0.0:
        return f"{first} leads"
    if high < 0.0:
        return f"{second} leads"
    return "no lead is shown"


def both(
    first: Callable[[str], Value], second: Callable[[str], Value]
) -> list[tuple[float, float]]:
    """Return the two figures of each set that has both."""
    pairs = [(first(name), second(name)) for name in SETS]
    return [(a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]


def share(wanted: Sequence[bool]) -> str | None:
    """Return how many of so many, None of nothing."""
    return f"{sum(wanted)} of {len(wanted)}" if wanted else None
