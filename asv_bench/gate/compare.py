"""Two sets of counts: what has become worse by more than a factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FACTOR = 1.1
# a count this small may rise by one for no reason
SLACK = {"grams": 1.0}
LEAST_SLACK = 1.0

Counts = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Regression:
    """A count that has become worse."""

    problem: str
    count: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.problem}: {self.count} {self.before:g} -> {self.after:g}"


def regressions(before: Counts, after: Counts, factor: float = FACTOR) -> list[Regression]:
    """Return the counts of problems in both that rose past ``factor`` and by more than one.

    Parameters
    ----------
    before, after : mapping of str to mapping of str to float
        As `counts.all_counts` returns them.
    factor : float
        1.1: ten per cent.

    Returns
    -------
    list of Regression

    Examples
    --------
    >>> regressions({"a": {"iterations": 20.0}}, {"a": {"iterations": 30.0}})
    [Regression(problem='a', count='iterations', before=20.0, after=30.0)]
    >>> regressions({"a": {"iterations": 20.0}}, {"a": {"iterations": 21.0}})
    []
    """
    found = []
    for problem, now in after.items():
        for count, value in now.items():
            old = before.get(problem, {}).get(count)
            if old is None:
                continue
            if value > factor * old and value - old > SLACK.get(count, LEAST_SLACK):
                found.append(Regression(problem, count, old, value))
    return found
