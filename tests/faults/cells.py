"""Does the outcome of a cell agree with what its fault must lead to?"""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from expectations import SCIKIT_LEARN_SAYS, WARNINGS, Case, Expectation, Fault


def judge(
    fault: Fault,
    case: Case,
    run: Callable[[Case], Any],
    sound: Callable[[], Any],
    misnamed: Callable[[str], list[str]] = lambda message: [],
) -> str | None:
    """Return what is wrong with a cell, or None.

    Only the named warnings may be given, also beside an error: a message of the numerical library
    about an overflow says nothing to a user. ``misnamed`` returns what a message names in vain.
    """
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            fault.change(case)
            outcome, raised = run(case), None
        except Exception as error:  # noqa: BLE001
            outcome, raised = None, error
        finally:
            if case.scratch is not None:
                case.scratch.cleanup()
    stray = [
        w
        for w in given
        if not _named(w.category, WARNINGS) and not str(w.message).startswith(SCIKIT_LEARN_SAYS)
    ]
    if stray:
        return f"warned: {stray[0].category.__name__}: {stray[0].message}"
    for message in (*(str(w.message) for w in given), *_ours(raised)):
        if names := misnamed(message):
            return f"names {', '.join(names)}, which is no parameter here: {message}"
    if raised is not None:
        return _judge_error(fault.expected, raised)
    return _judge_values(fault.expected, outcome, sound)


def _ours(raised: Exception | None) -> list[str]:
    """Return the message of an error that the project itself raised."""
    if raised is None:
        return []
    *_, (frame, _) = traceback.walk_tb(raised.__traceback__)
    return [str(raised)] if frame.f_globals["__name__"].startswith("kernelweave") else []


def _named(kind: type[BaseException], names: tuple[str, ...]) -> bool:
    return any(base.__name__ in names for base in kind.__mro__)


def _judge_error(expected: Expectation, raised: Exception) -> str | None:
    spoken = f"{type(raised).__name__}: {raised}"
    if expected.kind not in ("error", "either"):
        return f"must work, but raised {spoken}"
    if _named(type(raised), expected.errors) and re.search(expected.word, str(raised)):
        return None
    return f"must be {expected}, but raised {spoken}"


def _judge_values(expected: Expectation, outcome: Any, sound: Callable[[], Any]) -> str | None:
    if expected.kind == "error":
        return f"must be refused with {expected}, but gave {outcome!r}"
    for values in outcome if isinstance(outcome, tuple) else (outcome,):
        array = np.asarray(values)
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            return f"gave values that are not finite: {values!r}"
    if expected.kind != "same":
        return None
    wanted = sound()
    pairs = zip(outcome, wanted, strict=True) if isinstance(outcome, tuple) else [(outcome, wanted)]
    for values, other in pairs:
        if not _equal(np.asarray(values), np.asarray(other)):
            return f"gave {values!r}, the sound case {other!r}"
    return None


def _equal(values: np.ndarray, other: np.ndarray) -> bool:
    if values.shape != other.shape or values.dtype.kind != "f":
        return bool(np.array_equal(values, other))
    return bool(np.allclose(values, other, rtol=1e-6, atol=1e-12))
