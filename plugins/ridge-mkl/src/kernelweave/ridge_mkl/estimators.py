"""Regressor and classifiers that learn a combination of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import SolveInterrupted, Status, config_context
from kernelweave.kernels_core.arrays import FloatArray, Points, RealArray
from kernelweave.kernels_core.checks import COUNT, STRENGTH, one_of
from kernelweave.kernels_core.clock import LATE_SECONDS, time_limit
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.kernels_core.estimators.choosing import (
    CHOICES,
    Folds,
    OneOrSeveral,
    candidates,
    folds_of,
    one_or_several,
)
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.kernels_core.settings import Settings
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from sklearn.base import is_classifier

from .choosing import USUAL, Scores, Setting, chosen_of, scores_of
from .machine import WeightLearner
from .projection import EXPONENT


class _RidgeMachine(WeightLearner):
    """The learner of both ridge estimators, and the choice of its λ."""

    lam: OneOrSeveral = parameter(
        "λ, the ``alpha`` of `sklearn.kernel_ridge.KernelRidge`. Of several, or those from 1e-4 to "
        '10 that ``"cv"`` means, cross-validation chooses the best.',
        kind='float, list of float or "cv"',
        default=1.0,
        rule=one_or_several(STRENGTH),
    )
    cv: Folds = parameter(
        "The folds that choose, as in scikit-learn.", kind="int or splitter", default=5
    )
    choice: str = parameter(
        "Which λ of the folds wins: the best on average, or the largest within one standard error "
        "of it.",
        default="best",
        rule=one_of(*CHOICES),
    )
    fit_intercept: bool = parameter("Whether b is free; the paper has none.", default=True)
    tol: float = 1e-6

    lam_: float = fitted("float", "The λ of the fit: the one given, or the chosen one.")
    cv_results_: Scores | None = fitted(
        "dict or None",
        "Where folds chose, the score of each setting, as a search of scikit-learn has it.",
    )

    _searched: ClassVar[tuple[str, ...]] = ("lam",)

    def _values(self, name: str) -> list[float]:
        return candidates(getattr(self, name), USUAL.get(name, ()))

    def _learner(self) -> Ridge:
        return Ridge(C=1.0 / float(self._value("lam")), fit_intercept=bool(self.fit_intercept))

    @contextmanager
    def _choosing(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> Iterator[None]:
        grids = [self._values(name) for name in self._searched]
        settings = [dict(zip(self._searched, each, strict=True)) for each in product(*grids)]
        self.cv_results_, chosen, stopped = None, settings[0], None
        with time_limit(self.max_time):
            if len(settings) > 1:
                self.cv_results_, stopped = self._scores(X, targets, weight, grams, settings)
                chosen = chosen_of(self.cv_results_, self.choice)
            for name, value in chosen.items():
                setattr(self, f"{name}_", value)
            with time_limit(None if stopped is None else LATE_SECONDS):
                yield
        if stopped is not None:
            self.result_ = replace(self.result_, status=Status.INTERRUPTED)
            if self.on_interrupt == "raise":
                raise SolveInterrupted(self.result_) from stopped

    def _scores(
        self,
        X: Points,
        targets: FloatArray,
        weight: FloatArray,
        grams: RealArray | None,
        settings: list[Setting],
    ) -> tuple[Scores, KeyboardInterrupt | None]:
        kept = np.flatnonzero(weight > 0)
        y = targets[0] if len(targets) == 1 else targets.T
        if is_classifier(self):
            y = targets.argmax(axis=0) if len(targets) > 1 else targets[0] > 0
        folds = folds_of(self.cv, y, weight, classifier=is_classifier(self))
        with config_context(memory_limit=self.memory_limit):
            if grams is None:
                stack = self._parts_of(self._dictionary().fit_grams(X[kept]).grams)
            else:
                stack = self._parts_of(grams)[kept, kept]
            return scores_of(self, stack, y[kept], weight[kept], settings, folds)


class RidgeMKLRegressor(_RidgeMachine, KernelMachineRegressor):
    """Kernel ridge regression that learns its kernel.

    Solves min over μ of yᵀ(K_μ + λI)⁻¹y with K_μ = (Σ μₖKₖ)^{∘d} over
    {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}, or with the penalty β‖μ‖² over μ ≥ 0. That is the minimum over f, b
    and μ of Σ (yᵢ − f(xᵢ) − b)²/λ + ‖f‖². The result is proved optimal up to ``tol`` where d ≤ q,
    with the penalty where d ≤ 2; above, it is stationary, the best of several starts. Several
    outputs share one kernel, whose objective is the sum of theirs.

    References
    ----------
    Li, Venturi and Xu, "Learning the Kernel for Classification and Regression", corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeMKLRegressor(lam=1.0).fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-6)
    True
    """

    _multi_output: ClassVar[bool] = True


class RidgeMKLClassifier(_RidgeMachine, KernelMachineClassifier):
    """Kernel ridge classification that learns its kernel: ridge on ±1 labels.

    Solves the problem of `RidgeMKLRegressor` on ±1 targets; several classes share one kernel, with
    one task per class and one certificate for their sum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import RidgeMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RidgeMKLClassifier(q=1, center=0.0).fit(X, y).score(X, y) > 0.9)
    True
    """


class _RidgeSearch(_RidgeMachine):
    """The same, which also chooses the degree and the norm."""

    lam: OneOrSeveral = "cv"
    degree: Any = parameter(
        "d, a Hadamard power: 2 takes all products of two kernels. Of several, or 1 and 2 by "
        '``"cv"``, cross-validation chooses.',
        kind='int, list of int or "cv"',
        default=1,
        rule=one_or_several(COUNT),
    )
    q: Any = parameter(
        "Norm of the ball; 1 gives sparse changes. Of several, or of 1 and 2, which "
        '``"cv"`` means, cross-validation chooses.',
        kind='float, list of float or "cv"',
        default=2.0,
        rule=one_or_several(EXPONENT),
    )
    choice: str = parameter(
        "Which setting of the folds wins: the best on average, or of those within one standard "
        "error of it the one of the smallest degree, then the largest λ, then the smallest q.",
        default="best",
        rule=one_of(*CHOICES),
    )

    degree_: int = fitted("int", "The degree of the fit.")
    q_: float = fitted("float", "The q of the fit; without effect where ``beta`` penalises.")

    _searched: ClassVar[tuple[str, ...]] = ("degree", "q", "lam")


class RidgeMKLRegressorCV(_RidgeSearch, RidgeMKLRegressor):
    """Kernel ridge regression that learns its kernel, with λ, degree and norm chosen by folds.

    `RidgeMKLRegressor` with ``lam="cv"``, and ``degree`` and ``q`` that may be several too. The
    folds share the Gram matrices, each λ begins at the weights of the one before, and all outputs
    share a factorisation.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeMKLRegressorCV(degree=[1, 2], cv=3).fit(X[:100], y[:100])
    >>> model.lam_, model.degree_
    (1.0, 1)
    """


class RidgeMKLClassifierCV(_RidgeSearch, RidgeMKLClassifier):
    """Kernel ridge classification that learns its kernel, with λ, degree and norm chosen by folds.

    `RidgeMKLClassifier` with ``lam="cv"``, and ``degree`` and ``q`` that may be several too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import RidgeMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RidgeMKLClassifierCV(cv=3).fit(X, y).score(X, y) > 0.9)
    True
    """


class GeneralizedMKLClassifier(WeightLearner, KernelMachineClassifier):
    """Squared-hinge support vector classifier that learns its kernel.

    Solves min over μ, max over α ≥ 0, yᵀα = 0 of 2αᵀ1 − αᵀ(Y K_μ Y + λI)α with λ = 1/C and
    K_μ = (Σ μₖKₖ)^{∘d}, over {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ} or with the penalty β‖μ‖².

    References
    ----------
    Varma and Babu, "More generality in efficient multiple kernel learning", ICML 2009; Li, Venturi
    and Xu, Algorithm 7, corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import GeneralizedMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(GeneralizedMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    C: float = parameter(
        "Penalty of the loss: ‖f‖² + C Σ max(0, 1 − yᵢ(f(xᵢ) + b))².", default=1.0, rule=STRENGTH
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for the form of the problem, or its settings; "
        '``"krr-newton"`` needs the fewest steps at degree 1.',
        kind="str or Settings",
        default="svm-gmkl",
    )
    tol: float = 1e-4

    def _learner(self) -> SquaredHingeSVC:
        return SquaredHingeSVC(C=0.5 * float(self.C))
