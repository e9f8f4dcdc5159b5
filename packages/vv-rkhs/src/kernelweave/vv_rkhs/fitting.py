"""Parameters of both estimators, and the fit from training data to a predictor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import (
    Certificate,
    Problem,
    Result,
    SolveInterrupted,
    config_context,
    solve,
)
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows
from kernelweave.kernels_core.checks import DTYPE, FLAG, NONNEGATIVE, POSITIVE, SEED, STRENGTH, Rule
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.cells import cells_named
from kernelweave.kernels_core.estimators.classes import alone
from kernelweave.kernels_core.estimators.folds import (
    SCORING,
    Fold,
    Folds,
    Scoring,
    folds_of,
    scorer_of,
)
from kernelweave.kernels_core.estimators.kernel import Data, SolvingEstimator
from kernelweave.kernels_core.estimators.weights import KERNELS, WeightedKernels, is_precomputed
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.fit import (
    FitResult,
    PrecomputedPredictor,
    Predictor,
    Predicts,
    solved,
)
from kernelweave.kernels_core.grams import PrecomputedGrams, PrecomputedKernel
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.settings import Settings, known_settings, name_of
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .cells import CellLeastSquares
from .constraint import FrobeniusOutputKernels, SeparableKernels
from .learner import VectorLeastSquares
from .penalties import Penalty, as_penalty
from .selection import FoldLosses, KernelChoice, choose_kernel
from .training import Kernels, Training, from_grams, from_points

if TYPE_CHECKING:
    from kernelweave.kernels_core.kernels.dictionary import Normalize
    from sklearn.utils import Tags


_LOWER_PROOF = "the concave dual value at C, at the worst weights or output kernel in the set"
_JOINT_PROOF = "a convex relaxation, every kernel with an output kernel of its own: not tight"
_NO_PROOF = "a sum of squares is not negative: the relaxation waits for a stationary point"
_UPPER_PROOF = "the primal value at C and the learned kernel"


_SIZE = Rule(
    "" if STRENGTH.then is None else STRENGTH.then.words,
    lambda value: isinstance(value, str) or STRENGTH.then is None or STRENGTH.then.holds(value),
)
_WORD = Rule(
    f"'loo', 'cv' or {POSITIVE.words}",
    lambda value: not isinstance(value, str) or value in ("loo", "cv"),
    then=_SIZE,
)
_LAM = Rule(
    POSITIVE.words, lambda value: isinstance(value, str) or POSITIVE.holds(value), then=_WORD
)
_DRAWN = 2000  # samples whose decompositions take a second or two each


class SeparableKernelEstimator(SolvingEstimator):
    """Parameters of the regressor and the classifier."""

    kernels: Kernels = parameter(
        "The kernels; ``None`` is a linear kernel, five Gaussians and two Laplacians, whose "
        "widths follow the spread of the points. Scales matter, since a kernel of large trace is "
        "cheap to select: see ``normalize``. Of a "
        '`GaussianGrid` no matrix but the sum is stored. With ``"precomputed"`` X is a '
        "`PrecomputedGrams` or an array of shape (n_kernels, n_samples, n_train).",
        kind='None, KernelDictionary, GaussianGrid, list of Kernel, dict or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
    normalize: Normalize | None = parameter_of(WeightedKernels, "normalize")
    p: float | None = parameter(
        "Exponent of the squared ℓp norm over kernels, in [1, 2]; 1 selects few, and is the "
        'default. With ``lam="loo"`` 1 and 2 are tried without it.',
        default=None,
    )
    penalty: Penalty | str = parameter(
        'The regulariser over kernels. A `Penalty` of your own needs ``prox`` for ``"vv-spg"``.',
        kind='{"lp", "elastic-net", "group"} or Penalty',
        default="lp",
    )
    mu: float = parameter("Share of the squared norm in the elastic net.", default=0.5)
    groups: Sequence[int] | None = parameter(
        'Group of each kernel, for ``penalty="group"``.', kind="sequence of int", default=None
    )
    lam: float | str = parameter(
        'λ. ``"loo"`` chooses λ and the rule for the weights (one kernel alone, equal weights or '
        "learned ones) by the leave-one-out error, for which there is a closed form. Outputs are "
        "centred and scaled to unit variance first, so that all count the same; bounds are in "
        "those units. With more than 2000 samples, 2000 are drawn for it. If `fit` gets "
        '``groups``, whole groups are left out. ``"cv"`` does the same by the folds of ``cv``.',
        kind='float, "loo" or "cv"',
        default=1e-3,
        rule=_LAM,
    )
    cv: Folds = parameter(
        'With ``lam="cv"``, the folds of cross-validation, as in scikit-learn: a number, a '
        "splitter or a list of splits. With ``groups``, a number of folds leaves out whole "
        "groups.",
        kind="int, splitter or iterable",
        default=5,
    )
    scoring: Scoring = parameter(
        'With ``lam="cv"``, the scorer of cross-validation, as in scikit-learn; by default the '
        "squared error.",
        kind="str or callable",
        default=None,
        rule=SCORING,
    )
    tau: float | None = parameter(
        "Bound on the trace of L; the number of outputs by default. Only λ/τ matters, except "
        "for the elastic net, whose λω(η) does not depend on τ.",
        default=None,
        rule=STRENGTH,
    )
    rho: float = parameter(
        'Weight of ‖L‖² for ``algorithm="vv-dinuzzo"``, which fixes η at 1/m and ignores ``p``, '
        "``penalty``, ``mu``, ``groups``, ``tau`` and ``learn_input``.",
        default=1.0,
    )
    learn_input: bool = parameter(
        "Whether η is learned; η = 1/m otherwise. If both η and L are learned, the result is a "
        "stationary point; if only one, it is optimal.",
        default=True,
        rule=FLAG,
    )
    learn_output: bool = parameter(
        "Whether L is learned; (τ/n) I otherwise.", default=True, rule=FLAG
    )
    algorithm: str | Settings = parameter(
        'Registered algorithm, ``"vv-spg"``, ``"vv-block-descent"`` or ``"vv-dinuzzo"``, or its '
        "settings such as ``SpectralGradient(memory=4)``.",
        kind="str or Settings",
        default="vv-spg",
    )
    center: bool = parameter(
        "Whether the weighted mean of the targets (the class frequencies of a classifier) is "
        "subtracted before the fit and added to predictions; the paper's model has no offset.",
        default=False,
        rule=FLAG,
    )
    dtype: str = parameter(
        "Precision of the stack of Gram matrices; precomputed ones keep theirs.",
        default="float64",
        rule=DTYPE,
    )
    tol: float = parameter(
        "Relative certified gap; for joint learning, relative stationarity, with a warning that no "
        "optimum is proved.",
        default=1e-4,
        rule=NONNEGATIVE,
    )
    random_state: int | np.random.RandomState | None = parameter(
        'Seed of the samples that ``lam="loo"`` uses, above 2000.',
        kind="int or RandomState",
        default=None,
        rule=SEED,
    )

    weights_: npt.NDArray[np.float64] = fitted("ndarray of shape (n_kernels,)", "η.")
    output_kernel_: FloatArray = fitted("ndarray of shape (n_outputs, n_outputs)", "L.")
    dual_coef_: FloatArray = fitted(
        "ndarray of shape (n_samples, n_outputs)",
        "C L: predictions are ``kernel_(X, X_train) @ dual_coef_ + intercept_``.",
    )
    intercept_: FloatArray = fitted("ndarray of shape (n_outputs,)", "Zeros unless ``center``.")
    kernel_: Any = fitted(
        "callable", "The learned input kernel k_η; absent for precomputed kernels."
    )
    selection_: KernelChoice | None = fitted(
        "KernelChoice or None", 'What ``lam="loo"`` tried and chose.'
    )
    kernel_names_: tuple[str, ...] = fitted(
        "tuple of str", "Names of the kernels, in the order of ``weights_``; absent likewise."
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "Both bounds. Joint learning of several outputs is not convex: ``result_.status`` says "
        "stationary, and the lower bound is that of a relaxation, valid but not tight.",
    )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.three_d_array = is_precomputed(self)
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _set_of(self, None).validate()

    def _learn(self, given: Data) -> FitResult:
        """Return the result of a fit; the targets of classes are one-hot."""
        weight, y = given.weight, given.labels(getattr(self, "classes_", None))
        with config_context(memory_limit=self.memory_limit), blas_threads(len(weight)):
            folds = _folds(self, given, y)
            if given.grams is not None:
                data = from_grams(given.grams, given.targets, weight)
            else:
                parts = None if folds is None else _parts(folds, len(weight))
                points = np.asarray(given.X)
                arguments = self.kernels, points, given.targets, weight
                data = from_points(*arguments, self.dtype, parts, self.normalize)
            targets, chooses = data.targets, isinstance(self.lam, str)
            offset, unit = np.zeros(len(targets)), np.ones(len(targets))
            if self.center or chooses:
                offset, targets = data.centred()
            if chooses:
                unit = _deviations(targets, data)
                targets = targets / unit[:, None]
            data = replace(data, targets=targets)
            choice = None
            if chooses:
                seen = _drawn(self, data)
                judged = None
                if folds is not None:
                    judged = _judged(self, seen, folds, (offset, unit), y, weight)
                try:
                    choice = _select(self, seen, data.total_weight, judged)
                except SolveInterrupted as stop:
                    # what it has learned is a model
                    attributes = _attributes_of(seen, offset, unit, False, None, stop.result)
                    return FitResult(attributes, stop if self.on_interrupt == "raise" else None)
            return _solve(self, data, offset, unit, choice)

    def _values(self, X: Rows) -> FloatArray:
        """Return f(X), shape (n_samples, n_outputs), in blocks that respect the memory limit."""
        check_is_fitted(self, "weights_")
        if is_precomputed(self):
            with cells_named(grams=X):
                X = PrecomputedGrams.of(X)
        else:
            with cells_named(X):
                X = validate_data(self, X, dtype=np.float64, reset=False)
        with config_context(memory_limit=self.memory_limit):
            return self._predictor(X)


def _solve(
    estimator: SeparableKernelEstimator,
    data: Training,
    offset: FloatArray,
    unit: FloatArray,
    choice: KernelChoice | None,
) -> FitResult:
    """Learn at a λ; `offset`, `unit` of shape (n_outputs,): taken off the targets."""
    targets, constraint = data.targets, _set_of(estimator, choice)
    learner = _learner_of(estimator, _lam_of(estimator, choice), data)
    positions = np.arange(targets.shape[1], dtype=np.float64)[:, None]
    problem = Problem(data.family, learner, constraint, positions, targets, data.weight)
    settings: dict[str, Any] = {}
    if "stationarity_tol" in (known_settings(estimator.algorithm) or ()):
        tol = getattr(estimator.algorithm, "stationarity_tol", None)
        settings["stationarity_tol"] = estimator.tol if tol is None else tol
    both = getattr(constraint, "learn_input", False) and constraint.learn_output
    joint = bool(both) and len(targets) > 1
    return solved(
        problem,
        estimator.algorithm,
        lambda _, result: _attributes_of(data, offset, unit, joint, choice, result),
        **estimator._limits,
        **settings,
    )


def _attributes_of(
    data: Training,
    offset: FloatArray,
    unit: FloatArray,
    joint: bool,
    choice: KernelChoice | None,
    result: Result,
) -> dict[str, Any]:
    """Return the fitted attributes made of a result."""
    lower = _LOWER_PROOF
    if joint:
        lower = _JOINT_PROOF if result.lower_bound > 0.0 else _NO_PROOF
    weights, L = result.parameters.weights, result.parameters.output_kernel
    coef = (result.solution.C @ L) * unit
    dual_coef = data.to_original_rows(coef)
    attributes: dict[str, Any] = {
        "result_": result,
        "n_iter_": max(1, result.n_iter),
        "dual_gap_": result.dual_gap,
        "certificate_": Certificate(result.lower_bound, result.upper_bound, lower, _UPPER_PROOF),
        "selection_": choice,
        "weights_": weights,
        "output_kernel_": L,
        "dual_coef_": dual_coef,
        "intercept_": offset,
    }
    if data.dictionary is None or data.X is None:
        n, kernel = len(dual_coef), PrecomputedKernel(weights)
        shape = len(weights), n
        rule: Predicts = PrecomputedPredictor(kernel, np.arange(n), dual_coef.T, offset, shape)
        return {**attributes, "_predictor": rule}
    kernel_ = data.dictionary.kernel(weights)
    attributes |= {"kernel_names_": data.dictionary.names, "kernel_": kernel_}
    return {**attributes, "_predictor": Predictor(kernel_, data.X, coef.T, offset)}


def _penalty_of(estimator: SeparableKernelEstimator, p: float | None = None) -> Penalty:
    chosen = estimator.p if p is None else p
    exponent = 1.0 if chosen is None else chosen
    return as_penalty(estimator.penalty, p=exponent, mu=estimator.mu, groups=estimator.groups)


def _set_of(estimator: SeparableKernelEstimator, choice: KernelChoice | None) -> Any:
    """Return the set of kernels of the problem."""
    if name_of(estimator.algorithm) == "vv-dinuzzo":
        if not estimator.learn_output:
            raise ValueError(
                "learn_output must be True for algorithm='vv-dinuzzo', which learns nothing "
                f"else, got {estimator.learn_output!r}"
            )
        # J plus ρ‖L‖² over 2λ is what a problem minimises
        return FrobeniusOutputKernels(0.5 * estimator.rho / _lam_of(estimator, choice))
    penalty = _penalty_of(estimator, None if choice is None else choice.p)
    tau, learn_output = estimator.tau, estimator.learn_output
    if choice is None or choice.p is not None:
        return SeparableKernels(penalty, tau, estimator.learn_input, learn_output)
    return SeparableKernels(penalty, tau, False, learn_output, choice.weights)


def _lam_of(estimator: SeparableKernelEstimator, choice: KernelChoice | None) -> float:
    if choice is not None:
        return choice.lam
    return 1.0 if isinstance(estimator.lam, str) else float(estimator.lam)


def _learner_of(
    estimator: SeparableKernelEstimator, lam: float, data: Training
) -> VectorLeastSquares:
    if data.cells is None:
        return VectorLeastSquares(lam)
    if name_of(estimator.algorithm) != "vv-spg":
        raise ValueError(
            "algorithm must be 'vv-spg' if y has missing values or sample_weight a weight per "
            f"cell, got {name_of(estimator.algorithm)!r}"
        )
    return CellLeastSquares(lam, cell_weight=data.cells)


def _drawn(estimator: SeparableKernelEstimator, data: Training) -> Training:
    """Return the samples that a choice of λ looks at."""
    n = data.targets.shape[1]
    if n <= _DRAWN:
        return data
    rng = check_random_state(estimator.random_state)
    return data.part(np.sort(rng.choice(n, _DRAWN, replace=False)))


def _folds(estimator: SeparableKernelEstimator, data: Data, y: Labels) -> list[Fold] | None:
    """Return the folds that choose, as places among all samples; None where single ones do."""
    by_folds = estimator.lam == "cv"
    if estimator.scoring is not None and not by_folds:
        raise ValueError(f"scoring={estimator.scoring!r} needs lam='cv', got lam={estimator.lam!r}")
    if not by_folds and (estimator.lam != "loo" or data.groups is None):
        return None
    if data.weight.ndim == 2:
        raise ValueError(
            "lam='cv' and groups need targets without missing values, and one weight per sample: "
            "pass lam='loo' and no groups"
        )
    cv = estimator.cv if by_folds else LeaveOneGroupOut()
    least = None if estimator.scoring is not None else 1
    folds = folds_of(
        *(cv, data.given, y, data.weight, data.groups),
        classifier=is_classifier(estimator),
        least=least,
    )
    counted = np.flatnonzero(data.weight > 0)
    return [(counted[train], counted[test]) for train, test in folds]


def _parts(folds: list[Fold], n_samples: int) -> FloatArray:
    """Return a number for the samples that are in the same parts of all folds."""
    inside = np.zeros((n_samples, 2 * len(folds)), dtype=np.bool_)
    for k, fold in enumerate(folds):
        for side, places in enumerate(fold):
            inside[places, 2 * k + side] = True
    return np.unique(inside, axis=0, return_inverse=True)[1].ravel().astype(np.float64)


def _judged(
    estimator: SeparableKernelEstimator,
    data: Training,
    folds: list[Fold],
    scale: tuple[FloatArray, FloatArray],
    y: Labels,
    weight: FloatArray,
) -> FoldLosses:
    """Return how folds judge a kernel on the samples that are looked at.

    `scale`: what was taken off the targets, and their units.
    """
    n = data.targets.shape[1]
    mass = np.ones(n) if data.weight is None else data.weight
    kept = [tuple(each[data.owner[each] >= 0] for each in fold) for fold in folds]
    used = [(np.unique(data.owner[train]), np.unique(data.owner[test])) for train, test in kept]
    if min(min(map(len, fold)) for fold in used) < 1:
        raise ValueError(f"cv leaves a part of a fold empty in the {n} samples drawn: use fewer")
    shares = np.array([mass[train].sum() / mass.sum() for train, _ in used])
    if estimator.scoring is None:
        return FoldLosses(used, shares)
    scorer = scorer_of(estimator, estimator.scoring, y, weight)
    # what a scorer asks of a model, whose rows are the values already
    model = alone(estimator, kernels="precomputed")
    model.__dict__.update(weights_=None, _values=lambda values: values)
    model.__dict__.update(classes_=getattr(estimator, "classes_", None), _columns=None)
    model._single = y.ndim == 1

    def score(fold: int, values: FloatArray) -> float:
        rows, (_, test) = kept[fold][1], used[fold]
        offset, unit = scale
        f = values / np.sqrt(mass[test])[:, None] * unit + offset
        try:
            return scorer(model, f[np.searchsorted(test, data.owner[rows])], rows)
        except AttributeError as error:
            raise ValueError(
                f"scoring={estimator.scoring!r} asks for more than the values of left-out samples, "
                "such as probabilities: choose a scorer of values or labels, or search over lam by "
                "scikit-learn's GridSearchCV"
            ) from error

    return FoldLosses(used, shares, score)


def _select(
    estimator: SeparableKernelEstimator,
    data: Training,
    total_weight: float,
    folds: FoldLosses | None,
) -> KernelChoice:
    """Return weights and λ of the least error at left-out samples."""
    targets, weight = data.targets, data.weight
    root = None if weight is None else np.sqrt(weight)
    Y = np.ascontiguousarray(targets.T) if root is None else targets.T * root[:, None]
    cell_root = None if data.cells is None else np.ascontiguousarray(np.sqrt(data.cells).T)
    if cell_root is not None:
        Y = Y * cell_root
    positions = np.arange(targets.shape[1], dtype=np.float64)[:, None]

    def learn(p: float, lam: float) -> FloatArray:
        constraint = SeparableKernels(_penalty_of(estimator, p), estimator.tau, learn_output=False)
        # the same ridge, whether all samples are looked at or some
        learner = _learner_of(estimator, lam * total_weight / data.total_weight, data)
        problem = Problem(data.family, learner, constraint, positions, targets, weight)
        with warnings.catch_warnings():
            # the fit itself says whether it converges
            warnings.simplefilter("ignore", convergence_warning())
            result = solve(
                problem,
                "vv-spg",
                tol=1e-2,
                max_iter=estimator.max_iter,
                max_time=estimator.max_time,
            )
        learned: FloatArray = result.parameters.weights
        return learned

    several = estimator.p is None and estimator.penalty == "lp"
    return choose_kernel(
        data.family.weighted(root),
        Y,
        total_weight,
        rules=estimator.learn_input and name_of(estimator.algorithm) != "vv-dinuzzo",
        learn=learn,
        exponents=(1.0, 2.0) if several else (1.0 if estimator.p is None else estimator.p,),
        cell_root=cell_root,
        folds=folds,
    )


def _deviations(targets: FloatArray, data: Training) -> FloatArray:
    """Return the root mean square of each row, 1 for rows of zeros."""
    if data.cells is not None:
        targets = np.where(data.cells > 0.0, targets, 0.0)
    largest = np.abs(targets).max(axis=1, initial=0.0)
    largest[largest == 0.0] = 1.0
    shares = data.means((targets / largest[:, None]) ** 2)
    return np.where(shares > 0.0, largest * np.sqrt(shares), 1.0)
