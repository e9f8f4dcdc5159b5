"""The fits of a search as starts for those beside them: same fold, or same C."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels

from .estimators import PositiveMatrixKernel, absolute
from .start import Start, at_new_caps


@dataclass
class Fitted:
    """What a fit leaves for its neighbours.

    `rows` of shape (n_train,): the samples it saw; `P` of shape (n_P, n_P); `dual_coef` of shape
    (n_tasks, n_samples): zero for samples that it did not see.
    """

    rows: Index
    P: FloatArray
    dual_coef: FloatArray
    C: float
    classes: Labels | None

    def fits(self, y: Labels) -> bool:
        """Return whether targets have the same tasks."""
        return self.classes is None or np.array_equal(np.unique(y), self.classes)


@dataclass
class Warm:
    """The fits of a search, by fold, and how many learner solves they took."""

    n_samples: int
    n_solves: int = 0
    fits: dict[int, Fitted] = field(default_factory=dict)
    last: Fitted | None = None

    def fit(
        self, model: PositiveMatrixKernel, X: FloatArray, y: Labels, rows: Index, fold: int
    ) -> PositiveMatrixKernel:
        """Fit on ``rows``, begun at a neighbour."""
        C = float(absolute(model, X[rows], y[rows])["C"])
        near = self._neighbour(fold, C)
        if near is not None and near.fits(y[rows]):
            model._start = Start(near.P, at_new_caps(near.dual_coef[:, rows], near.C, C))
        model.fit(X[rows], y[rows])
        self.n_solves += model.result_.history.counts.get("n_solves", [0])[-1]
        dual = np.atleast_2d(model.dual_coef_)
        spread = np.zeros((len(dual), self.n_samples))
        spread[:, rows] = dual
        self.last = Fitted(rows, model.P_, spread, C, getattr(model, "classes_", None))
        self.fits[fold] = self.last
        return model

    def _neighbour(self, fold: int, C: float) -> Fitted | None:
        """Return this fold's last fit where no coefficient was at its cap, else the last fit.

        Without a coefficient at its cap a larger C changes nothing. Otherwise another fold at the
        same C is nearer than this one at another.
        """
        own = self.fits.get(fold)
        if own is not None and own.C <= C and np.abs(own.dual_coef).max() < (1.0 - 1e-6) * own.C:
            return own
        return self.last if self.last is None or self.last.C == C else (own or self.last)

    def average(self) -> Fitted | None:
        """Return the mean of the folds' last fits, each sample over the folds that saw it."""
        fits = [fit for fold, fit in self.fits.items() if fold >= 0]
        shapes = {(fit.P.shape, fit.dual_coef.shape, fit.C) for fit in fits}
        if len(shapes) != 1:
            return None
        seen = np.zeros(self.n_samples)
        for fit in fits:
            seen[fit.rows] += 1.0
        total = np.sum([fit.dual_coef for fit in fits], axis=0)
        P = np.mean([fit.P for fit in fits], axis=0)
        everything = np.arange(self.n_samples)
        return Fitted(everything, P, total / np.maximum(seen, 1.0), fits[0].C, fits[0].classes)
