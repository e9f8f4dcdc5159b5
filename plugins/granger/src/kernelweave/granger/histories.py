"""What models see: the kernels on the histories of nodes, of exogenous series and of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, Linear
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel, KernelDictionary

from .roles import Pair, Roles, choose_pairs, shares
from .series import Groups, LaggedSamples

# γ·d of the default Gaussian kernels on d columns, from nearly linear to local. More widths would
# add a Gram matrix each to every history, and hardly different ones.
WIDTHS = (0.1, 0.5, 2.0)


def default_kernels(n_columns: int) -> list[Kernel]:
    """Return ⟨x, z⟩ and exp(−γ‖x − z‖²/d), γ = 0.1, ½ and 2, for d = ``n_columns``.

    The linear kernel is there because one step ahead series are often nearly linear, and Gaussians
    alone then have larger errors. Columns are standardised, so that ‖x − z‖² grows with d; divided
    by d, a γ means the same for short and long histories.
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
    """Return the fitted kernels on the histories of all groups, and the unit of each kernel.

    A unit is what has a weight in the graph: the history of a group or, with `per_lag`, one lag of
    it. Kernels are centred, then scaled to trace n. Without centring a wide Gaussian, which
    is nearly constant, would get weight because it can represent the mean; with equal traces the
    weights of kernels are comparable.

    - `history` of shape (n_samples, n_columns · n_lags): standardised, see `LaggedSamples`
    - `kernels`: those on each unit; ``None`` for `default_kernels`
    - `pairs`: two groups each, with one more kernel on both histories, the product of two linear
      kernels; not with `per_lag`

    The second result, of shape (n_kernels,), numbers units as group or, with `per_lag`, group times
    ``n_lags`` plus position of the lag; the units of pairs come after all of these.
    """
    views = groups.columns(n_lags)
    if per_lag:
        views = [view[k::n_lags] for view in views for k in range(n_lags)]
    # a group without columns has no kernels
    nested = [
        [] if not view else default_kernels(len(view)) if kernels is None else list(kernels)
        for view in views
    ]
    for a, b in pairs:
        both, first = views[a] + views[b], len(views[a])
        apart = np.arange(first).tolist(), np.arange(first, len(both)).tolist()
        views.append(both)
        nested.append([Linear().on(apart[0]) * Linear().on(apart[1])])
    unit = np.repeat(np.arange(len(views)), [len(each) for each in nested])
    full = np.unique(unit).tolist()
    dictionary = KernelDictionary(
        [nested[k] for k in full], columns=[views[k] for k in full], normalize="center-trace"
    )
    return dictionary.fit_grams(history), unit


@dataclass(frozen=True, eq=False)
class Histories:
    """The samples of some series, and the kernels on their histories.

    - `roles`: what each column may do
    - `lags`: of a history
    - `pairs`: nodes whose histories are multiplied
    - `unit`: see `history_dictionary`
    - `n_slots`: weights that the history of a node has in the graph, one or one a lag
    """

    roles: Roles
    lags: tuple[int, ...]
    samples: LaggedSamples
    dictionary: FittedDictionary
    pairs: list[Pair]
    unit: Index
    n_slots: int

    @property
    def grams(self) -> RealArray:
        """The kernel matrices, shape (n_kernels, n_samples, n_samples)."""
        return self.dictionary.grams

    @property
    def owner(self) -> Index:
        """Source on whose history each kernel is; pairs come after all sources."""
        return self.unit // self.n_slots

    @property
    def share(self) -> RealArray:
        """To whom the weight of each kernel belongs, see `shares`."""
        return shares(self.unit, len(self.roles.sources) * self.n_slots, self.pairs)

    @property
    def columns(self) -> list[Index]:
        """Columns of each node that has a model."""
        return [self.roles.nodes.members[i] for i in self.roles.driven]

    @property
    def seen(self) -> list[Index]:
        """Kernels that the model of each node sees, for those that have one."""
        return [self.roles.kernels_of(i, self.owner, self.pairs) for i in self.roles.driven]

    @property
    def values(self) -> list[Matrix]:
        """What is to be predicted, for each node that has a model."""
        targets = self.samples.targets
        return [np.ascontiguousarray(targets[:, nodes]) for nodes in self.columns]

    def weights_of_lags(self, weights: Matrix) -> npt.NDArray[np.float64]:
        """Return weights of kernels as those of nodes and lags, (n_nodes, n_nodes, n_slots)."""
        n = len(self.roles.nodes)
        by_unit: Matrix = weights @ self.share
        return by_unit[:, : n * self.n_slots].reshape(n, n, self.n_slots)


def describe(
    samples: LaggedSamples,
    lags: tuple[int, ...],
    roles: Roles,
    kernels: Sequence[Kernel] | None,
    *,
    per_lag: bool,
    sees_pairs: bool,
) -> Histories:
    """Return the kernels on the histories of these samples."""
    pairs: list[Pair] = []
    if sees_pairs:
        driven = samples.targets[:, roles.driven_columns]
        pairs = choose_pairs(samples.history, driven, roles.nodes, len(lags))
    dictionary, unit = history_dictionary(
        *(samples.history, roles.sources, len(lags), kernels), per_lag=per_lag, pairs=pairs
    )
    return Histories(roles, lags, samples, dictionary, pairs, unit, len(lags) if per_lag else 1)
