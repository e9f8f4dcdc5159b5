"""Compiled Newton steps of the barrier method for the small problem over kernel weights.

The function of (β, z, t) is ``t + λ Σ βⱼ²/zⱼ``, over σ, minus the logarithms of what has to
be positive: the slacks ``s = t − κ + Gβ``, β, z, ``over = 1 − z``, ``room = k − Σz``; ``Σβ = 1``.
A first fit waits for its compilation: one loop over all that is positive takes the place of five,
and vectors are written out as loops, for an array expression takes ten times as long.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(fastmath={"reassoc", "contract"}, **_JIT)
def _inner(x, y, n):
    """Return the inner product of the first n entries, added as the processor likes best."""
    total = 0.0
    for k in range(n):
        total += x[k] * y[k]
    return total


@njit(**_JIT)
def _factor(S, unit):
    """Factor ``S`` in place after scaling its diagonal to one; tiny pivots are lifted."""
    n = S.shape[0]
    for i in range(n):
        unit[i] = 1.0 / np.sqrt(S[i, i]) if S[i, i] > 0.0 else 1.0
    for i in range(n):
        for j in range(i + 1):
            S[i, j] *= unit[i] * unit[j]
    for j in range(n):
        row = S[j]
        pivot = row[j] - _inner(row, row, j)
        pivot = np.sqrt(pivot if pivot > 1e-15 else 1e-15)
        row[j] = pivot
        for i in range(j + 1, n):
            S[i, j] = (S[i, j] - _inner(S[i], row, j)) / pivot


@njit(**_JIT)
def _solve(S, unit, rhs):
    """Solve with the factor of `_factor` for each row of ``rhs``, in place."""
    n = S.shape[0]
    for r in range(rhs.shape[0]):
        for i in range(n):
            rhs[r, i] = (rhs[r, i] * unit[i] - _inner(S[i], rhs[r], i)) / S[i, i]
        for i in range(n - 1, -1, -1):
            value = rhs[r, i] / S[i, i]
            rhs[r, i] = value
            for k in range(i):
                rhs[r, k] -= value * S[i, k]
        for i in range(n):
            rhs[r, i] *= unit[i]


@njit(**_JIT)
def _hessian(G, lam, free, scale, s, beta, z, over, room, S, pull, curve):
    """Write the Hessian in (β, t), z eliminated, lower triangle, and return ω: mq² flops."""
    m, q = G.shape
    total = 0.0
    for j in range(q):
        bend = 2.0 * scale * lam / z[j]
        pull[j] = 0.0
        if free[j]:
            ratio = beta[j] / z[j]
            own = 1.0 / (z[j] * z[j]) + 1.0 / (over[j] * over[j])
            curve[j] = bend * ratio * ratio + own
            pull[j] = bend * ratio / curve[j]
            total += 1.0 / curve[j]
            bend *= own / curve[j]
        S[j, j] = bend + 1.0 / (beta[j] * beta[j])
    omega = 1.0 / (room * room + total)
    for j in range(q):
        own = S[j, j]
        for k in range(j + 1):
            S[j, k] = omega * pull[j] * pull[k]
        S[j, j] += own
        S[q, j] = 0.0
    S[q, q] = 0.0
    for i in range(m):
        w = 1.0 / (s[i] * s[i])
        for j in range(q):
            S[q, j] += w * G[i, j]
        S[q, q] += w
    # four cuts in one pass over S
    for i in range(0, m - 3, 4):
        for j in range(q):
            a = G[i, j] / (s[i] * s[i])
            b = G[i + 1, j] / (s[i + 1] * s[i + 1])
            c = G[i + 2, j] / (s[i + 2] * s[i + 2])
            d = G[i + 3, j] / (s[i + 3] * s[i + 3])
            for k in range(j + 1):
                S[j, k] += a * G[i, k] + b * G[i + 1, k] + c * G[i + 2, k] + d * G[i + 3, k]
    for i in range(m - m % 4, m):
        for j in range(q):
            a = G[i, j] / (s[i] * s[i])
            for k in range(j + 1):
                S[j, k] += a * G[i, k]
    return omega


@njit(**_JIT)
def _gradient(G, lam, scale, s, beta, z, rhs, slope):
    """Write the negative gradient in (β, t), without the part of z, and Σβ's normal: mq flops."""
    m, q = G.shape
    for j in range(q):
        slope[j] = 1.0 / beta[j] - scale * (2.0 * lam * beta[j] / z[j])
    slope[q] = -scale
    for i in range(m):
        push = 1.0 / s[i]
        for j in range(q):
            slope[j] += push * G[i, j]
        slope[q] += push
    for j in range(q + 1):
        rhs[0, j] = slope[j]
        rhs[1, j] = 1.0 if j < q else 0.0


@njit(**_JIT)
def _direction(lam, free, scale, beta, z, over, room, omega, pull, curve, S, unit, slope, rhs, dz):
    """Write the Newton step, (Δβ, Δt) to ``rhs[0]`` and Δz; return the squared decrement."""
    q = beta.size
    total = 0.0
    for j in range(q):
        if free[j]:
            ratio = beta[j] / z[j]
            dz[j] = scale * lam * ratio * ratio + 1.0 / z[j] - 1.0 / over[j] - 1.0 / room
            total += dz[j] / curve[j]
    for j in range(q):
        if free[j]:
            rhs[0, j] += pull[j] * (dz[j] - omega * total)
    _solve(S, unit, rhs)
    rest, length = -1.0, 0.0
    for j in range(q):
        rest += rhs[0, j] + beta[j]
        length += rhs[1, j]
    shift = decrement = 0.0
    for j in range(q + 1):
        rhs[0, j] -= rest / length * rhs[1, j]
        decrement += slope[j] * rhs[0, j]
    for j in range(q):
        if free[j]:
            force = dz[j]
            dz[j] = force / curve[j] + pull[j] * rhs[0, j]
            shift += dz[j]
            pull[j] = force
    for j in range(q):
        if free[j]:
            dz[j] -= shift * omega / curve[j]
            decrement += pull[j] * dz[j]
    return decrement


@njit(**_JIT)
def _spread(G, rhs, dz, change):
    """Write how everything positive changes, in the order s, β, z, over, room: mq flops."""
    m, q = G.shape
    for i in range(m):
        value = rhs[0, q]
        for j in range(q):
            value += G[i, j] * rhs[0, j]
        change[i] = value
    fill = 0.0
    for j in range(q):
        change[m + j] = rhs[0, j]
        change[m + q + j] = dz[j]
        change[m + 2 * q + j] = -dz[j]
        fill += dz[j]
    change[m + 3 * q] = -fill


@njit(**_JIT)
def _step_length(lam, scale, beta, z, inside, change, rhs, dz, squared):
    """Return a step that stays inside and does not overshoot along the Newton direction.

    The barrier function is convex along the line: a step is cut in half while its slope there is
    more than half of what it was, upwards.
    """
    q = beta.size
    step = 1.0 / 0.9
    for v in range(inside.size):
        if inside[v] + step * change[v] < 0.0:
            step = -inside[v] / change[v]
    step *= 0.9
    while step > 1e-12 and squared >= 0.0625:
        slope = scale * rhs[0, q]
        for v in range(inside.size):
            slope -= change[v] / (inside[v] + step * change[v])
        for j in range(q):
            x = rhs[0, j]
            ratio = (beta[j] + step * x) / (z[j] + step * dz[j])
            slope += scale * (lam * ratio * (2.0 * x - ratio * dz[j]))
        if slope <= 0.5 * squared:
            break
        step *= 0.5
    return step


@njit(**_JIT)
def centre(G, lam, free, scale, most, inside, s, beta, z, over, change, S, rhs, work):
    """Take Newton steps towards the point of the central path at one barrier parameter.

    With ``−log`` of z, ``λβ²/z`` is self-concordant, so that Newton steps cut back where they
    overshoot always converge.

    - G (m, q): halves of the quadratic forms; free (q,), bool: whose share z is a variable; it is 1
      for the others, as is ``over``; scale: 1/σ; most: Newton steps
    - inside (m + 3q + 1,): what has to be positive: s, β, z, over and room, one after the other,
      updated; s (m,), beta, z, over (q,): its parts
    - change (m + 3q + 1,), S (q + 1, q + 1), rhs (2, q + 1), work (5, q + 1): scratch; ``work`` is
      zero where no share is free

    Returns the steps taken, and whether the point is still far from the path. About ``mq² + q³/3``
    flops a step.
    """
    unit, pull, curve, slope, dz = work[0], work[1], work[2], work[3], work[4]
    for it in range(most):
        room = inside[inside.size - 1]
        omega = _hessian(G, lam, free, scale, s, beta, z, over, room, S, pull, curve)
        _factor(S, unit)
        _gradient(G, lam, scale, s, beta, z, rhs, slope)
        squared = _direction(
            lam, free, scale, beta, z, over, room, omega, pull, curve, S, unit, slope, rhs, dz
        )
        _spread(G, rhs, dz, change)
        step = _step_length(lam, scale, beta, z, inside, change, rhs, dz, squared)
        for v in range(inside.size):
            inside[v] += step * change[v]
        if squared <= 0.25:
            return it + 1, False
    return most, True
