from .estimators import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLClassifierCV,
    RidgeMKLRegressor,
    RidgeMKLRegressorCV,
)
from .families import HadamardPower, PowerDictionary
from .proof import prove
from .rademacher import margin_bound, rademacher_bound
from .sets import LqBall, Orthant
from .settings import (
    IIA,
    Automatic,
    GeneralizedMKL,
    GeneralizedMKLForLabels,
    MajorizeMinimize,
    ProjectedNewton,
    SpectralProjectedGradient,
    TrustRegion,
)

__all__ = [
    "IIA",
    "Automatic",
    "GeneralizedMKL",
    "GeneralizedMKLClassifier",
    "GeneralizedMKLForLabels",
    "HadamardPower",
    "LqBall",
    "MajorizeMinimize",
    "Orthant",
    "PowerDictionary",
    "ProjectedNewton",
    "RidgeMKLClassifier",
    "RidgeMKLClassifierCV",
    "RidgeMKLRegressor",
    "RidgeMKLRegressorCV",
    "SpectralProjectedGradient",
    "TrustRegion",
    "__version__",
    "margin_bound",
    "prove",
    "rademacher_bound",
]
__version__: str
