"""What the evidence estimators say of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import integer
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..rows import Rows
from .anova import AnovaShares, anova_shares
from .effects import some_rows
from .importance import ColumnImportance, shuffled_importance

if TYPE_CHECKING:
    from kernelweave.kernels_core.arrays import RandomState
    from kernelweave.tables import ColumnPlan

    from ..columns import Dimension
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor

# rows that tell the shares of the terms of a kernel
_SHOWN_ROWS = 500


class Explained:
    """Importances and shares of the columns of a fitted estimator."""

    if TYPE_CHECKING:
        # what the estimator declares
        _predictor: ExactPredictor | LandmarkPredictor
        columns_: list[ColumnPlan]
        dimensions_: list[Dimension]
        random_state: RandomState

    def _losses(self, rows: Rows, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of rows and their units: the score is 1 less the ratio of means."""
        raise NotImplementedError

    def _response(self, values: FloatArray, output: int) -> FloatArray:
        """Return what is shown of predictions (n, n_outputs) of the targets, shape (n,)."""
        raise NotImplementedError

    @property
    def importance_(self) -> list[ColumnImportance]:
        """What each column is worth, with its standard error.

        The score that rows lose, predicted by the fold that did not see them, when the values of
        the column are shuffled among them, on average over five times, fewer above 50 columns; 0
        for a column that is left out. Worked out when it is asked for, in about a tenth of the
        time of the fit.
        """
        check_is_fitted(self, "kernel_")
        return shuffled_importance(
            self._predictor.rows,
            self._predictor.judges(),
            self._losses,
            [each.column for each in self.columns_],
            self.dimensions_,
            check_random_state(self.random_state),
        )

    def anova_shares(self, output: int = 0) -> AnovaShares:
        """Return what the product term says of columns and pairs, in closed form.

        Parameters
        ----------
        output : int, default=0
            Which target, or which class where there are more than two.

        Returns
        -------
        AnovaShares
            With the share that the product term has in the prediction.
        """
        check_is_fitted(self, "kernel_")
        expansion = self._predictor.expansion()
        integer(0).check("output", output)
        if output >= expansion.dual.shape[1]:
            raise ValueError(f"output must be below {expansion.dual.shape[1]}, got {output}")
        rows = some_rows(self._predictor.rows, _SHOWN_ROWS, 0)
        return anova_shares(expansion, rows, self.dimensions_, output)
