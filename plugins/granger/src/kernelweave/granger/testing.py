"""P-values of the edges of a graph, and warnings of what they take for granted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, RandomState, Vector
from sklearn.utils import check_random_state

from .draws import Mixed, null_weights
from .fitting import in_parallel
from .frames import warn_of_draws, warn_of_series
from .histories import Histories
from .significance import adjusted_p_values, most_draws, pooled_p_values, warn_if_short
from .target import TargetSettings


@dataclass(frozen=True, eq=False)
class Test:
    """What a test is asked for: `n_draws`, `adjust` and `level`, see `GrangerGraph`."""

    n_draws: int
    adjust: str
    level: float


@dataclass(frozen=True, eq=False)
class PValues:
    """P-values, and adjusted ones.

    `edges`, `adjusted` of shape (n_nodes, n_nodes); `slots`, `adjusted_slots` of shape (n_nodes,
    n_nodes, n_slots): of each weight in the graph; `n_draws`: that each target had.
    """

    edges: Matrix | None
    adjusted: Matrix | None
    slots: npt.NDArray[np.float64] | None
    adjusted_slots: npt.NDArray[np.float64] | None
    n_draws: int


NO_TEST = PValues(None, None, None, None, 0)


def find_p_values(
    histories: Histories,
    lam: Vector,
    task: TargetSettings,
    test: Test,
    random_state: RandomState,
    n_jobs: int | None,
) -> PValues:
    """Return the p-values of edges by weights of histories that are moved in time."""
    roles, samples, share = histories.roles, histories.samples, histories.share
    n, n_slots, n_targets = len(roles.nodes), histories.n_slots, len(roles.driven)
    rng = check_random_state(random_state)
    seeds = [rng.randint(2**31 - 1, size=int(test.n_draws)) for _ in range(n_targets)]
    stays = [roles.never_permuted(i, histories.owner) for i in roles.driven]
    given = [histories.grams] * n_targets, histories.values, histories.seen, stays
    problems = [share] * n_targets, lam.tolist(), [task] * n_targets
    orders = [samples.replicate] * n_targets, seeds, [_mixed(i, histories) for i in roles.driven]
    found = in_parallel(n_jobs, null_weights, *given, *problems, *orders)
    n_draws = len(found[0][1])
    observed, null = np.full((n, n * n_slots), np.nan), np.full((n, n_draws, n * n_slots), np.nan)
    for i, (weights, drawn) in zip(roles.driven, found, strict=True):
        observed[i], null[i] = weights[: n * n_slots], drawn[:, : n * n_slots]
    edges = observed.reshape(n, n, n_slots).sum(axis=2)
    whole = null.reshape(n, n_draws, n, n_slots).sum(axis=3)
    p, of_slots = pooled_p_values(edges, whole), pooled_p_values(observed, null)
    by_slot = n, n, n_slots
    return PValues(
        p,
        adjusted_p_values(p, edges, whole, test.adjust),
        of_slots.reshape(by_slot),
        adjusted_p_values(of_slots, observed, null, test.adjust).reshape(by_slot),
        n_draws,
    )


def _mixed(target: int, histories: Histories) -> Mixed:
    """Return the pairs of a target's own history with others, by their kernel."""
    views = histories.roles.nodes.columns(len(histories.lags))
    first, history = len(histories.roles.sources), histories.samples.history
    pairs: Mixed = {}
    for k, (a, b) in enumerate(histories.pairs):
        if target in (a, b):
            other = b if target == a else a
            kernel = int(np.flatnonzero(histories.owner == first + k)[0])
            pairs[kernel] = history[:, views[target]], history[:, views[other]]
    return pairs


def warn_of_test(
    scaled: Matrix, names: list[str], replicate: Index, histories: Histories, test: Test
) -> bool:
    """Warn of what p-values take for granted; return whether series make them doubtful.

    `scaled` of shape (n_times, n_columns) and `names`: all columns; `replicate`: of each row.
    """
    roles, samples = histories.roles, histories.samples
    warn_if_short(samples.replicate)
    filled = np.nan_to_num(scaled)
    nodes = np.concatenate(roles.nodes.members)
    rest = filled[:, nodes]
    given = filled[:, [j for members in roles.exogenous.members for j in members]]
    if given.size:
        # what exogenous columns explain, a season or a trend, stays in place in every draw
        rest = rest - given @ np.linalg.lstsq(given, rest, rcond=None)[0]
    doubted = warn_of_series(rest, [names[j] for j in nodes], replicate)
    tested = roles.tested()
    if tested.any():
        most = most_draws(samples.replicate)
        draws, pool = int(min(test.n_draws, most)), int(tested.sum(axis=0).max())
        n_edges = int(tested.sum()) * histories.n_slots
        smallest = 1.0 / (1.0 + draws * pool)
        warn_of_draws(draws, smallest, n_edges, float(test.level), test.adjust, most)
    return doubted
