from .accuracy import accuracy, sparsity, times, warm_starts
from .fifty import fifty_accuracy, fifty_sparsity, fifty_times
from .objectives import gaps, objectives
from .optima import optima
from .published import PRINTED, Printed
from .shuffle import shuffled, split_of

__all__ = [
    "PRINTED",
    "Printed",
    "accuracy",
    "fifty_accuracy",
    "fifty_sparsity",
    "fifty_times",
    "gaps",
    "objectives",
    "optima",
    "shuffled",
    "sparsity",
    "split_of",
    "times",
    "warm_starts",
]
