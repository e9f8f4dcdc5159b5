"""Compiled barrier method for the small problem over kernel weights.

``min t + aᵀβ + λ Σ βⱼ²/zⱼ`` over ``t ≥ κᵢ − gᵢᵀβ``, ``β ≥ 0``, ``Σβ = 1``, ``0 ≤ z ≤ 1``,
``Σ z ≤ k`` over the free j, and ``zⱼ = 1`` for the others. Its dual is explicit: the maximum over
``μ ≥ 0``, ``Σμ = 1`` of ``κᵀμ + min over β of aᵀβ + penalty(β) − (Gᵀμ)ᵀβ``.

Vectors are written out as loops: an array expression, a mask or a sort of numba's takes ten times
as long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from typing import Any

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
        pivot = np.sqrt(pivot if pivot > 1e-15 else 1e-15)
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
def _longest(x, dx, sign, size, step):
    """Return the longest step up to ``step`` that keeps x nonnegative along ``sign·dx``."""
    for i in range(size):
        d = sign * dx[i]
        if d < 0.0 and x[i] + step * d < 0.0:
            step = -x[i] / d
    return step


@njit(**_JIT)
def _sort_down(x, size):
    """Sort the first entries of x from large to small, by insertion: size² / 4 moves."""
    for i in range(1, size):
        value = x[i]
        j = i
        while j > 0 and x[j - 1] < value:
            x[j] = x[j - 1]
            j -= 1
        x[j] = value


@njit(**_JIT)
def _times(G, x, out):
    """Write ``G x``, x being as long as a row or longer."""
    for i in range(G.shape[0]):
        value = 0.0
        for j in range(G.shape[1]):
            value += G[i, j] * x[j]
        out[i] = value


@njit(**_JIT)
def _keep(x, y, to_x, to_y, size):
    """Copy the first entries of two vectors."""
    for j in range(size):
        to_x[j] = x[j]
        to_y[j] = y[j]


@njit(**_JIT)
def _dual_value(kappa, G, a, lam, free, capacity, mu, v, w):
    """Return the dual value at ``μ/Σμ`` in plain floating point: mq + q² operations."""
    m, q = G.shape
    total = value = 0.0
    for j in range(q):
        v[j] = 0.0
    for i in range(m):
        weight = mu[i]
        total += weight
        value += kappa[i] * weight
        for j in range(q):
            v[j] += weight * G[i, j]
    value /= total
    n: Any = np.int64(0)  # a literal would be another variant of the sort
    for j in range(q):
        if free[j]:
            w[n] = v[j] / total - a[j]
            n += 1
    _sort_down(w, n)
    if n > capacity:
        n = int(capacity)
    for j in range(q):
        if not free[j]:
            w[n] = v[j] / total - a[j]
            n += 1
    _sort_down(w, n)
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
def _primal_value(kappa, G, a, lam, beta, z):
    """Return the primal value at ``β/Σβ`` in plain floating point: mq operations."""
    m, q = G.shape
    total = line = square = 0.0
    for j in range(q):
        total += beta[j]
        line += a[j] * beta[j]
        square += beta[j] * beta[j] / z[j]
    top = -np.inf
    for i in range(m):
        value = 0.0
        for j in range(q):
            value += G[i, j] * beta[j]
        value = kappa[i] - value / total
        if value > top:
            top = value
    return top + line / total + lam * square / (total * total)


@njit(**_JIT)
def _start(kappa, G, free, capacity, n_free, beta, z, s):
    """Write a strictly feasible point; return σ with ``Σ σ/s`` about 1."""
    m, q = G.shape
    for j in range(q):
        beta[j] = 1.0 / q
        z[j] = 1.0
        if free[j]:
            z[j] = 0.9 * capacity / n_free if capacity < n_free else 0.9
    _times(G, beta, s)
    top = -np.inf
    size = 1e-12
    for i in range(m):
        s[i] = kappa[i] - s[i]
        top = s[i] if s[i] > top else top
        size = abs(kappa[i]) if abs(kappa[i]) > size else size
    sigma = 0.1 * size
    low, high = top + sigma, top + sigma * m
    for _ in range(60):
        t = 0.5 * (low + high)
        total = 0.0
        for i in range(m):
            total += sigma / (t - s[i])
        if total > 1.0:
            low = t
        else:
            high = t
    for i in range(m):
        s[i] = high - s[i]
    return sigma


@njit(**_JIT)
def _assemble(G, S, s, diag, pull, omega):
    """Write ``[G 1]ᵀ diag(s⁻²) [G 1] + diag + ω pull pullᵀ``, lower triangle: mq² flops."""
    m, q = G.shape
    for j in range(q):
        for k in range(j + 1):
            S[j, k] = omega * pull[j] * pull[k]
        S[j, j] += diag[j]
        S[q, j] = 0.0
    S[q, q] = 0.0
    for i in range(m):
        w = 1.0 / (s[i] * s[i])
        for j in range(q):
            x = w * G[i, j]
            for k in range(j + 1):
                S[j, k] += x * G[i, k]
            S[q, j] += x
        S[q, q] += w


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
def _gradient(G, a, lam, scale, beta, z, s, x, slope):
    """Write the negative gradient in (β, t), without the part of z, to x and slope: mq flops."""
    m, q = G.shape
    for j in range(q):
        x[j] = 1.0 / beta[j] - scale * (a[j] + 2.0 * lam * beta[j] / z[j])
    x[q] = -scale
    for i in range(m):
        push = 1.0 / s[i]
        for j in range(q):
            x[j] += push * G[i, j]
        x[q] += push
    for j in range(q + 1):
        slope[j] = x[j]


@njit(**_JIT)
def _direction(
    lam, free, scale, beta, z, over, lift, omega, pull, curve_z, S, unit, slope, x, e, dz
):
    """Write the Newton step: x = (Δβ, Δt) and Δz; return the squared decrement."""
    q = beta.size
    total = 0.0
    for j in range(q):
        e[j] = 1.0
        if free[j]:
            ratio = beta[j] / z[j]
            dz[j] = scale * lam * ratio * ratio + 1.0 / z[j] - 1.0 / over[j] - lift
            total += dz[j] / curve_z[j]
    e[q] = 0.0
    for j in range(q):
        if free[j]:
            x[j] += pull[j] * (dz[j] - omega * total)
    _solve(S, unit, e)
    _solve(S, unit, x)
    rest, length = -1.0, 0.0
    for j in range(q):
        rest += x[j] + beta[j]
        length += e[j]
    shift = decrement = 0.0
    for j in range(q + 1):
        x[j] -= rest / length * e[j]
        decrement += slope[j] * x[j]
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
    step = _longest(s, ds, 1.0, s.size, 1.0 / 0.9)
    step = _longest(beta, x, 1.0, q, step)
    step = _longest(z, dz, 1.0, q, step)
    step = 0.9 * _longest(over, dz, -1.0, q, step)
    if room - step * fill <= 0.0:
        step = 0.99 * room / fill
    while step > 1e-12 and not is_close:
        slope = scale * x[q]
        for i in range(s.size):
            slope -= ds[i] / (s[i] + step * ds[i])
        for j in range(q):
            new = beta[j] + step * x[j]
            slope += scale * a[j] * x[j] - x[j] / new
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
def solve_master(kappa, G, a, lam, free, capacity, tol, max_iter, beta, z, mu, S, rows, work):
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
    S, rows, work : ndarray of shape (q + 1, q + 1), (3, m) and (13, q + 1)
        Scratch; ``work`` is zero on entry.

    Returns
    -------
    tuple
        The primal and the dual value in plain floating point, and the Newton steps made.

    Notes
    -----
    About ``mq² + q³/3`` flops a step; 30 to 60 steps.
    """
    m, q = G.shape
    s, ds, push = rows[0], rows[1], rows[2]
    unit, x, e, diag, pull, curve_z, dz = (
        work[0],
        work[1],
        work[2],
        work[3],
        work[4],
        work[5],
        work[6],
    )
    over, slope, v, w, best_beta, best_z = work[7], work[8], work[9], work[10], work[11], work[12]
    n_free = 0.0
    for j in range(q):
        n_free += 1.0 if free[j] else 0.0
    room = capacity if n_free > 0.0 else 1.0
    sigma = _start(kappa, G, free, capacity, n_free, beta, z, s)
    scale = 1.0 / sigma
    for j in range(q):
        over[j] = 1.0 - z[j] if free[j] else 1.0
        room -= z[j] if free[j] else 0.0
    upper, lower = np.inf, -np.inf
    patience, idle = _PATIENCE, 0
    it = 0
    for it in range(max_iter):  # noqa: B007 (returned)
        omega = _curvature(scale, lam, free, beta, z, over, room, diag, pull, curve_z)
        _assemble(G, S, s, diag, pull, omega)
        _factor(S, unit)
        _gradient(G, a, lam, scale, beta, z, s, x, slope)
        lift = 1.0 / room if n_free > 0.0 else 0.0
        squared = _direction(
            lam, free, scale, beta, z, over, lift, omega, pull, curve_z, S, unit, slope, x, e, dz
        )
        is_close = squared < 0.0625
        _times(G, x, ds)
        fill = 0.0
        for i in range(m):
            ds[i] += x[q]
        for j in range(q):
            fill += dz[j] if free[j] else 0.0
        step = _step_length(
            a, lam, free, scale, beta, z, over, room, s, ds, x, dz, fill, squared, is_close
        )
        for i in range(m):
            s[i] += step * ds[i]
            push[i] = 1.0 / s[i]
        for j in range(q):
            beta[j] += step * x[j]
            if free[j]:
                z[j] += step * dz[j]
                over[j] -= step * dz[j]
        room -= step * fill
        patience -= 1
        stuck = squared > 0.25
        if stuck and patience > 0:
            continue
        patience = _PATIENCE
        primal = _primal_value(kappa, G, a, lam, beta, z)
        dual = _dual_value(kappa, G, a, lam, free, capacity, push, v, w)
        idle = 0 if primal < upper or dual > lower else idle + 1
        if primal < upper:
            upper = primal
            _keep(beta, z, best_beta, best_z, q)
        if dual > lower:
            lower = dual
            _keep(push, push, mu, mu, m)
        if upper - lower <= tol * abs(upper) or stuck or idle >= _IDLE:
            break
        scale *= 12.0
    _keep(best_beta, best_z, beta, z, q)
    return upper, lower, it
