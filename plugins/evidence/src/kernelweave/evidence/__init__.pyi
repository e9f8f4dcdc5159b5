from .columns import CellError, ColumnEncoder, ColumnReport, Dimension, Encoded
from .estimators import EvidenceKernelClassifier, EvidenceKernelRegressor
from .explaining.importance import ColumnImportance
from .kernel import EvidenceKernel
from .large.batches import Batch, Batches
from .mkl.estimators import EvidenceMKLClassifier, EvidenceMKLRegressor
from .mkl.prices import PricedOrthant

__all__ = [
    "Batch",
    "Batches",
    "CellError",
    "ColumnEncoder",
    "ColumnImportance",
    "ColumnReport",
    "Dimension",
    "Encoded",
    "EvidenceKernel",
    "EvidenceKernelClassifier",
    "EvidenceKernelRegressor",
    "EvidenceMKLClassifier",
    "EvidenceMKLRegressor",
    "PricedOrthant",
    "__version__",
]
__version__: str
