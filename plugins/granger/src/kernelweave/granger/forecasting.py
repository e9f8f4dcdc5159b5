"""Several steps ahead: paths drawn from the model and from its own errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.vv_rkhs import PrecomputedFamily
from kernelweave.vv_rkhs.leave_one_out import LeaveOneOut

from .target import TargetFit


@dataclass(frozen=True, eq=False)
class Forecast:
    """What comes next.

    Attributes
    ----------
    mean : ndarray or DataFrame of shape (steps, n_nodes)
        Mean over the paths.
    lower, upper : ndarray or DataFrame of shape (steps, n_nodes)
        Ends of the interval that holds a share ``level`` of the paths.
    level : float
        That share.
    """

    mean: Any
    lower: Any
    upper: Any
    level: float


def left_out_errors(grams: RealArray, fit: TargetFit, Y: Matrix, lam: float) -> Matrix:
    """Return what the model of a target misses at each sample when it is fitted without it.

    Weights and output kernel are those of all samples.

    - `grams` of shape (n_kernels, n_samples, n_samples): kernels of all histories
    - `fit`: the fitted model
    - `Y` of shape (n_samples, n_outputs): targets
    - `lam`: λ

    Returns shape (n_samples, n_outputs): target minus prediction.
    """
    K = PrecomputedFamily(grams, check=False).combine(fit.weights)
    return LeaveOneOut(K).errors(Y - fit.mean, lam * len(Y), fit.output_kernel)


def draw_paths(
    past: Matrix,
    lags: tuple[int, ...],
    dictionary: FittedDictionary,
    models: list[tuple[Index, TargetFit]],
    errors: Matrix,
    future: Matrix,
    n_paths: int,
    rng: np.random.RandomState,
) -> npt.NDArray[np.float64]:
    """Return paths of all columns in standardised units, shape (n_paths, steps, n_columns).

    - `past` of shape (>= max(lags), n_columns): the last rows
    - `lags`: of a history
    - `dictionary`: kernels of all histories
    - `models`: columns that each model predicts, and the model
    - `errors` of shape (n_samples, n_columns): rows are drawn from these together, so that nodes
      err together as they did
    - `future` of shape (steps, n_columns): values of the columns that have no model
    - `n_paths`: how many
    - `rng`: draws

    Returns shape (n_paths, steps, n_columns): the paths.
    """
    steps, n_columns = future.shape
    longest = max(lags)
    path = np.empty((n_paths, longest + steps, n_columns))
    path[:, :longest] = past[len(past) - longest :]
    for step in range(steps):
        now = longest + step
        history = np.stack([path[:, now - lag] for lag in lags], axis=2).reshape(n_paths, -1)
        cross = dictionary.cross(history)
        path[:, now] = future[step]
        noise = errors[rng.randint(len(errors), size=n_paths)]
        for columns, fit in models:
            path[:, now, columns] = fit.predict(cross) + noise[:, columns]
    return path[:, longest:]


def summarise(paths: npt.NDArray[np.float64], level: float) -> Forecast:
    """Return mean and interval of paths of shape (n_paths, steps, n_nodes)."""
    ends = np.quantile(paths, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
    return Forecast(paths.mean(axis=0), ends[0], ends[1], level)
