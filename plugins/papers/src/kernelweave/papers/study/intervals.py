"""Intervals for the mean of paired differences, in words."""

from __future__ import annotations

from collections.abc import Sequence

from kernelweave.workbench.scoring import of_independent


def in_words(values: Sequence[float]) -> str | None:
    """Return the mean of independent values with its interval, None of nothing.

    Examples
    --------
    >>> in_words([1.0, 2.0, 3.0])
    '+2.0 (-0.5 to +4.5)'
    """
    if len(values) < 2:
        return f"{values[0]:+.1f}" if values else None
    found = of_independent(values)
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"
