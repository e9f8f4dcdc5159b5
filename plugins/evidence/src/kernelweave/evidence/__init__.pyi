from .columns import CellError, ColumnEncoder, ColumnReport, Dimension, Encoded
from .estimators import EvidenceKernelClassifier, EvidenceKernelRegressor
from .kernel import EvidenceKernel

__all__ = [
    "CellError",
    "ColumnEncoder",
    "ColumnReport",
    "Dimension",
    "Encoded",
    "EvidenceKernel",
    "EvidenceKernelClassifier",
    "EvidenceKernelRegressor",
    "__version__",
]
__version__: str
