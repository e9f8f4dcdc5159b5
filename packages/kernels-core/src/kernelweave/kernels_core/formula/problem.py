"""A kernel-learning problem as a value: family, learner, constraint and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import Points, RealArray, is_sparse
from ..checks import SMALLEST, check_magnitude


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
    """

    family: Any
    learner: Any
    constraint: Any
    X: Points
    y: RealArray
    sample_weight: RealArray | None = None

    def __post_init__(self) -> None:
        for role in ("family", "learner", "constraint"):
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
