"""Classifier and regressor that learn a tessellated or generalized polynomial kernel."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from kernelweave.kernels_core import (
    FamilyKernel,
    KernelWeaveWarning,
    PolynomialFamily,
    Problem,
    TessellatedFamily,
    UnsupportedProblemError,
)
from kernelweave.kernels_core.arrays import FloatArray, Points
from kernelweave.kernels_core.checks import (
    COUNT,
    DTYPE,
    NONNEGATIVE,
    POSITIVE,
    Rule,
    integer,
    one_of,
)
from kernelweave.kernels_core.estimators.kernel import (
    KernelClassifier,
    KernelEstimator,
    KernelRegressor,
)
from kernelweave.kernels_core.estimators.samples import Samples, standard_deviation
from kernelweave.kernels_core.families import Family
from kernelweave.kernels_core.fit import Formula
from kernelweave.kernels_core.kernels.scaled import Scaling, unit_range
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.settings import Settings, known_settings, name_of
from kernelweave.qp_smo import SVC, SVR
from numpy.typing import ArrayLike

from .gram_memory import GRAM
from .settings import Spectahedron, Start

# Larger volumes leave fewer than six digits of a float64 for the differences between samples.
_LARGEST_VOLUME = 1e10
# At this side of P one factorisation takes about a minute.
_LARGEST_SIDE = 5000
_DEGREE = integer(0)
# Measured: with more columns, indicators that compare all of them at once predict worse.
_MOST_COLUMNS, _ORDER = 15, 3


def _is_order(value: object) -> bool:
    if isinstance(value, str):
        return value == "auto"
    return isinstance(value, Iterable) or COUNT.holds(value)


def _is_family(value: object) -> bool:
    if isinstance(value, str):
        return value in ("tessellated", "polynomial")
    return isinstance(value, Family)


_KERNEL = Rule('"tessellated", "polynomial" or a family such as IntegralFamily', _is_family)
_COLUMNS = Rule('"auto", an integer >= 1 or a list of groups of columns', _is_order)


class PositiveMatrixKernel(KernelEstimator):
    """Parameters of both estimators: the family, the box and the scaling."""

    C: float = parameter(
        "Penalty of the loss, in the convention ½‖f‖² + C Σ loss.",
        default=1.0,
        rule=POSITIVE,
        kw_only=False,
    )
    units: str = parameter(
        'The unit of ``C``: ``"scale"`` is 1 / mean k(x, x) over the samples at P = I, in '
        "regression times the standard deviation of y, which is also the unit of ``epsilon``; "
        'with ``"absolute"`` both are used as they are.',
        default="scale",
        rule=one_of("scale", "absolute"),
    )
    degree: int = parameter("Degree of the monomials.", default=1, rule=_DEGREE)
    delta: float = parameter(
        "The box of integration is [−δ, 1 + δ] in each scaled feature.",
        default=0.5,
        rule=NONNEGATIVE,
    )
    kernel: str | Family = parameter(
        'Family of kernels: ``"tessellated"``, ``"polynomial"`` or your own, such as an '
        "``IntegralFamily`` of N(z, x), which gets the features after scaling.",
        kind='"tessellated", "polynomial" or Family',
        default="tessellated",
        rule=_KERNEL,
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for this family, or its settings such as ``LowRank(rank=8)``.",
        kind="str or Settings",
        default="tkl-low-rank",
    )
    scale: bool = parameter("Scale each feature to [0, 1] by its training range.", default=True)
    domain: tuple[ArrayLike, ArrayLike] | None = parameter(
        "The box itself, numbers or arrays of shape (n_features,), in scaled features.",
        kind="(lower, upper)",
        default=None,
    )
    outside: Literal["clip", "raise"] = parameter(
        "Whether test points outside the box are moved to its border, with one warning that "
        "counts them, or raise an error.",
        default="clip",
        rule=one_of("clip", "raise"),
    )
    z_degree: int | None = parameter(
        "Maximum degree in z; the authors' program uses 0.", default=None, rule=_DEGREE
    )
    order: int | str | Sequence[Sequence[int]] = parameter(
        "How many columns a tessellated kernel compares at once: it is the mean over all groups "
        "of so many columns, or over the groups listed, such as ``[(0,), (1, 2)]``. "
        f'``"auto"`` compares all columns if there are at most {_MOST_COLUMNS}, else '
        f"{_ORDER} at a time, because nearly all rows would look alike otherwise.",
        kind='int, "auto" or list of groups of columns',
        default="auto",
        rule=_COLUMNS,
    )
    min_eig: float = parameter_of(Spectahedron, "min_eig")
    dtype: str = parameter(
        "Precision of the Gram matrices; float32 halves their memory, and a search may end at a "
        "wider gap.",
        default="float64",
        rule=DTYPE,
    )
    gram: str = parameter(
        'Whether Gram matrices are stored; "blocks" computes entries where they are needed, in the '
        'available memory, and both bounds are still proofs. "auto" stores them if they fit, else '
        "it warns and computes them. For ``tkl-low-rank`` only.",
        default="auto",
        rule=GRAM,
    )
    warm_start: bool = parameter(
        "Whether to start at the kernel and the coefficients of the last fit, for a path over C "
        "or another parameter; ignored if their shapes differ or the algorithm is not the "
        "default one.",
        default=False,
    )

    P_: FloatArray = fitted("ndarray of shape (n_P, n_P)", "The learned matrix.")
    C_: float = fitted("float", "The penalty in absolute units.")
    problem_: Problem = fitted("Problem", "What was solved, of scaled features; `prove` reads it.")

    if TYPE_CHECKING:
        # where the next fit starts, set by a search and removed by the fit
        _start: Start = fitted("", "")

    def formula(self, samples: Samples) -> Formula:
        """Return a learner over the kernels ⟨P, G(x, y)⟩ of a family."""
        scaling = Scaling(*unit_range(np.asarray(samples.X))) if self.scale else None
        X = np.asarray(samples.scaled(scaling).X)
        family = family_of(self, X)
        learner = _learner_of(self, family, X, samples.targets, samples.weight)
        return Formula(
            family,
            learner,
            Spectahedron(min_eig=self.min_eig),
            self.algorithm,
            _settings_of(self, samples, family.n_P),
            scaling=scaling,
            kernel=partial(FamilyKernel, family=family, outside=self.outside),
            attributes=lambda problem, result: {
                "P_": result.parameters,
                "C_": float(learner.C),
                **({"epsilon_": float(learner.epsilon)} if isinstance(learner, SVR) else {}),
                "problem_": problem,
            },
        )


def _settings_of(estimator: PositiveMatrixKernel, samples: Samples, n_P: int) -> dict[str, object]:
    """Return the settings that the estimator passes to the algorithm, a warm start included."""
    algorithm, settings = estimator.algorithm, dict[str, object]()
    accepted = known_settings(algorithm)
    for name, default in (("dtype", "float64"), ("gram", "auto")):
        value = getattr(estimator, name)
        if value == default:
            continue
        if accepted is not None and name not in accepted:
            raise ValueError(
                f"{name}={value!r} needs an algorithm with a setting {name!r}, such as "
                f"tkl-low-rank, got {name_of(algorithm)!r}"
            )
        settings[name] = value
    if accepted is not None and "start" in accepted:
        start = _warm_start(estimator, samples, n_P)
        if start is not None:
            settings["start"] = start
    return settings


def _warm_start(estimator: PositiveMatrixKernel, samples: Samples, n_P: int) -> Start | None:
    """Return the start of a search or of the last fit for the merged samples, if one fits."""
    previous = estimator._previous
    starts = [each.__dict__.pop("_start", None) for each in (estimator, previous)]
    start, P = starts[0] or starts[1], getattr(previous, "P_", None)
    if start is None and estimator.warm_start and isinstance(P, np.ndarray):
        start = Start(P, np.atleast_2d(previous.dual_coef_))
    if start is None:
        return None
    n_tasks, kept, dual = len(samples.targets), samples.owner >= 0, start.dual_coef
    if dual.shape[1] == len(kept):
        # a last fit has coefficients for all samples, a search for those of positive weight
        dual = dual[:, kept]
    if start.P.shape != (n_P, n_P) or dual.shape != (n_tasks, np.count_nonzero(kept)):
        return None
    merged = np.zeros((n_tasks, len(samples.X)))
    np.add.at(merged.T, samples.owner[kept], dual.T)
    return Start(start.P, merged)


def _learner_of(
    estimator: PositiveMatrixKernel,
    family: Family,
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray | None,
) -> SVC | SVR:
    """Return the learner, C and ε in absolute units."""
    is_regressor = isinstance(estimator, KernelRegressor)
    penalty = spread = 1.0
    if estimator.units != "absolute":
        spread = standard_deviation(targets[0], weight) if is_regressor else 1.0
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            typical = float(np.average(family.diag(X, np.eye(family.n_P)), weights=weight))
            penalty = spread / typical if typical > 0.0 else spread
        # an overflow or underflow here is refused later, when the Gram matrices are formed
        penalty = penalty if 0.0 < penalty < np.inf else 1.0
    C = float(estimator.C) * penalty
    return SVR(C=C, epsilon=float(estimator.epsilon) * spread) if is_regressor else SVC(C=C)


def scale_features(estimator: PositiveMatrixKernel, X: Points) -> FloatArray:
    """Return the training features X scaled as the kernel gets them."""
    points: FloatArray = np.asarray(X, dtype=np.float64)
    return Scaling(*unit_range(points))(points) if estimator.scale else points


def in_absolute_units(
    estimator: PositiveMatrixKernel, X: Points, targets: FloatArray, weight: FloatArray
) -> dict[str, float | str]:
    """Return the parameters in absolute units, which do not depend on the part of the samples."""
    scaled = scale_features(estimator, X)
    mass = None if (weight == 1.0).all() else weight
    learner = _learner_of(estimator, family_of(estimator, scaled), scaled, targets, mass)
    values = {"C": learner.C, "epsilon": getattr(learner, "epsilon", None)}
    return {"units": "absolute", **{k: v for k, v in values.items() if v is not None}}


def family_of(estimator: PositiveMatrixKernel, X: FloatArray) -> Family:
    """Return the family of kernels of scaled features."""
    if not isinstance(estimator.kernel, str):
        return estimator.kernel
    degree = estimator.degree
    if estimator.kernel == "polynomial":
        return PolynomialFamily(degree, n_features=X.shape[1])
    lower, upper = integration_box(estimator, X)
    z_degree, order = estimator.z_degree, _order_of(estimator, X.shape[1])
    family = TessellatedFamily(degree, lower=lower, upper=upper, z_degree=z_degree, order=order)
    refuse_large_side(family)
    if estimator.scale and family.order is None:
        warn_of_volume(upper - lower)
    return family


def _order_of(
    estimator: PositiveMatrixKernel, n_features: int
) -> int | Sequence[Sequence[int]] | None:
    """Return the order for so many columns; monomials in z need all columns at once."""
    if not isinstance(estimator.order, str):
        return estimator.order
    return None if n_features <= _MOST_COLUMNS or estimator.z_degree else _ORDER


def integration_box(
    estimator: PositiveMatrixKernel, X: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the box of integration: ``domain``, else the data's range widened by δ."""
    n, delta = X.shape[1], estimator.delta
    if estimator.domain is not None:
        lower, upper = (np.broadcast_to(np.asarray(end, float), n) for end in estimator.domain)
        if (lower > X).any() or (upper < X).any():
            raise ValueError(
                "domain must contain the training data"
                + (" after scaling to [0, 1]" if estimator.scale else "")
                + f", got lower {lower.min():g}, upper {upper.max():g}"
            )
        return lower.copy(), upper.copy()
    if estimator.scale:
        return np.full(n, -delta), np.full(n, 1.0 + delta)
    shift, width = unit_range(X)
    return shift - delta * width, shift + (1.0 + delta) * width


def refuse_large_side(family: TessellatedFamily) -> None:
    """Refuse a P that is too large to factorise, and say how many features would be possible."""
    n, has_order = family.n_features, isinstance(family.order, int)

    def side(k: int) -> int:
        corner, order = np.zeros(k), min(k - 1, _ORDER) if has_order and k > 1 else None
        return TessellatedFamily(
            family.degree, lower=corner, upper=corner + 1.0, z_degree=family.z_degree, order=order
        ).n_P

    if family.n_P > _LARGEST_SIDE:
        most = bisect_right(range(1, n), _LARGEST_SIDE, key=side)
        raise UnsupportedProblemError(
            f"{n} features give P the side {family.n_P}, and a fit factorises dozens of matrices "
            f"of that size: choose {most} features or fewer, or learn weights of kernels, whose "
            "matrices have one size for any number of features (SparseMKLClassifier, "
            "SparseMKLRegressor)"
        )


def warn_of_volume(width: FloatArray) -> None:
    """Warn if the volume of the box is so large that rounding hides differences between samples.

    The integral over the part of the box on one side of all samples grows with the volume, but the
    differences between samples do not.
    """
    with np.errstate(over="ignore"):
        volume = float(np.prod(width))
    if volume <= _LARGEST_VOLUME:
        return
    delta = 0.5 * (_LARGEST_VOLUME ** (1.0 / len(width)) - 1.0)
    warnings.warn(
        f"the box of the tessellated kernel has the volume {volume:.1e} in {len(width)} features, "
        f"and rounding hides smaller differences: lower delta, to {delta:.2g} or less",
        KernelWeaveWarning,
        stacklevel=2,
    )


class TessellatedKernelClassifier(PositiveMatrixKernel, KernelClassifier):
    """Support vector classifier that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of the sum over tasks of
    max over 0 ≤ α ≤ C, yᵀα = 0 of Σα − ½ (y∘α)ᵀ K(P) (y∘α), with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

    References
    ----------
    Colbert and Peet, "A convex parametrization of a new class of universal kernel functions"
    and "Efficient convex algorithms for universal kernel learning" (JMLR 2024), corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TessellatedKernelClassifier(tol=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.certificate_.gap <= 0.01)
    (True, True)
    """


class TessellatedKernelRegressor(PositiveMatrixKernel, KernelRegressor):
    """Support vector regressor that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of
    max over −C ≤ α ≤ C, Σα = 0 of yᵀα − ε‖α‖₁ − ½ αᵀ K(P) α, with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

    References
    ----------
    Talitckii, Colbert and Peet, "Efficient convex algorithms for universal kernel learning"
    (JMLR 2024), corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.spectahedron import TessellatedKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TessellatedKernelRegressor(tol=0.05).fit(X, y)
    >>> bool(model.certificate_.gap <= 0.05)
    True
    """

    epsilon: float = parameter(
        "Half-width of the tube without loss, in the standard deviation of y or in the units of y: "
        "see ``units``.",
        default=0.1,
        rule=NONNEGATIVE,
    )

    epsilon_: float = fitted("float", "The half-width of the tube in absolute units.")
