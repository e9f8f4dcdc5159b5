"""Compiled coordinate descent on the dual of a machine over low-rank factors."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from kernelweave.kernels_core.compiled import njit

_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def sweep(Z, begin, end, beta, order, p, lower, upper, epsilon, diagonal, rho, b, u, v):
    """Maximise ``pᵀu − ε‖u‖₁ − ½uᵀKu − bΣu − ½ρ(Σu)²`` in one coordinate after another.

    Z (n, r), read only: the factors of all kernels side by side; begin, end (a,) int64: columns of
    each kernel of positive weight; beta (a,); order, int64: the samples to visit. u (n,) is changed
    in place, and with it v (r,), ``βⱼZⱼᵀu``. Returns Σu. ``4r`` flops a sample that moves, half of
    them where it does not.
    """
    total = 0.0
    for i in range(u.size):
        total += u[i]
    for i in order:
        row = Z[i]
        f = 0.0
        for a in range(begin.size):
            part = row[begin[a] : end[a]]
            own = v[begin[a] : end[a]]
            for c in range(part.size):
                f += part[c] * own[c]
        bend = diagonal[i] + rho
        old = u[i]
        top = p[i] - f - b - rho * total + bend * old
        if top > epsilon:
            new = (top - epsilon) / bend
        elif top < -epsilon:
            new = (top + epsilon) / bend
        else:
            new = 0.0
        new = min(max(new, lower[i]), upper[i])
        step = new - old
        if step != 0.0:
            u[i] = new
            total += step
            for a in range(begin.size):
                part = row[begin[a] : end[a]]
                own = v[begin[a] : end[a]]
                scale = beta[a] * step
                for c in range(part.size):
                    own[c] += scale * part[c]
    return total
