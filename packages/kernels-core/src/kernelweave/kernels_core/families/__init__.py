"""Positive-matrix kernel families: ``k(x, y) = Σᵢⱼ Pᵢⱼ Gᵢⱼ(x, y)`` with a matrix ``P ⪰ 0``.

Importing this package imports neither numba nor scipy; both are reached on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Family, PreparedFamily
    from .custom import CallableFamily
    from .integral import IntegralFamily
    from .learned import FamilyKernel, GeneralizedPolynomial, Tessellated
    from .polynomial import PolynomialFamily
    from .tessellated import TessellatedFamily

__all__ = [
    "CallableFamily",
    "Family",
    "FamilyKernel",
    "GeneralizedPolynomial",
    "IntegralFamily",
    "PolynomialFamily",
    "PreparedFamily",
    "Tessellated",
    "TessellatedFamily",
]

_HOMES = {
    "CallableFamily": "custom",
    "Family": "base",
    "FamilyKernel": "learned",
    "GeneralizedPolynomial": "learned",
    "IntegralFamily": "integral",
    "PolynomialFamily": "polynomial",
    "PreparedFamily": "base",
    "Tessellated": "learned",
    "TessellatedFamily": "tessellated",
}


def __getattr__(name: str) -> object:
    """Import a public name from the file that holds it."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
