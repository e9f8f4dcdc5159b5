"""The output kernel L: its set, and the step that minimises over it at fixed C and η."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import NONNEGATIVE, POSITIVE, check_array
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.psd_cone import project_simplex, top_eigenpair
from scipy.linalg import eigh


def project_output_kernel(L: Matrix, tau: float) -> Matrix:
    """Return the nearest matrix of {L ⪰ 0, tr L ≤ τ} in the Frobenius norm."""
    values, vectors = eigh(0.5 * (L + L.T), check_finite=False)
    kept = np.maximum(values, 0.0)
    if kept.sum() > tau:
        kept = project_simplex(values, tau)
    used = kept > 0
    root = vectors[:, used] * np.sqrt(kept[used])
    return root @ root.T


def closed_form_output_kernel(L: Matrix, B: Matrix, tau: float) -> Matrix:
    """Return τ G½ / tr G½ with G = Fᵀ K F, F = C L: the minimiser of tr(L⁻¹ G).

    G = L B L with B = Cᵀ K C. For fixed function values the squared norm is tr(L⁻¹ G), so the
    objective never rises; a singular L stays singular in the same directions.

    Parameters
    ----------
    L : ndarray of shape (n_outputs, n_outputs), float64
        The output kernel that C belongs to.
    B : ndarray of shape (n_outputs, n_outputs), float64
        Cᵀ K C.
    tau : float
        Trace of the result.

    Returns
    -------
    ndarray of shape (n_outputs, n_outputs), float64
        The next output kernel; L itself where G = 0.

    Raises
    ------
    ValueError
        If L or B is not square and finite, or τ is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import closed_form_output_kernel
    >>> closed_form_output_kernel(np.eye(2), np.diag([9.0, 1.0]), 2.0)
    array([[1.5, 0. ],
           [0. , 0.5]])
    """
    L, B = check_array("L", L, 2, square=True), check_array("B", B, 2, square=True)
    POSITIVE.check("tau", tau)
    G = L @ B @ L
    values, vectors = eigh(0.5 * (G + G.T), check_finite=False)
    roots = np.sqrt(np.maximum(values, 0.0))
    total = float(roots.sum())
    if total == 0.0:
        return L
    return (vectors * (tau * roots / total)) @ vectors.T


@dataclass(frozen=True)
class OutputSubproblem:
    """g(L) = (1/l)‖A L − Y‖² + λ tr(B L) over {L ⪰ 0, tr L ≤ τ}, A = K C, B = Cᵀ A (V, (11)).

    Parameters
    ----------
    A : ndarray of shape (n_samples, n_outputs), float64
        K_η C.
    B : ndarray of shape (n_outputs, n_outputs), float64
        Cᵀ K_η C.
    Y : ndarray of shape (n_samples, n_outputs), float64
        Targets.
    lam : float
        λ.
    tau : float
        Bound on the trace.
    n_samples : float, optional
        l; the number of rows of Y by default, the sum of the sample weights otherwise.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or λ, τ or l is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import OutputSubproblem
    >>> part = OutputSubproblem(np.eye(2), np.eye(2), np.eye(2), lam=1.0, tau=2.0)
    >>> part.value(0.5 * np.eye(2))
    1.25
    """

    A: Matrix
    B: Matrix
    Y: Matrix
    lam: float
    tau: float
    n_samples: float | None = None

    def __post_init__(self) -> None:
        for name in ("A", "B", "Y"):
            check_array(name, getattr(self, name), 2)
        (rows, n), seen = np.shape(self.Y), (np.shape(self.A), np.shape(self.B))
        if seen != ((rows, n), (n, n)):
            raise ValueError(
                f"A and B must have shapes {(rows, n)} and {(n, n)} as Y is {rows} x {n}, got "
                f"{seen[0]} and {seen[1]}"
            )
        NONNEGATIVE.check("lam", self.lam)
        POSITIVE.check("tau", self.tau)
        l = float(rows if self.n_samples is None else self.n_samples)
        POSITIVE.check("n_samples", l)
        object.__setattr__(self, "n_samples", l)
        object.__setattr__(self, "_AA", self.A.T @ self.A / l)
        object.__setattr__(self, "_AY", self.A.T @ self.Y / l)

    def value(self, L: Matrix) -> float:
        """Return g(L)."""
        residual = self.A @ L - self.Y
        assert self.n_samples is not None
        return float(np.vdot(residual, residual)) / self.n_samples + self.lam * float(
            np.vdot(self.B, L)
        )

    def gradient(self, L: Matrix) -> Matrix:
        """Return sym(λB + (2/l)Aᵀ(AL − Y)); V prints no 1/l and G + Gᵀ − diag G."""
        G = self.lam * self.B + 2.0 * (self._AA @ L - self._AY)  # type: ignore[attr-defined]
        symmetric: Matrix = 0.5 * (G + G.T)
        return symmetric

    def line_search(self, L: Matrix, direction: Matrix) -> float:
        """Return the minimiser of g(L + s · direction) over all s; V misplaces the 1/l."""
        image = self.A @ direction
        assert self.n_samples is not None
        curvature = 2.0 * float(np.vdot(image, image)) / self.n_samples
        slope = float(np.vdot(self.gradient(L), direction))
        if curvature <= 0.0:
            return 1.0 if slope < 0.0 else 0.0
        return -slope / curvature

    def hazan(
        self, L: Matrix, *, n_iter: int = 100, tol: float = 0.0, line_search: bool = True
    ) -> tuple[Matrix, float]:
        """Minimise by rank-one steps, each of which costs a gradient and an extreme eigenpair.

        L ← L + s (τ v vᵀ − L), v the unit eigenvector of the smallest eigenvalue of ∇g(L), and
        v = 0 where that is positive: without this case the trace could not shrink. Hazan, "Sparse
        approximate solutions to semidefinite programs", LATIN 2008.

        Parameters
        ----------
        L : ndarray of shape (n_outputs, n_outputs), float64
            Where to start: positive semidefinite of trace at most τ.
        n_iter : int, default=100
            Steps at most.
        tol : float, default=0.0
            Frank-Wolfe gap to stop at.
        line_search : bool, default=True
            Exact line search; else the step min(1, 2/k), which need not descend.

        Returns
        -------
        L : ndarray of shape (n_outputs, n_outputs), float64
            The last matrix.
        gap : float
            Its Frank-Wolfe gap, at least g(L) − min g up to the accuracy of the eigensolver.

        Raises
        ------
        ValueError
            If the start is not in the set.
        """
        if L.trace() > self.tau * (1.0 + 1e-9) or np.linalg.eigvalsh(L)[0] < -1e-9 * self.tau:
            raise ValueError(f"L must be positive semidefinite of trace <= {self.tau:g}")
        vector: Matrix | None = None
        for k in range(n_iter + 1):
            G = self.gradient(L)
            value, vector = top_eigenpair(-G, vector)
            atom = self.tau * np.outer(vector, vector) if value > 0.0 else np.zeros_like(L)
            direction = atom - L
            gap = max(0.0, -float(np.vdot(G, direction)))
            if gap <= tol or k == n_iter or expired():
                break
            step = self.line_search(L, direction) if line_search else 2.0 / (k + 1)
            L = L + float(np.clip(step, 0.0, 1.0)) * direction
        return L, gap

    def solve(self, L: Matrix, *, tol: float = 1e-10, max_iter: int = 5000) -> Matrix:
        """Return the minimiser by accelerated projected gradients with restarts.

        Parameters
        ----------
        L : ndarray of shape (n_outputs, n_outputs), float64
            Where to start.
        tol : float, default=1e-10
            Frank-Wolfe gap, relative to g, to stop at.
        max_iter : int, default=5000
            Steps at most.

        Returns
        -------
        ndarray of shape (n_outputs, n_outputs), float64
            A matrix whose g is within the gap of the minimum.
        """
        lipschitz = 2.0 * float(np.linalg.eigvalsh(self._AA)[-1])  # type: ignore[attr-defined]
        if lipschitz <= 0.0:
            return np.zeros_like(L)
        ahead, t = L, 1.0
        for _ in range(max_iter):
            new = project_output_kernel(ahead - self.gradient(ahead) / lipschitz, self.tau)
            if float(np.vdot(ahead - new, new - L)) > 0.0:
                t = 1.0
            after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            ahead = new + ((t - 1.0) / after) * (new - L)
            L, t = new, after
            if self.gap(L) <= tol * abs(self.value(L)):
                break
        return L

    def gap(self, L: Matrix) -> float:
        """Return max over S of ⟨∇g(L), L − S⟩ ≥ g(L) − min g."""
        G = self.gradient(L)
        smallest = float(np.linalg.eigvalsh(G)[0])
        return float(np.vdot(G, L)) - self.tau * min(0.0, smallest)
