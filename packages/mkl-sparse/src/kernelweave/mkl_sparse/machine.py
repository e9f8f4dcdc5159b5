"""What the classifier and the regressor share: kernels, the constraint, the algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Certificate, Problem, Result, get_algorithm
from kernelweave.kernels_core.arrays import FloatArray, Points, RealArray
from kernelweave.kernels_core.checks import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    STRENGTH,
    Rule,
    one_of,
)
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.estimators import NystroemMachine
from kernelweave.kernels_core.estimators.choosing import (
    CHOICES,
    Folds,
    OneOrSeveral,
    candidates,
    folds_of,
    one_or_several,
)
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.exceptions import UnknownNameError
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.settings import Settings, name_of
from kernelweave.qp_smo.saddle import WeightPenalty
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from .algorithm import ROUNDS
from .constraint import SparseSimplex
from .cross_validation import PathScores, cross_validate_path
from .settings import BestResponse
from .starts import relaxations

if TYPE_CHECKING:
    from kernelweave.kernels_core.kernels.dictionary import Normalize

GLOBAL = "smkl-global"
BEST_RESPONSE = "smkl-best-response"
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
# C and λ a factor of ten apart, as in the paper's grids; k₀ up to the five that it tries
_GRIDS: dict[str, tuple[Any, ...]] = {
    "C": (1.0, 10.0, 100.0),
    "lam": (0.01, 0.1, 1.0, 10.0),
    "k0": (1, 2, 3, 4, 5),
    "n_views": (1, 2, 3, 4, 5),
}
_ABSENT = "(kernelweave-relaxations, which is not installed, finds and proves the optimum)"
_NO_PROOF = "none: an indefinite kernel is among the candidates (psd='keep')"
_SEVERAL = 'Of several, or those that ``"cv"`` means, cross-validation chooses.'
_KIND = 'float, list of float or "cv"'
_SCALE = Rule("None, True or False", lambda value: value is None or value is True or value is False)


class _Charge:
    """What sparse weights make of quadratic forms at worst, less the penalty, as sets say it."""

    def __init__(self, penalty: WeightPenalty) -> None:
        self._penalty = penalty

    def worst(self, forms: NDArray[np.float64]) -> float:
        return -self._penalty.best_response(forms)[1]


class SparseMachine(NystroemMachine):
    """Mixed in before `KernelMachineClassifier` or `KernelMachineRegressor`."""

    C: OneOrSeveral = parameter(
        f"Penalty of the loss. {_SEVERAL}", kind=_KIND, default=1.0, rule=one_or_several(POSITIVE)
    )
    lam: OneOrSeveral = parameter(
        f"λ, of the ridge on the weights. {_SEVERAL}",
        kind=_KIND,
        default=1.0,
        rule=one_or_several(STRENGTH),
    )
    k0: OneOrSeveral = parameter(
        f"Kernels at most; with ``n_views``, of each view. {_SEVERAL}",
        kind='int, list of int or "cv"',
        default=3,
        rule=one_or_several(COUNT),
    )
    n_views: Any = parameter(
        "Views at most, those of a `KernelDictionary` with ``columns``; None limits kernels alone. "
        f"Needs kernelweave-relaxations. {_SEVERAL}",
        kind='int, list of int, "cv" or None',
        default=None,
        rule=one_or_several(COUNT),
    )
    cv: Folds = parameter(
        "The folds that choose, as in scikit-learn; read where there is something to choose.",
        kind="int or splitter",
        default=5,
    )
    choice: str = parameter(
        "Which setting of the folds wins: the best on average, or the fewest views, and then "
        "kernels, whose best setting is within one standard error of it, which names fewer by "
        "chance.",
        default="one-standard-error",
        rule=one_of(*CHOICES),
    )
    algorithm: str | Settings | None = parameter(
        "Algorithm 1 of the paper, or the certified global optimum, which needs "
        "kernelweave-relaxations. None: the optimum where that is installed, else Algorithm 1. "
        "Settings, `BestResponse` or `kernelweave.relaxations.BranchAndBound`, count as they are; "
        "the parameters of Algorithm 1 here are then not read.",
        kind='{"smkl-best-response", "smkl-global"} or Settings',
        default=None,
    )
    init: str | ArrayLike = parameter_of(BestResponse, "init")
    n_init: int = parameter_of(BestResponse, "n_init")
    warm: str = parameter_of(BestResponse, "warm")
    normalize: Normalize | None = None
    scale: bool | None = parameter(
        "Whether to standardise the features first; None does so where ``kernels`` is None.",
        default=None,
        rule=_SCALE,
    )
    max_iter: int = parameter(
        "Steps at most: rounds of the relaxation and branches. Algorithm 1 takes no more than 50 a "
        "run in any case; `BestResponse` sets its own.",
        default=1_000_000,
        rule=COUNT,
    )
    tol: float | None = parameter(  # type: ignore[assignment]
        "Algorithm 1: the absolute fall of the objective that counts, 1e-2 by default. Global: the "
        "relative certified gap, 1e-4 by default, 1e-3 of approximated kernels.",
        default=None,
        rule=NONNEGATIVE,
    )
    patience: int = parameter_of(BestResponse, "patience")
    cap: float | None = parameter_of(BestResponse, "cap")

    C_: float = fitted("float", "The C of the fit: the one given, or the chosen one.")
    lam_: float = fitted("float", "The λ of the fit.")
    k0_: int = fitted("int", "The k₀ of the fit.")
    n_views_: int | None = fitted("int or None", "The limit of views of the fit.")
    path_scores_: PathScores | None = fitted(
        "PathScores or None", "Scores and proven gaps of every setting, where folds chose."
    )
    kernel_support_: NDArray[np.intp] = fitted("ndarray of int", "The kernels that are used.")
    problem_: Problem = fitted(
        "Problem",
        "What was solved; `kernelweave.relaxations.certify` reads it. Its family computes the Gram "
        "matrices again, or refers to the precomputed ones.",
    )

    # the algorithm does, whose bounds allow for no eigenvalue below rounding
    _definite: ClassVar[str | None] = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._learner().validate()
        if self.n_views is not None and not self._views:
            raise ValueError(
                f"n_views={self.n_views} needs views: give kernels=KernelDictionary(..., "
                "columns=...), where columns says what each view sees"
            )
        if self.n_views is not None and name_of(self._method) == BEST_RESPONSE:
            relaxations(f"n_views={self.n_views}")
            raise ValueError(
                f"n_views={self.n_views} needs algorithm={GLOBAL!r}, got {self.algorithm!r}"
            )
        if self.algorithm is None:
            for name in _OF_ALGORITHM_1:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value is not default and not np.array_equal(value, default):
                    raise ValueError(
                        f"{name} is a setting of Algorithm 1: set algorithm={BEST_RESPONSE!r} as "
                        f"well, got algorithm=None and {name}={value!r}"
                    )
            return
        try:
            get_algorithm(name_of(self.algorithm))
        except UnknownNameError as error:
            if self.algorithm != GLOBAL:
                raise
            raise ImportError(
                f"algorithm={GLOBAL!r} is registered by kernelweave-relaxations, which is not "
                "installed: pip install kernelweave-relaxations"
            ) from error

    @property
    def _views(self) -> tuple[str, ...]:
        """Return the view of each kernel, nothing where there are none."""
        return () if self._is_precomputed else self._stated_dictionary().view_names

    @property
    def _method(self) -> str | Settings:
        """Return the algorithm that runs, Algorithm 1 with the settings that it was given."""
        if self.algorithm is None and _has_global():
            return GLOBAL
        if self.algorithm not in (None, BEST_RESPONSE):
            return self.algorithm
        return BestResponse(
            init=self.init,
            n_init=self.n_init,
            epsilon=1e-2 if self.tol is None else self.tol,
            patience=self.patience,
            run_limit=min(BestResponse().run_limit, self.max_iter),
            cap=self.cap,
            warm=self.warm,
        )

    def _constraint(self) -> SparseSimplex:
        views = None
        if self.n_views is not None:
            views = tuple(self._views[j] for j in self._places[1])
        return SparseSimplex(self._value("k0"), self._value("lam"), views, self._value("n_views"))

    def _value(self, name: str) -> Any:
        """Return a setting: as given, or as chosen, before that the first of several."""
        values = candidates(getattr(self, name), _GRIDS[name])
        return values[0] if len(values) == 1 else getattr(self, f"{name}_", values[0])

    @contextmanager
    def _choosing(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> Iterator[None]:
        with time_limit(self.max_time):
            self._choose(X, targets, weight, grams)
            yield

    def _choose(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> None:
        """Set C, λ, k₀ and the views of this fit, by folds where several are given."""
        grid = {name: candidates(getattr(self, name), _GRIDS[name]) for name in _GRIDS}
        for name, most in self._most(grams).items():
            if isinstance(getattr(self, name), str):
                # a limit above what there is limits nothing
                grid[name] = [limit for limit in grid[name] if limit <= most]
        chosen = {name: values[0] for name, values in grid.items()}
        self.path_scores_ = None
        if any(len(values) > 1 for values in grid.values()):
            kernels = self.kernels if self._is_precomputed else self._dictionary()
            if self.kernels is None:
                kernels = None  # which standardises the features
            # class weights are in the weights of the samples already
            reader = clone(self).set_params(**chosen, kernels=kernels)
            if is_classifier(self):
                reader.set_params(class_weight=None)
                y = targets.argmax(axis=0) if len(targets) > 1 else targets[0] > 0
            else:
                # which are in the unit of the problem already
                reader.set_params(units="absolute")
                y = targets[0]
            kept = np.flatnonzero(weight > 0)
            points = X[kept] if grams is None else self._parts_of(grams)[kept, kept]
            self.path_scores_ = cross_validate_path(
                reader,
                points,
                y[kept],
                **{f"{name}s": grid[name] for name in ("C", "lam", "k0")},
                n_views=None if self.n_views is None else grid["n_views"],
                cv=folds_of(self.cv, y, weight, classifier=is_classifier(self)),
                sample_weight=weight[kept],
            )
            chosen |= self.path_scores_.choose(self.choice)
        for name, value in chosen.items():
            setattr(self, f"{name}_", value)

    def _most(self, grams: RealArray | None) -> dict[str, int]:
        """Return how many kernels there are, with ``n_views`` of the largest view, and views."""
        sizes = Counter(self._views)
        n_kernels = len(self._dictionary()) if grams is None else len(grams)
        most = n_kernels if self.n_views is None else max(sizes.values())
        return {"k0": most, "n_views": len(sizes)}

    def _charge(self, problem: Problem) -> _Charge:
        return _Charge(problem.constraint.relaxed(len(problem.family)))

    @property
    def _is_scaled(self) -> bool:
        if self._is_precomputed:
            return False
        return self.kernels is None if self.scale is None else bool(self.scale)

    @property
    def _accepts_sparse(self) -> bool:
        return super()._accepts_sparse and not self._is_scaled

    def _scaling(self, samples: Samples) -> Scaling | None:
        if not self._is_scaled:
            return None
        return Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))

    def _problem(self, samples: Samples) -> Problem:
        problem = super()._problem(samples)
        if not self._is_precomputed:
            # a name per weight, those of the kernels that were left out too
            self.kernel_names_ = self._dictionary().names
        return problem

    def _kernel(self, problem: Problem, parameters: ArrayLike) -> Any:
        return problem.family.kernel(np.asarray(parameters))

    def _algorithm(
        self, problem: Problem, samples: Samples
    ) -> tuple[str | Settings, dict[str, object]]:
        method = self._method
        if name_of(method) == GLOBAL and getattr(method, "accuracy", None) is None:
            return method, {"accuracy": max(self._limits()[0], _FINEST)}
        return method, {}

    def _limits(self) -> tuple[float, int]:
        method = self._method
        if isinstance(method, BestResponse):
            return _PROVEN, ROUNDS + 2 * method.n_init * (method.run_limit + 3)
        proven = _PROVEN if self.approximation_ is None else _PROVEN_OF_FACTORS
        return (proven if self.tol is None else self.tol), self.max_iter

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        proven = bool(np.isfinite(result.lower_bound))
        lower, upper = (self._lower_proof(), _UPPER) if proven else (_NO_PROOF, _NO_PROOF)
        return Certificate(result.lower_bound, result.upper_bound, lower, upper)

    def _lower_proof(self) -> str:
        method = name_of(self._method)
        proof = _LOWER.get(method, method)
        return proof if method != BEST_RESPONSE or _has_global() else f"{proof} {_ABSENT}"

    def _keep(self, problem: Problem, result: Result) -> None:
        super()._keep(problem, result)
        # the Gram matrices are computed again when somebody asks: a fitted model stays small
        self.problem_ = self._unfitted(problem)
        self.kernel_support_ = np.flatnonzero(self.weights_)


def _has_global() -> bool:
    try:
        get_algorithm(GLOBAL)
    except UnknownNameError:
        return False
    return True
