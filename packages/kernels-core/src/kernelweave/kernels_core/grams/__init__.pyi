from .precomputed import (
    PrecomputedDictionary,
    PrecomputedGrams,
    PrecomputedKernel,
    as_grams,
    definite_grams,
)
from .psd import KernelArray, Spectrum, as_gram, check_gram, require_psd
from .stack import GramStack, LowRankStack, Stack, as_stack, fit_family, stack_of
from .unstored import Gram, LowRankOperator, Operator, UnstoredKernel, largest_block

__all__ = [
    "Gram",
    "GramStack",
    "KernelArray",
    "LowRankOperator",
    "LowRankStack",
    "Operator",
    "PrecomputedDictionary",
    "PrecomputedGrams",
    "PrecomputedKernel",
    "Spectrum",
    "Stack",
    "UnstoredKernel",
    "as_gram",
    "as_grams",
    "as_stack",
    "check_gram",
    "definite_grams",
    "fit_family",
    "largest_block",
    "require_psd",
    "stack_of",
]
