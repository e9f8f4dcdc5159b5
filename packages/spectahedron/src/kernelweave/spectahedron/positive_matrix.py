"""What the estimators of learned tessellated kernels share: the family, the box, the scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import (
    GeneralizedPolynomial,
    PolynomialFamily,
    Problem,
    Tessellated,
    TessellatedFamily,
)
from kernelweave.kernels_core.estimators.samples import Samples

from .checks import check_choice, check_number, check_whole
from .constraint import Spectahedron
from .gram_memory import GRAMS
from .scaling import ScaledFeatures, unit_range, warn_of_volume
from .start import Start

FloatArray = npt.NDArray[np.float64]

_KERNELS = ("tessellated", "polynomial")
_LOW_RANK = ("tkl-low-rank",)


class PositiveMatrixMachine:
    """What both estimators share: the family, the box and the scaling."""

    def _check_parameters(self: Any) -> None:
        check_number("C", self.C, low=0.0, strict=True)
        check_whole("degree", self.degree, low=0)
        check_number("delta", self.delta, low=0.0)
        check_choice("kernel", self.kernel, _KERNELS)
        check_choice("outside", self.outside, ("clip", "raise"))
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_choice("gram", self.gram, GRAMS)
        check_number("min_eig", self.min_eig, low=0.0, high=1.0)
        if self.z_degree is not None:
            check_whole("z_degree", self.z_degree, low=0)

    def _algorithm(self: Any) -> tuple[str, dict[str, Any]]:
        begin = self.__dict__.pop("_begin", None)
        params: dict[str, Any] = {"dtype": self.dtype}
        if self.algorithm in _LOW_RANK:
            params |= {"gram": self.gram} if begin is None else {"gram": self.gram, "start": begin}
        elif self.gram == "blocks":
            raise ValueError(f"gram='blocks' needs tkl-low-rank, got algorithm {self.algorithm!r}")
        return self.algorithm, params

    def _neighbour(self: Any, samples: Samples, n_P: int) -> Start | None:
        """Return the start in terms of the merged samples, if there is one that fits."""
        start = self.__dict__.pop("_start", None)
        if start is None and self.warm_start and isinstance(getattr(self, "P_", None), np.ndarray):
            start = Start(self.P_, np.atleast_2d(self.dual_coef_))
        wanted = (len(samples.targets), len(samples.owner))
        if start is None or self.algorithm not in _LOW_RANK:
            return None
        if start.P.shape != (n_P, n_P) or start.dual_coef.shape != wanted:
            return None
        merged = np.zeros((wanted[0], len(samples.X)))
        kept = samples.owner >= 0
        np.add.at(merged.T, samples.owner[kept], start.dual_coef[:, kept].T)
        return Start(start.P, merged)

    def _make_problem(self: Any, samples: Samples) -> Problem:
        X = samples.X
        if self.scale:
            self.shift_, self.width_ = unit_range(X)
            X = (X - self.shift_) / self.width_
        family = self._family(X)
        constraint = Spectahedron(min_eig=self.min_eig)
        self._begin = self._neighbour(samples, family.n_P)
        return Problem(family, self._learner(), constraint, X, samples.targets, samples.weight)

    def _scaled(self: Any, X: FloatArray) -> FloatArray:
        """Return the features as the kernel sees them if X is the training data."""
        if not self.scale:
            return X
        shift, width = unit_range(X)
        scaled: FloatArray = (X - shift) / width
        return scaled

    def _typical_value(self: Any, X: FloatArray) -> float:
        """Return the mean of k(x, x) over the samples at P = I, for a choice of C."""
        X = self._scaled(X)
        family = self._family(X)
        return float(np.mean(family.diag(X, np.eye(family.n_P))))

    def _family(self: Any, X: FloatArray) -> Any:
        if self.kernel == "polynomial":
            return PolynomialFamily(self.degree, n_features=X.shape[1])
        lower, upper = self._box(X)
        if self.scale:
            warn_of_volume(upper - lower)
        return TessellatedFamily(self.degree, lower=lower, upper=upper, z_degree=self.z_degree)

    def _box(self: Any, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the box of integration: ``domain``, else the data's range widened by δ."""
        n = X.shape[1]
        if self.domain is not None:
            lower, upper = (np.broadcast_to(np.asarray(end, float), n) for end in self.domain)
            if (lower > X).any() or (upper < X).any():
                raise ValueError(
                    "domain must contain the training data"
                    + (" after scaling to [0, 1]" if self.scale else "")
                    + f", got lower {lower.min():g}, upper {upper.max():g}"
                )
            return lower.copy(), upper.copy()
        if self.scale:
            return np.full(n, -self.delta), np.full(n, 1.0 + self.delta)
        shift, width = unit_range(X)
        return shift - self.delta * width, shift + (1.0 + self.delta) * width

    def _make_kernel(self: Any, problem: Problem, P: FloatArray) -> Any:
        self.P_ = P
        family = problem.family
        kernel: Any
        if self.kernel == "polynomial":
            kernel = GeneralizedPolynomial(P, self.degree)
        else:
            kernel = Tessellated(
                P,
                self.degree,
                np.asarray(family.lower),
                np.asarray(family.upper),
                z_degree=self.z_degree,
                outside=self.outside,
            )
        return ScaledFeatures(kernel, self.shift_, self.width_) if self.scale else kernel
