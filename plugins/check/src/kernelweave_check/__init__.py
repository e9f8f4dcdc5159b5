"""Check a proof file of KernelWeave with whole numbers and fractions: nothing is rounded.

A file says that the minimum over a set of kernel matrices K of
    Σₜ max {pₜᵀu − ε‖u‖₁ − ½Σᵢ ρₜᵢuᵢ² − ½uᵀKu : lowₜ ≤ u ≤ highₜ, Σu = 0} + what K costs
(for any Σu without an intercept) is between two numbers, and reaches the upper at its K. The sets:
    sparse     K = Σ βⱼKⱼ, β ≥ 0, Σβ = 1, ≤ k₀ of them positive in each of ≤ g views; costs λ‖β‖²
    powers     K = (Σ μⱼKⱼ)^∘d entry by entry, μ = c + Λt, t ≥ 0, Σ tⱼ^q ≤ 1, 1 ≤ d ≤ q; or
               without this limit, at the cost βΣ tⱼ^q
    integrals  k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz over a box, N = [Z·I(z ≥ x), Z·(1 − I(z ≥ x))],
               Z all monomials in x and z of a degree, P ⪰ ηI and tr P = its side
Upper: if K + δI ⪰ 0, of which δ is proved by a factor L, then for any v and b a maximum is at most
½vᵀf + Σᵢ maxᵤ {u(pᵢ − fᵢ − b) − ε|u| + ½(δ − ρᵢ)u²} with f = (K + δI)v. Lower: a feasible u (a
*cut*) gives at least κ − ½uᵀKu, κ the terms without K. Sparse: branches "with kernel j" and
"without" cover all supports S; in each leaf a mean of cuts, of which hⱼ = ½uᵀKⱼu, and any τ give
λ‖β‖² − hᵀβ ≥ −τ − Σ_{j ∈ S} max(hⱼ − τ, 0)²/4λ. Powers: ½uᵀKu is at most a polynomial in μ with
no negative coefficient, concave in tⱼ^q as d ≤ q, and so below its tangent at any t > 0.
Integrals: uᵀKu = ⟨P, D⟩ ≤ (1 − η) tr P λₘₐₓ(D) + η tr D with D = Σ uₖuₗ∫NNᵀ.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from decimal import Context
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations_with_replacement, count, product
from operator import mul
from pathlib import Path
from types import SimpleNamespace as Problem
from typing import Any

__all__ = ["ProofError", "check"]
FORMAT = "kernelweave-proof 1"
NUMBER = r"-?[0-9]{1,2000}(\.[0-9]{1,2000})?(e[+-]?[0-9]{1,3})?|[0-9]{1,2}/[1-9][0-9]?"
UNREADABLE = (LookupError, ArithmeticError, ValueError, TypeError, RuntimeError, StopIteration)
TASK = ("linear", "low", "high", "curvature")
MOST, DOWN, UP = 10**5, "ROUND_FLOOR", "ROUND_CEILING"
Row = dict[str, Any]
Numbers = list[Fraction]


class ProofError(ValueError):
    """A line of a proof file that does not hold, or that cannot be read."""


def need(holds: bool, why: str) -> None:
    """Raise ProofError unless the condition holds."""
    if not holds:
        raise ProofError(why)


def whole(row: Row, name: str, least: int, most: int) -> int:
    """Return a whole number of a line, within limits."""
    sound = type(found := row[name]) is int and least <= found <= most
    need(sound, f"{name} must be a whole number from {least} to {most}")
    return int(found)


def shown(value: Fraction, rounding: str = "ROUND_HALF_EVEN", digits: int = 12) -> str:
    """Return a number in decimals."""
    return f"{Context(digits, rounding).divide(*value.as_integer_ratio()).normalize():f}"


def fraction(row: Row, name: str) -> Fraction:
    """Return a number that is written as text; in its place is left what may be printed."""
    sound = re.fullmatch(NUMBER, text := row[name]) is not None
    need(sound, f"{name} must be a text such as '0.5' or '1e-9'")
    row[name] = shown(value := Fraction(text))
    return value


def numbers(row: Row, n: int, name: str) -> list[Any]:
    """Return n numbers ``values[i] · 2^exponent``; None stays."""
    unit, values = Fraction(2) ** whole(row, "exponent", -5000, 5000), row["values"]
    sound = len(values) == n and {*map(type, values)} <= {int, type(None)}
    need(sound, f"{name} must have {n} whole numbers")
    return [None if each is None else each * unit for each in values]


def triangle(row: Row, n: int, name: str) -> Any:
    """Return the matrix ``rows[i][j] · 2^exponent``, j ≤ i."""
    unit, rows = Fraction(2) ** whole(row, "exponent", -5000, 5000), row["rows"]
    sound = {*map(type, chain(*rows))} == {int} and [*map(len, rows)] == [*range(1, n + 1)]
    need(sound, f"{name} must have rows of 1 to {n} whole numbers")
    return rows, unit


def in_units(values: Numbers) -> tuple[list[int], Fraction]:
    """Return numbers as multiples of a unit, and the unit."""
    parts = reduce(lambda found, each: found * (each * found).denominator, values, 1)
    return [int(each * parts) for each in values], Fraction(1, parts)


def quadratic_form(kernels: list[Any], v: Numbers) -> Fraction:
    """Return vᵀ(K₁ ∘ K₂ ∘ …)v of symmetric matrices."""
    (entries, unit), total = in_units(v), 0
    for i in filter(entries.__getitem__, range(len(entries))):
        row = reduce(lambda a, b: list(map(mul, a, b)), (K[0][i] for K in kernels))
        total += entries[i] * (2 * sum(map(mul, row, entries)) - row[i] * entries[i])
    return Fraction(total * unit * unit * reduce(mul, (K[1] for K in kernels)))


def semidefinite_shift(K: Any, L: Any) -> Fraction:
    """Return the largest row sum of |K − LLᵀ|: K plus that times the identity is semidefinite."""
    ratio, sums = L[1] ** 2 / K[1], [0] * len(K[0])
    for i, (row, left) in enumerate(zip(K[0], L[0], strict=True)):
        for j in range(i + 1):
            off = abs(row[j] * ratio.denominator - ratio.numerator * sum(map(mul, L[0][j], left)))
            sums[i] += off
            sums[j] += off if j < i else 0
    return Fraction(max(sums) * K[1] / ratio.denominator)


def read_problem(row: Row, size: int) -> Problem:
    """Return the problem of the first line of a file of this many bytes."""
    need(row["format"] == FORMAT, f"this is no proof file: its format must be {FORMAT!r}")
    n, q = (whole(row, name, 1, 10**9) for name in ("n_rows", "n_kernels"))
    of = Problem(n=n, q=q, kind=row["set"], tasks=[], kernels=[], samples=[], cuts=[])
    of.degree, of.intercept = whole(row, "degree", 0, 9), whole(row, "intercept", 0, 1)
    of.epsilon, of.low, of.high = fraction(row, "epsilon"), (), ()
    if of.kind == "sparse":
        of.k0, of.n_views = (whole(row, name, 1, q) for name in ("k0", "n_views"))
        of.lam, of.views = fraction(row, "lambda"), row["views"]
        sound = of.degree == 1 and of.lam >= 0 and [*map(type, of.views)] == [int] * q
    elif of.kind == "powers":
        of.norm, of.root = (norm := fraction(row, "norm")).as_integer_ratio()
        of.radius, of.beta = (fraction(row, name) for name in ("radius", "beta"))
        of.center = numbers(row["center"], q, "the center")
        sound = of.degree <= norm <= of.norm < 100 and min(of.radius, of.beta, *of.center) >= 0
        need(q**of.degree <= MOST, f"there may be {MOST} products of kernels at most")
        row["center"] = f"[{', '.join(map(shown, of.center))}]"
    else:
        need(of.kind == "integrals", "the set must be 'sparse', 'powers' or 'integrals'")
        (of.low, of.high), of.unit = row["box"], Fraction(2) ** whole(row, "exponent", -5000, 0)
        of.least, most = fraction(row, "min_eig"), whole(row, "z_degree", 0, 9)
        sides = [b - a for a, b in zip(of.low, of.high, strict=True)]
        sound = min(sides) > 0 <= of.least <= 1 and [*map(type, of.low + of.high)] == [int] * 2 * q
        of.monomials = []  # of degree or less: -1 stands for 1
        for i, each in enumerate(combinations_with_replacement(range(-1, 2 * q), of.degree)):
            need(i < MOST, f"there may be {MOST} monomials at most")
            xs, zs = tuple(j for j in each if 0 <= j < q), tuple(j - q for j in each if j >= q)
            of.monomials += [(xs, zs)] if len(zs) <= most else []
        of.side = 2 * len(of.monomials)
        need(of.side**2 <= size, "the file is too short for a factor of this degree")
    need(sound and len(row) == 13 and of.epsilon >= 0, "no set of kernels has these parameters")
    return of  # 13 names: what is printed was read


def largest_sum(of: Problem, gains: Numbers, required: set[int], allowed: set[int]) -> Numbers:
    """Return the largest sum of nonnegative gains over the supports of a branch, if it has any."""
    held, others = Numbers(), Numbers()
    for view in set(of.views):
        own = [gains[j] for j in required if of.views[j] == view]
        free = [gains[j] for j in allowed - required if of.views[j] == view]
        if len(own) > of.k0:
            return []
        best = sum(own + sorted(free, reverse=True)[: of.k0 - len(own)], Fraction(0))
        (held if own else others).append(best)
    left = of.n_views - len(held)
    best = sum(held + sorted(others, reverse=True)[: max(left, 0)], Fraction(0))
    return [best] if left >= 0 and allowed else []


def tree_bound(of: Problem, rows: Iterator[Row]) -> Numbers:
    """Return what means of cuts prove of all leaves; a stack holds what is to come."""
    bounds, left = Numbers(), [(set[int](), set[int]())]
    while left:
        (required, excluded), row = left.pop(), next(rows)
        if "branch" in row:
            j = whole(row, "branch", 0, of.q - 1)
            need(j not in required | excluded, f"kernel {j} cannot be branched on here")
            left += [(required, excluded | {j}), (required | {j}, excluded)]
            continue
        need(min(row["weights"]) >= 0 < sum(row["weights"]), "a weight of a leaf is negative")
        kappa, h, tau = Fraction(0), [Fraction(0)] * of.q, fraction(row, "tau")
        for i, weight in zip(row["cuts"], row["weights"], strict=True):
            (value, _, forms), share = of.cuts[i], Fraction(weight, sum(row["weights"]))
            kappa += value * share
            h = [a + b * share for a, b in zip(h, forms.values(), strict=True)]
        squares = [max(each - tau, Fraction(0)) ** 2 for each in h]
        for most in largest_sum(of, squares, required, set(range(of.q)) - excluded):
            need(most == 0 or of.lam > 0, "without lambda no form may be above tau")
            bounds.append(kappa - tau - (most / (4 * of.lam) if most else 0))
    return bounds


def tangent_bound(of: Problem, row: Row) -> Fraction:
    """Return what a cut proves of powers of sums, by the tangent at t = roots^root in t^q."""
    d, a, b, (kappa, _, forms) = of.degree, of.norm, of.root, of.cuts[0]
    roots, slopes = numbers(row["roots"], of.q, "the roots"), Numbers()
    need(min(roots) > 0, "the roots of a tangent must be positive")
    mu = [c + of.radius * each**b for c, each in zip(of.center, roots, strict=True)]
    for k, root in enumerate(roots):
        w = Fraction(0)
        for some in product(range(of.q), repeat=d - 1):
            w += reduce(mul, (mu[j] for j in some), d * max(forms[tuple(sorted((k, *some)))], 0))
        slopes.append(of.radius * b * w * root ** (b - a) / a)
        kappa -= w * mu[k] / d - slopes[k] * root**a
    need(not of.beta or max(slopes) <= of.beta, "a slope of the tangent is above beta")
    return Fraction(kappa - (0 if of.beta else max(slopes)))


def integrals(of: Problem, lows: Iterable[list[int]], u: list[int]) -> dict[Any, Any]:
    """Return Σₗ uₗ x_l^δ ∫ z^γ dz over z above lowₗ in the box, for all δ and γ that are asked."""
    found = {(ys, tuple(sorted(zs + ws))): 0 for _, zs in of.monomials for ys, ws in of.monomials}
    for y, low, weight in zip(of.samples, lows, u, strict=True):
        volume = reduce(mul, (b - a for a, b in zip(low, of.high, strict=True)), weight)
        for ys, zs in found if weight else ():
            value = reduce(mul, (y[j] for j in ys), volume)
            for j in set(zs):
                e = zs.count(j)
                value *= sum(low[j] ** i * of.high[j] ** (e - i) for i in range(e + 1))
            found[ys, zs] += value
    for (ys, zs), value in found.items():
        parts = reduce(mul, (zs.count(j) + 1 for j in set(zs)), 1)
        found[ys, zs] = value * of.unit ** (of.q + len(ys) + len(zs)) / parts
    return found


def moments(of: Problem, u: Numbers, wanted: Iterable[int]) -> Iterator[dict[Any, Fraction]]:
    """Yield the entries of Σₗ uₗ ∫ N(z, xₖ) N(z, xₗ)ᵀ dz for each wanted k."""
    (entries, scale), h = in_units(u), of.side // 2
    everywhere, above_y = (integrals(of, z, entries) for z in ([of.low] * of.n, of.samples))
    for x in (of.samples[k] for k in wanted):
        both = integrals(of, (list(map(max, x, y)) for y in of.samples), entries)
        above_x, M = integrals(of, [x] * of.n, entries), {}
        for i, (xs, zs) in enumerate(of.monomials):
            power = reduce(mul, (x[j] * of.unit for j in xs), scale)
            for j, (ys, ws) in enumerate(of.monomials):
                at = ys, tuple(sorted(zs + ws))
                g, t, s = both[at], above_x[at] - both[at], above_y[at] - both[at]
                M[i, j], M[i, h + j], M[h + i, j] = power * g, power * t, power * s
                M[h + i, h + j] = power * (everywhere[at] - g - t - s)
        yield M


def spectral_bound(of: Problem, row: Row) -> Fraction:
    """Return what a cut proves of integrals, by the largest eigenvalue of its moments."""
    kappa, points, _ = of.cuts[0]
    D = {(i, j): Fraction(0) for i in range(of.side) for j in range(i + 1)}
    for u in points:
        used = [k for k in range(of.n) if u[k]]
        for k, M in zip(used, moments(of, u, used), strict=True):
            D = {at: value + u[k] * M[at] for at, value in D.items()}
    largest = fraction(row, "largest")
    flat, unit = in_units([largest * (i == j) - value for (i, j), value in D.items()])
    rest = [flat[i * (i + 1) // 2 :][: i + 1] for i in range(of.side)], unit
    largest += semidefinite_shift(rest, triangle(row["factor"], of.side, "the factor"))
    worst = (1 - of.least) * of.side * largest + of.least * sum(D[i, i] for i in range(of.side))
    return Fraction(kappa - worst / 2)


def upper_bound(of: Problem, row: Row, rows: Iterator[Row]) -> Fraction:
    """Return a number that the objective at the kernel of the file does not exceed."""
    delta = total = Fraction(0)
    if of.kind == "integrals":
        U = [numbers(each, of.side, "a column") for each in row["columns"]]
        need(sum(x * x for u in U for x in u) <= (1 - of.least) * of.side, "the trace of P")
        P = {(i, j): of.least * (i == j) for i, j in product(range(of.side), repeat=2)}
        P = {(i, j): value + sum(u[i] * u[j] for u in U) for (i, j), value in P.items()}
    else:
        weights = numbers(row["weights"], of.q, "the weights")
        need(min(weights) >= 0, "weights must not be negative")
        if of.kind == "sparse":
            support = {j for j in range(of.q) if weights[j]}
            total = of.lam * sum(each * each for each in weights)
            few = largest_sum(of, weights, support, support) != []
            need(few and sum(weights) == 1, "weights: they must sum to 1, or fewer may be positive")
        else:
            size = sum(each**of.norm for each in weights)
            need(size <= 1 or of.beta > 0, "the weights are not in the ball")
            total = size * of.beta
            weights = [c + of.radius * t**of.root for c, t in zip(of.center, weights, strict=True)]
        used = [(w * K[1], K[0]) for w, K in zip(weights, of.kernels, strict=True) if w]
        (factors, unit), parts = in_units([w for w, _ in used]), [rows for _, rows in used]
        every = (zip(*some, strict=True) for some in zip(*parts, strict=True))
        K = [[sum(map(mul, factors, x)) ** of.degree for x in xs] for xs in every], unit**of.degree
        delta = semidefinite_shift(K, triangle(next(rows)["factor"], of.n, "the factor"))
        full = [row + [K[0][j][i] for j in range(i + 1, of.n)] for i, row in enumerate(K[0])]
    for point, offset, task in zip(row["points"], row["offsets"], of.tasks, strict=True):
        v, b = numbers(point, of.n, "the point"), fraction({"the offset": offset}, "the offset")
        need(of.intercept or b == 0, "without an intercept the offset must be 0")
        entries, unit = in_units(v)
        if of.kind == "integrals":
            Kv = [sum(P[at] * x for at, x in M.items()) for M in moments(of, v, range(of.n))]
        else:
            Kv = [sum(map(mul, each, entries)) * unit * K[1] for each in full]
        for x, value, p, low, high, rho in zip(v, Kv, *task, strict=True):
            f, bend, highest = value + delta * x, rho - delta, Fraction(0)
            for end, slope in ((low, f + b - p), (high, p - f - b)):
                gain = max(slope - of.epsilon, Fraction(0))
                size = gain / bend if bend > 0 else abs(end)
                size = size if end is None else min(size, abs(end))
                highest = max(highest, size * (slope - of.epsilon) - bend * size * size / 2)
            total += x * f / 2 + highest
    return Fraction(total)


def learner(of: Problem) -> str:
    """Return which learner has these tasks, and the C or lambda of its rows."""
    found: dict[str, set[Any]] = {}
    for p, low, high, rho in chain(*(zip(*task, strict=True) for task in of.tasks)):
        near, far = (low, high) if p > 0 else (high, low)
        half = abs(p) == 1 and near == 0 == of.epsilon
        known = (half or near == (far and -far)) and (far is None) == (rho > 0)
        kinds = ("support vector regression, C", "support vector classification, C")
        if rho:
            kinds = ("ridge regression, lambda", "squared hinge classification, 1/2C")
        name = kinds[half] if known and not rho * of.epsilon else "maxima over boxes, size"
        found.setdefault(name, set()).add(rho or max(-(low or 0), high or 0))
    ends = ((name, sorted({min(sizes), max(sizes)})) for name, sizes in found.items())
    return ", ".join(f"{name} {' to '.join(map(shown, each))}" for name, each in ends)


def check_rows(rows: Iterator[Row], size: int) -> Problem:
    """Return what the lines of a proof prove."""
    of, data = read_problem(head := next(rows), size), hashlib.sha256()
    of.lower, of.upper = (fraction(head, name) for name in ("lower", "upper"))
    while {"task", "kernel", "sample"} & set(row := next(rows)):
        data.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        if "task" in row:  # p, the ends of a box that holds 0, of which None is infinite, and ρ
            task = [numbers(row["task"][name], of.n, name) for name in TASK]
            held = all((a or 0) <= 0 <= (b or 0) for a, b in zip(*task[1:3], strict=True))
            need(held and min(task[3]) >= 0, "a box that misses 0, or a curvature below 0")
            of.tasks.append(task)
        elif "kernel" in row:
            of.kernels.append(triangle(row["kernel"], of.n, "the kernel"))
        else:
            boxed = zip(of.low, x := row["sample"], of.high, strict=True)
            need(all(a <= each <= b for a, each, b in boxed), "a sample is outside the box")
            of.samples.append(x)
    found = len(of.tasks) > 0 and (len(of.kernels) == of.q or len(of.samples) == of.n)
    need(found, "tasks, kernels or samples are missing")
    most = upper_bound(of, row, rows)
    need(most <= of.upper, f"the kernel reaches {shown(most, UP)}, not {shown(of.upper, DOWN)}")
    while "cut" in (row := next(rows)):
        points, kappa, forms = [numbers(u, of.n, "the cut") for u in row["cut"]], Fraction(0), {}
        for u, (p, low, high, rho) in zip(points, of.tasks, strict=True):
            need(not of.intercept or sum(u) == 0, "the entries of the cut must sum to 0")
            for i, x in enumerate(u):
                inside = (low[i] is None or low[i] <= x) and (high[i] is None or x <= high[i])
                need(inside, f"entry {i} of the cut is not within the box")
                kappa += p[i] * x - of.epsilon * abs(x) - rho[i] * x * x / 2
        for some in combinations_with_replacement(range(len(of.kernels)), of.degree or 1):
            forms[some] = sum(quadratic_form([of.kernels[j] for j in some], u) for u in points) / 2
        of.cuts.append((kappa, points, forms))
    if of.kind == "sparse":
        proved = tree_bound(of, chain([row], rows))
    else:
        proved = [(tangent_bound if of.kind == "powers" else spectral_bound)(of, row)]
    least, of.n_leaves, of.sha256 = min(proved), len(proved), data.hexdigest()
    need(least >= of.lower, f"the cuts prove {shown(least, DOWN)}, not {shown(of.lower, UP)}")
    gap = (of.upper - of.lower) / max(abs(of.upper), abs(of.lower), Fraction(1, 10**99))
    hidden = ("lower", "upper", *(("views", "n_views") if {*head.get("views", "0")} == {0} else ()))
    about = ", ".join(f"{k} {v}" for k, v in head.items() if k not in hidden)
    of.sentence = (
        f"Proved for {learner(of)} (tasks {len(of.tasks)}, {about}): the optimum lies between "
        f"{shown(of.lower, DOWN)} and {shown(of.upper, UP)}, which the kernel in the file reaches "
        f"(relative gap at most {shown(gap, UP, 2)}). Not proved: that its data, SHA-256 "
        f"{of.sha256}, are yours."
    )
    return of


def check(path: str | Path) -> Problem:
    """Return what a file proves; raise ProofError, which names the line that does not hold.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    SimpleNamespace with ``lower``, ``upper``, ``sha256`` of the data, and the ``sentence``
    """
    n_lines, size = count(), Path(path).stat().st_size
    with Path(path).open(encoding="ascii") as lines:
        rows = (
            json.loads(x, parse_float=int, parse_constant=int) for x in lines if [next(n_lines)]
        )
        try:
            need(size > 0, "it is empty, or no file on a disk")
            found = check_rows(rows, size)
            need(next(lines, None) is None, "nothing may follow the proof")
        except UNREADABLE as error:
            why = str(error) or "the file ends too early"
            raise ProofError(f"Not proved. Line {next(n_lines)} of {path}: {why}.") from None
    return found


def main() -> None:
    """Print what a file proves, or exit with the line that fails."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: kernelweave-check FILE, which `kernelweave certify --proof FILE` wrote")
    try:
        sys.stdout.write(f"{check(sys.argv[1]).sentence}\n")
    except (ProofError, OSError) as error:
        sys.exit(str(error))
