"""J(η, L): its value, its gradients and the proofs that go with them.

With C solving K_η C L + λ l C = Y,

    J(η, L) = (1/l)‖K_η C L − Y‖² + λ tr(Cᵀ K_η C L) = λ tr(CᵀY)
    ∂J/∂ηⱼ = −λ wⱼ,  wⱼ = ⟨Kⱼ, C L Cᵀ⟩        ∂J/∂L = −λ B,  B = Cᵀ K_η C

Sample weights S enter by K ← S½ K S½, Y ← S½ Y, l ← Σ sᵢ: nothing else changes. Weights per cell,
and missing targets, enter as `cells` says.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Matrix, Vector
from scipy.sparse import diags_array

from .cells import divided, solve_cells
from .constraint import SeparableKernel, VectorSolution
from .family import InputKernels
from .rounding import Sizes, gamma, in_problem_units
from .sylvester import (
    EigenFactors,
    NystromFactors,
    SpectrumEstimate,
    SylvesterSolution,
    solve_sylvester,
)
from .sylvester.auto import column_work, weighted_work
from .sylvester.direct import finish, refined, solve_sylvester_eigen


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """K and Y in the basis of K's computed eigenvectors T, with bounds on the error.

    A product with K or T costs 2 l²n flops in every step; with C = T D, K is diagonal and the step
    needs no such product. The bounds stay proofs because the distance of T diag(σ) Tᵀ from K is
    measured once.

    - `factors`: with T of shape (n_samples, n_samples)
    - `gram`: diag(tᵢᵀ K tᵢ), sparse
    - `Y` of shape (n_samples, n_outputs): Tᵀ Y, as computed
    - `K_error` ≥ ‖UᵀKU − diag(σ)‖₂ for the orthogonal U next to T, T = UH with H ⪰ 0
    - `Y_error` ≥ ‖UᵀY − Ỹ‖ for the computed Ỹ

    Up to these two errors, an evaluation at D is that of C = UD; U itself is never formed.
    """

    factors: EigenFactors
    gram: Any
    Y: Matrix
    K_error: float
    Y_error: float

    @classmethod
    def of(cls, factors: EigenFactors, K: Matrix, Y: Matrix) -> Eigenbasis:
        """Return the basis of the factors of K, with its errors measured (3 l³ flops).

        With e = ‖TᵀT − I‖₂ ≥ ‖H − I‖₂, f = ‖KT − T diag(σ)‖₂ and M = UᵀKU, from MH − H diag(σ) =
        Uᵀ(KT − T diag(σ)): ‖M − diag(σ)‖ ≤ f + e‖M‖ + e max σ, and ‖M‖ ≤ max σ + ‖M − diag(σ)‖.
        """
        T, l = factors.T, len(K)
        # the error of a computed product is at most this times the norms of its factors
        rate = gamma(l + 2)
        T_norm, K_norm, Y_norm = (float(np.linalg.norm(part)) for part in (T, K, Y))
        image = K @ T
        sigma = np.einsum("ij,ij->j", T, image)
        largest = float(np.abs(sigma).max())
        image -= T * sigma
        off = float(np.linalg.norm(image)) + 2.0 * rate * (K_norm + largest) * T_norm
        product = T.T @ T
        product.flat[:: l + 1] -= 1.0
        skew = float(np.linalg.norm(product)) + rate * T_norm**2
        rest = off + 2.0 * skew * largest
        return cls(
            factors,
            diags_array(sigma, format="csr"),
            T.T @ Y,
            K_error=rest / (1.0 - skew) * (1.0 + 1e-9) if skew < 1.0 else math.inf,
            Y_error=(skew * Y_norm + rate * T_norm * Y_norm) * (1.0 + 1e-9),
        )

    def solve(self, L: Matrix, ridge: float) -> SylvesterSolution:
        """Return D, C = T D, with K C L + r C ≈ Y, by eigenvalues alone (9 n³ + 6 ln² flops)."""
        eigen = self.factors.with_output(L)
        return refined(
            *(self.gram, L, self.Y, ridge, eigen), lambda right: eigen.inside(right, ridge)
        )


@dataclass(frozen=True, eq=False)
class JointEvaluation:
    """J at one (η, L), evaluated with one C, exact or not.

    - `weights`, `L` of shape (m,), (n, n): the point
    - `C`, `A` of shape (l, n): C and K_η C, in the basis `eigenbasis`
    - `B` of shape (n, n): Cᵀ K_η C
    - `w` of shape (m,): ⟨Kⱼ, C L Cᵀ⟩; zeros where the weights are fixed, which need no gradient
    - `value`: primal value (1/l)‖A L − Y‖² + λ⟨C, A L⟩ ≥ J, without ω
    - `upper`: the same with its rounding error added: a proved bound
    - `dot`: ⟨C, A L⟩, as computed
    - `residual`: ‖Y − A L − λ l C‖: the primal value is at most its square over l above J
    - `sizes`: norms, for error bounds
    - `eigenbasis`: the basis of C and A; ``None`` if their rows are samples
    """

    weights: Vector
    L: Matrix
    C: Matrix
    A: Matrix
    B: Matrix
    w: Vector
    value: float
    upper: float
    dot: float
    residual: float
    sizes: Sizes
    eigenbasis: Eigenbasis | None = None

    @functools.cached_property
    def top(self) -> float:
        """The largest eigenvalue of B, as computed."""
        return float(np.linalg.eigvalsh(self.B)[-1])

    @property
    def kernel(self) -> SeparableKernel:
        """The point as a kernel."""
        return SeparableKernel(self.weights, self.L)


def work_bytes(n_samples: int, n_outputs: int) -> int:
    """Return the bytes that evaluations and steps hold at most, whichever the C solver.

    `n_samples`, `n_outputs`: l and n; 8 (5 l² + 11 ln + 14 n²).
    """
    l, n = n_samples, n_outputs
    return 8 * (5 * l * l + 11 * l * n + 14 * n * n)


class Objective:
    """J of one problem; counts what it spends.

    - `grams`: kernel matrices, scaled by the sample weights
    - `Y` of shape (n_samples, n_outputs): targets, scaled likewise
    - `lam`: λ
    - `root_weight` of shape (n_samples,): roots of the sample weights
    - `method`: C solver, see `solve_sylvester`
    - `fixed_input`: whether η never changes: K_η is then formed and decomposed once
    - `cell_root` of shape (n_samples, n_outputs): roots of weights per cell, zero where a
      target is missing, as Y is zero too; instead of sample weights
    """

    def __init__(
        self,
        grams: InputKernels,
        Y: Matrix,
        lam: float,
        root_weight: Vector | None = None,
        method: str = "auto",
        fixed_input: bool = False,
        cell_root: Matrix | None = None,
    ) -> None:
        self.grams, self.Y, self.lam = grams, Y, lam
        self.root_weight, self.method, self.cell_root = root_weight, method, cell_root
        self.fixed_input = fixed_input
        self._K: Any = None
        self._spectrum: SpectrumEstimate | None = None
        self._sketch: NystromFactors | None = None
        self._eigenbasis: Eigenbasis | None = None
        l = float(Y.shape[0]) if root_weight is None else float((root_weight**2).sum())
        if cell_root is not None:
            l = float((cell_root**2).sum()) / Y.shape[1]
        self.total_weight, self.ridge = l, lam * l
        self.Y_norm = float(np.linalg.norm(Y))
        self.factors: EigenFactors | None = None
        self._counts = {"n_solves": 0, "n_inner_iter": 0, "n_columns": 0}
        memory.require(
            work_bytes(grams.n_samples, self.n_outputs),
            f"work matrices of {grams.n_samples} samples and {self.n_outputs} outputs",
            alternative="fit fewer samples or raise {memory_limit}",
        )

    @property
    def n_outputs(self) -> int:
        """n."""
        return int(self.Y.shape[1])

    def evaluate(
        self, weights: Vector, L: Matrix, *, start: JointEvaluation | None = None, tol: float = 1e-8
    ) -> JointEvaluation:
        """Solve for C at (η, L) to a residual of ``tol``; return value, gradients and norms.

        An iterative solver starts from the C of ``start``, a point near this one.
        """
        solved = self._solve(self._gram(weights), L, start, tol)
        return self._evaluation(weights, L, solved, self._eigenbasis)

    def in_samples(self, point: JointEvaluation) -> JointEvaluation:
        """Return the point with rows of C for samples, whose bounds have no error of the basis."""
        if point.eigenbasis is None:
            return point
        C = point.eigenbasis.factors.T @ point.C
        K = self._gram(point.weights)
        solved = finish(K, point.L, self.Y, self.ridge, C, target=math.inf, method="eigen")
        return self._evaluation(point.weights, point.L, solved, None)

    def targets(self, point: JointEvaluation) -> Matrix:
        """Return Y in the coordinates of a point."""
        return self.Y if point.eigenbasis is None else point.eigenbasis.Y

    def product(self, point: JointEvaluation, C: Matrix) -> Matrix:
        """Return K_η C in the coordinates of a point."""
        K = self._gram(point.weights) if point.eigenbasis is None else point.eigenbasis.gram
        image: Matrix = K @ C
        return image

    def _evaluation(
        self, weights: Vector, L: Matrix, solved: SylvesterSolution, eigenbasis: Eigenbasis | None
    ) -> JointEvaluation:
        C, A = solved.C, solved.product
        B = C.T @ A
        B = 0.5 * (B + B.T)
        sizes = Sizes(
            n_samples=self.Y.shape[0],
            n_outputs=self.n_outputs,
            n_kernels=len(self.grams),
            K=float(weights @ self.grams.norms),
            C=float(np.linalg.norm(C)),
            L=float(np.linalg.norm(L)),
            Y=self.Y_norm,
        )
        if eigenbasis is not None:
            sizes = replace(sizes, K_error=eigenbasis.K_error, Y_error=eigenbasis.Y_error)
        Y = self.Y if eigenbasis is None else eigenbasis.Y
        value, upper, dot = self._primal(solved.fit, Y, C, sizes)
        w = np.zeros(len(weights)) if self.fixed_input else self.grams.inner(C, L)
        residual = solved.residual_norm
        return JointEvaluation(
            weights, L, C, A, B, w, value, upper, dot, residual, sizes, eigenbasis
        )

    def _gram(self, weights: Vector) -> Any:
        if not self.fixed_input:
            return self.grams.combine(weights)
        if self._K is None:
            self._K = self.grams.combine(weights)
        return self._K

    def _solve(
        self, K: Any, L: Matrix, start: JointEvaluation | None, tol: float
    ) -> SylvesterSolution:
        if self.cell_root is not None:
            C0 = None if start is None else start.C
            solved = solve_cells(K, L, self.Y, self.ridge, self.cell_root, C0=C0, tol=tol)
        elif self._decomposes(K, L, tol):
            if self._eigenbasis is None and self.factors is not None:
                # at a second solve, more will follow: they repay the cost of the basis
                self._eigenbasis = Eigenbasis.of(self.factors, K, self.Y)
            if self._eigenbasis is not None:
                solved = self._eigenbasis.solve(L, self.ridge)
            else:
                solved = solve_sylvester_eigen(K, L, self.Y, self.ridge, check=False)
        else:
            solved = solve_sylvester(
                K,
                L,
                self.Y,
                self.ridge,
                method=self.method,
                C0=None if start is None else start.C,
                tol=tol,
                sketch=self._sketch,
                product0=start.A if start is not None and self.fixed_input else None,
                spectrum=self._spectrum,
                check=False,
            )
        if solved.factors is not None:
            self.factors = solved.factors
        if self.fixed_input and solved.sketch is not None:
            self._sketch = solved.sketch
        self._counts["n_solves"] += 1
        self._counts["n_inner_iter"] += solved.n_iter
        self._counts["n_columns"] += solved.n_columns
        return solved

    def _decomposes(self, K: Any, L: Matrix, tol: float) -> bool:
        """Tell whether to decompose a K that never changes, for this solve and all later ones.

        How many will come is not known: cheaper solvers go first, until what they have spent
        would have paid for the decomposition.
        """
        if not self.fixed_input or self.method not in ("auto", "eigen"):
            return False
        if self.factors is not None or self.method == "eigen":
            return True
        if self._spectrum is None:
            self._spectrum = SpectrumEstimate.of(K)
        rho = np.maximum(np.linalg.eigvalsh(L), 0.0)
        cost = weighted_work(
            self._spectrum, rho, self.ridge, tol=tol, sketched=self._sketch is not None
        )
        direct = cost.pop("eigen")
        spent = column_work(K.shape[0]) * self._counts["n_columns"]
        return spent > direct or min(cost.values()) > 2.0 * direct

    def _primal(
        self, fit: Matrix, Y: Matrix, C: Matrix, sizes: Sizes
    ) -> tuple[float, float, float]:
        """Return (1/l)‖fit − Y‖² + λ⟨C, fit⟩, a proved bound on it, and ⟨C, fit⟩."""
        missed, largest = fit - Y, 1.0
        if self.cell_root is not None:
            missed, largest = missed * self.cell_root, float(self.cell_root.max())
        error = float(np.linalg.norm(missed))
        dot = float(np.vdot(C, fit))
        value = error**2 / self.total_weight + self.lam * dot
        fit_norm = float(np.linalg.norm(fit))
        slack = largest * (sizes.fit_error + sizes.dot_error * (fit_norm + sizes.Y))
        slack += sizes.Y_error
        dot_slack = sizes.C * (sizes.fit_error + sizes.dot_error * fit_norm)
        upper = (error + slack) ** 2 / self.total_weight + self.lam * (dot + dot_slack)
        return value, upper * (1.0 + 1e-14), dot

    def dual_parts(self, point: JointEvaluation) -> tuple[float, float]:
        """Return a ≤ ⟨C, Y⟩ and b ≥ λl‖C‖², proved.

        For every (η, L) and every s ≥ 0: J(η, L) ≥ λ(2sa − s²b − s²⟨C, K_η C L⟩).
        """
        sizes = point.sizes
        dot = float(np.vdot(point.C, self.targets(point)))
        dot -= sizes.C * (2.0 * sizes.dot_error * sizes.Y + sizes.Y_error)
        norm = sizes.C
        if self.cell_root is not None:
            norm = float(np.linalg.norm(divided(point.C, self.cell_root)))
        return dot, self.ridge * norm**2 * (1.0 + 4.0 * sizes.dot_error)

    def solution(self, point: JointEvaluation) -> VectorSolution:
        """Return the function at a point, in the units of the data as given."""
        point = self.in_samples(point)
        C = point.C if self.root_weight is None else point.C * self.root_weight[:, None]
        fit = self.lam * point.dot
        slack = self.lam * point.sizes.C * point.sizes.fit_error
        a, b = self.dual_parts(point)
        lower = self.lam * (2.0 * a - b) - fit * (1.0 + 2.0 * point.sizes.dot_error) - slack
        zeros = np.zeros(self.n_outputs)
        scale = point.kernel.scale
        coef = (C @ point.L).T / scale if scale > 0 else np.zeros_like(C.T)
        return VectorSolution(C, coef, zeros, *in_problem_units(lower, point.upper, self.lam))

    def counts(self) -> dict[str, int]:
        """Return C solves, their inner iterations and products with one column so far."""
        return dict(self._counts)
