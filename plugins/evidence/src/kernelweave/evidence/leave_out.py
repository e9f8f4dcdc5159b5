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
from .inverse import Inverse
from .objective import inverse_of
from .rows import Rows, Standardised, centred_by_others


class PairsLeaveOut:
    """Rows left out in closed form of all pairs.

    `inverse`: of S; `targets`, `width`: of the mixture; `rows`: of training; `places` of shape
    (n,): where each stands first in the user's table.

    `dual` of shape (n, n_outputs + 1): S⁻¹ times the targets and ones.
    """

    def __init__(
        self,
        inverse: Inverse,
        targets: Standardised,
        rows: Rows,
        places: Index,
        width: FloatArray | float = 0.0,
    ) -> None:
        self.inverse, self.targets, self.width = inverse, targets, width
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
