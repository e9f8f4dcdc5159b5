from .base import Family as Family
from .base import PreparedFamily as PreparedFamily
from .custom import CallableFamily as CallableFamily
from .integral import IntegralFamily as IntegralFamily
from .learned import FamilyKernel as FamilyKernel
from .polynomial import PolynomialFamily as PolynomialFamily
from .tessellated import TessellatedFamily as TessellatedFamily
