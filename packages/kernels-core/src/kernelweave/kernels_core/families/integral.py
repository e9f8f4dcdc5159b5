"""A family from a third party's own ``N(z, x)``, integrated over a box of z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import COUNT, check_vector, number, real_dtype
from ..rounding import gamma
from ._arguments import BoundSamples, matrix, rows, samples
from .custom import OwnFamily

Float = NDArray[np.float64]
Integrand = Callable[[Float, Float], ArrayLike]
# of the values that a function of NumPy returns
_VALUE_ERROR = 2.0**-48
# Nodes by default, in one dimension and in all: N is held at each for every sample. Fewer resolve a
# curved integrand worse, and the widened lower bound says so.
_MOST_NODES, _MOST_IN_ALL = 64, 1024
# An error as large as the integrals leaves them unknown.
_ERROR = number(least=0.0, below=1.0).or_none()


class IntegralFamily(OwnFamily):
    """Kernels ``k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz`` over a box, from a function that returns N.

    The integral is a sum over the nodes of Gauss and Legendre's rule, whose weights are positive:
    every Gram matrix is positive semidefinite, and everything that a solver proves holds for the
    sum, which is the kernel that predicts. With ``integral_error``, a bound that you know, both
    bounds are widened by what the sum may be away from the integral, and hold for the integral too.
    Without it the bounds are of the sum over the nodes: `premise` says so wherever they are shown,
    and beside them stands what `estimate` says of the integral.

    Parameters
    ----------
    integrand : callable
        ``integrand(Z, x) -> (n_nodes, n_P)``: N(z, x) at each row of Z, shape (n_nodes, d), for
        one sample x of shape (n_features,).
    n_P : int
        Side of P.
    lower, upper : array-like of shape (d,)
        The box of z, which may have other dimensions than x.
    n_nodes : int, optional
        Nodes in each dimension of z; by default 64, or as many as are 1,024 in all. A jump in z
        converges like 1/n_nodes, a smooth N is exact to rounding with few.
    integral_error : float, optional
        ε < 1, a bound on the error of the sums over the nodes, relative to ``|N||N|``: for any two
        samples and entries i, j the sum of ``N_i(z, x) N_j(z, y)`` and that of its absolute value
        are at most ``ε ∫ |N_i(z, x) N_j(z, y)| dz`` away from their integrals. (An integral that
        changes sign may be 0, and no error is small beside it.)

    References
    ----------
    Colbert and Peet, "A convex parametrization of a new class of universal kernel functions"
    (JMLR 2020), Lemma 5: any N gives positive kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.families import IntegralFamily
    >>> def bumps(Z, x):
    ...     near = np.exp(-8.0 * np.sum((Z - x) ** 2, axis=1))
    ...     return near[:, None] * np.column_stack([np.ones(len(Z)), Z])
    >>> family = IntegralFamily(bumps, n_P=2, lower=[-0.5], upper=[1.5])
    >>> family.gram([[0.0], [1.0]], np.eye(2)).round(3)
    array([[0.456, 0.01 ],
           [0.01 , 0.897]])
    """

    name: ClassVar[str] = "integral"

    def __init__(
        self,
        integrand: Integrand,
        n_P: int,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        n_nodes: int | None = None,
        integral_error: float | None = None,
    ) -> None:
        super().__init__(integrand, n_P)
        COUNT.or_none().check("n_nodes", n_nodes)
        _ERROR.check("integral_error", integral_error)
        self.lower = np.atleast_1d(np.asarray(lower, dtype=np.float64))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=np.float64))
        width = self.upper - self.lower if self.lower.shape == self.upper.shape else np.zeros(1)
        if width.ndim != 1 or not (np.isfinite(width) & (width > 0.0)).all():
            raise ValueError(
                "lower and upper must hold a finite number for each dimension of z, lower < "
                f"upper, got {lower!r} and {upper!r}"
            )
        fitting = min(_MOST_NODES, max(2, int(_MOST_IN_ALL ** (1.0 / len(width)) + 1e-9)))
        self.n_nodes = fitting if n_nodes is None else int(n_nodes)
        self.integral_error = integral_error
        self.scale = float(np.prod(width))

    @property
    def premise(self) -> str:
        """What bounds are of, where the error of the integrals is estimated and not known."""
        if self.integral_error is not None:
            return ""
        return (
            f"the bounds are of the sum over the nodes, {self.n_nodes} in each dimension, which is "
            "the kernel that predicts, and not of the integral: state integral_error where you "
            "know it"
        )

    def premise_at(self, problem: Any, result: Any) -> str:
        """Return `premise`, with what `estimate` says of the integral at the result of a solve.

        Parameters
        ----------
        problem : Problem
            Solved with this family.
        result : Result
            Of `solve`.

        Returns
        -------
        str
        """
        ends = self.estimate(problem, result)
        if ends is None:
            return self.premise
        low, high = (f"{each:.4g}" for each in ends)
        return (
            f"{self.premise}; the optimum of the integral is estimated, by fewer nodes and without "
            f"proof, between {low} and {high}"
        )

    def estimate(self, problem: Any, result: Any) -> tuple[float, float] | None:
        """Return an interval for the optimum of the integral, by the change from fewer nodes.

        What the solution of a solve is worth if every pair of samples is as far off as it is from
        the rules of `fewer`. A jump between two nodes may escape both: no proof.

        Parameters
        ----------
        problem : Problem
            Solved with this family over positive semidefinite matrices.
        result : Result
            Of `solve`.

        Returns
        -------
        tuple of float, or None
            None where ``integral_error`` is stated, as the bounds are of the integral then, or
            where the algorithm kept no solution.
        """
        if self.integral_error is not None or result.solution is None:
            return None
        prepared, P = self.prepare(problem.X), matrix(result.parameters, self._n_P)
        u, change = np.atleast_2d(result.solution.dual_coef), prepared.change
        off, eta = np.abs(u) @ change, float(problem.constraint.min_eig)
        D = prepared.moment(u)
        largest = float(np.linalg.eigvalsh(D)[-1])
        cost = 0.5 * (eta * float(np.trace(D)) + (1.0 - eta) * self._n_P * largest)
        cost += 0.5 * self._n_P * float(np.sum(np.abs(u) * off))
        kappa = float(result.solution.kappa)
        # the best multiple of u, which is feasible up to itself
        t = min(1.0, 0.5 * kappa / cost) if cost > 0.0 else 1.0
        values, errors = prepared.integral_values(P, u)
        upper, _ = problem.learner.primal_at(
            problem.targets,
            u,
            values,
            errors + np.linalg.norm(P) * off,
            sample_weight=problem.sample_weight,
        )
        lower = max(0.0, t * kappa - t * t * cost)
        return min(lower, result.lower_bound), max(float(upper), result.upper_bound)

    @property
    def fewer(self) -> tuple[int, int]:
        """Nodes in each dimension of the two rules that estimate the error of this one.

        Three quarters, so that a smooth N, whose error falls geometrically, is not charged with
        that of a far worse rule; and one fewer, as a jump may lie alike between the nodes of two.
        """
        most = max(1, 3 * self.n_nodes // 4)
        return most, max(1, most - 1)

    def features(self, X: ArrayLike, n_nodes: int | None = None) -> Float:
        """Return N at the nodes times the root of their weights, shape (m, n_nodes**d, n_P).

        Raises MemoryBudgetError if they do not fit.
        """
        array, count = samples(X, None), self.n_nodes if n_nodes is None else n_nodes
        n_points = count ** len(self.lower)
        memory.require(
            8 * len(array) * n_points * self._n_P,
            f"N(z, x) at {n_points} nodes for {len(array)} samples",
            alternative="use fewer nodes in each dimension, or fewer samples",
        )
        Z, weights = self._rule(count)
        out = np.empty((len(array), n_points, self._n_P))
        for k, x in enumerate(array):
            value = np.asarray(self._function(Z, x), dtype=np.float64)
            if value.shape != out.shape[1:] or not np.isfinite(value).all():
                raise ValueError(
                    "integrand(Z, x) must return a finite array of shape "
                    f"{out.shape[1:]}, got shape {value.shape}"
                    + ("" if np.isfinite(value).all() else f" with values that are not, row {k}")
                )
            np.multiply(value, np.sqrt(weights)[:, None], out=out[k])
        return out

    def _rule(self, count: int) -> tuple[Float, Float]:
        """Return the nodes, shape (count**d, d), and their weights."""
        nodes, weights = np.polynomial.legendre.leggauss(count)
        half, d = 0.5 * (self.upper - self.lower), len(self.lower)
        grid = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        powers = np.stack(np.meshgrid(*[weights] * d, indexing="ij"), axis=-1).reshape(-1, d)
        Z = np.ascontiguousarray(self.lower + half * (grid + 1.0))
        return Z, np.asarray(np.prod(half * powers, axis=1))

    def block(self, x: ArrayLike, y: ArrayLike) -> Float:
        """Return ``G(x, y)``, shape (n_P, n_P)."""
        left, right = (self.features(np.atleast_2d(each))[0] for each in (x, y))
        return np.asarray(left.T @ right)

    def prepare(self, X: ArrayLike, dtype: DTypeLike = np.float64) -> PreparedIntegral:
        """Bind the family to samples: N at all nodes is computed once and stored."""
        return PreparedIntegral(self, samples(X, None), real_dtype(dtype))

    def gram(self, X: ArrayLike, P: ArrayLike, Y: ArrayLike | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, yₗ)⟩``, shape (n_x, n_y), float64; Y is X if not given."""
        left = self.features(X)
        right = left if Y is None else self.features(Y)
        out = (left @ matrix(P, self._n_P)).reshape(len(left), -1) @ right.reshape(len(right), -1).T
        return 0.5 * (out + out.T) if Y is None else np.asarray(out)

    def diag(self, X: ArrayLike, P: ArrayLike) -> Float:
        """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (n_x,), float64."""
        F = self.features(X)
        return np.asarray(np.einsum("kqi,kqi->k", F @ matrix(P, self._n_P), F))


class PreparedIntegral(BoundSamples):
    """An `IntegralFamily` bound to samples: holds N at the nodes, shape (m, n_nodes**d, n_P)."""

    def __init__(self, family: IntegralFamily, X: Float, dtype: np.dtype[np.floating]) -> None:
        self._family, self._X, self._F = family, X, family.features(X)
        super().__init__(family.n_P, len(X), dtype)

    @property
    def change(self) -> Float:
        """How far each G(xₖ, xₗ) is from that of fewer nodes, ‖·‖_F, shape (m, m)."""
        fewer = [self._family.features(self._X, n) for n in self._family.fewer]
        return _largest_change(self._F, fewer)

    @property
    def scale(self) -> float:
        """The volume of the box, a natural unit of the kernel values."""
        return self._family.scale

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, xₗ)⟩``, shape (m, m), for a symmetric P of shape (n_P, n_P)."""
        out = self._output(out)
        flat = self._F.reshape(self.n_samples, -1)
        K = (self._F @ matrix(P, self.n_P)).reshape(flat.shape) @ flat.T
        np.copyto(out, 0.5 * (K + K.T), casting="same_kind")
        return out

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``vᵀ G(xₖ, xₗ) v``, shape (m, m), for v of shape (n_P,)."""
        out = self._output(out)
        values = self._F @ check_vector("v", v, self.n_P)
        np.copyto(out, values @ values.T, casting="same_kind")
        return out

    def moment(self, W: ArrayLike) -> Float:
        """Return ``Σₜ Σₖₗ WₜₖWₜₗ G(xₖ, xₗ)``, shape (n_P, n_P), for W of shape (m,) or (t, m)."""
        s = _sums(self._F, rows(W, self.n_samples))
        return np.asarray(s.T @ s)

    def moment_error(self, W: ArrayLike) -> float:
        """Return what ``moment(W)`` may be away from D in the spectral norm.

        A bound on the rounding, plus ``ε/(1 − ε) ‖Σ|wₖwₗ||G(xₖ, xₗ)|‖_F`` for an
        ``integral_error`` of ε; without it D is that of the sum over the nodes.
        """
        array = rows(W, self.n_samples)
        relative = gamma(self.n_samples + 2) + 2.0 * _VALUE_ERROR
        s = np.linalg.norm(_sums(self._F, array))
        size = _sums(np.abs(self._F), np.abs(array))
        e = relative * np.linalg.norm(size)
        last = gamma(len(array) * self._F.shape[1] + 2)
        integral = self._relative_error * np.linalg.norm(size.T @ size)
        return float(integral + 2.0 * s * e + e * e + last * s * s) * (1.0 + 1e-6)

    def integral_values(self, P: ArrayLike, W: ArrayLike) -> tuple[Float, Float]:
        """Return ``K(P)wₜ`` of the sum over the nodes, and what each is away from the integral's.

        The error is a bound on the rounding, plus ``ε/(1 − ε) (|K|(|P|)|wₜ|)ₖ``, |K| of the values
        |N|, for an ``integral_error`` of ε.
        """
        array, matrix_ = rows(W, self.n_samples), matrix(P, self.n_P)
        values = _products(self._F, matrix_, array)
        size = _products(np.abs(self._F), np.abs(matrix_), np.abs(array))
        count = self.n_samples + self.n_P * (self._F.shape[1] + 1) + 8
        errors = (gamma(count) + 4.0 * _VALUE_ERROR + self._relative_error) * size
        return values, errors * (1.0 + 1e-6)

    @property
    def _relative_error(self) -> float:
        """Of the integrals, relative to the sum of abs(N) abs(N): their integral may be larger."""
        error = float(self._family.integral_error or 0.0)
        return error / (1.0 - error)

    @property
    def integral_remedy(self) -> str:
        """What makes the error of the integrals smaller, for a message."""
        if self._family.integral_error is None:
            return ""
        return f"state a smaller integral_error, got {self._family.integral_error:g}"

    def sample_products(self, w: ArrayLike, U: ArrayLike, samples: ArrayLike) -> Float:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, ``Σₗ wₗ (G(xₖ, xₗ) + G(xₗ, xₖ)) U``.

        w is (m,), U (n_P, r) and samples (s,) the k; the result is (s, n_P, r).
        """
        sums = _sums(self._F, rows(w, self.n_samples))
        factor = np.asarray(U, dtype=np.float64)
        chosen = self._F[np.asarray(samples, dtype=np.intp)]
        across = chosen.transpose(0, 2, 1) @ (sums @ factor)
        return np.asarray(across + sums.T @ (chosen @ factor))


def _sums(F: Float, W: Float) -> Float:
    """Return Σₖ Wₜₖ Fₖ for every t and node, a row each: shape (t·n_points, n_P)."""
    return np.asarray(W @ F.reshape(len(F), -1)).reshape(-1, F.shape[2])


def _largest_change(F: Float, others: list[Float]) -> Float:
    """Return ``‖G(xₖ, xₗ) − G′(xₖ, xₗ)‖_F`` of every pair, the largest over G′ of other rules."""
    m, n_P = len(F), F.shape[2]
    memory.require(
        8 * m * m * (len(others) + 2),
        f"the change of the integrals of {m} samples from rule to rule",
        alternative="state integral_error, or use fewer samples",
    )
    squares = np.zeros((len(others), m, m))
    for i in range(n_P):
        for j in range(n_P):
            entry = F[:, :, i] @ F[:, :, j].T
            for total, other in zip(squares, others, strict=True):
                total += (other[:, :, i] @ other[:, :, j].T - entry) ** 2
    return np.asarray(np.sqrt(squares.max(axis=0)))


def _products(F: Float, P: Float, W: Float) -> Float:
    """Return K(P)Wₜ for every t, shape (t, m), from N at the nodes."""
    sums = _sums(F, W) @ P
    return np.asarray(sums.reshape(len(W), -1) @ F.reshape(len(F), -1).T)
