"""Parameters and fitted attributes of `GrangerGraph`, and the kernels on histories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, Linear
from kernelweave.kernels_core.arrays import Matrix, RandomState
from kernelweave.kernels_core.checks import (
    COUNT,
    FLAG,
    JOBS,
    NONNEGATIVE,
    POSITIVE,
    SEED,
    Rule,
    number,
    one_of,
)
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.estimators.folds import SCORING, Folds, Scoring
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel, KernelDictionary
from kernelweave.kernels_core.parameters import fitted, parameter

from .roles import Names
from .selection import Selection
from .series import LAGS, Groups, Lags
from .significance import ADJUST, SIGNIFICANCE
from .target import Effects

if TYPE_CHECKING:
    from kernelweave.kernels_core import Result
    from kernelweave.kernels_core.kernels import Kernel
    from kernelweave.vv_rkhs.penalties import Penalty


# default candidates for λ
LAMS = tuple(np.logspace(1, -2, 7).tolist())
# Numbers of lags that "cv" tries, fewer for short series. Each costs a fit in every fold, so steps
# widen: a sixth lag beside five others adds little.
LENGTHS = (1, 2, 3, 5, 8)
_LAGS = Rule(
    "an integer >= 1, a list of such or 'cv'",
    lambda value: LAGS.holds(value) or (isinstance(value, str) and value == "cv"),
)
_LAM = Rule(
    "'cv' or a finite number > 0",
    lambda value: POSITIVE.holds(value) or (isinstance(value, str) and value == "cv"),
)
_PAIRS = Rule("None, True or False", lambda value: value is None or FLAG.holds(value))

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
    nested = [default_kernels(len(view)) if kernels is None else list(kernels) for view in views]
    for a, b in pairs:
        both, first = views[a] + views[b], len(views[a])
        apart = np.arange(first).tolist(), np.arange(first, len(both)).tolist()
        views.append(both)
        nested.append([Linear().on(apart[0]) * Linear().on(apart[1])])
    dictionary = KernelDictionary(nested, columns=views, normalize="center-trace")
    unit = np.repeat(np.arange(len(views)), [len(each) for each in nested])
    return dictionary.fit_grams(history), unit


class GraphParameters(Estimator):
    """Parameters and fitted attributes of `GrangerGraph`."""

    lags: Lags = parameter(
        'Number of lags, a list of lags such as ``[1, 2, 12]``, or ``"cv"`` to choose the number '
        "by cross-validation among 1, 2, 3, 5 and 8. No lag crosses from one replicate to the "
        "next.",
        default=1,
        kind='int, list of int or "cv"',
        rule=_LAGS,
        kw_only=False,
    )
    groups: Iterable[object] | None = parameter(
        "Group label of each column that is not exogenous. The columns of a group form one node of "
        "the graph, with a common history and output kernel. By default each column is a group.",
        default=None,
        kind="sequence of length n_nodes",
        kw_only=False,
    )
    exogenous: Names = parameter(
        "Columns that may drive every node but are not nodes themselves, such as a season or the "
        "weather. They are not permuted for p-values.",
        default=None,
        kind="list of column names",
    )
    never_targets: Names = parameter(
        "Nodes that may drive others but are never driven.", default=None, kind="list of node names"
    )
    forbidden: Iterable[object] | None = parameter(
        "Links to exclude, as (source, target).", default=None, kind="list of pairs of names"
    )
    per_lag: bool = parameter(
        "Whether each lag of a node has its own kernels, weight and p-value.",
        default=False,
        rule=FLAG,
    )
    missing: str = parameter(
        "Treatment of NaN: raise an error, or skip rows with a NaN in the row itself or in its "
        "history.",
        default="raise",
        rule=one_of("raise", "skip"),
    )
    kernels: Sequence[Kernel] | None = parameter(
        "Kernels on the history of each group; by default a linear one and three Gaussians.",
        default=None,
        kind="list of Kernel",
        kw_only=False,
    )
    pairs: bool | None = parameter(
        "Whether to add kernels on products of two histories, for joint effects: of all pairs of "
        "up to 14 groups, else of the hundred pairs whose products correlate most with the "
        "residuals of a linear model. Each group gets half of a pair's weight. By default they "
        "are added to the default kernels unless ``per_lag`` or ``significance`` is set: pairs "
        "rank edges better, but with them fewer edges pass a test.",
        default=None,
        rule=_PAIRS,
    )
    penalty: str | Penalty = parameter(
        "The penalty ω on the weights. With the elastic net, targets that are hard to predict "
        "get small weights, so that edges into different targets are comparable; with squared ℓp "
        "norms the weights of each target sum to 1 (p = 1) even if they explain little.",
        default="elastic-net",
        kind='{"elastic-net", "lp"} or Penalty',
    )
    mu: float = parameter("Share of the squared norm in the elastic net.", default=0.5)
    p: float = parameter("Exponent of the squared ℓp norm, in [1, 2].", default=1.0)
    learn_output: bool = parameter(
        "Whether to learn the output kernel L; without effect for groups of one column.",
        default=True,
        rule=FLAG,
    )
    lam: float | str = parameter(
        'Regularization parameter λ, or ``"cv"`` to choose it by cross-validation.',
        default="cv",
        kind='"cv" or float',
        rule=_LAM,
    )
    lams: npt.ArrayLike | None = parameter(
        "Candidates for λ; by default 7 from 10 to 10⁻². Of five or more, the two smallest are "
        "skipped if the validation error is already rising.",
        default=None,
        kind="sequence of float",
    )
    shared_lam: bool = parameter(
        "Whether all targets have the same λ, which is more stable for short series.",
        default=True,
        rule=FLAG,
    )
    cv: Folds = parameter(
        "Cross-validation folds. An integer makes folds of whole replicates if there are three or "
        "more, else of contiguous blocks of time. Splitters get the replicates as groups. "
        "``None`` needs a number for ``lam``.",
        default=5,
        kind="int, splitter, iterable or None",
    )
    scoring: Scoring = parameter(
        "Criterion for λ and lags: by default the mean squared error of standardised values, or a "
        "scikit-learn scorer, for each node and averaged over folds. With a scorer, no candidate "
        "is skipped.",
        default=None,
        kind="str or callable",
        rule=SCORING,
    )
    replicates: npt.ArrayLike | None = parameter(
        "Replicate of each row. The rows of a replicate are consecutive and in order of time.",
        default=None,
        kind="array-like of shape (n_times,)",
    )
    significance: str | None = parameter(
        "How p-values are computed; None for no test. A permutation test refits each target with "
        "the histories of the other groups moved in time: whole replicates are exchanged if there "
        "are five or more of equal length, else rows are shifted in a circle in each replicate.",
        default=None,
        rule=SIGNIFICANCE,
    )
    n_draws: int = parameter(
        "Number of refits per target for p-values. A weight is compared with all weights that its "
        "source got in these, for any target, so that the smallest p-value is "
        "1/(1 + n_draws · (n_groups − 1)). A single replicate of n samples has n − 1 shifts: if "
        "``n_draws`` is larger, each shift is used once.",
        default=199,
        rule=COUNT,
    )
    adjust: str = parameter(
        'How p-values are adjusted for the number of edges. ``"bh"`` (Benjamini and Hochberg) '
        'controls the expected share of false edges among those that pass; ``"max-t"`` compares '
        "with the largest weight of each draw and controls the probability of any false edge.",
        default="bh",
        rule=ADJUST,
    )
    level: float = parameter(
        "Significance level of the adjusted p-values.",
        default=0.05,
        rule=number(above=0.0, below=1.0),
    )
    tol: float = parameter(
        "Relative certified gap; for groups with a learned L, relative stationarity.",
        default=1e-3,
        rule=NONNEGATIVE,
    )
    max_iter: int = parameter("Maximum number of iterations of a fit.", default=500, rule=COUNT)
    n_jobs: int | None = parameter(
        "Number of targets fitted in parallel, by joblib.", default=None, rule=JOBS
    )
    memory_limit: float | None = parameter(
        "Memory limit of the fit in bytes, per process.", default=None
    )
    random_state: RandomState = parameter(
        "Seed of the draws.", default=None, kind="int or RandomState", rule=SEED
    )

    graph_: Matrix = fitted(
        "ndarray of shape (n_groups, n_groups)",
        "``graph_[i, j]`` is the weight of the edge j → i; the diagonal says how much a group "
        "drives itself.",
    )
    p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "P-value of each edge, placed as in ``graph_``; NaN on the diagonal and for links that are "
        "excluded. ``None`` without ``significance``.",
    )
    adjusted_p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "``p_values_`` adjusted for the number of edges.",
    )
    p_values_doubted_: bool = fitted(
        "bool",
        "Whether some series look nonstationary or share a season, so that p-values may be too "
        "small; False without ``significance``.",
    )
    effects_: Effects = fitted("Effects", "Effect curve of each edge at each lag.")
    n_draws_: int = fitted("int", "Number of draws used per target; 0 without p-values.")
    lag_graph_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups, n_lags) or None",
        "The weight of each lag of each edge; ``None`` without ``per_lag``.",
    )
    lag_p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups, n_lags) or None", "P-values of ``lag_graph_``."
    )
    lags_: tuple[int, ...] = fitted("tuple of int", "The lags of a history.")
    targets_: list[str] = fitted(
        "list of str", "The groups that have a model: all but ``never_targets``."
    )
    output_kernels_: list[Matrix] = fitted("list of ndarray", "L of each of ``targets_``.")
    weights_: Matrix = fitted(
        "ndarray of shape (n_groups, n_kernels)",
        "Kernel weights η in the model of each group, 0 for ``never_targets``; ``owner_`` tells on "
        "whose history a kernel is.",
    )
    owner_: npt.NDArray[np.intp] = fitted(
        "ndarray of int of shape (n_kernels,)",
        "Group on whose history each kernel is; numbers from n_groups on are exogenous columns, "
        "then ``pairs_``.",
    )
    pairs_: list[tuple[str, str]] = fitted(
        "list of (str, str)", "Groups whose histories are multiplied; none without ``pairs``."
    )
    kernel_names_: tuple[str, ...] = fitted("tuple of str", "Names of the kernels.")
    rmse_: npt.NDArray[np.float64] | None = fitted(
        "ndarray of shape (n_nodes,) or None",
        "Held-out root mean squared error of one-step predictions at the chosen λ, in the "
        "units of the data; ``None`` without ``cv``.",
    )
    lam_: npt.NDArray[np.float64] = fitted("ndarray of shape (n_targets,)", "λ of each target.")
    selection_: Selection | None = fitted("Selection or None", "Held-out errors for each λ.")
    group_names_: list[str] = fitted("list of str", "Names of the rows of ``graph_``.")
    results_: list[Result] = fitted("list of Result", "Bounds and status of each target.")
