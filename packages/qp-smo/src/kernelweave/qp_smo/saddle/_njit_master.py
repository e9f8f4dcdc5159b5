"""Compiled barrier method for the small problem over kernel weights.

``min t + aᵀβ + λ Σ βⱼ²/zⱼ`` over ``t ≥ κᵢ − gᵢᵀβ``, ``β ≥ 0``, ``Σβ = 1``, ``0 ≤ z ≤ 1``,
``Σ z ≤ k`` over the free j, and ``zⱼ = 1`` for the others. Its dual is explicit: the maximum over
``μ ≥ 0``, ``Σμ = 1`` of ``κᵀμ + min over β of aᵀβ + penalty(β) − (Gᵀμ)ᵀβ``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

# Newton steps at one barrier parameter: more are needed only where rounding hides the progress.
_PATIENCE = 50
# Barrier parameters in a row that may bring neither a better point nor a better bound.
_IDLE = 2
_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def _factor(S, scale):
    """Factor ``S`` in place after scaling its diagonal to one; tiny pivots are lifted."""
    n = S.shape[0]
    for i in range(n):
        scale[i] = 1.0 / np.sqrt(S[i, i]) if S[i, i] > 0.0 else 1.0
    for i in range(n):
        for j in range(i + 1):
            S[i, j] *= scale[i] * scale[j]
    for j in range(n):
        pivot = S[j, j]
        for k in range(j):
            pivot -= S[j, k] * S[j, k]
        pivot = np.sqrt(max(pivot, 1e-15))
        S[j, j] = pivot
        for i in range(j + 1, n):
            x = S[i, j]
            for k in range(j):
                x -= S[i, k] * S[j, k]
            S[i, j] = x / pivot


@njit(**_JIT)
def _solve(S, scale, x):
    """Solve with the factor of `_factor`, in place."""
    n = S.shape[0]
    for i in range(n):
        value = x[i] * scale[i]
        for k in range(i):
            value -= S[i, k] * x[k]
        x[i] = value / S[i, i]
    for i in range(n - 1, -1, -1):
        value = x[i]
        for k in range(i + 1, n):
            value -= S[k, i] * x[k]
        x[i] = value / S[i, i]
    for i in range(n):
        x[i] *= scale[i]


@njit(**_JIT)
def _longest(x, dx, step):
    """Return the longest step up to ``step`` that keeps x nonnegative."""
    for i in range(x.size):
        if dx[i] < 0.0 and x[i] + step * dx[i] < 0.0:
            step = -x[i] / dx[i]
    return step


@njit(**_JIT)
def _dual_value(kappa, G, a, lam, free, capacity, mu):
    """Return the dual value at ``μ/Σμ`` in plain floating point: mq + q log q operations."""
    total = mu.sum()
    v = G.T @ mu / total - a
    q = v.size
    kept = np.empty(q)
    n = 0
    for j in range(q):
        if not free[j]:
            kept[n] = v[j]
            n += 1
    shared = np.sort(v[free])[::-1]
    for j in range(min(shared.size, int(capacity))):
        kept[n] = shared[j]
        n += 1
    value = kappa @ mu / total
    w = np.sort(kept[:n])[::-1]
    if lam == 0.0:
        return value - w[0]
    depth = 2.0 * lam
    excess = 0.0
    for r in range(1, n):
        gap = w[0] - w[r]
        if gap * r >= 2.0 * lam + excess:
            break
        excess += gap
        depth = (2.0 * lam + excess) / (r + 1)
    squares = 0.0
    for r in range(n):
        over = depth - (w[0] - w[r])
        if over > 0.0:
            squares += over * over
    return value - (w[0] - depth) - squares / (4.0 * lam)


@njit(**_JIT)
def _start(kappa, G, free, capacity, beta, z, s):
    """Write a strictly feasible point; return σ with ``Σ σ/s`` about 1."""
    beta[:] = 1.0 / beta.size
    z[:] = 1.0
    n_free = free.sum()
    if n_free > 0:
        z[free] = 0.9 * min(1.0, capacity / n_free)
    cut = kappa - G @ beta
    top = cut.max()
    sigma = 0.1 * max(np.abs(kappa).max(), 1e-12)
    low, high = top + sigma, top + sigma * kappa.size
    for _ in range(60):
        t = 0.5 * (low + high)
        if (sigma / (t - cut)).sum() > 1.0:
            low = t
        else:
            high = t
    s[:] = high - cut
    return sigma


@njit(**_JIT)
def _assemble(G, S, w, diag, pull, omega):
    """Write ``[G 1]ᵀ diag(w) [G 1] + diag + ω pull pullᵀ``, lower triangle: mq² flops."""
    m, q = G.shape
    S[:] = 0.0
    for i in range(m):
        for j in range(q):
            x = w[i] * G[i, j]
            for k in range(j + 1):
                S[j, k] += x * G[i, k]
            S[q, j] += x
        S[q, q] += w[i]
    for j in range(q):
        for k in range(j + 1):
            S[j, k] += omega * pull[j] * pull[k]
        S[j, j] += diag[j]


@njit(**_JIT)
def _curvature(scale, lam, free, beta, z, over, room, diag, pull, curve_z):
    """Write the diagonal of the Hessian after the elimination of z; return ω."""
    total = 0.0
    for j in range(beta.size):
        curve = 2.0 * scale * lam / z[j]
        pull[j] = 0.0
        if free[j]:
            ratio = beta[j] / z[j]
            own = 1.0 / (z[j] * z[j]) + 1.0 / (over[j] * over[j])
            curve_z[j] = curve * ratio * ratio + own
            pull[j] = curve * ratio / curve_z[j]
            total += 1.0 / curve_z[j]
            curve *= own / curve_z[j]
        diag[j] = curve + 1.0 / (beta[j] * beta[j])
    return 1.0 / (room * room + total)


@njit(**_JIT)
def _direction(
    G, a, lam, free, scale, beta, z, over, room, s, omega, pull, curve_z, S, unit, x, e, dz
):
    """Write the Newton step: x = (Δβ, Δt) and Δz; return the squared decrement."""
    q = beta.size
    push = 1.0 / s
    e[:q] = 1.0
    e[q] = 0.0
    _solve(S, unit, e)
    lift = 1.0 / room if free.sum() > 0 else 0.0
    x[:q] = G.T @ push - scale * (a + 2.0 * lam * beta / z) + 1.0 / beta
    x[q] = push.sum() - scale
    slope = x.copy()
    total = 0.0
    for j in range(q):
        if free[j]:
            ratio = beta[j] / z[j]
            dz[j] = scale * lam * ratio * ratio + 1.0 / z[j] - 1.0 / over[j] - lift
            total += dz[j] / curve_z[j]
    for j in range(q):
        if free[j]:
            x[j] += pull[j] * (dz[j] - omega * total)
    _solve(S, unit, x)
    dy = (x[:q].sum() - (1.0 - beta.sum())) / e[:q].sum()
    x -= dy * e
    decrement = slope @ x
    shift = 0.0
    for j in range(q):
        if free[j]:
            force = dz[j]
            dz[j] = force / curve_z[j] + pull[j] * x[j]
            shift += dz[j]
            pull[j] = force
    for j in range(q):
        if free[j]:
            dz[j] -= shift * omega / curve_z[j]
            decrement += pull[j] * dz[j]
    return decrement


@njit(**_JIT)
def _step_length(a, lam, free, scale, beta, z, over, room, s, ds, x, dz, fill, squared, is_close):
    """Return a step that stays inside and does not overshoot along the Newton direction.

    The barrier function is convex along the line: a step is cut in half while its slope there is
    more than half of what it was, upwards.
    """
    q = beta.size
    step = _longest(s, ds, 1.0 / 0.9)
    step = _longest(beta, x[:q], step)
    step = _longest(z, dz, step)
    step = 0.9 * _longest(over, -dz, step)
    if room - step * fill <= 0.0:
        step = 0.99 * room / fill
    while step > 1e-12 and not is_close:
        slope = scale * (x[q] + a @ x[:q]) - (ds / (s + step * ds)).sum()
        for j in range(q):
            new = beta[j] + step * x[j]
            slope -= x[j] / new
            if free[j]:
                share = z[j] + step * dz[j]
                ratio = new / share
                slope += scale * lam * ratio * (2.0 * x[j] - ratio * dz[j])
                slope -= dz[j] / share - dz[j] / (over[j] - step * dz[j])
            else:
                slope += 2.0 * scale * lam * new * x[j]
        slope += fill / (room - step * fill)
        if slope <= 0.5 * squared:
            break
        step *= 0.5
    return step


@njit(**_JIT)
def solve_master(kappa, G, a, lam, free, capacity, tol, max_iter, beta, z, mu):
    """Follow the central path of the master problem by Newton's method.

    With ``−log`` of z, ``λβ²/z`` is self-concordant, so that Newton steps cut back where they
    overshoot always converge.

    Parameters
    ----------
    kappa : ndarray of shape (m,)
    G : ndarray of shape (m, q)
        Halves of the quadratic forms.
    a : ndarray of shape (q,)
    lam : float
    free : ndarray of shape (q,), bool
        Whose share z is a variable.
    capacity : float
        The sum that the free shares may have.
    tol : float
        Gap to reach, relative to the value.
    max_iter : int
        Newton steps.
    beta, z : ndarray of shape (q,)
    mu : ndarray of shape (m,)
        Overwritten: the point of the best primal value, and the multipliers of the best dual one.

    Returns
    -------
    tuple
        The primal and the dual value in plain floating point, and the Newton steps made.

    Notes
    -----
    About ``mq² + q³/3`` flops a step; 30 to 60 steps.
    """
    m, q = G.shape
    s = np.empty(m)
    sigma = _start(kappa, G, free, capacity, beta, z, s)
    scale = 1.0 / sigma
    over = np.where(free, 1.0 - z, 1.0)
    any_free = free.sum() > 0
    room = capacity - z[free].sum() if any_free else 1.0
    S = np.empty((q + 1, q + 1))
    unit, x, e = np.empty(q + 1), np.empty(q + 1), np.empty(q + 1)
    diag, pull, curve_z, dz = np.empty(q), np.zeros(q), np.ones(q), np.zeros(q)
    best_beta, best_z, best_mu = beta.copy(), z.copy(), mu.copy()
    upper, lower = np.inf, -np.inf
    patience, idle = _PATIENCE, 0
    it = 0
    for it in range(max_iter):  # noqa: B007 (returned)
        omega = _curvature(scale, lam, free, beta, z, over, room, diag, pull, curve_z)
        _assemble(G, S, 1.0 / (s * s), diag, pull, omega)
        _factor(S, unit)
        squared = _direction(
            G, a, lam, free, scale, beta, z, over, room, s, omega, pull, curve_z, S, unit, x, e, dz
        )
        size = np.sqrt(max(squared, 0.0))
        ds = x[q] + G @ x[:q]
        fill = dz[free].sum()
        step = _step_length(
            a, lam, free, scale, beta, z, over, room, s, ds, x, dz, fill, squared, size < 0.25
        )
        s += step * ds
        beta += step * x[:q]
        z += step * dz
        over -= step * dz
        room -= step * fill
        patience -= 1
        if size > 0.5 and patience > 0:
            continue
        stuck = size > 0.5
        patience = _PATIENCE
        total = beta.sum()
        primal = (kappa - G @ beta / total).max() + (a @ beta) / total
        primal += lam * (beta * beta / z).sum() / (total * total)
        push = 1.0 / s
        dual = _dual_value(kappa, G, a, lam, free, capacity, push)
        idle = 0 if primal < upper or dual > lower else idle + 1
        if primal < upper:
            upper = primal
            best_beta[:] = beta / total
            best_z[:] = z
        if dual > lower:
            lower = dual
            best_mu[:] = push
        if upper - lower <= tol * abs(upper) or stuck or idle >= _IDLE:
            break
        scale *= 12.0
    beta[:] = best_beta
    z[:] = best_z
    mu[:] = best_mu
    return upper, lower, it
