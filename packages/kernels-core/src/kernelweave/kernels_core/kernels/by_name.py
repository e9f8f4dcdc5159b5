"""What a dictionary can be made of: kernels by name, those of the papers, and views of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np

from ..arrays import Points, RealArray, is_sparse
from .base import Kernel
from .standard import RBF, Laplacian, Linear, Polynomial, Sigmoid, standard_kernels


def mean_and_variance(X: Points) -> tuple[float, float]:
    """Return the mean and the variance of all entries of a matrix, dense or sparse."""
    if not is_sparse(X):
        return float(np.mean(X, dtype=np.float64)), float(np.var(X, dtype=np.float64))
    mean = float(X.mean(dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    return mean, max(float(np.sum(X.data.astype(np.float64) ** 2)) / size - mean**2, 0.0)


class ByName(Kernel):
    """A standard kernel of default parameters but γ, which the training points choose.

    γ = 1/(n_features · Var X), as ``gamma="scale"`` in scikit-learn, where distances or products
    are squared (Gaussian, polynomial, sigmoid), and 1/(n_features · √Var X) for the Laplacian; of
    constant points γ = 1. A `KernelDictionary` makes it of ``"rbf"`` and the like.

    `kind` in {"polynomial", "rbf", "laplacian", "sigmoid"}: name of the kernel.
    """

    name: ClassVar[str] = "by-name"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def is_psd(self) -> bool | None:
        """As the kernel of that name."""
        return standard_kernels()[self.kind]().is_psd

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        """As the kernel of that name."""
        return standard_kernels()[self.kind].accepts_sparse

    def _at(self, X: Points) -> Kernel:
        _, variance = mean_and_variance(X)
        spread = np.sqrt(variance) if self.kind == "laplacian" else variance
        scale = X.shape[1] * spread
        gamma = 1.0 / scale if scale > 0.0 and np.isfinite(1.0 / scale) else 1.0
        return standard_kernels()[self.kind](gamma=float(gamma))  # type: ignore[call-arg]

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        raise ValueError(
            f"the width of {self.kind!r} comes from training points: use "
            f"KernelDictionary.fit_grams(X_train), or {standard_kernels()[self.kind].__name__}"
            "(gamma=...)"
        )

    def __repr__(self) -> str:
        return self.kind


def kernel_by_name(kind: str) -> Kernel:
    """Return the standard kernel of a name.

    Raises ValueError if there is none, with the nearest name.
    """
    kernels = standard_kernels()
    if kind not in kernels:
        near = get_close_matches(kind, kernels, 1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"kernels by name are {', '.join(kernels)}, got {kind!r}{hint}")
    return Linear() if kind == "linear" else ByName(kind)


def paper_ten_kernels() -> list[Kernel]:
    """Return the ten of the sparse paper for standardised data, in the order of its results."""
    return [
        Linear(),
        *(Polynomial(d, 0.01, 1.0) for d in (2, 3, 5)),
        *(RBF(g) for g in (0.5, 0.3, 0.1)),
        *(Sigmoid(g, 1.0) for g in (0.5, 0.7)),
        Laplacian(0.3),
    ]


def paper_fifty_kernels() -> list[Kernel]:
    """Return 1 linear, 18 polynomial, 12 Gaussian, 12 sigmoid and 7 Laplacian kernels."""
    return [
        Linear(),
        *(Polynomial(d, 0.01, c) for d in range(2, 11) for c in (0.0, 1.0)),
        *(RBF(2.0**e) for e in range(-6, 6)),
        *(Sigmoid(g, c) for g in (0.01, 0.03, 0.1, 0.3) for c in (-1.0, 0.0, 1.0)),
        *(Laplacian(2.0**e) for e in range(-5, 2)),
    ]


@dataclass(frozen=True)
class View:
    """One part of the features.

    `name`: its key, or its columns in words; `columns`: positions, or names, a slice, a mask or a
    selector, which the table tells; `transformer`: what turns these columns into numbers, if
    anything; `is_named`: whether the user gave the name.
    """

    name: str
    columns: Any
    transformer: object = None
    is_named: bool = False

    @property
    def is_read(self) -> bool:
        """Whether positions are known without looking at a table."""
        return self.transformer is None and not _needs_table(self.columns)

    def label(self, kernel: str) -> str:
        """Return the name of a kernel on this view."""
        return f"{kernel} on {self.name}" if self.is_named else f"{kernel}.on({self.name})"


def views_of(columns: Iterable[object] | Mapping[str, object]) -> list[View]:
    """Return the views that ``columns`` of a `KernelDictionary` mean, each with its own name."""
    if isinstance(columns, Mapping):
        return [_view(given, str(name)) for name, given in columns.items()]
    views, seen = [_view(given, None) for given in columns], Counter[str]()
    for i, view in enumerate(views):
        seen[view.name] += 1
        if seen[view.name] > 1:
            views[i] = replace(view, name=f"{view.name} ({seen[view.name]})")
    return views


def _view(given: object, name: str | None) -> View:
    transformer = None
    if isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "fit"):
        transformer, given = given
    columns = given if _needs_table(given) else np.atleast_1d(np.asarray(given)).tolist()
    return View(_words(columns) if name is None else name, columns, transformer, name is not None)


def _needs_table(columns: object) -> bool:
    """Whether the columns are not simply positions; what is neither is refused as positions."""
    if isinstance(columns, (str, slice)) or callable(columns):
        return True
    return np.asarray(columns).dtype.kind in "USOb"


def _words(columns: object) -> str:
    if callable(columns):
        return str(getattr(columns, "pattern", None) or type(columns).__name__)
    return str(columns)
