"""Random numbers of rows by their place in a table, whoever asks for them."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

# Philox gives so many numbers a count
_EACH = 4


def row_keys(seed: int, first: int, n: int) -> FloatArray:
    """Return a random number for each of the rows ``first, first + 1, …``.

    Returns shape (n,): the same for a row whatever the rows around it, so that machines that read
    parts of a table draw as one that reads it whole.

    Examples
    --------
    >>> from kernelweave.evidence.large.keys import row_keys
    >>> bool((row_keys(0, 7, 3) == row_keys(0, 0, 10)[7:]).all())
    True
    """
    bits = np.random.Philox(key=seed)
    bits.advance(first // _EACH)
    skipped = first % _EACH
    return np.asarray(np.random.Generator(bits).random(skipped + n)[skipped:])


def key_limit(size: int, n_rows: int) -> float:
    """Return the key below which so many rows are, but for twelve standard deviations."""
    return float((size + 12.0 * np.sqrt(size)) / max(1, n_rows))
