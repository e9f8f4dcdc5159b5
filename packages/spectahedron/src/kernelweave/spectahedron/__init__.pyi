from .estimators import TessellatedKernelClassifier as TessellatedKernelClassifier
from .estimators import TessellatedKernelRegressor as TessellatedKernelRegressor
from .model_selection import TessellatedKernelClassifierCV as TessellatedKernelClassifierCV
from .model_selection import TessellatedKernelRegressorCV as TessellatedKernelRegressorCV
from .proof import prove as prove
from .settings import AcceleratedPrimalDual as AcceleratedPrimalDual
from .settings import FrankWolfe as FrankWolfe
from .settings import Hybrid as Hybrid
from .settings import InteriorPoint as InteriorPoint
from .settings import LowRank as LowRank
from .settings import Spectahedron as Spectahedron
from .settings import Start as Start

__version__: str
