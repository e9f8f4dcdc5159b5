"""What the evidence estimators say of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import one_of
from kernelweave.tables.frames import read_columns
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..rows import Rows
from .importance import ColumnImportance, shuffled_importance
from .shapley import ShapleyValues, background_of, cells_of, on_scale, shapley_values

if TYPE_CHECKING:
    from kernelweave.kernels_core.arrays import Labels, RandomState
    from kernelweave.tables import ColumnPlan

    from ..columns import ColumnEncoder, Dimension
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor


class Explained:
    """Importances of the columns of a fitted estimator, and what each adds to a prediction."""

    if TYPE_CHECKING:
        # what the estimator declares
        _predictor: ExactPredictor | LandmarkPredictor
        columns_: list[ColumnPlan]
        dimensions_: list[Dimension]
        encoder_: ColumnEncoder
        random_state: RandomState

    def _losses(self, rows: Rows, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of rows and their units: the score is 1 less the ratio of means."""
        raise NotImplementedError

    def _link(self, values: FloatArray) -> FloatArray:
        """Return predictions (n, n_outputs) of the targets on the scale that `explain` adds on."""
        return values

    def _response(self, values: FloatArray, output: int) -> FloatArray:
        """Return what is shown of predictions (n, n_outputs) of the targets, shape (n,)."""
        raise NotImplementedError

    def explain(self, X: Table, *, scale: str = "link", n_background: int = 500) -> ShapleyValues:
        """Return what each column adds to each prediction: Shapley values, with standard errors.

        A coalition of columns is worth the mean prediction where these columns have the row's
        values, and each of the others, independently, those of a training row: the functional
        decomposition of the prediction under the product of the columns' own distributions. The
        kernel is a sum of products over columns, exp(−d) being a mixture of Gaussians, so that the
        values are exact, by a polynomial for each pair of rows, not sampled. All that the kernel
        sees of a column, such as the year, month and weekday of a date, is one player.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
        scale : {"link", "response"}, default="link"
            What the values add up to. ``"link"``: what the kernel is a sum on: the target of a
            regression, before predictions are cut to its range, or that target under its power;
            what `decision_function` returns of a classifier. ``"response"``: what `predict`
            returns, or `predict_proba`: the exact values, times the mean slope from the base to the
            prediction (Aumann and Shapley 1974).
        n_background : int, default=500
            Training rows whose values the columns have where they are not known; of more, so many
            are drawn.

        Returns
        -------
        ShapleyValues
            Its ``errors`` are deviations of the posterior, exact on the scale ``"link"``.

        References
        ----------
        Owen 1972, Multilinear extensions of games; Mohammadi, Chau and Muandet 2025, Computing
        exact Shapley values in polynomial time for product-kernel methods, arXiv 2505.16516.
        """
        one_of("link", "response").check("scale", scale)
        check_is_fitted(self, "kernel_")
        encoded, table = self.encoder_.transform(X, estimator=self), read_columns(X, self)
        expansion, names = self._predictor.expansion(), [each.column for each in self.columns_]
        owners = [[j for j, d in enumerate(self.dimensions_) if d.source == n] for n in names]
        used = np.array([k for k, own in enumerate(owners) if own])
        latent = shapley_values(
            expansion, [np.array(owners[k]) for k in used], expansion.seen(*encoded),
            *background_of(expansion, self._predictor.rows, n_background),
        )  # fmt: skip
        classes, response = getattr(self, "classes_", None), scale == "response"
        found, base, spread = on_scale(
            latent, expansion, self._link, response=response, classes=classes is not None
        )
        values = np.zeros((2, len(table), len(names), len(base)))
        values[:, :, used] = found, spread
        told = _told(classes, len(base), response, bool(expansion.target.warps))
        kept = 0 if len(base) == 1 and getattr(self, "_flat", True) else slice(None)
        bases = np.repeat(base[None], len(table), axis=0)
        return ShapleyValues(
            values[0, :, :, kept], bases[:, kept], cells_of(table), names, values[1, :, :, kept],
            *told,
        )  # fmt: skip

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

    @property
    def feature_importances_(self) -> FloatArray:
        """The numbers of `importance_`, shape (n_columns,), as scikit-learn's selectors read them.

        Worked out each time they are asked for.
        """
        return np.array([each.importance for each in self.importance_])


def _told(
    classes: Labels | None, n_outputs: int, response: bool, warped: bool
) -> tuple[list[str], str]:
    """Return the names of what is explained, and its scale in words."""
    if classes is None:
        names = ["prediction"] if n_outputs == 1 else [f"output {k}" for k in range(n_outputs)]
        return names, "the target under its power" if warped and not response else "the target"
    names = [str(each) for each in classes[-n_outputs:]]
    which = f"of {names[0]}" if n_outputs == 1 else "of each class"
    return names, f"the probability {which}" if response else f"the logit {which}"
