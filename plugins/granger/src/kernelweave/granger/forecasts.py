"""What fitted models predict: the next value, and paths of values that go on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, Vector
from kernelweave.kernels_core.kernels import FittedDictionary

from .frames import future_rows
from .target import TargetFit


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecasts of the rows that follow.

    Attributes
    ----------
    mean : ndarray or DataFrame of shape (steps, n_nodes)
        Mean over the paths.
    lower, upper : ndarray or DataFrame of shape (steps, n_nodes)
        Ends of the interval that holds a share ``level`` of the paths.
    level : float
        That share.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger import GrangerGraph
    >>> X = np.random.default_rng(0).standard_normal((80, 2)).cumsum(axis=0)
    >>> ahead = GrangerGraph(lam=0.1, cv=None).fit(X).forecast_ahead(X, 3)
    >>> ahead.mean.shape, bool((ahead.lower <= ahead.upper).all())
    ((3, 2), True)
    """

    mean: Any
    lower: Any
    upper: Any
    level: float


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Models of one-step predictions, and what they missed.

    - `names`: of all columns
    - `mean`, `scale` of shape (n_columns,): of each column
    - `models`: columns of each target, and its model
    - `errors` of shape (n_samples, n_columns): at samples left out, standardised
    - `constant`: columns that were constant, and are predicted so
    """

    names: list[str]
    mean: Vector
    scale: Vector
    lags: tuple[int, ...]
    dictionary: FittedDictionary
    models: list[tuple[Index, TargetFit]]
    errors: Matrix
    constant: Index

    @property
    def columns(self) -> Index:
        """Columns that have a model, target by target."""
        return np.concatenate([columns for columns, _ in self.models])

    def standardised(self, rows: Matrix) -> Matrix:
        """Return rows in standardised units; constant columns are 0."""
        scaled: Matrix = (rows - self.mean) / self.scale
        scaled[:, self.constant] = 0.0
        return scaled

    def in_units(self, scaled: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return standardised values in the units of the data."""
        values: npt.NDArray[np.float64] = scaled * self.scale + self.mean
        return values

    def one_step(self, scaled: Matrix) -> Matrix:
        """Return one-step predictions in standardised units, NaN where there is none."""
        far = max(self.lags)
        longer = np.vstack([scaled, scaled[-1:]])
        past = np.stack([longer[far - lag : len(longer) - lag] for lag in self.lags], axis=2)
        history = past.reshape(len(past), -1)
        whole = ~np.isnan(history).any(axis=1)
        values = np.full((len(history), scaled.shape[1]), np.nan)
        values[:, self.constant] = 0.0
        if whole.any():
            cross = self.dictionary.cross(history[whole])
            for columns, fit in self.models:
                values[np.ix_(whole, columns)] = fit.predict(cross)
        return values

    def coming(self, future: object, steps: int) -> Matrix:
        """Return the coming rows in standardised units; NaN where a model says what comes."""
        modelled = np.union1d(self.columns, self.constant)
        given = np.setdiff1d(np.arange(len(self.mean)), modelled)
        if len(given) == 0:
            rows = np.full((steps, len(self.mean)), np.nan)
            rows[:, self.constant] = 0.0
            return rows
        if future is None:
            raise ValueError(
                f"future must hold the coming rows of {', '.join(self.names[j] for j in given)}, "
                "which have no model, got None"
            )
        return self.standardised(future_rows(future, self.names, given, steps))

    def paths(
        self, past: Matrix, future: Matrix, n_paths: int, rng: np.random.RandomState
    ) -> npt.NDArray[np.float64]:
        """Return paths of all columns, standardised as these, shape (n_paths, steps, n_columns).

        They go on after `past`. Rows of `errors` are drawn together, so that nodes err together as
        they did; `future` of shape (steps, n_columns): values of the columns without a model.
        """
        steps, n_columns = future.shape
        longest = max(self.lags)
        path = np.empty((n_paths, longest + steps, n_columns))
        path[:, :longest] = past[len(past) - longest :]
        for step in range(steps):
            now = longest + step
            history = np.stack([path[:, now - lag] for lag in self.lags], axis=2)
            cross = self.dictionary.cross(history.reshape(n_paths, -1))
            path[:, now] = future[step]
            noise = self.errors[rng.randint(len(self.errors), size=n_paths)]
            for columns, fit in self.models:
                path[:, now, columns] = fit.predict(cross) + noise[:, columns]
        return path[:, longest:]
