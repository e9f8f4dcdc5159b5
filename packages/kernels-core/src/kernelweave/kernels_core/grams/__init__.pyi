from .combined import PrecomputedKernel, PrecomputedStack
from .low_rank import LowRankGram, LowRankStack, fit_family, stack_of
from .precomputed import PrecomputedGrams, as_grams, check_once
from .psd import Spectrum, require_psd
from .stack import GramStack, Stack, as_stack
from .stored import KernelArray, as_gram, check_gram
from .unstored import Gram, UnstoredGram, UnstoredKernel, largest_block

__all__ = [
    "Gram",
    "GramStack",
    "KernelArray",
    "LowRankGram",
    "LowRankStack",
    "PrecomputedGrams",
    "PrecomputedKernel",
    "PrecomputedStack",
    "Spectrum",
    "Stack",
    "UnstoredGram",
    "UnstoredKernel",
    "as_gram",
    "as_grams",
    "as_stack",
    "check_gram",
    "check_once",
    "fit_family",
    "largest_block",
    "require_psd",
    "stack_of",
]
