"""What rows tell of a function of landmarks: the variance that they leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ..cross import own_kernel
from ..terms import blocks
from .sums import NormalEquations

if TYPE_CHECKING:
    from .features import Landmarks

# of the largest eigenvalue of Kₘₘ: squaring hides in rounding what lies far below it
_JITTER = 1e-7
# what follows from a posterior's other values
_FOLLOW = ("root", "factor")


@dataclass(frozen=True)
class PosteriorOfSums:
    """With z = L⁻¹k it is k(x, x) − zᵀz + ρ zᵀ(A + ρI)⁻¹z.

    That is what the landmarks cannot tell, and what the rows leave open.

    `inner` of shape (n_landmarks (n_landmarks + 1) / 2,): the lower triangle of A, in LAPACK's
    rectangular full packed format; `right` of shape (n_landmarks, n_outputs): b. Rows that come
    later are added to these `equations`, from which the factors follow: no copy or file has them.
    """

    landmarks: Landmarks
    ridge: float
    inner: FloatArray
    right: FloatArray

    @classmethod
    def of(
        cls, landmarks: Landmarks, ridge: float, equations: NormalEquations, factor: FloatArray
    ) -> PosteriorOfSums:
        """Pack equations and a factor.

        `factor` of shape (n_landmarks, n_landmarks): lower Cholesky factor of A + ρI.
        """
        inner, _ = lapack.dtrttf(equations.inner, uplo="L")
        made = cls(landmarks, ridge, inner, equations.right)
        vars(made).update(root=equations.root, factor=_packed(factor))
        return made

    @property
    def equations(self) -> NormalEquations:
        """The normal equations (A + ρI)γ = b, unpacked anew whenever they are asked for."""
        inner, _ = lapack.dtfttr(len(self.right), self.inner, uplo="L")
        return NormalEquations(self.root, inner, self.right)

    @cached_property
    def root(self) -> FloatArray:
        """L of Kₘₘ = LLᵀ, shape (n_landmarks, n_landmarks)."""
        return root_of(self.landmarks.gram())

    @cached_property
    def factor(self) -> NDArray[np.float32]:
        """Lower Cholesky factor of A + ρI, shape (n_landmarks (n_landmarks + 1) / 2,).

        Packed as `inner`. Rounding it to single precision changes ρ zᵀ(A + ρI)⁻¹z in the seventh
        digit, at ridges of 1e-5 to 1.
        """
        return _packed(self.equations.factor(self.ridge))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in _FOLLOW}

    def left(self, own: RealArray, prior: FloatArray) -> FloatArray:
        """Return the function's variance, shape (n,).

        `own` of shape (n, n_landmarks): features of rows; `prior` of shape (n,): their variances.
        """
        seen, open_ = self._parts(own)
        return np.asarray(np.maximum(prior - seen, 0.0) + open_)

    def explained(self, functionals: FloatArray) -> FloatArray:
        """Return what the variances of linear functionals lose by the training rows, shape (n,).

        `functionals` of shape (n, n_landmarks): of the landmarks' kernel functions.
        """
        seen, open_ = self._parts(functionals)
        return seen - open_

    def _parts(self, own: RealArray) -> tuple[FloatArray, FloatArray]:
        z, half = self._halves(own)
        return _squares(z), self.ridge * _squares(half)

    def halves(self, own: RealArray) -> FloatArray:
        """Return the columns h of rows, hᵀh = kᵀ(KₓₘᵀWKₓₘ + ρKₘₘ)⁻¹k, shape (n_landmarks, n)."""
        return self._halves(own)[1]

    def _halves(self, own: RealArray) -> tuple[FloatArray, FloatArray]:
        z = blas.dtrsm(1.0, self.root, own.astype(np.float64).T, lower=1)
        return z, np.asarray(lapack.dtfsm(1.0, self.factor.astype(np.float64), z, uplo="L"))


def _packed(factor: FloatArray) -> NDArray[np.float32]:
    packed, _ = lapack.dtrttf(factor, uplo="L")
    return np.asarray(packed.astype(np.float32))


def _squares(columns: RealArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", columns, columns, dtype=np.float64))


def root_of(gram: FloatArray, jitter: float = _JITTER) -> FloatArray:
    """Return the lower Cholesky factor of a Gram matrix and a little more on its diagonal.

    `jitter`: that, as a share of the matrix's largest eigenvalue, roughly.
    """
    shifted = np.array(gram, order="F")
    added = jitter * float(np.abs(gram).sum(axis=0).mean())
    shifted.reshape(-1, order="F")[:: len(gram) + 1] += added
    factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(f"the kernel of the landmarks plus {added:.1e} has no factor")
    return np.asarray(factor)


def latent_variance(
    landmarks: Landmarks, posterior: PosteriorOfSums, numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    """Return the posterior variance of the function, shape (n,)."""
    out = np.empty(len(numeric))
    for rows in blocks(len(numeric), 2 * len(landmarks)):
        features = landmarks.features(numeric[rows], codes[rows])
        points = landmarks.views.points(numeric[rows], codes[rows])
        prior = sum(
            own_kernel(points, each, landmarks.views.match_weight) for each in landmarks.scales
        )
        out[rows] = posterior.left(features, np.asarray(prior))
    return out
