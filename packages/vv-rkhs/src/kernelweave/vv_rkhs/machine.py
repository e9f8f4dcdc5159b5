"""The base of both estimators: from training data to a fitted predictor."""

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
    interrupts,
    solve,
)
from kernelweave.kernels_core.arrays import FloatArray, Rows
from kernelweave.kernels_core.checks import (
    COUNT,
    DTYPE,
    FLAG,
    NONNEGATIVE,
    ON_INTERRUPT,
    POSITIVE,
    SECONDS,
    STRENGTH,
    Rule,
    check_decision,
    integer,
)
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.estimators.weights import KERNELS
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.grams import as_grams
from kernelweave.kernels_core.memory import limit_bytes
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.kernels_core.settings import Settings, known_settings, name_of
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .cells import CellLeastSquares
from .constraint import FrobeniusOutputKernels, SeparableKernels
from .family import grams_of
from .learner import VectorLeastSquares
from .penalties import Penalty
from .penalties.choose import as_penalty
from .selection import KernelChoice, choose_kernel
from .training import Kernels, Training, from_grams, from_points

if TYPE_CHECKING:
    from sklearn.utils import Tags


_LOWER_PROOF = "the concave dual value at C, at the worst weights or output kernel in the set"
_JOINT_PROOF = "a convex relaxation, every kernel with an output kernel of its own: not tight"
_NO_PROOF = "a sum of squares is not negative: the relaxation waits for a stationary point"
_UPPER_PROOF = "the primal value at C and the learned kernel"


def _is_strength(value: object) -> bool:
    return STRENGTH.then is None or STRENGTH.then.holds(value)


_SIZE = Rule(
    "" if STRENGTH.then is None else STRENGTH.then.words,
    lambda value: isinstance(value, str) or _is_strength(value),
)
_WORD = Rule(
    f"'loo' or {POSITIVE.words}",
    lambda value: not isinstance(value, str) or value == "loo",
    then=_SIZE,
)
_LAM = Rule(
    POSITIVE.words, lambda value: isinstance(value, str) or POSITIVE.holds(value), then=_WORD
)
_DRAWN = 2000  # samples whose decompositions take a second or two each


class MatrixValuedKernelMachine(Estimator):
    """Shared by regressor and classifier: from training data to a fitted predictor."""

    kernels: Kernels = parameter(
        "The dictionary; ``None`` is a linear kernel, five Gaussians and two Laplacians, whose "
        "widths follow the spread of the points, each scaled to mean diagonal 1. "
        "Scales matter: a kernel of large trace is cheap to select. Of a "
        '`GaussianGrid` no matrix but the sum is stored. With ``"precomputed"`` X is a '
        "`PrecomputedGrams` or an array of shape (n_kernels, n_samples, n_train).",
        kind='None, KernelDictionary, GaussianGrid, list of Kernel, dict or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
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
        'λ, or ``"loo"``: λ and the rule for the weights, one kernel alone, even weights or '
        "learned ones, of the least error at left-out samples, which is a closed form. Outputs "
        "are centred and brought to unit variance first, so that each counts alike; bounds are in "
        "those units. Above 2000 samples as many are drawn for it.",
        kind='float or "loo"',
        default=1e-3,
        rule=_LAM,
    )
    tau: float | None = parameter(
        "Bound on the trace of L; the number of outputs by default. Only λ/τ matters, except to "
        "the elastic net, whose λω(η) knows no τ.",
        default=None,
        rule=STRENGTH,
    )
    rho: float = parameter(
        'Weight of ‖L‖² for ``algorithm="vv-dinuzzo"``, which fixes η at 1/m: ``p``, ``penalty``, '
        "``mu``, ``groups``, ``tau`` and ``learn_input`` mean nothing to it.",
        default=1.0,
    )
    learn_input: bool = parameter(
        "Whether η is learned. With L: a stationary point; one of the two: IKL or OKL, optimal. "
        "What is not learned is even: η = 1/m.",
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
    algorithm_params: dict[str, Any] | None = parameter(
        "Settings of the algorithm by name.", kind="dict", default=None
    )
    center: bool = parameter(
        "Whether the weighted mean of the targets, the class frequencies of a classifier, is taken "
        "off first and added to predictions; the paper's model has no offset.",
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
    max_iter: int = parameter("Outer iterations at most.", default=1000, rule=COUNT)
    max_time: float | None = parameter("Seconds at most.", default=None, rule=SECONDS)
    memory_limit: float | None = parameter(
        "Bytes that the fit may allocate beside its data; refused before the work otherwise.",
        default=None,
    )
    on_interrupt: str = parameter(
        "What Ctrl-C does after the best iterate is stored.", default="raise", rule=ON_INTERRUPT
    )
    random_state: int | np.random.RandomState | None = parameter(
        'Draws the samples that ``lam="loo"`` looks at, above 2000.',
        kind="int or RandomState",
        default=None,
    )
    verbose: int = parameter("Positive: a line per iteration.", default=0, rule=integer())

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
    result_: Result = fitted("Result", "Bounds, gap, status, history.")
    certificate_: Certificate = fitted(
        "Certificate",
        "Both bounds. Joint learning of several outputs is not convex: ``result_.status`` says "
        "stationary, and the lower bound is that of a relaxation, valid but not tight.",
    )
    dual_gap_: float = fitted("float", "Upper minus lower bound.")
    n_iter_: int = fitted("int", "Outer iterations, 1 where nothing is learned.")

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._constraint().validate()

    @property
    def _chooses(self) -> bool:
        return isinstance(self.lam, str)

    def _penalty(self, p: float | None = None) -> Penalty:
        chosen = self.p if p is None else p
        exponent = 1.0 if chosen is None else chosen
        return as_penalty(self.penalty, p=exponent, mu=self.mu, groups=self.groups)

    def _constraint(self, choice: KernelChoice | None = None) -> Any:
        if name_of(self.algorithm) == "vv-dinuzzo":
            if not self.learn_output:
                raise ValueError(
                    "learn_output must be True for algorithm='vv-dinuzzo', which learns nothing "
                    f"else, got {self.learn_output!r}"
                )
            # J plus ρ‖L‖² over 2λ is what a problem minimises
            return FrobeniusOutputKernels(0.5 * self.rho / self._lam_of(choice))
        penalty = self._penalty(None if choice is None else choice.p)
        if choice is None or choice.p is not None:
            return SeparableKernels(penalty, self.tau, self.learn_input, self.learn_output)
        return SeparableKernels(penalty, self.tau, False, self.learn_output, choice.weights)

    def _lam_of(self, choice: KernelChoice | None) -> float:
        if choice is not None:
            return choice.lam
        return 1.0 if isinstance(self.lam, str) else float(self.lam)

    def _fit_arrays(self, X: Rows, Y: FloatArray, weight: FloatArray) -> None:
        """Fit targets of shape (n_samples, n_outputs)."""
        with config_context(memory_limit=self.memory_limit), blas_threads(len(Y)):
            if self._precomputed:
                data = from_grams(X, Y.T, weight)
            else:
                data = from_points(self.kernels, np.asarray(X), Y.T, weight, self.dtype)
            targets = data.targets
            self.intercept_, self._unit = np.zeros(len(targets)), np.ones(len(targets))
            if self.center or self._chooses:
                self.intercept_, targets = data.centred()
            if self._chooses:
                self._unit = _deviations(targets, data)
                targets = targets / self._unit[:, None]
            data = replace(data, targets=targets)
            self.selection_ = None
            if self._chooses and not self._choose(data):
                return
            self._solve(self._problem(data, self.selection_), data)

    def _choose(self, data: Training) -> bool:
        """Set ``selection_``; tell whether to go on, having stored what an interruption left."""
        total = data.total_weight
        if data.targets.shape[1] > _DRAWN:
            rng = check_random_state(self.random_state)
            rows = rng.choice(data.targets.shape[1], _DRAWN, replace=False)
            data = data.part(np.sort(rows))
        try:
            self.selection_ = self._select(data, total)
        except SolveInterrupted as stop:
            self._joint = False
            self._store(stop.result, data)
            if self.on_interrupt == "raise":
                raise
            return False
        return True

    def _problem(self, data: Training, choice: KernelChoice | None) -> Problem:
        targets, learner = data.targets, self._learner(self._lam_of(choice), data)
        positions = np.arange(targets.shape[1], dtype=np.float64)[:, None]
        constraint = self._constraint(choice)
        both = getattr(constraint, "learn_input", False) and constraint.learn_output
        self._joint = bool(both) and len(targets) > 1
        return Problem(data.family, learner, constraint, positions, targets, data.weight)

    def _learner(self, lam: float, data: Training) -> VectorLeastSquares:
        if data.cells is None:
            return VectorLeastSquares(lam)
        if name_of(self.algorithm) != "vv-spg":
            raise ValueError(
                f"algorithm must be 'vv-spg' where y has gaps or sample_weight a weight per cell, "
                f"got {name_of(self.algorithm)!r}"
            )
        return CellLeastSquares(lam, cell_weight=data.cells)

    def _select(self, data: Training, total_weight: float) -> KernelChoice:
        """Return weights and λ of the least error at left-out samples."""
        targets, weight = data.targets, data.weight
        root = None if weight is None else np.sqrt(weight)
        Y = np.ascontiguousarray(targets.T) if root is None else targets.T * root[:, None]
        cell_root = None if data.cells is None else np.ascontiguousarray(np.sqrt(data.cells).T)
        if cell_root is not None:
            Y = Y * cell_root
        positions = np.arange(targets.shape[1], dtype=np.float64)[:, None]

        def learn(p: float, lam: float) -> FloatArray:
            constraint = SeparableKernels(self._penalty(p), self.tau, learn_output=False)
            # the same ridge, whether all samples are looked at or some
            learner = self._learner(lam * total_weight / data.total_weight, data)
            problem = Problem(data.family, learner, constraint, positions, targets, weight)
            with warnings.catch_warnings():
                # the fit itself says whether it converges
                warnings.simplefilter("ignore", convergence_warning())
                found = solve(
                    problem, "vv-spg", tol=1e-2, max_iter=self.max_iter, max_time=self.max_time
                )
            learned: FloatArray = found.parameters.weights
            return learned

        several = self.p is None and self.penalty == "lp"
        return choose_kernel(
            grams_of(data.family, root),
            Y,
            total_weight,
            rules=self.learn_input and name_of(self.algorithm) != "vv-dinuzzo",
            learn=learn,
            exponents=(1.0, 2.0) if several else (1.0 if self.p is None else self.p,),
            cell_root=cell_root,
        )

    def _solve(self, problem: Problem, data: Training) -> None:
        params = dict(self.algorithm_params or {})
        if "stationarity_tol" in (known_settings(self.algorithm) or ()):
            own = getattr(self.algorithm, "stationarity_tol", None)
            params.setdefault("stationarity_tol", self.tol if own is None else own)
        try:
            result = solve(
                problem,
                self.algorithm,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                random_state=self.random_state,
                verbose=self.verbose,
                on_interrupt=self.on_interrupt,
                **params,
            )
        except SolveInterrupted as stop:
            with interrupts.kept():
                self._store(stop.result, data)
            raise
        with interrupts.kept():
            self._store(result, data)

    def _store(self, result: Result, data: Training) -> None:
        self.result_ = result
        self.n_iter_ = max(1, result.n_iter)
        self.dual_gap_ = result.dual_gap
        self.certificate_ = Certificate(
            result.lower_bound, result.upper_bound, self._lower_proof(result), _UPPER_PROOF
        )
        self.weights_ = result.parameters.weights
        self.output_kernel_ = result.parameters.output_kernel
        coef = (result.solution.C @ self.output_kernel_) * self._unit
        self.dual_coef_ = data.spread(coef)
        if data.dictionary is None:
            for name in ("kernel_names_", "kernel_", "_rows", "_coef", "feature_names_in_"):
                self.__dict__.pop(name, None)  # of an earlier fit to points
            return
        self.kernel_names_ = data.dictionary.names
        self.kernel_ = data.dictionary.kernel(self.weights_)
        self._rows, self._coef = data.X, coef

    def _lower_proof(self, result: Result) -> str:
        if not self._joint:
            return _LOWER_PROOF
        return _JOINT_PROOF if result.lower_bound > 0.0 else _NO_PROOF

    def _values(self, X: Rows) -> FloatArray:
        """Return f(X), shape (n_samples, n_outputs), in blocks that respect the memory limit."""
        check_is_fitted(self, "weights_")
        if self._precomputed:
            return self._values_precomputed(X)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        rows = np.asarray(self._rows)
        with config_context(memory_limit=self.memory_limit):
            per_row = 8 * 8 * max(1, len(rows))
            block = int(max(1, min(points.shape[0], 4096, limit_bytes() // per_row)))
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                self.kernel_(points[start : start + block], rows) @ self._coef
                for start in range(0, points.shape[0], block)
            ]
        values: FloatArray = np.vstack(parts) + self.intercept_
        check_decision(values, points)
        return values

    def _values_precomputed(self, X: Rows) -> FloatArray:
        grams = as_grams(X)
        wanted = (len(self.weights_), len(self.dual_coef_))
        if (grams.shape[0], grams.shape[2]) != wanted:
            raise ValueError(
                f"X must have shape ({wanted[0]}, n_samples, {wanted[1]}): a matrix per kernel, a "
                f"column per training sample; got {grams.shape}"
            )
        values = np.tile(self.intercept_, (grams.shape[1], 1))
        for weight, K in zip(self.weights_, grams, strict=True):
            if weight != 0.0:
                values += weight * (K @ self.dual_coef_)
        return values


def _deviations(targets: FloatArray, data: Training) -> FloatArray:
    """Return the root mean square of each row, 1 for rows of zeros."""
    if data.cells is not None:
        targets = np.where(data.cells > 0.0, targets, 0.0)
    largest = np.abs(targets).max(axis=1, initial=0.0)
    largest[largest == 0.0] = 1.0
    shares = data.means((targets / largest[:, None]) ** 2)
    return np.where(shares > 0.0, largest * np.sqrt(shares), 1.0)
