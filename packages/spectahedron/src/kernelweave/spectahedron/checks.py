"""Parameter checks that name the parameter, the value seen and what is accepted."""

from __future__ import annotations

from typing import Any

from kernelweave.kernels_core.arguments import check_number, check_whole

__all__ = ["check_choice", "check_number", "check_whole"]


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
