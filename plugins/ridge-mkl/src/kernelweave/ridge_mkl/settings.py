"""Settings of the algorithms over kernel weights."""

from __future__ import annotations

from typing import ClassVar

from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, number
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings
from numpy.typing import ArrayLike


class DescentSettings(Settings):
    """What all of them share."""

    mu_init: ArrayLike | None = parameter(
        "The first start; equal weights by default. Zero is refused above degree 1, where it is a "
        "stationary maximum.",
        kind="array-like of shape (p,)",
        default=None,
    )
    n_starts: int | None = parameter(
        "Starting points; 1 where the bounds can meet, else 5.", default=None, rule=COUNT
    )
    stationary_tol: float = parameter(
        "Where the bounds cannot meet: relative size of the projected gradient to stop at.",
        default=1e-6,
        rule=NONNEGATIVE,
    )
    step: float | None = parameter(
        "The first step length of methods that have one: twice the paper's η.",
        default=None,
        rule=POSITIVE,
    )


class GradientSettings(DescentSettings):
    """Of projected gradients."""

    grow: float | None = parameter(
        "Factor of the step after a success, instead of the Barzilai-Borwein length; 1 is the "
        "paper's.",
        default=None,
        rule=number(least=1.0),
    )


class GeneralizedMKL(GradientSettings):
    """Settings of ``krr-gmkl``, projected gradient for numbers as targets, on any set.

    ``krr-pgd``, ``krr-rpgd``, ``krr-pgd2`` and ``krr-rpgd2`` are the same method on one form of the
    problem each.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import GeneralizedMKL, RidgeMKLRegressor
    >>> RidgeMKLRegressor(algorithm=GeneralizedMKL(grow=1.0)).algorithm
    GeneralizedMKL(grow=1.0)
    """

    algorithm: ClassVar[str] = "krr-gmkl"


class GeneralizedMKLForLabels(GradientSettings):
    """Settings of ``svm-gmkl``, projected gradient for labels as targets."""

    algorithm: ClassVar[str] = "svm-gmkl"


class IIA(DescentSettings):
    """Settings of ``krr-iia``, an interpolated fixed point; ``krr-riia`` has the same.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import IIA, RidgeMKLRegressor
    >>> RidgeMKLRegressor(algorithm=IIA(step=0.25)).algorithm
    IIA(step=0.25)
    """

    algorithm: ClassVar[str] = "krr-iia"
    step: float | None = parameter(
        "The damping η; ½ by default.", default=None, rule=number(above=0.0, below=1.0)
    )


class TrustRegion(DescentSettings):
    """Settings of ``krr-trust-region``, second-order steps on the sphere.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressor, TrustRegion
    >>> RidgeMKLRegressor(algorithm=TrustRegion(step=0.1)).algorithm
    TrustRegion(step=0.1)
    """

    algorithm: ClassVar[str] = "krr-trust-region"
    step: float | None = parameter(
        "The first radius relative to Λ; ½ by default.", default=None, rule=POSITIVE
    )


class MajorizeMinimize(DescentSettings):
    """Settings of ``krr-mm``, monotone multiplicative updates.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import MajorizeMinimize, RidgeMKLRegressor
    >>> RidgeMKLRegressor(algorithm=MajorizeMinimize(n_starts=2)).algorithm
    MajorizeMinimize(n_starts=2)
    """

    algorithm: ClassVar[str] = "krr-mm"


class ProjectedNewton(DescentSettings):
    """Settings of ``krr-newton``, quadratic models minimised over the set.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import ProjectedNewton, RidgeMKLRegressor
    >>> RidgeMKLRegressor(algorithm=ProjectedNewton(n_starts=2)).algorithm
    ProjectedNewton(n_starts=2)
    """

    algorithm: ClassVar[str] = "krr-newton"


class SpectralProjectedGradient(DescentSettings):
    """Settings of ``krr-spg``, Barzilai-Borwein steps.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressor, SpectralProjectedGradient
    >>> RidgeMKLRegressor(algorithm=SpectralProjectedGradient(n_starts=2)).algorithm
    SpectralProjectedGradient(n_starts=2)
    """

    algorithm: ClassVar[str] = "krr-spg"


class Automatic(DescentSettings):
    """Settings of ``krr-auto``, a measured choice among the others.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import Automatic, RidgeMKLRegressor
    >>> RidgeMKLRegressor(algorithm=Automatic(n_starts=2)).algorithm
    Automatic(n_starts=2)
    """

    algorithm: ClassVar[str] = "krr-auto"
