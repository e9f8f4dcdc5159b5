"""Errors and warnings that every KernelWeave package raises."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import partial


class Message(str):
    """What an error or a warning says, with the names of parameters apart from the words.

    As a string it names them as Python does; `naming` names them otherwise, e.g. by the options of
    a command. `template`: a format string in which an unknown field is the name of a parameter;
    `**values`: its other fields, messages among them.

    Examples
    --------
    >>> from kernelweave.kernels_core.exceptions import Message
    >>> said = Message("{max_iter} of {n} was reached: raise {max_iter} or {tol}", n=5)
    >>> str(said)
    'max_iter of 5 was reached: raise max_iter or tol'
    >>> said.naming({"max_iter": "--max-iter"})
    '--max-iter of 5 was reached: raise --max-iter or tol'
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, object]

    def __new__(cls, template: str, **values: object) -> Message:
        """Return the message as a string, which knows how it was made."""
        new = super().__new__(cls, template.format_map(_Names(values)))
        new.template, new.values = template, values
        return new

    def naming(self, options: Mapping[str, str]) -> str:
        """Return the message with other names of parameters, or values of fields."""
        fields = _Names(self.values)
        for name, value in self.values.items():
            fields[name] = value.naming(options) if isinstance(value, Message) else value
        fields.update(options)
        return self.template.format_map(fields)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Message, self.template, **self.values), ()


class _Names(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return name


class KernelWeaveWarning(UserWarning):
    """Something was repaired, clipped or skipped; the message says what and how to avoid it."""


def warn(message: str | Warning, category: type[Warning] = KernelWeaveWarning) -> None:
    """Warn at the user's line that called this project, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("kernelweave."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class UnderfitWarning(KernelWeaveWarning):
    """A fit explains next to nothing of the rows that it learned from."""


class ExtrapolationWarning(KernelWeaveWarning):
    """Rows lie beyond those of training, where a prediction goes on as the model does there."""


class MemoryBudgetError(MemoryError):
    """The work would need more memory than the limit allows; raised before it starts."""


class NotPSDError(ValueError):
    """A kernel matrix has a negative eigenvalue where a positive semidefinite one is needed."""


class UnknownNameError(LookupError):
    """A name is not in the registry; the message lists close matches."""


class DuplicateNameError(ValueError):
    """Two distributions registered the same name; the message names both."""


class UnsupportedProblemError(TypeError):
    """An algorithm was given a problem it does not accept; raised before any work."""


class ContradictoryBoundsError(ArithmeticError):
    """A lower bound lies above an upper one by more than rounding: one of them is false."""


def convergence_warning() -> type[UserWarning]:
    """Return scikit-learn's ``ConvergenceWarning``, or our own where scikit-learn is absent."""
    try:
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        return KernelWeaveWarning
    return ConvergenceWarning  # type: ignore[no-any-return]
