"""Rows left out of one factorisation, in closed form.

With S = K + σ²/w of all rows and a = S⁻¹y, the rows g are predicted from all others with the
residuals (S⁻¹_gg)⁻¹a_g of covariance (S⁻¹_gg)⁻¹, whatever g is: a row, a fold, a group, or all that
came later.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import cho_factor, cho_solve, inv, lapack, solve

from .forecasts import LaterRows
from .inverse import Inverse
from .objective import inverse_of
from .rows import Rows, Standardised, centred_by_others


class PairsLeaveOut:
    """Rows left out in closed form of all pairs.

    `inverse`: of S; `targets`, `width`: of the mixture; `rows`: of training; `places` of shape
    (n,): where each stands first in the user's table.

    `dual` of shape (n, n_outputs + 1): S⁻¹ times the targets and ones; `diagonal` of shape (n,):
    what S has beyond K, where rows stand for several.
    """

    def __init__(
        self,
        inverse: Inverse,
        targets: Standardised,
        rows: Rows,
        places: Index,
        width: FloatArray | float = 0.0,
        diagonal: FloatArray | None = None,
    ) -> None:
        self.inverse, self.targets, self.width = inverse, targets, width
        self.diagonal = diagonal
        self.rows, self.places = rows, places
        both = np.vstack([self.targets.values, np.ones(len(rows))])
        self.dual = cho_solve((inverse.factor, True), both.T, check_finite=False)

    def ask(self, rows: Index) -> None:
        """Work out what leaving any of some rows out takes: far faster than a few at a time."""
        self.inverse.ask(rows)

    def residuals(self, rows: Index) -> FloatArray:
        """Return residuals of rows predicted from all others, shape (n_rows, n_outputs)."""
        precision = self.inverse.square(rows)
        factor = cho_factor(precision, lower=True, overwrite_a=True, check_finite=False)
        residuals = cho_solve(factor, self.dual[rows], check_finite=False)
        return centred_by_others(residuals, self.targets.values.T, self.rows.precision, rows)

    def residuals_of_one(self, rows: Index, counts: Index | None = None) -> FloatArray:
        """Return residuals of one of the rows that each stands for, shape (n_rows, n_outputs).

        The others stay: with the prediction of all other rows, of variance v, and a noise of σ²/w
        for what stays, the residual y − m becomes (y − m)·(σ²/w)/(v + σ²/w).

        `counts` of shape (n,): how many rows each of all stands for, one by default.
        """
        self.ask(rows)
        own = np.ones(len(rows)) if counts is None else counts[rows]
        spread = 1.0 / self.inverse.diagonal(rows)
        left = self.dual[rows] * spread[:, None]
        several = np.flatnonzero(own > 1)
        if len(several):
            assert self.diagonal is not None
            noise, n = self.diagonal[rows[several]], own[several]
            rest = noise * n / (n - 1.0)
            left[several] *= (rest / (spread[several] - noise + rest))[:, None]
        values, mass = self.targets.values.T[rows], self.rows.precision
        gone = (mass[rows] / own)[:, None]
        moved = gone * values / (mass.sum() - gone)
        return np.asarray(left[:, :-1] + moved * left[:, -1:])

    def residuals_of_new(self, later: Index, block: Index, groups: Index) -> FloatArray:
        """Return residuals of rows predicted from rows before them of other groups alone.

        With P = S⁻¹, the rows L left out leave W = −P_LL⁻¹P_LE of those before, E, whose inverse is
        M = P_EE + P_EL W and whose coefficients are a = S_EE⁻¹y. A group g of E that is left out
        too adds W_bg M_gg⁻¹ a_g to the residual of its later row b.

        - `later`: all rows that are left out, those of the block first
        - `block`: rows that are predicted
        - `groups` of shape (n,): of all rows

        Returns shape (n_block, n_outputs).
        """
        everything = np.arange(len(self.rows))
        P = self.inverse.columns(everything)
        early = np.setdiff1d(everything, later)
        early = early[np.isin(groups[early], groups[block])]
        factor = cho_factor(P[np.ix_(later, later)], lower=True, check_finite=False)
        rest = cho_solve(factor, self.dual[later], check_finite=False)
        cross = P[np.ix_(later, early)]
        weights = -cho_solve(factor, cross, check_finite=False)
        dual = self.dual[early] - cross.T @ rest
        values, mass = self.targets.values.T, self.rows.precision
        out = np.empty((len(block), values.shape[1]))
        for group in np.unique(groups[block]):
            at = np.flatnonzero(groups[block] == group)
            g = np.flatnonzero(groups[early] == group)
            found = rest[at]
            if len(g):
                M = P[np.ix_(early[g], early[g])] + cross[:, g].T @ weights[:, g]
                found = found + weights[np.ix_(at, g)] @ solve(M, dual[g], assume_a="pos")
            gone = np.concatenate([later, early[g]])
            out[at] = centred_by_others(found, values, mass, gone)
        return out

    def variances(self, rows: Index) -> FloatArray:
        """Return variances of these residuals, the noise among them, shape (n_rows,)."""
        factor, _ = lapack.dpotrf(self.inverse.square(rows), lower=0, overwrite_a=1)
        return np.array(inverse_of(factor).diagonal())

    def later(self, rows: Index) -> LaterRows:
        """Return rows after all others, in their order, as forecasts need them."""
        covariance = np.array(inv(self.inverse.square(rows)))
        residuals = covariance @ self.dual[rows]
        values, mass = self.targets.values.T, self.rows.precision
        return LaterRows(rows, residuals, covariance, values, mass, self.targets.spread)
