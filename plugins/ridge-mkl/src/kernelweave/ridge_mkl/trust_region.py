"""Riemannian trust region on the sphere ‖μ − μ₀‖₂ = Λ (Algorithm 8, which its authors never ran).

Corrected: the Riemannian Hessian is Hess F[ξ] = PHξ − ((μ − μ₀)ᵀ∇F/Λ²)ξ (36); the retraction is
μ₀ + Λ|μ − μ₀ + ξ|/‖μ − μ₀ + ξ‖ (37); the ratio is taken at the retracted point. The sphere lies in
the orthant only if Λ ≤ minₖ μ₀ₖ (printed: ‖μ₀‖_∞); the absolute values keep any other there, and
never raise F, which falls as any weight grows. The subproblem is solved exactly: p is small.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import Descent, DescentState
from .oracle import Evaluation
from .settings import DescentSettings, TrustRegion

# A step is taken where it keeps this share of what the model promises.
_ACCEPT = 0.05
# Each refusal quarters the radius: sixty leave less than the rounding of any step.
_MAX_TRIALS = 60


def tangent_basis(x: FloatArray) -> FloatArray:
    """Return an orthonormal basis of {ξ : xᵀξ = 0}, shape (p, p − 1), for a unit x, (p,)."""
    Q, _ = np.linalg.qr(np.column_stack([x, np.eye(len(x))]))
    return np.asarray(Q[:, 1:])


def riemannian_hessian(x: FloatArray, g: FloatArray, H: FloatArray, B: FloatArray) -> FloatArray:
    """Return Bᵀ H B − (xᵀg) I, the Hessian on the unit sphere at x in a basis of tangents."""
    return np.asarray(B.T @ H @ B - float(x @ g) * np.eye(B.shape[1]))


def solve_subproblem(H: FloatArray, g: FloatArray, radius: float) -> FloatArray:
    """Minimise gᵀξ + ½ ξᵀHξ over ‖ξ‖ ≤ Δ, exactly, by the eigenvalues of H."""
    values, V = np.linalg.eigh(H)
    c = V.T @ g
    if values[0] > 0.0:
        xi = -c / values
        if float(np.linalg.norm(xi)) <= radius:
            return np.asarray(V @ xi)
    low = max(0.0, -float(values[0]))
    size = float(np.abs(values).max()) + float(np.linalg.norm(c)) / radius
    high = low + size
    low += 1e-15 * size
    xi = -c / (values + low)
    if float(np.linalg.norm(xi)) < radius:  # the gradient has no part along the lowest direction
        rest = radius**2 - float(xi @ xi)
        xi[0] += np.sqrt(max(rest, 0.0))
        return np.asarray(V @ xi)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if float(np.linalg.norm(c / (values + middle))) > radius:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * high:
            break
    return np.asarray(V @ (-c / (values + high)))


class TrustRegionSearch(Descent):
    """``krr-trust-region``: second-order steps on the sphere where μ ≥ μ₀; any degree."""

    settings: DescentSettings = TrustRegion()

    def needs(self) -> str | None:
        """Refuse all but q = 2."""
        if self.constraint.q == 2.0:
            return None
        other = "krr-newton" if self.oracle.degree == 1 else "krr-spg"
        return f"krr-trust-region needs q = 2, got q={self.constraint.q}: use {other}"

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return the first radius Δ, relative to Λ: ½ unless one was given."""
        return self.given_step(0.5), {}

    def enter(self, mu: FloatArray, n_left: int) -> DescentState:
        """Return the state at the point of the sphere next to μ, shape (p,)."""
        return super().enter(self._on_sphere(mu - self.constraint.centers(len(mu))), n_left)

    def _on_sphere(self, offset: FloatArray) -> FloatArray:
        length = float(np.linalg.norm(offset))
        if length == 0.0:
            offset, length = np.ones_like(offset), float(np.sqrt(len(offset)))
        center = self.constraint.centers(len(offset))
        return np.asarray(center + self.constraint.radius * np.abs(offset) / length)

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: shrink Δ until a step is accepted."""
        at, radius = state.at, state.step_size
        p, Lam = len(at.mu), float(self.constraint.radius)
        if p == 1:
            return replace(state, stalled=True)
        x = (at.mu - self.constraint.centers(p)) / Lam
        x /= float(np.linalg.norm(x))
        g, H = Lam * at.gradient, Lam**2 * self.oracle.hessian(at)
        B = tangent_basis(x)
        tangent, reduced = B.T @ g, riemannian_hessian(x, g, H, B)
        for _ in range(_MAX_TRIALS):
            xi = solve_subproblem(reduced, tangent, radius)
            predicted = -float(tangent @ xi + 0.5 * xi @ reduced @ xi)
            if not predicted > 1e-16 * abs(at.value):
                break
            new = self.oracle.evaluate(self._on_sphere(x + B @ xi))
            noise = 1e-14 * abs(at.value)
            ratio = (at.value - new.value + noise) / (predicted + noise)
            length = float(np.linalg.norm(xi))
            if ratio < 0.25:
                radius *= 0.25
            elif ratio > 0.75 and length >= 0.99 * radius:
                radius = min(2.0 * radius, np.pi)
            if ratio > _ACCEPT:
                return replace(state, at=new, step_size=radius)
        return replace(state, stalled=True)
