"""The master problem of few views and few kernels within each, by the barrier method.

``min t + λ Σ βⱼ²/zⱼ`` over ``t ≥ κᵢ − gᵢᵀβ``, ``β ≥ 0``, ``Σβ = 1``, ``0 ≤ zⱼ ≤ w_v``,
``Σ_{j in v} zⱼ ≤ k w_v``, ``Σw ≤ g``, ``w ≤ 1``; ``zⱼ = 1`` for required kernels, ``w_v = 1`` for
their views. The shares z are eliminated, a diagonal and one vector for each view; what is left has
as many unknowns as there are kernels and views.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import cho_factor, cho_solve

from .nested import NestedPenalty

# Squared Newton decrements that end a stage, and below which full steps are taken.
_CENTRED, _FULL = 0.25, 0.0625
# Added to the diagonal of a matrix that is scaled to 1 there.
_LIFT = 1e-14


def first_top(values: FloatArray, sigma: float) -> float:
    """Return the t above all values with Σ σ/(t − values) = 1: the best at the barrier σ."""
    t = float(values.max()) + sigma
    for _ in range(6):
        # Newton's method, as a concave equation: it comes from the left
        push = 1.0 / (t - values)
        total = float(push.sum())
        t += (sigma * total - 1.0) * total / float(push @ push)
    return t


class NestedPath:
    """A point near the central path, as `kernelweave.qp_smo.saddle.master.Path` is.

    - `kappa` of shape (m,), `half` of shape (m, q)
    - `penalty`: over the q kernels that may have a weight
    - `inside`: what has to be positive: the slacks, β, z, w_v − z, the room in each view, 1 − w,
      and what is left of g; those of z for free kernels, those of w for views without a required
      one
    - `sigma`: the barrier parameter
    """

    def __init__(self, kappa: FloatArray, half: FloatArray, penalty: NestedPenalty) -> None:
        self.kappa, self.half, self.penalty = kappa, half, penalty
        q = half.shape[1]
        self._free = np.flatnonzero(penalty.free)
        names, self._view = np.unique(penalty.view[self._free], return_inverse=True)
        self._left = penalty.left[names].astype(np.float64)
        self._moves = np.flatnonzero(~penalty.required_views[names])
        self._owner = (self._view == np.arange(names.size)[:, None]).astype(np.float64)
        counts = self._owner.sum(axis=1)
        self._w = np.ones(names.size)
        self._w[self._moves] = 0.9 * min(penalty.n_views_left / max(self._moves.size, 1), 1.0)
        share = 0.9 * self._w * np.minimum(self._left / counts, 1.0)
        self._beta, self._z = np.full(q, 1.0 / q), share[self._view]
        self.sigma = 0.1 * max(float(np.abs(kappa).max()), 1e-12)
        values = kappa - half @ self._beta
        self._t = first_top(values, self.sigma)
        self.inside = self._insides(self._t, self._beta, self._z, self._w)
        self._multipliers: FloatArray = 1.0 / self.inside[: kappa.size]

    @property
    def multipliers(self) -> FloatArray:
        """Return the multipliers of the cuts, shape (m,); their sum is about 1/σ.

        Where views tie, a bound loses what multipliers are off by, not its square: they are those
        for which the last Newton step makes its equations hold.
        """
        return self._multipliers

    @property
    def value(self) -> float:
        """Return the primal value in plain floating point."""
        top = float((self.kappa - self.half @ self._beta).max())
        ridge = self.penalty.lam * (self._beta**2 / self._shares(self._z)).sum()
        return top + float(ridge)

    @property
    def weights(self) -> FloatArray:
        """Return β, shape (q,), without what is rounding."""
        weights: FloatArray = np.where(self._beta > 1e-9 * self._beta.max(), self._beta, 0.0)
        weights /= weights.sum()
        return weights

    def centre(self, most: int) -> tuple[int, bool]:
        """Take at most so many Newton steps; return their number, and whether they were too few."""
        for it in range(most):
            try:
                (dt, db, dz, dw), squared = self._direction()
            except np.linalg.LinAlgError:
                return it, True
            change = self._changes(dt, db, dz, dw)
            push = 1.0 / self.inside[: self.kappa.size]
            self._multipliers = np.maximum(push * (1.0 - push * change[: push.size]), 0.0)
            step = self._step_length(change, dt, db, dz, squared)
            self._t += step * dt
            self._beta = self._beta + step * db
            self._z = self._z + step * dz
            self._w = self._w + step * dw
            self.inside = self.inside + step * change
            if squared <= _CENTRED:
                return it + 1, False
        return most, True

    def _shares(self, z: FloatArray) -> FloatArray:
        shares = np.ones(self._beta.size)
        shares[self._free] = z
        return shares

    def _changes(self, dt: float, db: FloatArray, dz: FloatArray, dw: FloatArray) -> FloatArray:
        """Return how everything positive changes with the variables."""
        held = np.bincount(self._view, weights=dz, minlength=dw.size)
        moving = dw[self._moves]
        parts = [dt + self.half @ db, db, dz, dw[self._view] - dz, self._left * dw - held]
        return np.concatenate([*parts, -moving, [-float(moving.sum())]])

    def _insides(self, t: float, beta: FloatArray, z: FloatArray, w: FloatArray) -> FloatArray:
        inside = self._changes(t, beta, z, w)
        inside[: self.kappa.size] -= self.kappa
        n = self._moves.size
        inside[inside.size - n - 1 : inside.size - 1] += 1.0
        inside[-1] += self.penalty.n_views_left if n else 1.0
        return inside

    def _parts(self) -> list[FloatArray]:
        m, q, f, v = self.kappa.size, self._beta.size, self._free.size, self._w.size
        ends = np.cumsum([m, q, f, f, v, self._moves.size])
        return list(np.split(self.inside, ends))

    def _direction(self) -> tuple[tuple[float, FloatArray, FloatArray, FloatArray], float]:
        """Return the Newton step in t, β, z and w, and the squared decrement: mq² + q³/3 flops."""
        s, beta, z, over, room, low, spare = self._parts()
        q, f, at, view, moves = beta.size, self._free, self._view, self._view, self._moves
        scale, lam, left = 1.0 / self.sigma, self.penalty.lam, self._left
        shares = self._shares(z)
        ratio = beta / shares
        bend = 2.0 * scale * lam / shares
        # gradients
        push, tight = 1.0 / s, 1.0 / over
        g_beta = bend * beta - 1.0 / beta - self.half.T @ push
        g_t = scale - float(push.sum())
        g_z = -scale * lam * ratio[f] ** 2 - 1.0 / z + tight + (1.0 / room)[view]
        g_w = -np.bincount(view, weights=tight, minlength=room.size) - left / room
        g_w = g_w[moves] + 1.0 / low + 1.0 / spare[0]
        # z: its own curvature, a vector for each view, and how it hangs together with β and w
        curve = bend[f] * ratio[f] ** 2 + 1.0 / z**2 + tight**2
        total = np.bincount(view, weights=1.0 / curve, minlength=room.size)
        omega = 1.0 / (room**2 + total)
        tie = np.zeros((f.size, q + 1 + moves.size))
        tie[np.arange(f.size), f] = -bend[f] * ratio[f]
        column = np.full(room.size, -1)
        column[moves] = q + 1 + np.arange(moves.size)
        moved = np.flatnonzero(column[at] >= 0)
        tie[moved, column[at[moved]]] = -(tight[moved] ** 2) - (left / room**2)[at[moved]]
        scaled = tie / curve[:, None]
        sums = self._owner @ scaled
        # what is left: β, t and w
        H = np.zeros((tie.shape[1], tie.shape[1]))
        weighted = self.half * push[:, None] ** 2
        H[:q, :q] = self.half.T @ weighted
        H[:q, q] = H[q, :q] = weighted.sum(axis=0)
        H[q, q] = float(push @ push)
        H[np.arange(q), np.arange(q)] += bend + 1.0 / beta**2
        bend_w = np.bincount(view, weights=tight**2, minlength=room.size) + (left / room) ** 2
        H[q + 1 :, q + 1 :] = 1.0 / spare[0] ** 2
        H[np.arange(q + 1, len(H)), np.arange(q + 1, len(H))] += bend_w[moves] + 1.0 / low**2
        H -= tie.T @ scaled - sums.T @ (omega[:, None] * sums)
        gradient = np.concatenate([g_beta, [g_t], g_w])
        # −g_z through the inverse of its block, and into the right-hand side
        solved = self._inverse(g_z, curve, omega)
        normal = np.zeros(len(H))
        normal[:q] = 1.0
        rhs = np.column_stack([tie.T @ solved - gradient, normal])
        x, y = _solve(H, rhs).T
        x -= (float(x[:q].sum()) + float(beta.sum()) - 1.0) / float(y[:q].sum()) * y
        dz = -solved - self._inverse(tie @ x, curve, omega)
        squared = -float(gradient @ x + g_z @ dz)
        dw = np.zeros(room.size)
        dw[moves] = x[q + 1 :]
        return (float(x[q]), x[:q], dz, dw), squared

    def _inverse(self, r: FloatArray, curve: FloatArray, omega: FloatArray) -> FloatArray:
        """Return the inverse of the block of z applied to a vector."""
        part = r / curve
        total = np.bincount(self._view, weights=part, minlength=omega.size)
        return part - (omega * total)[self._view] / curve

    def _step_length(
        self, change: FloatArray, dt: float, db: FloatArray, dz: FloatArray, squared: float
    ) -> float:
        """Return a step that stays inside and does not overshoot along the Newton direction."""
        falls = change < 0.0
        step = 0.9 * min(1.0 / 0.9, float((-self.inside[falls] / change[falls]).min(initial=2.0)))
        lam, scale = self.penalty.lam, 1.0 / self.sigma
        moved = np.zeros(self._beta.size)
        moved[self._free] = dz
        while step > 1e-12 and squared >= _FULL:
            ratio = (self._beta + step * db) / self._shares(self._z + step * dz)
            slope = scale * (dt + float(lam * (ratio * (2.0 * db - ratio * moved)).sum()))
            slope -= float((change / (self.inside + step * change)).sum())
            if slope <= 0.5 * squared:
                break
            step *= 0.5
        return step


def _solve(H: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve with a positive definite matrix, scaled to unit diagonal and lifted by rounding.

    Raises LinAlgError where rounding has left nothing of it.
    """
    diagonal = np.diagonal(H)
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("not positive definite")
    unit = 1.0 / np.sqrt(diagonal)
    scaled = H * np.outer(unit, unit)
    scaled[np.diag_indices_from(scaled)] += _LIFT
    factor = cho_factor(scaled, lower=True, check_finite=False)
    solution: FloatArray = cho_solve(factor, unit[:, None] * rhs, check_finite=False)
    return unit[:, None] * solution
