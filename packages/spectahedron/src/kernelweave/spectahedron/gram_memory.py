"""The memory of Gram matrices: what they need, whether a fit stores them, what it says if not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning, Problem, UnsupportedProblemError
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.grams import largest_block
from kernelweave.kernels_core.memory import limit_bytes, require, size_text

if TYPE_CHECKING:
    from kernelweave.kernels_core.grams import Operator


GRAM = one_of("auto", "stored", "blocks")
# Gram matrices that tkl-low-rank, the one that can do without, holds if it stores them.
_N_GRAMS = 1
# The smallest block of samples that a fit without stored matrices may be left with: smaller ones
# need too many passes over all pairs to be of use.
_LEAST_BLOCK = 500
# a product without a stored Gram matrix then takes some minutes on one core
_MOST_UNASKED = 200_000
# vectors of a sample in the passes that store nothing: features, factors, their copies
_NUMBERS = 200

# Entries of a block of the Gram matrix that is computed for one product: 32 MiB.
_ENTRIES = 2**22


@dataclass
class GramWithEntries:
    """The scaled Gram matrix of one P: stored, computed entry by entry, or both.

    `array` of shape (m, m): the stored matrix, in the oracle's precision; `entries`: computes
    entries and products in float64, if the family can.
    """

    array: RealArray | None
    entries: Operator | None

    @property
    def eps(self) -> float:
        """Unit of rounding of what `part` returns."""
        dtype = np.float64 if self.entries is not None or self.array is None else self.array.dtype
        return float(np.finfo(dtype).eps)

    def part(self, rows: Index, columns: Index) -> Matrix:
        """Return some rows and columns in float64."""
        stored = self.array is not None and self.array.dtype == np.float64
        if stored or self.entries is None:
            assert self.array is not None
            return np.array(self.array[np.ix_(rows, columns)], dtype=np.float64)
        out = np.empty((len(rows), len(columns)))
        self.entries.block(rows, columns, out)
        return out

    def times(self, rows: Index, w: Matrix) -> Matrix:
        """Return the entries ``rows`` of K w, for w of shape (m,); samples of weight 0 are free."""
        support = np.flatnonzero(w)
        step = max(1, _ENTRIES // max(1, len(support)))
        parts = [
            self.part(rows[start : start + step], support) @ w[support]
            for start in range(0, len(rows), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def gram_bytes(n_samples: int, dtype: str, n_grams: float) -> int:
    """Return the bytes of so many Gram matrices and of the learner's copy of half of one."""
    return int((n_grams + 0.5) * n_samples * n_samples * np.dtype(dtype).itemsize)


def require_grams(n_samples: int, dtype: str, n_grams: int) -> None:
    """Raise before any work if so many Gram matrices do not fit."""
    arrays, other_way = "arrays", "use tkl-low-rank, which can do without"
    if n_grams == 1:
        arrays, other_way = "array", "pass gram='blocks'"
    require(
        gram_bytes(n_samples, dtype, n_grams),
        f"{n_grams} Gram-sized {arrays} of {n_samples} samples in {dtype} and the "
        "learner's copy of half of one",
        alternative="pass dtype='float32', fit fewer samples, raise {memory_limit}, or "
        + other_way,
    )


def grams_are_stored(problem: Problem, dtype: str, gram: str) -> bool:
    """Return whether to store Gram matrices, after a warning where they do not fit.

    `dtype` in {"float64", "float32"}; `gram` in {"auto", "stored", "blocks"}. Raises
    UnsupportedProblemError if "auto" would do without for more samples than anybody would wait for.
    """
    GRAM.check("gram", gram)
    m = problem.n_samples
    needed, limit = gram_bytes(m, dtype, _N_GRAMS), limit_bytes()
    possible = not getattr(problem.family, "stores_grams", True)
    if gram == "stored" or not possible or (gram == "auto" and needed <= limit):
        return True
    least = min(_LEAST_BLOCK, m)
    require(
        2 * gram_bytes(least, dtype, 1) + 8 * _NUMBERS * m,
        f"blocks of {least} of {m} samples and the vectors of all",
        alternative="fit fewer samples or raise {memory_limit}",
    )
    if gram == "auto":
        _refuse_endless(m)
        size = largest_block(m, limit // 2, dtype)
        ways = "dtype='float32', fewer samples" if dtype == "float64" else "fewer samples"
        warnings.warn(
            Message(
                f"the Gram matrices of {m} samples in {dtype} need {size_text(needed)}, more than "
                f"the memory limit of {size_text(limit)}: entries are computed where they are "
                f"needed and the learner is solved in blocks of {size} samples, which is slower: "
                f"one product with all of them computes {m * m:.0e} entries, a fit makes dozens, "
                "and max_time is checked between them; pass gram='blocks' to accept this, "
                f"{ways}, or raise {{memory_limit}}"
            ),
            KernelWeaveWarning,
            stacklevel=2,
        )
    return False


def _refuse_endless(n_samples: int) -> None:
    if n_samples > _MOST_UNASKED:
        raise UnsupportedProblemError(
            f"{n_samples} samples: their Gram matrix does not fit, one product with it computes "
            f"{n_samples**2:.0e} entries, and a fit makes dozens: fit a random part of at most "
            f"{_MOST_UNASKED} samples, or pass gram='blocks' to wait for all of them"
        )
