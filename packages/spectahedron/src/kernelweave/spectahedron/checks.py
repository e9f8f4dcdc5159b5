"""Parameter checks that name the parameter, the value seen and what is accepted."""

from __future__ import annotations

import math
import numbers
from typing import Any


def check_number(
    name: str, value: Any, *, low: float, high: float = math.inf, strict: bool = False
) -> None:
    """Raise unless ``value`` is a finite real number in [low, high), (low, high) if strict."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if ok:
        ok = (value > low if strict else value >= low) and value < high
    if not ok:
        limit = "" if math.isinf(high) else f" and < {high:g}"
        sign = ">" if strict else ">="
        raise ValueError(f"{name} must be a finite number {sign} {low:g}{limit}, got {value!r}")


def check_whole(name: str, value: Any, *, low: int) -> None:
    """Raise unless ``value`` is an integer ≥ low."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
