"""Compiled enumeration of supports: which of them the cuts leave below a threshold.

For multipliers μ of the cuts, ``v = ½Dᵀμ`` and a support S the saddle value over S is at least
``κᵀμ − φ(v_S)``, φ(w) the maximum of ``wᵀβ − λ‖β‖²`` over the simplex: a closed form. It grows with
every entry of w, so the largest free entries of v bound all supports below a branch at once.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

# Of rounding, written out: compiled code uses what its own file holds.
_UNIT = 2.0**-53
# Bisections of a line search: a shorter step would be lost in rounding.
_HALVINGS = 24
# Steps between two looks at all cuts.
_LOOK = 16
# Cuts in use at most whose multipliers are moved together, and steps between two such moves.
_MOST_USED, _EVERY = 12, 4
_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

# What is known of a support: its bound is above the threshold, weights below it were found, or
# neither within the steps.
CLOSED, WITNESSED, UNDECIDED = 0, 1, 2


@njit(**_JIT)
def _conjugate(w, n, lam, beta):
    """Return φ of the first n entries of w, which descend, rounded up; write its maximiser."""
    beta[:n] = 0.0
    if lam == 0.0:
        beta[0] = 1.0
        return w[0]
    depth, excess = 2.0 * lam, 0.0
    for r in range(1, n):
        gap = w[0] - w[r]
        if gap * r >= 2.0 * lam + excess:
            break
        excess += gap
        depth = (2.0 * lam + excess) / (r + 1)
    tau = w[0] - depth
    squares, spread = 0.0, 0.0
    for r in range(n):
        over = max(w[r] - tau, 0.0)
        beta[r] = max(depth - (w[0] - w[r]), 0.0) / (2.0 * lam)
        squares += over * over
        spread += over * (abs(w[r]) + abs(tau))
    squares /= 4.0 * lam
    margin = 2.0 * _UNIT * ((n + 8) * squares + spread / lam + abs(tau))
    return tau + squares + margin


@njit(**_JIT)
def _insert(v, j, chosen, n, limit):
    """Insert j into the positions whose v descends, at most ``limit`` of them; return how many."""
    if n == limit:
        if v[j] <= v[chosen[n - 1]]:
            return n
        n -= 1
    at = n
    while at > 0 and v[chosen[at - 1]] < v[j]:
        chosen[at] = chosen[at - 1]
        at -= 1
    chosen[at] = j
    return n + 1


@njit(**_JIT)
def _aggregate(kappa, half, mu, v):
    """Write ½Dᵀμ rounded up, for μ scaled to sum to 1; return κᵀμ rounded down."""
    total, n_used = 0.0, 0
    for i in range(mu.size):
        if mu[i] > 0.0:
            total += mu[i]
            n_used += 1
    rounding = 2.0 * (2 * n_used + 6) * _UNIT
    low = 0.0
    v[:] = 0.0
    for i in range(mu.size):
        if mu[i] > 0.0:
            mu[i] /= total
            low += mu[i] * kappa[i] - rounding * mu[i] * abs(kappa[i])
            for j in range(v.size):
                v[j] += mu[i] * half[i, j] + rounding * mu[i] * abs(half[i, j])
    return low


@njit(**_JIT)
def _proved(low, phi):
    return low - phi - 4.0 * _UNIT * (abs(low) + abs(phi))


@njit(**_JIT)
def _line_search(rise, fall, w, n, lam, most, trial, order, beta):
    """Return the step along μ_a − μ_b that maximises the dual over one support.

    ``rise`` is κ_a − κ_b and ``fall`` the difference of the halves on the support.
    """
    low, high, step = 0.0, most, most
    for halving in range(_HALVINGS):
        count = 0
        for r in range(n):
            trial[r] = w[r] + step * fall[r]
        for r in range(n):
            count = _insert(trial, r, order, count, n)
        slope = rise
        top = trial[order[0]]
        if lam == 0.0:
            slope -= fall[order[0]]
        else:
            depth, excess = 2.0 * lam, 0.0
            for r in range(1, n):
                gap = top - trial[order[r]]
                if gap * r >= 2.0 * lam + excess:
                    break
                excess += gap
                depth = (2.0 * lam + excess) / (r + 1)
            for r in range(n):
                slope -= max(depth - (top - trial[r]), 0.0) / (2.0 * lam) * fall[r]
        if slope >= 0.0:
            if halving == 0:
                return most
            low = step
        else:
            high = step
        step = 0.5 * (low + high)
    return low


@njit(**_JIT)
def _partner(half, support, n, own, values, mu, known, up):
    """Return the known cut in use whose exchange for cut ``up`` promises most, -1 if none does.

    That is the slope squared over the curvature among the kernels with a weight; by the slope
    alone, steps zigzag where λ is small.
    """
    best, down = 0.0, -1
    for i in known:
        slope = values[up] - values[i]
        if mu[i] > 0.0 and slope > 0.0:
            mean, count = 0.0, 0
            for r in range(n):
                if own[r] > 0.0:
                    mean += half[up, support[r]] - half[i, support[r]]
                    count += 1
            mean /= count
            curve = 0.0
            for r in range(n):
                if own[r] > 0.0:
                    part = half[up, support[r]] - half[i, support[r]] - mean
                    curve += part * part
            gain = slope * slope / max(curve, 1e-300)
            if down < 0 or gain > best:
                best, down = gain, i
    return down


@njit(**_JIT)
def _eliminate(M, b, n):
    """Solve the first n of Mx = b, in the place of b; return whether no pivot is 0."""
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if abs(M[r, c]) > abs(M[pivot, c]):
                pivot = r
        if M[pivot, c] == 0.0:
            return False
        b[c], b[pivot] = b[pivot], b[c]
        for s in range(n):
            M[c, s], M[pivot, s] = M[pivot, s], M[c, s]
        for r in range(c + 1, n):
            factor = M[r, c] / M[c, c]
            b[r] -= factor * b[c]
            for s in range(c, n):
                M[r, s] -= factor * M[c, s]
    for c in range(n - 1, -1, -1):
        for s in range(c + 1, n):
            b[c] -= M[c, s] * b[s]
        b[c] /= M[c, c]
    return True


@njit(**_JIT)
def _newton(half, lam, support, own, used, values, move):
    """Write the move of the cuts ``used`` to the dual's maximum among the kernels with a weight.

    Its largest entry is 1; returns how often it is to be taken, 0 where there is none.
    """
    n, m = support.size, used.size
    apart, M = np.zeros((m, n)), np.zeros((m + 1, m + 1))
    for a in range(m):
        mean, count = 0.0, 0
        for r in range(n):
            if own[r] > 0.0:
                mean += half[used[a], support[r]]
                count += 1
        for r in range(n):
            if own[r] > 0.0:
                apart[a, r] = half[used[a], support[r]] - mean / count
    size = 0.0
    for a in range(m):
        move[a] = values[used[a]] - values[used[0]]
        for b in range(m):
            for r in range(n):
                M[a, b] += apart[a, r] * apart[b, r] / (2.0 * lam)
        size = max(size, M[a, a])
    for a in range(m):
        # of more cuts than kernels, what no curvature holds moves until a multiplier is 0
        M[a, a] += 1e-10 * size
        M[a, m] = M[m, a] = size
    move[m] = 0.0
    if size == 0.0 or not _eliminate(M, move, m + 1):
        return 0.0
    top = np.abs(move[:m]).max()
    if not 0.0 < top < np.inf:
        return 0.0
    move[:m] /= top
    return top


@njit(**_JIT)
def _correct(kappa, half, lam, support, own, known, up, values, mu, w, fall, trial, order, beta):
    """Move all multipliers in use at once; return how much κᵀμ rises, and whether they moved.

    Where λ is small pairwise steps zigzag, as the dual is nearly flat between its kinks.
    """
    used, m = np.empty(_MOST_USED, np.int64), 0
    for i in known:
        if mu[i] > 0.0 or i == up:
            if m == _MOST_USED:
                return 0.0, False
            used[m] = i
            m += 1
    if m < 3 or lam == 0.0:
        return 0.0, False
    move = np.empty(m + 1)
    most = _newton(half, lam, support, own, used[:m], values, move)
    rise = 0.0
    fall[:] = 0.0
    for a in range(m):
        rise += move[a] * (kappa[used[a]] - kappa[up])
        for r in range(support.size):
            fall[r] += move[a] * (half[used[a], support[r]] - half[up, support[r]])
        if move[a] < 0.0:
            most = min(most, -mu[used[a]] / move[a])
    if not most > 0.0:
        return 0.0, False
    step = _line_search(rise, fall, w, support.size, lam, most, trial, order, beta)
    if step <= 0.0:
        return 0.0, False
    for a in range(m):
        left = mu[used[a]] + step * move[a]
        mu[used[a]] = left if left > _UNIT else 0.0
    for r in range(support.size):
        w[r] += step * fall[r]
    return step * rise, True


@njit(**_JIT)
def _highest_known(kappa, half, support, own, known, values):
    """Write the values of the known cuts at the weights ``own``; return the highest."""
    up = known[0]
    for i in known:
        values[i] = kappa[i]
        for r in range(support.size):
            values[i] -= own[r] * half[i, support[r]]
        if values[i] > values[up]:
            up = i
    return up


@njit(**_JIT)
def _highest(kappa, columns, support, own, known, n_known, values):
    """Write the values of all cuts at the weights ``own``; return the highest, which is known now.

    Returns it and how many are known.
    """
    values[:] = kappa
    for r in range(support.size):
        if own[r] > 0.0:
            values -= own[r] * columns[support[r]]
    up = 0
    for i in range(values.size):
        if values[i] > values[up]:
            up = i
    for i in known[:n_known]:
        if i == up:
            return up, n_known
    known[n_known] = up
    return up, n_known + 1


@njit(**_JIT)
def _bound_of(kappa, half, lam, mu, v, support, w, trial, order, beta):
    """Return what μ proves of a support, rounded down, and write ½Dᵀμ."""
    n, count = support.size, 0
    low = _aggregate(kappa, half, mu, v)
    for r in range(n):
        w[r] = v[support[r]]
    for r in range(n):
        count = _insert(w, r, order, count, n)
    for r in range(n):
        trial[r] = w[order[r]]
    return low, _proved(low, _conjugate(trial, n, lam, beta))


@njit(**_JIT)
def _decide(kappa, half, columns, lam, threshold, to_the_end, limit, mu, v, support, best):
    """Raise the dual over one support until it passes the threshold or a point shows it cannot.

    Pairwise steps on the multipliers: from the lowest cut in use to the highest one of those that
    are known; now and then all those in use are moved at once. All cuts are looked at now and then,
    and before anything is said of a point. ``support`` holds its n kernels; ``best`` gets their
    weights at the lowest point seen. With ``to_the_end`` it goes on after such a point, to the
    minimum of the cuts.

    Returns the verdict; a proved lower bound of the saddle value over the support; the largest cut
    plus the penalty at ``best``; the steps taken.
    """
    n, m = support.size, kappa.size
    w, fall, trial = np.empty(n), np.empty(n), np.empty(n)
    order, beta, own = np.empty(n, np.int64), np.empty(n), np.empty(n)
    values, known, n_known = np.empty(m), np.empty(m, np.int64), 0
    at = _aggregate(kappa, half, mu, v)
    for i in range(m):
        if mu[i] > 0.0:
            known[n_known] = i
            n_known += 1
    for r in range(n):
        w[r] = v[support[r]]
    lowest, far, verdict, unseen, steps = np.inf, np.inf, UNDECIDED, _LOOK, 0
    for steps in range(limit):
        count = 0
        for r in range(n):
            count = _insert(w, r, order, count, n)
        for r in range(n):
            trial[r] = w[order[r]]
        dual = at - _conjugate(trial, n, lam, beta)
        if dual >= threshold:
            at, bound = _bound_of(kappa, half, lam, mu, v, support, w, trial, order, beta)
            if bound >= threshold:
                return CLOSED, bound, lowest, steps
        penalty = 0.0
        for r in range(n):
            own[order[r]] = beta[r]
            penalty += lam * beta[r] * beta[r]
        up = _highest_known(kappa, half, support, own, known[:n_known], values)
        down = _partner(half, support, n, own, values, mu, known[:n_known], up)
        value, unseen = values[up] + penalty, unseen + 1
        nears = down < 0 or value - dual <= max(0.25 * far, 1e-9 * abs(value))
        if nears or unseen > _LOOK or (value < threshold and not to_the_end):
            up, n_known = _highest(kappa, columns, support, own, known, n_known, values)
            down = _partner(half, support, n, own, values, mu, known[:n_known], up)
            value, unseen = values[up] + penalty, 0
            if value < lowest:
                lowest = value
                best[:n] = own
            verdict = WITNESSED if lowest < threshold else verdict
            far = value - dual
            rests = down < 0 or far <= 1e-9 * abs(value)
            if rests or (verdict == WITNESSED and not to_the_end):
                break
        if steps % _EVERY == _EVERY - 1:
            seen = known[:n_known]
            rise, moved = _correct(
                kappa, half, lam, support, own, seen, up, values, mu, w, fall, trial, order, beta
            )
            at += rise
            if moved:
                continue
        for r in range(n):
            fall[r] = half[up, support[r]] - half[down, support[r]]
        rise = kappa[up] - kappa[down]
        step = _line_search(rise, fall, w, n, lam, mu[down], trial, order, beta)
        if step <= 0.0 and unseen == 0:
            break
        unseen = unseen if step > 0.0 else _LOOK
        mu[down] = mu[down] - step if step < mu[down] else 0.0
        mu[up] += step
        at += step * rise
        for r in range(n):
            w[r] += step * fall[r]
    _, bound = _bound_of(kappa, half, lam, mu, v, support, w, trial, order, beta)
    return verdict, bound, lowest, steps


@njit(**_JIT)
def _keep(mu, marks, shares):
    """Write the largest multipliers, those of most supports being few."""
    shares[:] = 0.0
    n = 0
    for i in range(mu.size):
        if mu[i] > 0.0 and (n < marks.size or mu[i] > shares[n - 1]):
            n = n if n == marks.size else n + 1
            at = n - 1
            while at > 0 and shares[at - 1] < mu[i]:
                marks[at], shares[at] = marks[at - 1], shares[at - 1]
                at -= 1
            marks[at], shares[at] = i, mu[i]


@njit(**_JIT)
def _recall(mu, marks, shares):
    """Write the multipliers that `_keep` kept."""
    mu[:] = 0.0
    for r in range(marks.size):
        if shares[r] > 0.0:
            mu[marks[r]] = shares[r]


@njit(**_JIT)
def _take_out(path, depth, view, within, n_views, free):
    """Take out of the free kernels those for which a path of ``depth`` kernels leaves no room."""
    last = view[path[depth - 1]]
    same, n = 0, 0
    for r in range(depth):
        same += view[path[r]] == last
        seen = False
        for s in range(r):
            seen = seen or view[path[s]] == view[path[r]]
        n += not seen
    if same < within and n < n_views:
        return
    for j in range(free.size):
        if free[j] and view[j] == last:
            free[j] = same < within
        elif free[j] and n >= n_views:
            free[j] = False
            for r in range(depth):
                free[j] = free[j] or view[path[r]] == view[j]


@njit(**_JIT)
def enumerate_supports(
    kappa,
    half,
    columns,
    lam,
    threshold,
    limit,
    budget,
    mu,
    place,
    path,
    free,
    view,
    within,
    n_views,
    found,
    weights,
    ends,
    marks,
    shares,
):
    """Go on through the supports below a branch; stop when done, full, or out of budget.

    Depth first. At each branch the largest free entries of v bound all supports below it, and
    those of v descend, so that one bound closes all that are left.

    - kappa (m,); half, columns (m, q), (q, m): halves of the quadratic forms, and their transpose
    - threshold: branches whose bound is at least that are closed; limit: steps on one support;
      budget: steps and branches until it returns
    - mu (m,): multipliers to start from; those it ended with
    - place (3,): depth of the branch that it is at (-1: done), depth of the first, supports found
      open; path (k,): the kernels of the branch; free (k + 1, q): those that each depth has not
      tried yet
    - view (q,): of each kernel; within, n_views: kernels at most of a view, and views at most
    - found (capacity, k): supports left open; weights of the same shape: their points below the
      threshold; ends (capacity, 2): their proved bounds, and the cuts' value at their points
    - marks, shares (capacity, r): their largest multipliers: of which cuts, and how large

    Returns the least bound of what was closed, infinite if nothing was, the branches and the steps.
    """
    k, q = path.size, half.shape[1]
    v, chosen = np.empty(q), np.empty(k, np.int64)
    top, beta, support = np.empty(k), np.empty(k), np.empty(k, np.int64)
    low = _aggregate(kappa, half, mu, v)
    closed, n_nodes, n_steps = np.inf, 0, 0
    while place[0] >= place[1]:
        if place[2] == found.shape[0] or n_nodes + n_steps > budget:
            return closed, n_nodes, n_steps
        depth = place[0]
        left = k - depth
        count = 0
        for j in range(q if left > 0 else 0):
            if free[depth, j]:
                count = _insert(v, j, chosen, count, left)
        if count < left:
            place[0] -= 1
            continue
        n_nodes += 1
        if left > 0:
            first = chosen[0]
        for r in range(depth):
            count = _insert(v, path[r], chosen, count, k)
        for r in range(k):
            top[r] = v[chosen[r]]
        bound = _proved(low, _conjugate(top, k, lam, beta))
        if bound >= threshold:
            closed = min(closed, bound)
            place[0] -= 1
            continue
        if left > 1:
            free[depth, first] = False
            free[depth + 1] = free[depth]
            path[depth] = first
            _take_out(path, depth + 1, view, within, n_views, free[depth + 1])
            place[0] += 1
            continue
        support[:depth] = path[:depth]
        if left == 1:
            free[depth, first] = False
            support[depth] = first
        else:
            place[0] -= 1
        at = place[2]
        verdict, bound, lowest, steps = _decide(
            kappa, half, columns, lam, threshold, False, limit, mu, v, support, weights[at]
        )
        low = _aggregate(kappa, half, mu, v)
        n_steps += steps
        if verdict == CLOSED:
            closed = min(closed, bound)
        else:
            found[at] = support
            ends[at, 0], ends[at, 1] = bound, lowest
            _keep(mu, marks[at], shares[at])
            place[2] += 1
    return closed, n_nodes, n_steps


@njit(**_JIT)
def recheck_open_supports(
    kappa, half, columns, lam, threshold, limit, n_old, found, weights, ends, marks, shares, n_open
):
    """Raise the bounds of the open supports by the cuts after the first ``n_old``.

    A support is bounded again if one of these cuts lifts the value at its weights to the threshold.
    Supports that stay open are moved to the front; the arrays are those of `enumerate_supports`.

    Returns how many stay open, the least bound of those that were closed, infinite if none was, and
    the steps.
    """
    k = found.shape[1]
    v, mu = np.empty(half.shape[1]), np.empty(kappa.size)
    closed, kept, n_steps = np.inf, 0, 0
    for s in range(n_open):
        value = ends[s, 1]
        for i in range(n_old, kappa.size):
            cut = kappa[i]
            for r in range(k):
                cut += weights[s, r] * (lam * weights[s, r] - half[i, found[s, r]])
            value = max(value, cut)
        ends[s, 1] = value
        if value >= threshold:
            _recall(mu, marks[s], shares[s])
            verdict, bound, value, steps = _decide(
                kappa, half, columns, lam, threshold, False, limit, mu, v, found[s], weights[s]
            )
            n_steps += steps
            if verdict == CLOSED:
                closed = min(closed, bound)
                continue
            ends[s, 0], ends[s, 1] = max(bound, ends[s, 0]), value
            _keep(mu, marks[s], shares[s])
        if kept < s:
            found[kept] = found[s]
            weights[kept] = weights[s]
            ends[kept] = ends[s]
            marks[kept] = marks[s]
            shares[kept] = shares[s]
        kept += 1
    return kept, closed, n_steps


@njit(**_JIT)
def minimise_over_support(
    kappa, half, columns, lam, threshold, limit, support, best, marks, shares
):
    """Minimise the cuts plus the penalty over one support, starting at its stored multipliers.

    Returns what `_decide` does; ``best``, shape (k,), is overwritten.
    """
    v, mu = np.empty(half.shape[1]), np.empty(kappa.size)
    _recall(mu, marks, shares)
    result = _decide(kappa, half, columns, lam, threshold, True, limit, mu, v, support, best)
    _keep(mu, marks, shares)
    return result
