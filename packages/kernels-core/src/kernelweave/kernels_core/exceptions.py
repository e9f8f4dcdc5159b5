"""Errors and warnings that every KernelWeave package raises."""

from __future__ import annotations


class KernelWeaveWarning(UserWarning):
    """Something was repaired, clipped or skipped; the message says what and how to avoid it."""


class UnderfitWarning(KernelWeaveWarning):
    """A fit explains next to nothing of the rows that it learned from."""


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
