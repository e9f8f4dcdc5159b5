"""What a cell of the fault matrix must do, and the types that say so; no test lives here.

A fault is a small change of a sound case. Its expectation is one of:

- ``error``: one of the named exception types, with a message that holds a word;
- ``works``: predictions that are finite (labels that were given), or a named warning with them;
- ``same``: as ``works``, and the predictions are those of the sound case;
- ``either``: an error that says why, or predictions that are finite.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WARNINGS = (
    "ConvergenceWarning",
    "KernelWeaveWarning",
    "DataConversionWarning",
    "UndefinedMetricWarning",
)
# how scikit-learn's own warnings of a general kind begin: of folds that are too many for a class,
# before 1.7, which refuses them, of labels as bytes, and of an array where training had names
SCIKIT_LEARN_SAYS = (
    "The least populated class",
    "Support for labels represented as bytes",
    "X does not have valid feature names",
)


@dataclass(frozen=True)
class Expectation:
    """What must happen: a kind, the types of the error, and the pattern in its message."""

    kind: str
    errors: tuple[str, ...] = ()
    word: str = ""

    def __str__(self) -> str:
        if self.kind == "works":
            return "works"
        if self.kind == "same":
            return "works, with the same predictions"
        types = " or ".join(f"`{name}`" for name in self.errors)
        spoken = re.sub(r"\[[A-Z]([a-z])\]", r"\1", self.word).replace(r"\b", "").replace("\\", "")
        error = f"{types}: “{spoken.replace('|', '” or “')}”"
        return error if self.kind == "error" else f"works, or {error}"


WORKS = Expectation("works")
SAME = Expectation("same")


def error(word: str, *errors: str) -> Expectation:
    """Return: refused with a message that holds the pattern ``word``."""
    return Expectation("error", errors or ("ValueError",), word)


def either(word: str, *errors: str) -> Expectation:
    """Return: finite predictions, or refused with a message that holds the pattern ``word``."""
    return Expectation("either", errors or ("ValueError",), word)


@dataclass
class Case:
    """A sound problem that a fault spoils; ``None`` weights are not passed."""

    task: str
    X: Any
    y: Any
    X_new: Any
    weight: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    fitted: bool = True
    scratch: Any = None


Change = Callable[[Case], None]


@dataclass(frozen=True)
class Fault:
    """A named change of a sound case and what it must lead to.

    Attributes
    ----------
    needs : tuple of str
        Constructor parameters, or ``"y"``, ``"weight"``, ``"grams"``, that a subject must take;
        the cell does not exist where it does not.
    task : str or None
        Only for classifiers or regressors.
    """

    name: str
    group: str
    change: Change
    expected: Expectation
    needs: tuple[str, ...] = ()
    task: str | None = None


class Faults(list[Fault]):
    """The faults of one table, in the order in which they are declared."""

    def add(
        self,
        group: str,
        expected: Expectation,
        *needs: str,
        task: str | None = None,
    ) -> Callable[[Change], Change]:
        """Return a decorator; the function's docstring is the fault's name."""

        def register(change: Change) -> Change:
            name = (change.__doc__ or "").strip().rstrip(".")
            self.append(Fault(name, group, change, expected, needs, task))
            return change

        return register

    def values(self, parameter: str, expected: Expectation, *values: Any, fit: str = "") -> None:
        """Add one fault per value of a constructor parameter."""
        for value in values:

            def change(case: Case, value: Any = value) -> None:
                case.params[parameter] = value

            name = f"{parameter} = {value!r}"
            self.append(Fault(name, "parameters", change, expected, (parameter,)))
