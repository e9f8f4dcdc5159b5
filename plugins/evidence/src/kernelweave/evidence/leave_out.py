"""Rows left out of one factorisation, in closed form.

With S = K + σ²/w of all rows and a = S⁻¹y, the rows g are predicted from all others with the
residuals (S⁻¹_gg)⁻¹a_g of covariance (S⁻¹_gg)⁻¹, whatever g is: a row, a fold, a group, or all that
came later.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import cho_factor, cho_solve, inv, lapack

from .forecasts import LaterRows
from .objective import inverse_of
from .rows import Rows, Standardised, centred_by_others

# of all rows: to leave more of them out takes the whole inverse
_MOST_OF = 4


class PairsLeaveOut:
    """Rows left out in closed form of all pairs.

    `factor` of shape (n, n): lower Cholesky factor of S; `targets`, `width`: of the mixture;
    `rows`: of training; `places` of shape (n,): where each stands first in the user's table.

    `dual` of shape (n, n_outputs + 1): S⁻¹ times the targets and ones.
    """

    def __init__(
        self,
        factor: FloatArray,
        targets: Standardised,
        rows: Rows,
        places: Index,
        width: FloatArray | float = 0.0,
    ) -> None:
        self.factor, self.targets, self.width = factor, targets, width
        self.rows, self.places = rows, places
        both = np.vstack([self.targets.values, np.ones(len(rows))])
        self.dual = cho_solve((self.factor, True), both.T, check_finite=False)
        # columns of S⁻¹ that were asked for, and which row each is of
        self._at, self._inverse = np.full(len(rows), -1, dtype=np.intp), np.empty((len(rows), 0))

    def ask(self, rows: Index) -> None:
        """Work out what leaving any of some rows out takes: far faster than a few at a time."""
        rows = np.unique(rows)
        if (self._at[rows] >= 0).all():
            return
        n = len(self.rows)
        if _MOST_OF * len(rows) > n:
            # all of it takes no longer than solving for many
            upper = inverse_of(np.array(self.factor.T, order="F"))
            self._inverse = np.triu(upper) + np.triu(upper, 1).T
            self._at = np.arange(n)
            return
        unit = np.zeros((n, len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        self._inverse = cho_solve((self.factor, True), unit, check_finite=False)
        self._at[:] = -1
        self._at[rows] = np.arange(len(rows))

    def residuals(self, rows: Index) -> FloatArray:
        """Return residuals of rows predicted from all others, shape (n_rows, n_outputs)."""
        factor = cho_factor(self._precision(rows), lower=True, overwrite_a=True, check_finite=False)
        residuals = cho_solve(factor, self.dual[rows], check_finite=False)
        return centred_by_others(residuals, self.targets.values.T, self.rows.precision, rows)

    def variances(self, rows: Index) -> FloatArray:
        """Return variances of these residuals, the noise among them, shape (n_rows,)."""
        factor, _ = lapack.dpotrf(self._precision(rows), lower=0, overwrite_a=1)
        return np.array(inverse_of(factor).diagonal())

    def later(self, rows: Index) -> LaterRows:
        """Return rows after all others, in their order, as forecasts need them."""
        covariance = np.array(inv(self._precision(rows)))
        residuals = covariance @ self.dual[rows]
        values, mass = self.targets.values.T, self.rows.precision
        return LaterRows(rows, residuals, covariance, values, mass, self.targets.spread)

    def _precision(self, rows: Index) -> FloatArray:
        """Return S⁻¹_gg, shape (n_rows, n_rows)."""
        self.ask(rows)
        return np.array(self._inverse[np.ix_(rows, self._at[rows])], order="F")
