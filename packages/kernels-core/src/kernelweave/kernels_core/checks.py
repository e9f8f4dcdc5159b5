"""The one vocabulary of validation: what a value must be, in one sentence for all callers.

A `Rule` says it in words, tests it, and raises with the argument, what is right and what was
seen. Fields of estimators and of settings name their rule (`parameter`), functions call
`Rule.check` themselves.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .magnitude import LARGEST, SMALLEST

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """What a value must be.

    Parameters
    ----------
    words : str
        What fits behind "must be", e.g. ``"a finite number > 0"``.
    holds : callable
        Whether a value is so.
    choices : tuple of str
        The values, where they are few: documentation lists them.
    then : Rule, optional
        What else must hold, said where this rule does.

    Examples
    --------
    >>> from kernelweave.kernels_core.checks import POSITIVE, Rule
    >>> POSITIVE.check("C", -1)
    Traceback (most recent call last):
    ValueError: C must be a finite number > 0, got -1
    >>> even = Rule("an even integer", lambda value: isinstance(value, int) and value % 2 == 0)
    >>> even.check("n", 4)
    4
    """

    words: str
    holds: Callable[[Any], bool]
    choices: tuple[str, ...] = ()
    then: Rule | None = None

    def or_none(self) -> Rule:
        """Return the rule that allows ``None`` too."""
        return Rule(f"None or {self.words}", lambda value: value is None or self.holds(value))

    def check(self, name: str, value: T) -> T:
        """Return the value if it keeps the rule.

        Parameters
        ----------
        name : str
            Of the argument, for the message.
        value : object
            What was given.

        Returns
        -------
        object
            The value itself.

        Raises
        ------
        ValueError
            With name, what is right, and the value seen.
        """
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.words}, got {value!r}")
        return value if self.then is None else self.then.check(name, value)


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> Rule:
    """Return the rule for a finite real number, truth values excepted.

    Parameters
    ----------
    above, least : float, optional
        It is greater than, or at least.
    below, most : float, optional
        It is less than, or at most.

    Returns
    -------
    Rule
        E.g. "a finite number > 0".
    """
    ends = ((above, ">"), (least, ">="), (below, "<"), (most, "<="))
    words = " and ".join(f"{sign} {end:g}" for end, sign in ends if end is not None)
    if least is not None and most is not None:
        words = f"in [{least:g}, {most:g}]"

    def holds(value: Any) -> bool:
        return (
            _is_number(value)
            and math.isfinite(value)
            and (above is None or value > above)
            and (least is None or value >= least)
            and (below is None or value < below)
            and (most is None or value <= most)
        )

    return Rule(f"a finite number {words}".rstrip(), holds)


def integer(least: int, most: int | None = None) -> Rule:
    """Return the rule for an integer, truth values excepted.

    Parameters
    ----------
    least : int
        The smallest that is right.
    most : int, optional
        The largest.

    Returns
    -------
    Rule
        E.g. "an integer >= 1".
    """

    def holds(value: Any) -> bool:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return whole and value >= least and (most is None or value <= most)

    return Rule(f"an integer >= {least}" + ("" if most is None else f" and <= {most}"), holds)


def one_of(*choices: str) -> Rule:
    """Return the rule for one of a few words.

    Parameters
    ----------
    *choices : str
        The words.

    Returns
    -------
    Rule
        E.g. "one of 'ovr', 'ovo'".
    """

    def holds(value: Any) -> bool:
        return isinstance(value, str) and value in choices

    return Rule(f"one of {', '.join(map(repr, choices))}", holds, choices)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


POSITIVE = number(above=0.0)
NONNEGATIVE = number(least=0.0)
SHARE = number(least=0.0, most=1.0)
COUNT = integer(1)
FLAG = Rule("True or False", lambda value: type(value).__name__ in ("bool", "bool_"))
DTYPE = one_of("float64", "float32")
# what multiplies or divides an objective
STRENGTH = Rule(
    POSITIVE.words,
    POSITIVE.holds,
    then=Rule(
        f"a number from {SMALLEST:g} to {LARGEST:g}, as others overflow or underflow",
        lambda value: SMALLEST <= value <= LARGEST,
    ),
)
TOLERANCE = NONNEGATIVE
ITERATIONS = integer(0)
SECONDS = Rule("a number of seconds > 0", lambda value: _is_number(value) and value > 0)
