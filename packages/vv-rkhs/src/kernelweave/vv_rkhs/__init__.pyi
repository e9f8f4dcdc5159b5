from .constraint import FrobeniusOutputKernels as FrobeniusOutputKernels
from .constraint import SeparableKernel as SeparableKernel
from .constraint import SeparableKernels as SeparableKernels
from .constraint import VectorSolution as VectorSolution
from .estimators import MatrixValuedKernelClassifier as MatrixValuedKernelClassifier
from .estimators import MatrixValuedKernelRegressor as MatrixValuedKernelRegressor
from .family import PrecomputedFamily as PrecomputedFamily
from .gaussian_grid import GaussianGrid as GaussianGrid
from .learner import VectorLeastSquares as VectorLeastSquares
from .output import OutputSubproblem as OutputSubproblem
from .output import closed_form_output_kernel as closed_form_output_kernel
from .penalties import ElasticNet as ElasticNet
from .penalties import Penalty as Penalty
from .penalties import SquaredLpNorm as SquaredLpNorm
from .rademacher import rademacher_bound as rademacher_bound
from .settings import BlockDescent as BlockDescent
from .settings import OutputKernelLearning as OutputKernelLearning
from .settings import SpectralGradient as SpectralGradient
from .sylvester import EigenFactors as EigenFactors
from .sylvester import NystromFactors as NystromFactors
from .sylvester import SpectrumEstimate as SpectrumEstimate
from .sylvester import SylvesterSolution as SylvesterSolution
from .sylvester import solve_sylvester as solve_sylvester

__version__: str
