"""Which columns of a wide table have a scale each: those that trees split by most."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .rows import Rows, Standardised
from .terms import Stopped
from .views import Views

MOST_SCALES = 100
"""More dimensions than these are screened."""
# How many of them each path has a scale for. Which is better differs from table to table.
KEPT = (6, 48, 96)
_N_TREES = 100
# between so many trees the clock is looked at
_BATCH = 10
# Cells that a split looks at, at most: two dimensions that count only together are found by looking
# at many, which takes as much longer.
_CELLS = 1_000_000
# a split into single rows follows the noise
_LEAF = 5


def screen(views: Views, rows: Rows, random_state: np.random.RandomState) -> tuple[Index, ...]:
    """Return the dimensions of each path, ascending; none where a table is not wide.

    They come first by the importance that extremely randomised trees of these rows give them. Rows
    held out must not be among these: their score would be too good, by up to 0.10 on 350 rows of
    1,000 columns.

    Raises Stopped where time is up.

    References
    ----------
    Geurts, Ernst and Wehenkel 2006, Extremely randomized trees.
    """
    if rows.n_dimensions <= MOST_SCALES:
        return ()
    order = np.argsort(-_importances(views, rows, random_state), kind="stable")
    return tuple(np.sort(order[:most]) for most in KEPT)


def _importances(views: Views, rows: Rows, random_state: np.random.RandomState) -> FloatArray:
    """Return the mean decrease of the targets' variance by splits of each dimension.

    Of ±1 targets of classes the variance is Gini's index, but for a factor.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    points = views.points(rows.numeric, rows.codes)
    table = np.vstack([points.X, points.C]).T.astype(np.float32)
    targets = Standardised.of(rows).values.T
    forest = ExtraTreesRegressor(
        0, min_samples_leaf=_LEAF, max_features=min(_CELLS // len(table), table.shape[1]),
        random_state=random_state.randint(2**31 - 1), warm_start=True,
    )  # fmt: skip
    for n_trees in range(_BATCH, _N_TREES + 1, _BATCH):
        if clock.expired():
            raise Stopped
        forest.set_params(n_estimators=n_trees)
        forest.fit(table, targets[:, 0] if targets.shape[1] == 1 else targets, rows.weight)
    return np.asarray(forest.feature_importances_)
