"""Regressor and classifiers that learn a combination of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from kernelweave.kernels_core import Problem, Result
from kernelweave.kernels_core.checks import COUNT, POSITIVE, STRENGTH, one_of
from kernelweave.kernels_core.estimators.folds import (
    CHOICES,
    Fold,
    FoldScore,
    Scores,
    Setting,
    score_settings,
)
from kernelweave.kernels_core.estimators.kernel import Data, KernelClassifier, KernelRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.search import (
    CrossValidatedEstimator,
    OneOrSeveral,
    fold_fits,
    one_or_several,
    shared_grams,
    values_of,
)
from kernelweave.kernels_core.estimators.weights import (
    WeightedKernels,
    dictionary_of,
    fit_kernels,
    is_precomputed,
    weight_attributes,
)
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.fit import PROOFS, Formula
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.kernels_core.settings import Settings, name_of
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .families import power_of
from .sets import EXPONENT, LqBall, Orthant
from .settings import Automatic

_PRODUCTS = "a feasible dual point and its tangent in powers of the weights, where F is convex"
_LARGER_BALL = (
    "a feasible dual point over the larger ball with q = degree; products of more than q kernels "
    "are not convex, so nothing is proved of these weights"
)
_UNPROVED = (
    "the objective is nonnegative; products of more than 2 kernels are not convex under a penalty, "
    "so nothing more is proved"
)
_BALL_ONLY = ("krr-pgd", "krr-iia", "krr-pgd2", "krr-trust-region")
_PENALTY_ONLY = ("krr-rpgd", "krr-riia", "krr-rpgd2")
_POWER_ONLY = ("krr-pgd2", "krr-rpgd2")
_LINEAR_ONLY = ("krr-pgd", "krr-rpgd", "krr-iia", "krr-riia", "krr-mm", "krr-newton")


class _LearnedWeights(WeightedKernels):
    """The set of weights and the algorithm, which all estimators share."""

    q: float = parameter("Norm of the ball; 1 gives sparse changes.", default=2.0, rule=EXPONENT)
    radius: float = parameter("Λ, the radius of the ball.", default=1.0, rule=POSITIVE)
    center: ArrayLike = parameter(
        "μ₀, the centre of the ball and the smallest weights; 0 is ℓq-norm multiple kernel "
        "learning, the paper has 1.",
        kind="float or array-like of shape (n_kernels,)",
        default=0.0,
    )
    beta: float | None = parameter(
        "β, a penalty of the weights instead of the ball.", default=None, rule=POSITIVE
    )
    degree: int = parameter(
        "d, an entrywise power: 2 uses all products of two kernels.", default=1, rule=COUNT
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for the form of the problem, or its settings such as "
        "``ProjectedNewton(n_starts=2)``.",
        kind="str or Settings",
        default="krr-auto",
    )
    n_starts: int | None = parameter(
        "Starting points; 1 where the result can be proved optimal, else 5.",
        default=None,
        rule=COUNT,
    )

    problem_: Problem = fitted(
        "Problem",
        "What was solved; `prove` reads it. Its family computes the Gram matrices again, or refers "
        "to the precomputed ones.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name, degrees = name_of(self.algorithm), values_of(self, "degree")
        wrong = (
            (name in _PENALTY_ONLY and self.beta is None, "solves the penalised form: set beta"),
            (name in _BALL_ONLY and self.beta is not None, "solves the ball: set beta=None"),
            (name in _POWER_ONLY and 1 in degrees, "learns products: set degree=2 or more"),
            (name in _LINEAR_ONLY and max(degrees) > 1, "learns sums: set degree=1"),
        )
        for is_wrong, reason in wrong:
            if is_wrong:
                raise ValueError(Message(f"{{algorithm}}={name!r} {reason}"))
        if self.beta is not None and len(values_of(self, "q")) > 1:
            raise ValueError(
                f"q={self.q!r} gives several norms to choose among, and beta={self.beta!r} "
                "penalises without a ball: give one q, or beta=None"
            )


def _formula_of(
    estimator: _LearnedWeights, learner: Ridge | SquaredHingeSVC, samples: Samples
) -> Formula:
    """Return the problem of a learner over the weights of the kernels."""
    stored = fit_kernels(estimator, samples)
    constraint: LqBall | Orthant
    if estimator.beta is None:
        q, radius = float(estimator.q), float(estimator.radius)
        constraint = LqBall(q=q, radius=radius, center=estimator.center)
    else:
        # the paper's objective is twice that of the problem
        constraint = Orthant(beta=0.5 * float(estimator.beta))
    n_starts, degree, lower = estimator.n_starts, int(estimator.degree), PROOFS[0]
    if degree > 1:
        unproved = _LARGER_BALL if estimator.beta is None else _UNPROVED
        lower = _PRODUCTS if constraint.proves(degree) else unproved
    return Formula(
        family=power_of(stored, degree),
        learner=learner,
        set=constraint,
        algorithm=estimator.algorithm,
        settings={} if n_starts is None else {"n_starts": n_starts},
        proofs=(lower, PROOFS[1]),
        attributes=partial(_attributes_of, estimator, stored),
    )


def _attributes_of(
    estimator: _LearnedWeights, stored: Any, problem: Problem, result: Result
) -> dict[str, Any]:
    """Return the weights and the problem, whose Gram matrices are not kept but computed again."""
    attributes = weight_attributes(estimator, stored, result.parameters)
    if is_precomputed(estimator):
        return {**attributes, "problem_": problem}
    family = power_of(deepcopy(dictionary_of(estimator)), int(estimator.degree))
    return {**attributes, "problem_": replace(problem, family=family)}


def _begin_near(algorithm: str | Settings, model: BaseEstimator, before: BaseEstimator) -> None:
    """Let a model begin at the weights of the one before, on the path of one degree and norm."""
    alike = model.degree == before.degree and model.q == before.q
    if alike and algorithm == "krr-auto" and before.weights_.any():
        model.set_params(algorithm=Automatic(mu_init=before.weights_))


class _Ridge(CrossValidatedEstimator, _LearnedWeights):
    """The learner of both ridge estimators, and the choice of its λ."""

    lam: OneOrSeveral = parameter(
        "λ, the ``alpha`` of `sklearn.kernel_ridge.KernelRidge`. Cross-validation selects one of a "
        'list; ``"cv"`` is a list from 1e-4 to 10.',
        kind='float, list of float or "cv"',
        default=1.0,
        rule=one_or_several(STRENGTH),
    )
    choice: str = parameter(
        "Which λ is selected: the one with the best mean score, or the largest within one "
        "standard error of it.",
        default="best",
        rule=one_of(*CHOICES),
    )
    fit_intercept: bool = parameter(
        "Whether to fit an intercept b; the paper has none.", default=True
    )
    tol: float = 1e-6

    lam_: float = fitted("float", "The λ of the fit: the one given, or the chosen one.")
    # λ from nearly interpolating to nearly constant, of Gram matrices with a diagonal of 1
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lam": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

    @staticmethod
    def complexity(setting: Setting) -> tuple[float, float, float]:
        """Return a sort key: a smaller degree first, then a larger λ, a smaller q."""
        return setting.get("degree", 1), -setting["lam"], setting.get("q", 1.0)

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores of paths from the smoothest function down, on the same matrices."""
        begin, order = partial(_begin_near, self.algorithm), range(len(settings))[::-1]
        fit = fold_fits(self, data, folds, grams=shared_grams(self, data), begin=begin)
        return score_settings(settings, folds, fit, score, order=order)

    def formula(self, samples: Samples) -> Formula:
        """Return ridge regression over the weights of the kernels, of one λ."""
        (lam,) = values_of(self, "lam")
        learner = Ridge(C=1.0 / float(lam), fit_intercept=bool(self.fit_intercept))
        return _formula_of(self, learner, samples)


class RidgeMKLRegressor(_Ridge, KernelRegressor):
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


class RidgeMKLClassifier(_Ridge, KernelClassifier):
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


class _RidgeSearch(_Ridge):
    """The same, which also chooses the degree and the norm."""

    lam: OneOrSeveral = "cv"
    degree: Any = parameter(
        "d, an entrywise power: 2 uses all products of two kernels. Cross-validation selects one "
        'of a list; ``"cv"`` is 1 and 2.',
        kind='int, list of int or "cv"',
        default=1,
        rule=one_or_several(COUNT),
    )
    q: Any = parameter(
        "Norm of the ball; 1 gives sparse changes. Cross-validation selects one of a list; "
        '``"cv"`` is 1 and 2.',
        kind='float, list of float or "cv"',
        default=2.0,
        rule=one_or_several(EXPONENT),
    )
    choice: str = parameter(
        "Which setting is selected: the one with the best mean score, or, of those within one "
        "standard error of it, the one with the smallest degree, then the largest λ, then the "
        "smallest q.",
        default="best",
        rule=one_of(*CHOICES),
    )

    degree_: int = fitted("int", "The degree of the fit.")
    q_: float = fitted("float", "The q of the fit; without effect where ``beta`` penalises.")

    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "degree": (1, 2),
        "q": (1.0, 2.0),
        **_Ridge.grids,
    }


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


class GeneralizedMKLClassifier(_LearnedWeights, KernelClassifier):
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
        "Penalty of the loss: ‖f‖² + C Σ max(0, 1 − yᵢ(f(xᵢ) + b))², as in the papers; "
        "`kernelweave.qp_smo.SquaredHingeSVC`, whose norm term has a ½, has half of it.",
        default=1.0,
        rule=STRENGTH,
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for the form of the problem, or its settings; "
        '``"krr-newton"`` needs the fewest steps at degree 1.',
        kind="str or Settings",
        default="svm-gmkl",
    )
    tol: float = 1e-4

    def formula(self, samples: Samples) -> Formula:
        """Return the classifier of squared hinge loss over the weights of the kernels."""
        return _formula_of(self, SquaredHingeSVC(C=0.5 * float(self.C)), samples)
