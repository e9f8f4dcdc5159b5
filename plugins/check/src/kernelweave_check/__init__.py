"""Check a proof file of KernelWeave with whole numbers and fractions, and nothing else.

A proof file says: over weights β ≥ 0 with Σβ = 1, at most k₀ of them positive (with views: at most
k₀ in each of at most g views), the minimum of

    F(β) = Σₜ max {pₜᵀu − ε‖u‖₁ − ½uᵀK(β)u : lowₜ ≤ u ≤ highₜ, Σu = 0} + λ‖β‖²,   K(β) = Σⱼ βⱼKⱼ

lies between two numbers, and that the weights in the file reach the upper one. With one kernel and
λ = 0 it is the dual of a support vector machine. All is recomputed here, and nothing is rounded.

Why the lower number holds. A feasible u (a *cut*) gives F(β) ≥ κ − Σⱼ βⱼ hⱼ + λ‖β‖² with
κ = pᵀu − ε‖u‖₁ and hⱼ = ½uᵀKⱼu, and so does every mean of cuts. A tree of branches, "with kernel j"
and "without kernel j", covers all supports S; in each leaf, for any number τ,

    min over β on S of λ‖β‖² − hᵀβ ≥ −τ − Σ_{j ∈ S} max(hⱼ − τ, 0)²/4λ   (λ = 0: ≥ −max hⱼ),

and the S of the leaf for which this is least holds the largest terms: no other is looked at.

Why the upper number holds. If K(β) + δI is positive semidefinite, then for any v and b

    max {pᵀu − ε‖u‖₁ − ½uᵀK(β)u} ≤ ½vᵀf + Σᵢ maxᵤ {u(pᵢ − fᵢ − b) − ε|u| + ½δu²}

with f = (K(β) + δI)v and u = lowᵢ, 0 or highᵢ, since each part is convex. The file gives a lower
triangular L; δ is the largest row sum of |K(β) − LLᵀ|, which no eigenvalue of that matrix exceeds.
"""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ProofError", "Verdict", "check"]
FORMAT = "kernelweave-proof 1"
Row = dict[str, Any]
Some = set[int]
DIGITS = set("0123456789abcdef")
NUMBER = r"-?\d{1,2000}(\.\d{1,2000})?(e[+-]?\d{1,3})?"


class ProofError(ValueError):
    """A line of a proof file that does not hold, or that cannot be read."""


class Vector(NamedTuple):
    """Numbers ``values[i] · 2^exponent``."""

    values: list[int]
    exponent: int

    def at(self, i: int) -> Fraction:
        """Return entry i."""
        return self.values[i] * Fraction(2) ** self.exponent


class Matrix(NamedTuple):
    """A lower triangle, or the half of a symmetric matrix: ``rows[i][j] · 2^exponent``, j ≤ i."""

    rows: list[list[int]]
    exponent: int


class BoxTask(NamedTuple):
    """One maximum over u: the vector p and the two ends of the box, low ≤ 0 ≤ high."""

    linear: Vector
    low: Vector
    high: Vector


@dataclass
class Stated:
    """What a proof is about, with κ and all hⱼ of each cut that was read."""

    n: int
    q: int
    k0: int
    lam: Fraction
    epsilon: Fraction
    views: list[int]
    n_views: int
    tasks: list[BoxTask] = field(default_factory=list)
    kernels: list[Matrix] = field(default_factory=list)
    cuts: list[tuple[Fraction, list[Fraction]]] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """What was proved: the optimum lies in [lower, upper], as fractions without rounding.

    Attributes
    ----------
    problem, lower, upper, n_leaves, sha256
    """

    problem: Stated
    lower: Fraction
    upper: Fraction
    n_leaves: int
    sha256: str

    def __str__(self) -> str:
        of, low, high = self.problem, self.lower, self.upper
        views = f" in each of {of.n_views} views" if len(set(of.views)) > 1 else ""
        gap = float((high - low) / max(abs(high), abs(low), Fraction(1, 10**99)))
        return (
            f"Proved: the optimum for {of.n} rows and {of.q} kernels, at most {of.k0} of them"
            f"{views}, lies between {float(low):.12g} and {float(high):.12g}, which the weights in "
            f"the file reach (relative gap {gap:.1e}; {len(of.cuts)} cuts, {self.n_leaves} "
            f"leaves). Not proved: that its data, SHA-256 {self.sha256}, are yours."
        )


def need(holds: bool, why: str) -> None:
    """Raise ProofError unless the condition holds."""
    if not holds:
        raise ProofError(why)


def whole(value: Any, name: str, least: int = 0, most: int = 10**30) -> int:
    """Return a whole number within limits."""
    sound = type(value) is int and least <= value <= most
    need(sound, f"{name} must be a whole number from {least} to {most}")
    return int(value)


def fraction(value: Any, name: str) -> Fraction:
    """Return a fraction or decimal that is written as text."""
    sound = isinstance(value, str) and re.fullmatch(NUMBER, value)
    need(bool(sound), f"{name} must be a number as text, such as '0.5' or '1e-9'")
    return Fraction(value)


def entries_of(row: Row, name: str, n: int | None) -> list[Any]:
    """Return the list of a line under a name, of n entries."""
    entries: Any = row.get(name)
    sound = isinstance(entries, list) and n in (None, len(entries))
    need(sound, f"{name} must be a list" + (f" of {n} entries" if n else ""))
    return list(entries)


def parts(row: Any, name: str, n: int) -> tuple[list[Any], int]:
    """Return the n entries of ``values`` or ``rows`` and their exponent, from -5000 to 5000."""
    need(isinstance(row, dict), f"{name} must be an object")
    entries = entries_of(row, "rows" if "rows" in row else "values", n)
    return entries, whole(row.get("exponent"), "exponent", -5000, 5000)


def vector(row: Any, n: int, name: str) -> Vector:
    """Return n whole numbers with a common exponent."""
    values, exponent = parts(row, name, n)
    need(all(type(each) is int for each in values), f"{name} must hold whole numbers")
    return Vector(values, exponent)


def matrix(row: Any, n: int, name: str) -> Matrix:
    """Return a triangle; an entry plus half the range takes ``width`` hexadecimal digits."""
    rows, exponent = parts(row, name, n)
    width = whole(row.get("width"), "width", 1, 1000)
    half, found = 16**width // 2, []
    for i, text in enumerate(rows):
        sound = isinstance(text, str) and len(text) == (i + 1) * width and set(text) <= DIGITS
        need(sound, f"row {i} of {name} must have {i + 1} entries of {width} digits, 0 to f")
        places = range(0, len(text), width)
        found.append([int(text[at : at + width], 16) - half for at in places])
    return Matrix(found, exponent)


def product(K: Matrix, v: Vector) -> list[Fraction]:
    """Return Kv of a symmetric matrix."""
    values = [sum(map(mul, row, v.values)) for row in K.rows]
    for row, entry in zip(K.rows, v.values, strict=True):
        if entry:
            for j in range(len(row) - 1):
                values[j] += row[j] * entry
    scale = Fraction(2) ** (K.exponent + v.exponent)
    return [each * scale for each in values]


def quadratic_form(K: Matrix, v: Vector) -> Fraction:
    """Return vᵀKv of a symmetric matrix."""
    total = 0
    for i, row in enumerate(K.rows):
        if v.values[i]:
            total += v.values[i] * (2 * sum(map(mul, row, v.values)) - row[i] * v.values[i])
    return total * Fraction(2) ** (K.exponent + 2 * v.exponent)


def read_cut(problem: Stated, row: Row) -> None:
    """Add a cut: check that its points are feasible, compute κ and hⱼ."""
    points = entries_of(row, "cut", len(problem.tasks))
    kappa, forms = Fraction(0), [Fraction(0)] * problem.q
    for point, task in zip(points, problem.tasks, strict=True):
        u = vector(point, problem.n, "the cut")
        need(sum(u.values) == 0, "the entries of the cut must sum to 0")
        for i in filter(u.values.__getitem__, range(problem.n)):
            inside = task.low.at(i) <= u.at(i) <= task.high.at(i)
            need(inside, f"entry {i} of the cut is not within the box")
            kappa += task.linear.at(i) * u.at(i) - problem.epsilon * abs(u.at(i))
        forms = [h + quadratic_form(K, u) / 2 for h, K in zip(forms, problem.kernels, strict=True)]
    problem.cuts.append((kappa, forms))


def leaf_bound(problem: Stated, row: Row, required: Some, excluded: Some) -> list[Fraction]:
    """Return what a mean of cuts proves of a branch; nothing where the branch has no support."""
    cuts = entries_of(row, "cuts", None)
    weights = entries_of(row, "weights", len(cuts))
    total = sum(whole(weight, "a weight") for weight in weights)
    need(total > 0, "the weights of a leaf must not all be 0")
    kappa, h = Fraction(0), [Fraction(0)] * problem.q
    for i, weight in zip(cuts, weights, strict=True):
        value, forms = problem.cuts[whole(i, "a cut", 0, len(problem.cuts) - 1)]
        kappa += value * weight / total
        h = [a + b * weight / total for a, b in zip(h, forms, strict=True)]
    allowed = set(range(problem.q)) - excluded
    if not is_possible(problem, required, allowed):
        return []
    if problem.lam == 0:
        return [kappa - max(h[j] for j in allowed)]
    tau = fraction(row.get("tau"), "tau")
    squares = [max(each - tau, Fraction(0)) ** 2 for each in h]
    most = largest_sum(problem, squares, required, allowed)
    return [kappa - tau - most / (4 * problem.lam)]


def is_possible(problem: Stated, required: set[int], allowed: set[int]) -> bool:
    """Whether some support holds all required kernels and only allowed ones."""
    counts = Counter(problem.views[j] for j in required)
    few = len(counts) <= problem.n_views and max(counts.values(), default=0) <= problem.k0
    return few and bool(allowed)


def largest_sum(problem: Stated, gains: list[Fraction], required: Some, allowed: Some) -> Fraction:
    """Return the largest sum of nonnegative gains over the supports of a branch."""
    held, others = list[Fraction](), list[Fraction]()
    for view in set(problem.views):
        own = [gains[j] for j in required if problem.views[j] == view]
        free = [gains[j] for j in allowed - required if problem.views[j] == view]
        best = sum(own + sorted(free, reverse=True)[: problem.k0 - len(own)], Fraction(0))
        (held if own else others).append(best)
    left = problem.n_views - len(held)
    return sum(held + sorted(others, reverse=True)[:left], Fraction(0))


def tree_bound(problem: Stated, rows: Iterator[Row]) -> tuple[Fraction, int]:
    """Return the least bound of all leaves and their number; a stack holds what is to come."""
    bounds: list[list[Fraction]] = []
    left: list[tuple[set[int], set[int]]] = [(set(), set())]
    while left:
        required, excluded = left.pop()
        row = next(rows)
        if "branch" in row:
            j = whole(row["branch"], "branch", 0, problem.q - 1)
            need(j not in required | excluded, f"kernel {j} cannot be branched on here")
            left += [(required, excluded | {j}), (required | {j}, excluded)]
        else:
            bounds.append(leaf_bound(problem, row, required, excluded))
    need(any(bounds), "no branch has a support")
    return min(chain(*bounds)), len(bounds)


def weighted(problem: Stated, weights: Vector) -> Matrix:
    """Return K(β)."""
    used = [(w, K) for w, K in zip(weights.values, problem.kernels, strict=True) if w]
    low = min(K.exponent for _, K in used)
    factors = [w << (K.exponent - low) for w, K in used]
    rows = []
    for some in zip(*(K.rows for _, K in used), strict=True):
        rows.append([sum(map(mul, factors, entries)) for entries in zip(*some, strict=True)])
    return Matrix(rows, low + weights.exponent)


def semidefinite_shift(K: Matrix, L: Matrix) -> Fraction:
    """Return the largest row sum of |K − LLᵀ|: K plus that times the identity is semidefinite."""
    low, sums = min(K.exponent, 2 * L.exponent), [0] * len(K.rows)
    up, down = K.exponent - low, 2 * L.exponent - low
    for i, (row, left) in enumerate(zip(K.rows, L.rows, strict=True)):
        for j in range(i + 1):
            off = abs((row[j] << up) - (sum(map(mul, L.rows[j], left)) << down))
            sums[i] += off
            if j < i:
                sums[j] += off
    return max(sums) * Fraction(2) ** low


def upper_bound(problem: Stated, row: Row, factor: Row) -> Fraction:
    """Return a number that the objective at the weights does not exceed."""
    weights = vector(row.get("weights"), problem.q, "weights")
    beta = [weights.at(j) for j in range(problem.q)]
    need(min(beta) >= 0 and sum(beta) == 1, "weights must not be negative and sum to 1")
    support = {j for j, each in enumerate(beta) if each}
    need(is_possible(problem, support, support), "there are more weights than allowed")
    K = weighted(problem, weights)
    delta = semidefinite_shift(K, matrix(factor.get("factor"), problem.n, "the factor"))
    points, offsets = (entries_of(row, name, len(problem.tasks)) for name in ("points", "offsets"))
    total = problem.lam * sum((each * each for each in beta), Fraction(0))
    for point, offset, task in zip(points, offsets, problem.tasks, strict=True):
        v, b = vector(point, problem.n, "the point"), fraction(offset, "the offset")
        for i, value in enumerate(product(K, v)):
            f = value + delta * v.at(i)
            rest, low, high = task.linear.at(i) - f - b, task.low.at(i), task.high.at(i)
            up = high * (rest - problem.epsilon + delta * high / 2)
            down = low * (rest + problem.epsilon + delta * low / 2)
            total += v.at(i) * f / 2 + max(up, down, Fraction(0))
    return total


def read_problem(row: Row) -> Stated:
    """Return the problem of the first line."""
    need(row.get("format") == FORMAT, f"this is no proof file: its format must be {FORMAT!r}")
    n, q, k0 = (whole(row.get(name), name, 1) for name in ("n_rows", "n_kernels", "k0"))
    lam, epsilon = (fraction(row.get(name), name) for name in ("lambda", "epsilon"))
    need(lam >= 0 and epsilon >= 0, "lambda and epsilon must not be negative")
    n_views = whole(row.get("n_views", 1), "n_views", 1)
    views = entries_of(row, "views", q) if "views" in row else [0] * q
    return Stated(n, q, k0, lam, epsilon, [whole(each, "a view") for each in views], n_views)


def read_task(row: Any, n: int) -> BoxTask:
    """Return a task; its box must hold 0."""
    need(isinstance(row, dict), "a task must be an object")
    task = BoxTask(*(vector(row.get(name), n, name) for name in BoxTask._fields))
    need(max(task.low.values) <= 0 <= min(task.high.values), "the box of a task must hold 0")
    return task


def read_rows(lines: Iterator[str], seen: Row) -> Iterator[Row]:
    """Yield the lines of a file as objects."""
    for line in lines:
        seen["line"] += 1
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise ProofError("this line is no JSON") from None
        need(isinstance(row, dict), "a line must be an object")
        if "task" in row or "kernel" in row:
            seen["data"].update(line.encode())
        yield row


def check_rows(rows: Iterator[Row], seen: Row) -> Verdict:
    """Return what the lines of a proof prove."""
    problem = read_problem(head := next(rows))
    lower, upper = (fraction(head.get(name), name) for name in ("lower", "upper"))
    row = next(rows)
    while "task" in row:
        problem.tasks.append(read_task(row["task"], problem.n))
        row = next(rows)
    while "kernel" in row:
        problem.kernels.append(matrix(row["kernel"], problem.n, "the kernel"))
        row = next(rows)
    need(len(problem.kernels) == problem.q and problem.tasks != [], "tasks or kernels are missing")
    reached = upper_bound(problem, row, next(rows))
    need(reached <= upper, f"the weights reach {float(reached):.15g}, not {float(upper):.15g}")
    row = next(rows)
    while "cut" in row:
        read_cut(problem, row)
        row = next(rows)
    proved, n_leaves = tree_bound(problem, chain([row], rows))
    need(proved >= lower, f"the tree proves {float(proved):.15g}, not {float(lower):.15g}")
    return Verdict(problem, lower, upper, n_leaves, seen["data"].hexdigest())


def check(path: str | Path) -> Verdict:
    """Return what a proof file proves; raise ProofError, which names the line that fails.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Verdict
    """
    seen = {"line": 0, "data": hashlib.sha256()}
    with Path(path).open(encoding="ascii") as lines:
        try:
            found = check_rows(read_rows(lines, seen), seen)
            need(next(lines, None) is None, "nothing may follow the tree")
        except (ProofError, StopIteration, UnicodeDecodeError) as error:
            why = str(error) or "the file ends too early"
            raise ProofError(f"Not proved. Line {seen['line']} of {path}: {why}.") from None
    return found


def main() -> None:
    """Print what a file proves, or exit with the line that fails."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: kernelweave-check FILE, which `kernelweave certify --proof FILE` wrote")
    try:
        sys.stdout.write(f"{check(sys.argv[1])}\n")
    except (ProofError, OSError) as error:
        sys.exit(str(error))
