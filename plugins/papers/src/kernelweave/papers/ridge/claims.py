"""What the paper says of two errors, and whether ours differ so: an interval and a word a width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..engine.verdicts import OPEN, judge
from ..measuring import interval
from ..plan import Value

# what every γ is divided by, as columns show it
WIDTHS = {"γ": False, "γ/m": True}
# half of the last digit that the paper prints
LAST_DIGIT = 0.005


def heads() -> list[str]:
    """Return the heads of what `claim` returns after its name."""
    fields = ("mean", "from", "to", "verdict")
    return [f"{field}, {width}" for width in WIDTHS for field in fields]


def claim(name: str, theirs: float, differences: Mapping[str, Iterable[float]]) -> list[Value]:
    """Return a row: what is compared, and the mean, its interval and a verdict for each width.

    ``theirs`` has the sign of the paper's difference. A single difference has no interval, which
    the row says.
    """
    row: list[Value] = [name]
    for width in WIDTHS:
        low, middle, high = interval(differences[width])
        said: list[Value] = [low, high, _verdict(theirs, low, middle, high)]
        if middle is not None and low is None:
            said = ["of one alone", "of one alone", OPEN]
        row += [middle, *said]
    return row


def _verdict(theirs: float, low: float | None, middle: float | None, high: float | None) -> Value:
    """Return whether an interval of a difference has the sign of the paper's, in words."""
    if middle is None:
        return None
    return OPEN if abs(middle) < LAST_DIGIT else judge(low, high, round(theirs, 6))
