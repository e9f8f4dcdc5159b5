"""EvidenceMKLRegressor and EvidenceMKLClassifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.arrays import FloatArray, Rows
from kernelweave.kernels_core.estimators.kernel import KernelClassifier, KernelRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.weights import is_precomputed
from scipy.special import softmax
from sklearn.model_selection import KFold

from ..classes import class_codes, class_folds, judge_classes, per_class
from ..folds import Split
from ..probabilities import CalibratedClasses
from ..scores import r2_with_error
from .weights import EvidenceWeights, mass_of, spread_to_given


class EvidenceMKLRegressor(EvidenceWeights, KernelRegressor):
    """Regression with kernels weighted by the evidence: no C, no budget, nothing to tune.

    ``min over w ≥ 0 and σ² of ½yᵀS⁻¹y + ½ log det S, S = Σ wⱼKⱼ + σ²I``: the marginal likelihood
    of a Gaussian process on centred and scaled targets. Several outputs share the weights. It
    takes strings, graphs and views as Gram matrices, ``kernels="precomputed"``.

    Notes
    -----
    The evidence is not convex in w. log det lies below its tangent, so each step is a convex
    problem, ridge kernel learning under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ), solved with proved
    bounds; the evidence never falls. ``certificate_`` holds the bounds of the convex problem that
    touches the evidence at the weights: where they meet, the weights are stationary, kernels of
    weight 0 included. That no other weights have more evidence is not proved. Folds learn the
    weights anew for the held-out score; what kernels learn from X alone, such as their traces,
    they learn from all rows. A sample weight divides the variance of a sample's noise: 2 is the
    sample twice, and a common factor says nothing.

    References
    ----------
    Wipf and Nagarajan, "A new view of automatic relevance determination", NIPS 2007; Zhou, Hu,
    Zhou and Lange, "MM algorithms for variance components models", JCGS 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.evidence import EvidenceMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMKLRegressor().fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-3), bool(model.held_out_score_ > 0.3)
    (True, True)
    """

    _multi_output: ClassVar[bool] = True

    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.
        return_std : bool, default=False
            Also return the standard deviation of a new observation, its noise included. Gram
            matrices do not hold k(x, x) of new points: kernels are needed.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.
        std : ndarray of the same shape
            If asked for.

        Raises
        ------
        ValueError
            If ``return_std`` is asked for and ``kernels`` is ``"precomputed"``.
        """
        mean = self._shaped(self._values(X))
        if not return_std:
            return mean
        if is_precomputed(self):
            raise ValueError(
                "return_std needs k(x, x) of new points, which precomputed Gram matrices do not "
                "hold: give kernels instead"
            )
        with config_context(memory_limit=self.memory_limit):
            width = self._posterior.deviation(self.kernel_, self._points(X))
        return mean, self._shaped(width)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._is_flat else values

    def _splits(self, targets: FloatArray, state: np.random.RandomState) -> list[Split]:
        n = targets.shape[1]
        if n < 2:
            return []
        folds = KFold(min(self.n_folds, n), shuffle=True, random_state=state)
        return list(folds.split(targets.T))

    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        seen, mass = ~np.isnan(held_out[:, 0]), mass_of(samples)
        varies = bool(seen.any()) and bool(np.ptp(samples.targets[:, seen], axis=1).all())
        score, error = (
            r2_with_error(samples.targets.T[seen], held_out[seen], mass[seen])
            if varies
            else (np.nan, np.nan)
        )
        predicted = spread_to_given(samples, held_out)
        predicted = predicted[:, 0] if self._is_flat else predicted
        return {
            "held_out_score_": score,
            "held_out_error_": error,
            "held_out_prediction_": predicted,
        }


class EvidenceMKLClassifier(CalibratedClasses, EvidenceWeights, KernelClassifier):
    """Classification with kernels weighted by the evidence: no C, no budget, nothing to tune.

    The weights of `EvidenceMKLRegressor` on ±1 targets; classes share them, one output a class.
    Held-out rows calibrate the probabilities.

    Notes
    -----
    What is proved and what is not: as for `EvidenceMKLRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.evidence import EvidenceMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceMKLClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9), model.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    # classes share the weights: their evidence is summed
    multiclass: ClassVar[str] = "shared"  # type: ignore[misc]
    # the folds of the fit give probabilities without being asked
    probability: ClassVar[bool] = False  # type: ignore[misc]
    calibration_: ClassVar[None] = None  # type: ignore[misc]

    def _splits(self, targets: FloatArray, state: np.random.RandomState) -> list[Split]:
        return class_folds(class_codes(targets), self.n_folds, state)

    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        calibration, score, error = judge_classes(held_out, samples.targets, mass_of(samples))
        logits = calibration.logits(per_class(spread_to_given(samples, held_out)))
        return {
            "_calibration": calibration,
            "held_out_score_": score,
            "held_out_error_": error,
            "held_out_prediction_": softmax(logits, axis=1),
        }

    def _values(self, X: Rows) -> FloatArray:
        return KernelClassifier._values(self, X)
