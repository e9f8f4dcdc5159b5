"""What the evidence estimators say of their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables.frames import read_columns
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..columns import Encoded
from ..monotone.predictor import MonotonePredictor
from .importance import ColumnImportance, shuffled_importance
from .shapley import background_of, shapley_values
from .values import ShapleyValues, cells_of, cells_of_encoded, on_scale

if TYPE_CHECKING:
    from kernelweave.kernels_core.arrays import Labels, RandomState
    from kernelweave.tables import ColumnPlan

    from ..columns import ColumnEncoder, Dimension
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor
    from ..mixture import Expansion
    from ..tasks import Task


class Explained:
    """Importances of the columns of a fitted estimator, and what each adds to a prediction."""

    if TYPE_CHECKING:
        # what the estimator declares
        _predictor: ExactPredictor | LandmarkPredictor
        columns_: list[ColumnPlan]
        dimensions_: list[Dimension]
        encoder_: ColumnEncoder
        held_out_fold_: Index
        _owner: Index
        _importance: FloatArray | None
        _task: Task
        random_state: RandomState

        @property
        def _predicts(self) -> ExactPredictor | LandmarkPredictor | MonotonePredictor:
            """What predicts."""

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
            what `decision_function` returns of a classifier; where two likelihoods are averaged,
            the response. ``"response"``: what `predict`
            returns, or `predict_proba`: the exact values, times the mean slope from the base to the
            prediction (Aumann and Shapley 1974).
        n_background : int, default=500
            Training rows whose values the columns have where they are not known; of more, so many
            are drawn.

        Returns
        -------
        ShapleyValues
            Its ``errors`` are deviations of the posterior, exact on the scale ``"link"``. Above
            2,000 rows `predict` works in single precision, and sums differ from it in the fifth
            digit.

        Notes
        -----
        With ``monotone`` the values are those of the fit, and what rearrangement changes of a
        prediction is added to the monotone columns in equal parts, so that sums are what is
        predicted. Base values and errors are those of the fit, as is `importance_`.

        References
        ----------
        Owen 1972, Multilinear extensions of games; Mohammadi, Chau and Muandet 2025, Computing
        exact Shapley values in polynomial time for product-kernel methods, arXiv 2505.16516.
        """
        check_is_fitted(self, "kernel_")
        encoded, table = self.encoder_.transform(X, estimator=self), read_columns(X, self)
        return self._explained(encoded, cells_of(table), None, scale, n_background)

    def explain_held_out(
        self, rows: ArrayLike, *, scale: str = "link", n_background: int = 500
    ) -> ShapleyValues:
        """Return the same for training rows, predicted by the fold that did not see them.

        What it was that misled the model where `held_out_prediction_` is far off. That is a mean
        over the fits of the path, calibrated by other folds for classes, and the values add up to
        what the fold's kernel predicts, the mean of theirs: nearly the same.

        Parameters
        ----------
        rows : array-like of int, shape (n_rows,)
            Which training rows, counted from 0.
        scale : {"link", "response"}, default="link"
            As in `explain`.
        n_background : int, default=500
            As in `explain`, of the rows that the fold learned from.

        Returns
        -------
        ShapleyValues
            A row for each of ``rows``; cells that it shows are what the encoder made of them.

        Raises
        ------
        ValueError
            If no fold held a row out, or ``rows`` are no integers.
        """
        check_is_fitted(self, "kernel_")
        places = np.atleast_1d(np.asarray(rows))
        if places.ndim > 1 or places.dtype.kind not in "iu" or not len(places):
            raise ValueError(
                "rows must be places of training rows, integers from 0; of a mask take "
                f"np.flatnonzero(mask); got {places.dtype} of shape {places.shape}"
            )
        held_out = (places >= 0) & (places < len(self._owner))
        held_out &= self.held_out_fold_[np.where(held_out, places, 0)] >= 0
        if not held_out.all():
            raise ValueError(f"rows must be rows that a fold held out, got {places[~held_out][0]}")
        subset, folds = self._predictor.rows.take(self._owner[places]), self.held_out_fold_[places]
        cells, parts = cells_of_encoded(subset, self.dimensions_, self.columns_), []
        for k in np.unique(folds):
            which = np.flatnonzero(folds == k)
            encoded = Encoded(subset.numeric[which], subset.codes[which])
            parts.append(self._explained(encoded, cells[which], int(k), scale, n_background))
        order = np.argsort(np.argsort(folds, kind="stable"), kind="stable")
        each: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("values", "base_values", "data", "errors")
        }
        return replace(parts[0], **each)

    def _explained(
        self, encoded: Encoded, cells: NDArray[Any], fold: int | None, scale: str, n_background: int
    ) -> ShapleyValues:
        """Return what each column adds to predictions of all rows or of those without a fold."""
        one_of("link", "response").check("scale", scale)
        expansion = self._predictor.expansion(fold)
        names = [each.column for each in self.columns_]
        owners = [[j for j, d in enumerate(self.dimensions_) if d.source == n] for n in names]
        used = np.array([k for k, dims in enumerate(owners) if dims])
        latent = shapley_values(
            expansion, [np.array(owners[k]) for k in used], expansion.points_of(*encoded),
            *background_of(expansion, self._predictor.learned_from(fold), n_background),
        )  # fmt: skip
        averaged = expansion.target.shares is not None
        classes, response = getattr(self, "classes_", None), averaged or scale == "response"
        contributions, base, spread = on_scale(
            latent, expansion, self._task.link, response=response, classes=classes is not None
        )
        values = np.zeros((2, len(cells), len(names), len(base)))
        values[:, :, used] = contributions, spread
        self._add_rearrangement(values[0], encoded, fold, expansion, response=response)
        scaled = "the target"
        if expansion.target.warps and not response:
            scaled += " under its power"
            scaled = "the logarithm of the target" if self._task.log else scaled
        described = _output_names(classes, len(base), response, scaled)
        kept = 0 if len(base) == 1 and self._task.flat else slice(None)
        bases = np.repeat(base[None], len(cells), axis=0)
        return ShapleyValues(
            values[0, :, :, kept], bases[:, kept], cells, names, values[1, :, :, kept], *described
        )

    def _add_rearrangement(
        self, values: FloatArray, encoded: Encoded, fold: int | None, expansion: Expansion, *,
        response: bool,
    ) -> None:  # fmt: skip
        """Add what rearrangement did to predictions to the monotone columns, in equal parts.

        `values` of shape (n, n_columns, n_explained).
        """
        predicts = self._predicts
        if not isinstance(predicts, MonotonePredictor):
            return
        classes, warps = getattr(self, "classes_", None), expansion.target.warps

        def shown(values: FloatArray) -> FloatArray:
            if classes is not None and response:
                p = softmax(self._task.answers(values), axis=1)
                return np.asarray(p[:, 1:] if p.shape[1] == 2 else p)
            if warps and not response:
                pairs = zip(warps, values.T, strict=True)
                return np.column_stack([warp.forward(each) for warp, each in pairs])
            return self._task.link(values)

        before, after = predicts.both(*encoded, fold)
        change = shown(after) - shown(before)
        names = [each.column for each in self.columns_]
        for each in predicts.columns:
            values[:, names.index(each.name)] += change / len(predicts.columns)

    @property
    def importance_(self) -> list[ColumnImportance]:
        """What each column is worth, with its standard error.

        The score that rows lose, predicted by the fold that did not see them, when the values of
        the column are shuffled among them, on average over five times, fewer above 50 columns; 0
        for a column that is left out, NaN where no row was held out. Worked out when it is first
        asked for, in about a tenth of the time of the fit, and kept until the next fit.
        """
        check_is_fitted(self, "kernel_")
        names = [each.column for each in self.columns_]
        if self._importance is None:
            importances = shuffled_importance(
                self._predictor.rows,
                self._predictor.fold_predictors(),
                lambda rows, values: self._task.losses(rows, self._task.answers(values)),
                names,
                self.dimensions_,
                check_random_state(self.random_state),
            )
            self._importance = np.array([each[1:] for each in importances])
        worth = self._importance.tolist()
        return [ColumnImportance(n, *each) for n, each in zip(names, worth, strict=True)]

    @property
    def feature_importances_(self) -> FloatArray:
        """The numbers of `importance_`, shape (n_columns,), as scikit-learn's selectors read them.

        Raises ValueError where `max_time` left no fold: a selector would take NaN for too little.
        """
        check_is_fitted(self, "kernel_")
        if not self._predictor.fold_predictors():
            raise ValueError(
                Message(
                    "importance needs cross-validated rows, and there are none: raise {max_time}"
                )
            )
        return np.array([each.importance for each in self.importance_])


def _output_names(
    classes: Labels | None, n_outputs: int, response: bool, target: str
) -> tuple[list[str], str]:
    """Return the names of the explained outputs, and their scale in words."""
    if classes is None:
        names = ["prediction"] if n_outputs == 1 else [f"output {k}" for k in range(n_outputs)]
        return names, target
    names = [str(each) for each in classes[-n_outputs:]]
    which = f"of {names[0]}" if n_outputs == 1 else "of each class"
    return names, f"the probability {which}" if response else f"the logit {which}"
