"""A kernel family from a Python function that returns ``G(x, y)``; nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import COUNT, check_vector, real_dtype
from ..rounding import UNIT
from ._arguments import BoundSamples, matrix, output, rows, samples

Float = NDArray[np.float64]
Block = Callable[[Float, Float], ArrayLike]


class OwnFamily:
    """Base of families that the user gives by a Python function; P is (n_P, n_P)."""

    name: ClassVar[str]

    def __init__(self, function: Callable[..., ArrayLike], n_P: int) -> None:
        COUNT.check("n_P", n_P)
        self._function, self._n_P = function, int(n_P)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function!r}, n_P={self._n_P})"

    @property
    def n_P(self) -> int:
        """Side of P."""
        return self._n_P

    @property
    def trace(self) -> float:
        """The trace that P is normalised to, n_P."""
        return float(self._n_P)


class CallableFamily(OwnFamily):
    """Kernels ``k(x, y) = Σᵢⱼ Pᵢⱼ Gᵢⱼ(x, y)`` from a function that returns ``G(x, y)``.

    The function must satisfy ``G(y, x) = G(x, y)ᵀ`` and make ``Σₖₗ wₖwₗG(xₖ, xₗ)`` positive
    semidefinite for all points and weights, as ``G(x, y) = ∫ N(z, x) N(z, y)ᵀ dz`` does for any N.
    It is called once for every pair of points, which is slow. For a faster family, write a class
    with the members of `Family` and one with those of `PreparedFamily`.

    Parameters
    ----------
    block : callable
        ``block(x, y) -> (n_P, n_P)`` for two points of shape (n_features,).
    n_P : int
        Side of P.
    scale : float, default=1.0
        Natural unit of the kernel values, see `PreparedFamily`.
    block_error : float, default=2⁻⁴⁰
        Largest relative error of the entries that ``block`` returns. It is taken on trust:
        certified bounds hold only if it is true.

    Examples
    --------
    Cosine features of three frequencies: N does not depend on z, so there is nothing to integrate.

    >>> import numpy as np
    >>> from kernelweave.kernels_core.families import CallableFamily
    >>> def features(x):
    ...     return np.cos(np.arange(3) * x[0])
    >>> family = CallableFamily(lambda x, y: np.outer(features(x), features(y)), n_P=3)
    >>> family.gram([[0.0], [1.0]], np.eye(3)).round(3)
    array([[3.   , 1.124],
           [1.124, 1.465]])
    """

    name: ClassVar[str] = "callable"

    def __init__(
        self, block: Block, n_P: int, *, scale: float = 1.0, block_error: float = 2.0**-40
    ) -> None:
        super().__init__(block, n_P)
        self.scale, self.block_error = float(scale), float(block_error)

    def block(self, x: ArrayLike, y: ArrayLike) -> Float:
        """Return ``G(x, y)``, shape (n_P, n_P); ValueError if it is not finite or of that shape."""
        left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        value = np.asarray(self._function(left, right), dtype=np.float64)
        if value.shape != (self._n_P, self._n_P) or not np.isfinite(value).all():
            raise ValueError(
                "block(x, y) must return a finite array of shape "
                f"({self._n_P}, {self._n_P}), got shape {value.shape}"
            )
        return value

    def prepare(self, X: ArrayLike, dtype: DTypeLike = np.float64) -> PreparedCallable:
        """Bind the family to m samples, X of shape (m, n_features).

        All blocks are computed once and stored, about m²/2·n_P² numbers. Raises MemoryBudgetError
        if they do not fit into the memory limit.
        """
        return PreparedCallable(self, samples(X, None), real_dtype(dtype))

    def gram(self, X: ArrayLike, P: ArrayLike, Y: ArrayLike | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, yₗ)⟩``, shape (n_x, n_y), float64, for symmetric P; Y is X if None."""
        P = matrix(P, self._n_P)
        left = samples(X, None)
        right = left if Y is None else samples(Y, left.shape[1], "Y")
        out = output(None, (len(left), len(right)), np.dtype(np.float64))
        for k, x in enumerate(left):
            for l, y in enumerate(right):
                out[k, l] = np.vdot(P, self.block(x, y))
        return 0.5 * (out + out.T) if Y is None else out

    def diag(self, X: ArrayLike, P: ArrayLike) -> Float:
        """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (n_x,), float64."""
        P = matrix(P, self._n_P)
        return np.array([np.vdot(P, self.block(x, x)) for x in samples(X, None)])


class PreparedCallable(BoundSamples):
    """A `CallableFamily` bound to m samples.

    ``_G[i]``, of shape (n_P, n_P), is G(xₖ, xₗ) for the i-th pair k, l = ``_k[i]``, ``_l[i]`` with
    l ≤ k. Blocks with l > k are transposes of these.
    """

    def __init__(self, family: CallableFamily, X: Float, dtype: np.dtype[np.floating]) -> None:
        m, n_P = len(X), family.n_P
        memory.require(
            8 * (m * (m + 1) // 2) * n_P * n_P,
            f"the blocks of {m} samples",
            alternative="use fewer samples",
        )
        self._family = family
        self._k, self._l = np.tril_indices(m)
        self._G = np.empty((len(self._k), n_P, n_P))
        for i, (k, l) in enumerate(zip(self._k, self._l, strict=True)):
            self._G[i] = family.block(X[k], X[l])
        super().__init__(n_P, m, dtype)

    @property
    def scale(self) -> float:
        """Natural unit of the kernel values."""
        return self._family.scale

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, xₗ)⟩``, shape (m, m), for a symmetric P of shape (n_P, n_P)."""
        values = np.tensordot(self._G, matrix(P, self.n_P), axes=2)
        out = self._output(out)
        out[self._k, self._l] = values
        out[self._l, self._k] = values
        return out

    def moment(self, W: ArrayLike) -> Float:
        """Return ``Σₜ Σₖₗ WₜₖWₜₗ G(xₖ, xₗ)``, shape (n_P, n_P), for W of shape (m,) or (t, m)."""
        array = rows(W, self.n_samples)
        weights = np.sum(array[:, self._k] * array[:, self._l], axis=0)
        # the sum over l > k is the transpose of that over l < k: half + half.T counts l = k twice
        weights[self._k == self._l] *= 0.5
        half = np.tensordot(weights, self._G, axes=1)
        return np.asarray(half + half.T)

    def moment_error(self, W: ArrayLike) -> float:
        """Return a bound on ``‖moment(W) − D‖₂``, D being the exact moment, by ``block_error``.

        ``(block_error + γ) ‖Σₜ Σₖₗ |WₜₖWₜₗ| |G(xₖ, xₗ)|‖_F``, terms with k = l counted twice, with
        γ of as many roundings as there are pairs of samples and rows of W, and 8 more.
        """
        array = np.abs(rows(W, self.n_samples))
        weights = np.sum(array[:, self._k] * array[:, self._l], axis=0)
        half = np.tensordot(weights, np.abs(self._G), axes=1)
        count = (len(weights) + len(array) + 8) * UNIT
        relative = self._family.block_error + count / (1.0 - count)
        return float(relative * np.linalg.norm(half + half.T)) * (1.0 + 1e-6)

    def sample_products(self, w: ArrayLike, U: ArrayLike, samples: ArrayLike) -> Float:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, ``Σₗ wₗ (G(xₖ, xₗ) + G(xₗ, xₖ)) U``.

        `w` of shape (m,), `U` of shape (n_P, r); `samples` of shape (s,): the values of k. Returns
        shape (s, n_P, r).
        """
        weights, factor = check_vector("w", w, self.n_samples), np.asarray(U, dtype=np.float64)
        chosen = np.asarray(samples, dtype=np.intp)
        out = np.empty((len(chosen), *factor.shape))
        for i, k in enumerate(chosen):
            # weight of each stored block in Σₗ wₗ G(xₖ, xₗ), up to transposition of some blocks,
            # which phi + phi.T makes good
            of_k = np.where(self._k == k, weights[self._l], 0.0)
            of_k += np.where((self._l == k) & (self._k != k), weights[self._k], 0.0)
            phi = np.tensordot(of_k, self._G, axes=1)
            out[i] = (phi + phi.T) @ factor
        return out
