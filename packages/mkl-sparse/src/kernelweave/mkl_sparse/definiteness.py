"""Which Gram matrices of a problem are indefinite; no bound holds with one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.grams.psd import Spectrum, find_indefinite


def indefinite_kernels(fitted: Any) -> dict[str, Spectrum]:
    """Return the indefinite kernels of a fitted dictionary with the ends of their spectra.

    Kernels that are proved positive semidefinite are taken as they are; of the others the Gram
    matrix is tested: n³/3 flops, and an eigendecomposition where that fails.

    `fitted`: with ``grams`` of shape (q, n, n), ``names``, and ``kernels`` where they are known; or
    with ``factors``, which no indefinite kernel has.
    """
    if hasattr(fitted, "factors"):
        return {}
    kernels = getattr(fitted, "kernels", None)
    found = {}
    for j, K in enumerate(fitted.grams):
        if kernels is not None and kernels[j].is_psd is True:
            continue
        spectrum = find_indefinite(np.asarray(K))
        if spectrum is not None:
            found[fitted.names[j]] = spectrum
    return found
