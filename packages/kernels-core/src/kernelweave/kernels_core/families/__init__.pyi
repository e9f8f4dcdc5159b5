from .base import Family, PreparedFamily
from .custom import CallableFamily
from .integral import IntegralFamily
from .learned import FamilyKernel
from .polynomial import PolynomialFamily
from .tessellated import TessellatedFamily

__all__ = [
    "CallableFamily",
    "Family",
    "FamilyKernel",
    "IntegralFamily",
    "PolynomialFamily",
    "PreparedFamily",
    "TessellatedFamily",
]
