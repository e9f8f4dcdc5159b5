from .bounds import Bound as Bound
from .bounds import lower_bound as lower_bound
from .branch_and_bound import GlobalOptimum as GlobalOptimum
from .branch_and_bound import solve_global as solve_global
from .certify import certify as certify
from .certify import prove as prove
from .proof import prove_sparse as prove_sparse
from .search import SupportSearch as SupportSearch
from .settings import BranchAndBound as BranchAndBound
from .settings import SemidefiniteProgram as SemidefiniteProgram

__version__: str
