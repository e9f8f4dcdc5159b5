"""Classifier and regressor with at most k₀ kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Certificate, Problem, Result
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, STRENGTH, Rule, one_of
from kernelweave.kernels_core.estimators.folds import CHOICES, Fold, FoldScore, Scores, Setting
from kernelweave.kernels_core.estimators.kernel import (
    Data,
    KernelClassifier,
    SpreadRegressor,
    unit_of,
)
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.search import (
    CrossValidatedEstimator,
    OneOrSeveral,
    one_or_several,
    values_of,
)
from kernelweave.kernels_core.estimators.weights import (
    ApproximatedKernels,
    dictionary_of,
    fit_kernels,
    is_precomputed,
    views_of,
    weight_attributes,
)
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.fit import Formula
from kernelweave.kernels_core.grams import PrecomputedGrams, as_grams
from kernelweave.kernels_core.kernels import FittedFactors
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.settings import Settings, name_of
from numpy.typing import ArrayLike, NDArray

from .algorithm import ROUNDS
from .best_response import relaxations
from .constraint import SparseSimplex
from .cross_validation import score_paths
from .settings import (
    BEST_RESPONSE,
    GLOBAL,
    BestResponse,
    check_known,
    has_global,
    is_scaled,
    learner_of,
    method_of,
)

if TYPE_CHECKING:
    from kernelweave.kernels_core.arrays import Rows
    from sklearn.utils import Tags

_OF_ALGORITHM_1 = ("init", "n_init", "warm", "patience", "cap")
# The relative gap of a proof: the global search stops there by default, Algorithm 1 need not go on.
_PROVEN = 1e-4
# What ZZᵀ leaves of K matters more than the last digits of its optimum.
_PROVEN_OF_FACTORS = 1e-3
# smaller gaps than this are below what rounding leaves
_FINEST = 1e-9
_LOWER = {
    BEST_RESPONSE: "the k-support relaxation over the cuts of all learner solves",
    GLOBAL: "branch and bound on supports, every bound from feasible dual points",
}
_UPPER = "the primal value of the learner at the sparse weights"
_ABSENT = "(kernelweave-relaxations, which is not installed, finds and proves the optimum)"
_NO_PROOF = "none: an indefinite kernel is among the candidates (psd='keep')"
_SEVERAL = 'Cross-validation chooses from a list, or from a default list with ``"cv"``.'
_KIND = 'float, list of float or "cv"'
_SCALE = Rule("None, True or False", lambda value: value is None or value is True or value is False)


class _SparseWeights(CrossValidatedEstimator, ApproximatedKernels):
    """Parameters of the classifier and the regressor."""

    C: OneOrSeveral = parameter(
        f"Penalty of the loss. {_SEVERAL}", kind=_KIND, default=1.0, rule=one_or_several(POSITIVE)
    )
    lam: OneOrSeveral = parameter(
        f"λ, the ridge penalty on the weights. {_SEVERAL}",
        kind=_KIND,
        default=1.0,
        rule=one_or_several(STRENGTH),
    )
    k0: OneOrSeveral = parameter(
        f"Maximum number of kernels; with ``n_views``, of each view. {_SEVERAL}",
        kind='int, list of int or "cv"',
        default=3,
        rule=one_or_several(COUNT),
    )
    n_views: Any = parameter(
        "Maximum number of views of a `KernelDictionary` with ``columns``; None for no limit. "
        f"Needs kernelweave-relaxations. {_SEVERAL}",
        kind='int, list of int, "cv" or None',
        default=None,
        rule=one_or_several(COUNT),
    )
    choice: str = parameter(
        "Which setting is selected: the one with the best mean score, or, of those within one "
        "standard error of it, the one with the fewest views and then the fewest kernels.",
        default="one-standard-error",
        rule=one_of(*CHOICES),
    )
    algorithm: str | Settings | None = parameter(
        "Algorithm 1 of the paper, or the certified global optimum, which needs "
        "kernelweave-relaxations. None: the optimum if that is installed, else Algorithm 1. "
        "Settings, `BestResponse` or `kernelweave.relaxations.BranchAndBound`, replace ``init``, "
        "``n_init``, ``warm``, ``patience`` and ``cap``.",
        kind='{"smkl-best-response", "smkl-global"} or Settings',
        default=None,
    )
    init: str | ArrayLike = parameter_of(BestResponse, "init")
    n_init: int = parameter_of(BestResponse, "n_init")
    warm: str = parameter_of(BestResponse, "warm")
    scale: bool | None = parameter(
        "Whether to standardise the features first; None does so if ``kernels`` is None.",
        default=None,
        rule=_SCALE,
    )
    max_iter: int = parameter(
        "Maximum number of steps: rounds of the relaxation and branches. Algorithm 1 takes at "
        "most 50 per run; `BestResponse` sets another number.",
        default=1_000_000,
        rule=COUNT,
    )
    tol: float | None = parameter(  # type: ignore[assignment]
        "For Algorithm 1, the smallest decrease of the objective that counts, 1e-2 by default. "
        "For the global optimum, the relative certified gap, 1e-4 by default, 1e-3 for "
        "approximated kernels.",
        default=None,
        rule=NONNEGATIVE,
    )
    patience: int = parameter_of(BestResponse, "patience")
    cap: float | None = parameter_of(BestResponse, "cap")

    C_: float = fitted("float", "The C of the fit: the one given, or the chosen one.")
    lam_: float = fitted("float", "The λ of the fit.")
    k0_: int = fitted("int", "The k₀ of the fit.")
    n_views_: int | None = fitted("int or None", "The limit of views of the fit.")
    kernel_support_: NDArray[np.intp] = fitted("ndarray of int", "The kernels that are used.")
    problem_: Problem = fitted(
        "Problem",
        "What was solved; `kernelweave.relaxations.certify` reads it. Its family computes the Gram "
        "matrices again, or refers to the precomputed ones.",
    )

    # C and λ a factor of ten apart, as in the paper's grids; k₀ up to the five that it tries
    grids: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_views": (1, 2, 3, 4, 5),
        "C": (1.0, 10.0, 100.0),
        "k0": (1, 2, 3, 4, 5),
        "lam": (0.01, 0.1, 1.0, 10.0),
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and not is_scaled(self)
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        learner_of(self).validate()
        if self.n_views is not None and not views_of(self):
            raise ValueError(
                f"n_views={self.n_views} needs views: give kernels=KernelDictionary(..., "
                "columns=...), where columns says what each view sees"
            )
        if self.n_views is not None and name_of(method_of(self)) == BEST_RESPONSE:
            relaxations(f"n_views={self.n_views}")
            raise ValueError(
                f"n_views={self.n_views} needs algorithm={GLOBAL!r}, got {self.algorithm!r}"
            )
        if self.algorithm is None:
            for name in _OF_ALGORITHM_1:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value is not default and not np.array_equal(value, default):
                    raise ValueError(
                        Message(
                            "{own} is a setting of Algorithm 1: set {algorithm}={wanted!r} as "
                            "well, got {algorithm}=None and {own}={value!r}",
                            own=Message(f"{{{name}}}"),
                            wanted=BEST_RESPONSE,
                            value=value,
                        )
                    )
            return
        check_known(self.algorithm)

    @staticmethod
    def check_grams(X: Rows) -> PrecomputedGrams:
        """Return square Gram matrices; the algorithm's bounds allow for no eigenvalue below 0."""
        return PrecomputedGrams.of_checked(as_grams(X, "X", square=True))

    def settings(self, data: Data) -> list[Setting]:
        """Return the candidates as a path goes: C and k₀ up, λ down."""
        values = {name: values_of(self, name) for name in self.grids}
        for name, most in _most(self, data).items():
            if isinstance(getattr(self, name), str):
                # a limit above what there is limits nothing
                values[name] = [limit for limit in values[name] if limit <= most]
        values["lam"].reverse()
        return [
            {name: value for name, value in zip(values, each, strict=True) if value is not None}
            for each in product(*values.values())
        ]

    @staticmethod
    def complexity(setting: Setting) -> tuple[int, int]:
        """Return a sort key: fewer views first, then fewer kernels."""
        return setting.get("n_views", 0), setting["k0"]

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores along a path in each fold."""
        return score_paths(self, settings, data, folds, score)

    def formula(self, samples: Samples) -> Formula:
        """Return a learner over sparse weights of the kernels, once all is chosen."""
        scaling = None
        if is_scaled(self):
            scaling = Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))
        stored = fit_kernels(self, samples.scaled(scaling))
        views = None
        if self.n_views is not None:
            names = views_of(self)
            views = tuple(names[j] for j in stored.kept)
        k0: Any = self.k0
        lam: Any = self.lam
        method = method_of(self)
        return Formula(
            stored,
            learner_of(self),
            SparseSimplex(k0, lam, views, self.n_views),
            method,
            _settings_of(self, method, getattr(stored, "is_exact", True)),
            scaling=scaling,
            unit=unit_of(self, samples) if isinstance(self, SpreadRegressor) else 1.0,
            proofs=(_lower_proof(name_of(method)), _UPPER),
            attributes=lambda problem, result: _attributes_of(self, stored, problem, result),
        )


def _most(estimator: _SparseWeights, data: Data) -> dict[str, int]:
    """Return how many kernels there are, with ``n_views`` of the largest view, and views."""
    sizes = Counter(views_of(estimator))
    n_kernels = len(dictionary_of(estimator)) if data.grams is None else data.grams.n_kernels
    most = n_kernels if estimator.n_views is None else max(sizes.values())
    return {"k0": most, "n_views": len(sizes)}


def _settings_of(
    estimator: _SparseWeights, method: str | Settings, is_exact: bool
) -> dict[str, Any]:
    """Return the gap and the steps that a fit ends at, and what else the global search needs."""
    if isinstance(method, BestResponse):
        steps = ROUNDS + 2 * method.n_init * (method.run_limit + 3)
        return {"tol": _PROVEN, "max_iter": steps}
    tol = _PROVEN if is_exact else _PROVEN_OF_FACTORS
    tol = tol if estimator.tol is None else estimator.tol
    settings: dict[str, Any] = {"tol": tol}
    if name_of(method) == GLOBAL and getattr(method, "accuracy", None) is None:
        settings["accuracy"] = max(tol, _FINEST)
    return settings


def _lower_proof(method: str) -> str:
    proof = _LOWER.get(method, method)
    return proof if method != BEST_RESPONSE or has_global() else f"{proof} {_ABSENT}"


def _attributes_of(
    estimator: _SparseWeights, stored: Any, problem: Problem, result: Result
) -> dict[str, Any]:
    """Return the attributes that only these estimators have."""
    attributes = weight_attributes(estimator, stored, np.asarray(result.parameters))
    attributes["kernel_support_"] = np.flatnonzero(attributes["weights_"])
    if not np.isfinite(result.lower_bound):
        bounds = result.lower_bound, result.upper_bound
        attributes["certificate_"] = Certificate(*bounds, _NO_PROOF, _NO_PROOF)
    if is_precomputed(estimator):
        return {**attributes, "problem_": problem}
    # a name per weight, those of the kernels that were left out too
    kernels = dictionary_of(estimator)
    family = stored.family if isinstance(stored, FittedFactors) else kernels
    # the Gram matrices are computed again when somebody asks: a fitted model stays small
    again = replace(problem, family=deepcopy(family))
    return {**attributes, "kernel_names_": kernels.names, "problem_": again}


class SparseMKLClassifier(_SparseWeights, KernelClassifier):
    """Support vector classifier with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [Σₜ max 1ᵀα − ½(y∘α)ᵀK(β)(y∘α)] + λ‖β‖²``. Several
    classes share the weights, one task per class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseMKLClassifier(k0=3).fit(X, y)
    >>> bool(len(model.kernel_support_) <= 3)
    True
    """


class SparseMKLRegressor(_SparseWeights, SpreadRegressor):
    """ε-insensitive support vector regressor with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [max yᵀα − ε‖α‖₁ − ½αᵀK(β)α] + λ‖β‖²``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.mkl_sparse import SparseMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseMKLRegressor(k0=2).fit(X, y)
    >>> bool(len(model.kernel_support_) <= 2)
    True
    """
