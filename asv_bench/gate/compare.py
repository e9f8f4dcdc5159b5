"""Two sets of counts: what has become worse by more than a factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FACTOR = 1.1
# the value that a solve ends at is no cost: it stays within the gap that was asked for, and the
# number of instructions is as long as it is repeatable
FACTORS = {"value": 1.02, "instructions": 1.05}
# a count this small may rise by one for no reason
SLACK = {"value": 0.0}
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


def regressions(before: Counts, after: Counts) -> list[Regression]:
    """Return the counts of problems in both that rose past their factor and by more than one.

    A problem that an algorithm no longer takes, or a count that it no longer gives, is worse as
    well: what was counted is infinite now. An algorithm that is gone as a whole is none.

    Parameters
    ----------
    before, after : mapping of str to mapping of str to float
        As `counts.all_counts` returns them.

    Returns
    -------
    list of Regression

    Examples
    --------
    >>> regressions({"a": {"iterations": 20.0}}, {"a": {"iterations": 30.0}})
    [Regression(problem='a', count='iterations', before=20.0, after=30.0)]
    >>> regressions({"a": {"iterations": 20.0}}, {"a": {"iterations": 21.0}})
    []
    >>> regressions({"a/one": {"iterations": 20.0}}, {"a/two": {"iterations": 21.0}})
    [Regression(problem='a/one', count='iterations', before=20.0, after=inf)]
    """
    still = {name.partition("/")[0] for name in after}
    found = []
    for problem, old in before.items():
        if problem.partition("/")[0] not in still:
            continue
        now = after.get(problem, {})
        for count, value in old.items():
            new = now.get(count, math.inf)
            rise = new - value if math.isfinite(value) else 0.0
            factor = FACTORS.get(count, FACTOR)
            if new > factor * value and rise > SLACK.get(count, LEAST_SLACK):
                found.append(Regression(problem, count, value, new))
    return found
