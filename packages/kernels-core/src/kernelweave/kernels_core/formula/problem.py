"""A kernel-learning problem as a value, and what an algorithm needs of its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import Points, RealArray, is_sparse
from ..checks import SMALLEST, check_magnitude

ROLES = ("family", "learner", "constraint")
_NEED = re.compile(r"^[a-z]\w*(=[\w.-]+)?(\|[a-z]\w*(=[\w.-]+)?)*$")

# What each need of the algorithms in this project means, for the message of a refusal.
NEED_MEANINGS: dict[str, dict[str, str]] = {
    "family": {
        "fit_grams": "one Gram matrix for each kernel",
        "fit_grams|fit_factors": "a Gram matrix or a low-rank factor for each kernel",
        "degree=1": "a Gram matrix that is linear in the weights",
        "name=dictionary-power": "products of kernels",
        "prepare": "the Gram and moment matrices of positive matrices",
    },
    "learner": {
        "solve": "a dual solution with proved bounds",
        "solve_with_error": "an exact solution and its curvature, as squared losses have",
        "noise": "the diagonal that a squared loss adds to the Gram matrix",
        "name=svc|name=svr": "the dual of SVC or SVR: the steps know its box",
        "lam": "the λ of vector-valued least squares",
        "task=classification": "labels as targets",
        "task=regression": "numbers as targets",
    },
    "constraint": {
        "worst": "the largest value of a linear form over the set",
        "total=1.0": "all weights that sum to one",
        "project": "the projection onto the set",
        "penalty_gradient": "the gradient of the set's penalty",
        "curvature": "the curvature of the set's penalty, 0 if it has none",
        "centers": "an ℓq ball around centers",
        "centers|beta": "an ℓq ball, or a penalty β‖μ‖²",
        "beta": "a penalty β‖μ‖²",
        "maximizer": "the weights that maximise a linear form less the penalty",
        "k0": "weights that sum to one, at most k₀ of them positive",
        "lam": "a penalty λ‖β‖² on the weights",
        "relaxed": "a limit on the number of positive weights, with its convex relaxation",
        "prices": "a price for each weight",
        "longest": "the largest multiple of a dual point that the prices allow",
        "min_eig": "positive matrices of fixed trace",
        "regulariser": "weights with a regulariser and an output kernel of bounded trace",
        "rho": "an output kernel with a squared Frobenius norm",
    },
}


@runtime_checkable
class Named(Protocol):
    """A part of a problem: anything with the name it is registered under."""

    @property
    def name(self) -> str:
        """The name under which it is registered."""
        ...


@dataclass(frozen=True, eq=False)
class Problem:
    """min over θ ∈ Θ, max over α ∈ A of κ(α) − ½ Σₜ uₜᵀ K(θ) uₜ.

    Parameters
    ----------
    family : object with ``name``
        How θ becomes a Gram matrix: a `TessellatedFamily`, a `KernelDictionary`, …
    learner : object with ``name``
        The inner maximisation, e.g. ``kernelweave.qp_smo.SVC(C=1.0)``.
    constraint : object with ``name``
        The set Θ, e.g. ``kernelweave.spectahedron.Spectahedron()``.
    X : ndarray or sparse of shape (n_samples, n_features)
        Training data.
    y : ndarray of shape (n_samples,) or (n_tasks, n_samples)
        ±1 labels or real targets; several rows are tasks that share the kernel.
    sample_weight : ndarray of shape (n_samples,), optional
        Multiplies C per sample.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, or a target or weight is so large or small that
        products with it overflow or underflow.

    Examples
    --------
    >>> from kernelweave.kernels_core import Problem, TessellatedFamily
    >>> from kernelweave.qp_smo import SVC
    >>> from kernelweave.spectahedron import Spectahedron
    >>> family = TessellatedFamily(degree=0, lower=[0.0], upper=[1.0])
    >>> Problem(family, SVC(C=1.0), Spectahedron(), [[0.2], [0.9]], [-1.0, 1.0]).n_samples
    2
    """

    family: Any
    learner: Any
    constraint: Any
    X: Points
    y: RealArray
    sample_weight: RealArray | None = None

    def __post_init__(self) -> None:
        for role in ROLES:
            part = getattr(self, role)
            if not isinstance(getattr(part, "name", None), str):
                raise TypeError(f"{role} must have a str attribute 'name', got {part!r}")
        X = self.X if is_sparse(self.X) else np.asarray(self.X)
        values = np.asarray(X.data) if is_sparse(X) else X
        if X.ndim != 2 or X.shape[0] == 0:
            raise ValueError(f"X must have shape (n_samples, n_features), got {X.shape}")
        if self.targets.shape[1] != X.shape[0]:
            raise ValueError(
                f"y has {self.targets.shape[1]} samples, X has {X.shape[0]}: they must agree"
            )
        weight = self.sample_weight
        if weight is not None and np.shape(weight) != (X.shape[0],):
            raise ValueError(
                f"sample_weight must have shape ({X.shape[0]},), got {np.shape(weight)}"
            )
        for name, array in (("X", values), ("y", self.targets), ("sample_weight", weight)):
            if array is not None and not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, found NaN or infinity")
        check_magnitude("y", self.targets)
        if weight is not None:
            check_magnitude("sample_weight", np.asarray(weight), least=SMALLEST)

    @property
    def targets(self) -> RealArray:
        """Targets with tasks as rows, shape (n_tasks, n_samples)."""
        return np.atleast_2d(np.asarray(self.y, dtype=np.float64))

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return int(np.shape(self.X)[0])

    @property
    def triple(self) -> tuple[str, str, str]:
        """Names of family, learner and constraint."""
        return (self.family.name, self.learner.name, self.constraint.name)


def meets_need(part: object, need: str) -> bool:
    """Return whether a part of a problem, or its class, meets one need.

    `part`: a family, learner or set, or its class; `need`: ``"attribute"``, ``"attribute=value"``,
    or several of them joined by ``|``.

    Examples
    --------
    >>> from kernelweave.kernels_core.formula.problem import meets_need
    >>> meets_need(1.5, "imag=0.0"), meets_need(1.5, "hex|oct"), meets_need(1.5, "append")
    (True, True, False)
    """
    return any(_meets_alternative(part, each) for each in need.split("|"))


def _meets_alternative(part: object, need: str) -> bool:
    name, _, value = need.partition("=")
    fields = getattr(part, "__dataclass_fields__", {}) if isinstance(part, type) else {}
    attribute = getattr(part, name, fields.get(name))
    if attribute is None or attribute is False:
        return False
    return not value or str(attribute) == value


@dataclass(frozen=True)
class Needs:
    """Attributes that an algorithm needs of the three parts of a problem.

    There is no list of combinations: a third party's family, learner or set works with every
    algorithm whose needs it meets.

    Parameters
    ----------
    family, learner, constraint : tuple of str
        Each is ``"attribute"``, ``"attribute=value"``, or alternatives joined by ``|``.

    Raises
    ------
    ValueError
        If a need has another form.

    Examples
    --------
    >>> from kernelweave.kernels_core import Needs
    >>> needs = Needs(family=("fit_grams", "degree=1"), constraint=("total=1.0",))
    >>> needs.learner
    ('solve',)
    """

    family: tuple[str, ...] = ()
    learner: tuple[str, ...] = ("solve",)
    constraint: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role in ROLES:
            given = getattr(self, role)
            if not isinstance(given, tuple) or not all(
                isinstance(each, str) and _NEED.match(each) for each in given
            ):
                raise ValueError(
                    f"{role} must be a tuple of 'attribute' or 'attribute=value', got {given!r}"
                )

    def missing(self, role: str, part: object) -> list[str]:
        """Return the needs of one role that a part, or its class, does not meet."""
        return [need for need in getattr(self, role) if not meets_need(part, need)]

    def refusal(self, problem: Problem) -> str | None:
        """Return a sentence on the first need that a problem does not meet, else ``None``."""
        for role in ROLES:
            part = getattr(problem, role)
            for need in self.missing(role, part):
                meaning, wanted = NEED_MEANINGS[role].get(need), need.replace("|", " or ")
                explained = f" ({meaning})" if meaning else ""
                noun = "set" if role == "constraint" else role
                return f"needs a {noun} with {wanted}{explained}, which {part.name!r} does not have"
        return None
