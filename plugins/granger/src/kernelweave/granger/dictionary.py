"""Kernels on the history of each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, Linear
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel, KernelDictionary

from .series import Groups

WIDTHS = (0.1, 0.5, 2.0)


def default_kernels(n_columns: int) -> list[Kernel]:
    """Return ⟨x, z⟩ and exp(−γ‖x − z‖²/d), γ = 0.1, ½ and 2, for d standardised columns.

    One step ahead much is nearly linear, which Gaussians alone learn with larger errors.

    Parameters
    ----------
    n_columns : int
        d, so that γ means the same for short and long histories.

    Returns
    -------
    list of Kernel
        Four.
    """
    return [Linear(), *(RBF(gamma=width / n_columns) for width in WIDTHS)]


def history_dictionary(
    history: npt.NDArray[np.float64], groups: Groups, lags: int, kernels: Any
) -> tuple[FittedDictionary, npt.NDArray[np.intp]]:
    """Return the kernels on every group's history, centred and scaled to trace n.

    Centring takes the constant out of each kernel: without it a wide Gaussian, nearly constant
    itself, earns weight by carrying the mean. Equal traces make weights comparable.

    Parameters
    ----------
    history : ndarray of shape (n_samples, n_nodes * lags)
        Standardised, see `LaggedSamples`.
    groups : Groups
        Groups of nodes.
    lags : int
        Length of a history.
    kernels : list of Kernel or None
        Used on every group's history; ``None`` takes `default_kernels`.

    Returns
    -------
    dictionary : FittedDictionary
        Gram matrices and what new histories need.
    owner : ndarray of int of shape (n_kernels,)
        The group that each kernel sees.
    """
    views = groups.columns(lags)
    nested = [default_kernels(len(view)) if kernels is None else list(kernels) for view in views]
    dictionary = KernelDictionary(nested, columns=views, normalize="center-trace")
    owner = np.repeat(np.arange(len(groups)), [len(each) for each in nested])
    return dictionary.fit_grams(history), owner
