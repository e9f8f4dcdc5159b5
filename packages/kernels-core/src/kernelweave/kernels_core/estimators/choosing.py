"""Parameters of which a fit may be given several, to choose among by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..checks import Rule

T = TypeVar("T", bound=float)


def one_or_several(rule: Rule) -> Rule:
    """Return the rule for a number, several to choose among, or ``"cv"``.

    `rule`: of each number. A wrong number is refused in the words of ``rule``.
    """

    def is_several(value: Any) -> bool:
        if isinstance(value, str):
            return value == "cv"
        several = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1
        return several and len(value) > 0 and all(rule.holds(each) for each in value)

    return Rule(
        f"{rule.words}, a list of such, or 'cv'",
        lambda value: is_several(value) or (np.ndim(value) == 0 and not isinstance(value, str)),
        then=_of_each(rule),
    )


def _of_each(rule: Rule) -> Rule:
    """Return the rule, and what follows it, for a number or each of several."""

    def holds(value: object) -> bool:
        several = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        return value == "cv" if isinstance(value, str) else all(map(rule.holds, several))

    return Rule(rule.words, holds, then=None if rule.then is None else _of_each(rule.then))


def candidates(
    given: T | str | list[T] | tuple[T, ...] | NDArray[np.number], usual: Sequence[T]
) -> list[T]:
    """Return the values of a parameter, ascending: one, those of a list, or ``usual`` of "cv".

    Parameters
    ----------
    given : number, sequence of number, or "cv"
        The parameter.
    usual : sequence of number
        What ``"cv"`` means.

    Returns
    -------
    list of number
        One or more.
    """
    if isinstance(given, str):
        return list(usual)
    return sorted(set(given)) if isinstance(given, (list, tuple, np.ndarray)) else [given]
