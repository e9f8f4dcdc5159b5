from .learner import Learner as Learner
from .learner import Solution as Solution
from .learner import SolveStatus as SolveStatus
from .learner import collect as collect
from .problem import Needs as Needs
from .problem import Problem as Problem
from .set import WeightSet as WeightSet
from .set import lower_bound as lower_bound
