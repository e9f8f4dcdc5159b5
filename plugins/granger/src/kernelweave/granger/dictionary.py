"""Kernels on the history of each group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, Linear
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel, KernelDictionary

from .series import Groups

# γ·d of the Gaussians: from nearly linear to local. More widths are more Gram matrices of every
# history, and nearly multiples of one another.
WIDTHS = (0.1, 0.5, 2.0)


def default_kernels(n_columns: int) -> list[Kernel]:
    """Return ⟨x, z⟩ and exp(−γ‖x − z‖²/d), γ = 0.1, ½ and 2, for d standardised columns.

    One step ahead much is nearly linear, which Gaussians alone learn with larger errors.

    `n_columns`: d, so that γ means the same for short and long histories.
    """
    return [Linear(), *(RBF(gamma=width / n_columns) for width in WIDTHS)]


def history_dictionary(
    history: npt.NDArray[np.float64],
    groups: Groups,
    n_lags: int,
    kernels: Sequence[Kernel] | None,
    *,
    per_lag: bool = False,
    pairs: Sequence[tuple[int, int]] = (),
) -> tuple[FittedDictionary, npt.NDArray[np.intp]]:
    """Return the kernels on every group's history, centred and scaled to trace n.

    Centring takes the constant out of each kernel: without it a wide Gaussian, nearly constant
    itself, earns weight by carrying the mean. Equal traces make weights comparable.

    - `history` of shape (n_samples, n_nodes * n_lags): standardised, see `LaggedSamples`
    - `groups`: groups of nodes
    - `n_lags`: lags of a history
    - `kernels`: used on every group's history; ``None`` takes `default_kernels`
    - `per_lag`: whether every lag has kernels of its own
    - `pairs`: of groups, each with the product of the linear kernels on both histories

    Returns `dictionary`: Gram matrices and what new histories need; `unit` of shape (n_kernels,):
    the group that each kernel sees; with ``per_lag`` group times ``n_lags`` plus place of the lag;
    pairs are counted after these.
    """
    views = groups.columns(n_lags)
    if per_lag:
        views = [view[k::n_lags] for view in views for k in range(n_lags)]
    nested = [default_kernels(len(view)) if kernels is None else list(kernels) for view in views]
    for a, b in pairs:
        both, first = views[a] + views[b], len(views[a])
        apart = np.arange(first).tolist(), np.arange(first, len(both)).tolist()
        views.append(both)
        nested.append([Linear().on(apart[0]) * Linear().on(apart[1])])
    dictionary = KernelDictionary(nested, columns=views, normalize="center-trace")
    unit = np.repeat(np.arange(len(views)), [len(each) for each in nested])
    return dictionary.fit_grams(history), unit
