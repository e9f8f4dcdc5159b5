"""Kernels that are integrals, summed over nodes: no interval misses the optimum of the integral.

The oracle is the same family with its integrals in closed form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import erf, pi, sqrt

import numpy as np
import pytest
from kernelweave.kernels_core import (
    CallableFamily,
    IntegralFamily,
    Problem,
    Result,
    TessellatedFamily,
    solve,
)
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron, TessellatedKernelClassifier

Array = np.ndarray
Integrand = Callable[[Array, Array], Array]


def indicators(degree: int) -> Integrand:
    """N of the tessellated kernels."""

    def integrand(Z: Array, x: Array) -> Array:
        above = np.all(x <= Z, axis=1)[:, None].astype(float)
        monomials = np.column_stack([np.ones(len(Z))] + degree * [np.tile(x, (len(Z), 1)), Z])
        return np.hstack([monomials * above, monomials * (1.0 - above)])

    return integrand


def bumps(width: float) -> Integrand:
    def integrand(Z: Array, x: Array) -> Array:
        near = np.exp(-np.sum((Z - x) ** 2, axis=1) / width**2)
        return near[:, None] * np.array([1.0, 0.5])

    return integrand


def bumps_integrated(width: float, lower: float, upper: float) -> Callable[[Array, Array], Array]:
    def block(x: Array, y: Array) -> Array:
        value, root = 1.0, sqrt(2.0) / width
        for a, b in zip(x, y, strict=True):
            c = 0.5 * (a + b)
            value *= np.exp(-((a - b) ** 2) / (2.0 * width**2)) * width * sqrt(pi / 8.0)
            value *= erf(root * (upper - c)) - erf(root * (lower - c))
        return value * np.outer([1.0, 0.5], [1.0, 0.5])

    return block


def pieces_integrated(
    integrand: Integrand, lower: float, upper: float
) -> Callable[[Array, Array], Array]:
    """G of an integrand whose pieces between its jumps are quadratic at most."""
    nodes, weights = np.polynomial.legendre.leggauss(4)

    def block(x: Array, y: Array) -> Array:
        axes, scales = [], []
        for a, b in zip(x, y, strict=True):
            ends = np.sort([lower, a, b, upper])
            half = 0.5 * np.diff(ends)[:, None]
            axes.append((ends[:-1, None] + half * (nodes + 1.0)).ravel())
            scales.append((half * weights).ravel())
        Z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(x))
        w = np.prod(np.stack(np.meshgrid(*scales, indexing="ij"), axis=-1), axis=-1).ravel()
        return (integrand(Z, x) * w[:, None]).T @ integrand(Z, y)

    return block


def largest_relative_error(
    integrand: Integrand, n_P: int, block: Callable[[Array, Array], Array], X: Array, ends: Array
) -> float:
    """Of the sums over ``n_nodes``, over all pairs; N ≥ 0, so that |N||N| is the product itself."""
    lower, upper, n_nodes = ends
    rule = IntegralFamily(
        integrand, n_P, [lower] * X.shape[1], [upper] * X.shape[1], n_nodes=int(n_nodes)
    )
    worst = 0.0
    for x in X:
        for y in X:
            exact, found = block(x, y), rule.block(x, y)
            above = exact > 1e-14 * exact.max()
            worst = max(worst, float((np.abs(found - exact)[above] / exact[above]).max()))
    return worst


@dataclass(frozen=True)
class Case:
    """A problem with integrals in closed form, and the same with sums over nodes."""

    kind: str
    X: Array
    y: Array
    C: float
    n_nodes: int
    width: float
    lower: float = -0.1
    upper: float = 1.1
    stated: bool = False

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    @cached_property
    def integrand(self) -> Integrand:
        return bumps(self.width) if self.kind == "bumps" else indicators(int(self.kind))

    @cached_property
    def exact_family(self) -> CallableFamily | TessellatedFamily:
        if self.kind == "bumps":
            return CallableFamily(bumps_integrated(self.width, self.lower, self.upper), 2)
        box = {"lower": [self.lower] * self.columns, "upper": [self.upper] * self.columns}
        return TessellatedFamily(int(self.kind), **box)

    @cached_property
    def error(self) -> float | None:
        if not self.stated:
            return None
        block = (
            self.exact_family.block
            if self.kind == "bumps"
            else pieces_integrated(self.integrand, self.lower, self.upper)
        )
        ends = np.array([self.lower, self.upper, self.n_nodes])
        return largest_relative_error(self.integrand, self.exact_family.n_P, block, self.X, ends)

    @property
    def family(self) -> IntegralFamily:
        return IntegralFamily(
            self.integrand,
            self.exact_family.n_P,
            [self.lower] * self.columns,
            [self.upper] * self.columns,
            n_nodes=self.n_nodes,
            integral_error=self.error,
        )

    def misses(self, algorithm: str = "tkl-low-rank", max_iter: int = 100) -> str:
        """Return both intervals where they have nothing in common.

        Of the integral: proved with a stated error, else estimated.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = solve(self.problem(self.exact_family), "tkl-low-rank", tol=1e-6)
            found = solve(self.problem(self.family), algorithm, tol=1e-3, max_iter=max_iter)
        ends = self.family.estimate(self.problem(self.family), found)
        assert (ends is None) == self.stated
        low, high = ends or (found.lower_bound, found.upper_bound)
        apart = high < exact.lower_bound or exact.upper_bound < low
        return f"{self.kind}, error {self.error}: {_ends(exact)} {_ends(found)}" if apart else ""

    def problem(self, family: object) -> Problem:
        return Problem(family, SVC(C=self.C), Spectahedron(), self.X, self.y)


def _ends(result: Result) -> str:
    return f"[{result.lower_bound:.8g}, {result.upper_bound:.8g}]"


def cases(count: int) -> list[Case]:
    """Return problems of every kind in one and two columns, half the bumps with their error."""
    rng, out = np.random.default_rng(0), []
    for i in range(count):
        kind, n = ("0", "1", "bumps")[i % 3], 1 + (i // 3) % 2
        X = rng.random((int(rng.integers(10, 31)), n))
        y = np.where(X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        most = (13 if kind == "bumps" else 65) if n == 1 else (13 if kind == "bumps" else 33)
        case = Case(
            kind,
            X,
            y,
            C=float(10.0 ** rng.uniform(-1.0, 3.0)),
            n_nodes=int(rng.integers(6, most)),
            width=float(rng.choice([0.2, 0.3, 0.5])),
            stated=kind == "bumps" and (i // 6) % 2 == 0,
        )
        out.append(case)
    return out


def missed(every: list[Case]) -> list[str]:
    return [words for case in every if (words := case.misses())]


def test_no_interval_misses_the_optimum_of_the_integral() -> None:
    assert missed(cases(12)) == []


@pytest.mark.slow
def test_no_interval_of_two_hundred_misses_the_optimum_of_the_integral() -> None:
    assert missed(cases(200)) == []
    assert any(case.error for case in cases(200))


@pytest.mark.parametrize("degree", ["0", "1"])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_true_error_of_jumps_holds(degree: str, columns: int) -> None:
    """Samples further apart than the nodes, else the error is larger than some integrals."""
    rng = np.random.default_rng(3)
    apart = np.linspace(0.05, 0.95, 9)
    X = np.column_stack([rng.permutation(apart) for _ in range(columns)])
    y = np.where(np.arange(9) % 3 == 0, 1.0, -1.0)
    for C in (0.1, 10.0, 1000.0):
        case = Case(degree, X, y, C, 40, 0.0, lower=0.0, upper=1.2, stated=True)
        assert 0.05 < case.error < 1.0
        assert not case.misses()


@pytest.mark.parametrize(
    "algorithm", ["tkl-low-rank", "tkl-frank-wolfe", "tkl-interior-point", "tkl-apd"]
)
def test_every_algorithm_charges_both_bounds(algorithm: str) -> None:
    """A stated error that is true; without it the sums' own interval is elsewhere."""
    every = [case for case in cases(60) if case.stated and case.C > 10.0][:2]
    assert any(case.error > 0.01 for case in every)
    assert [words for case in every if (words := case.misses(algorithm, max_iter=30))] == []


def test_a_regression_is_charged_too() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((20, 1))
    case = Case("bumps", X, np.sin(6.0 * X[:, 0]), 50.0, 8, 0.2, stated=True)
    ends = []
    for family in (case.exact_family, case.family):
        problem = Problem(family, SVR(C=50.0, epsilon=0.01), Spectahedron(), X, case.y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends.append(solve(problem, "tkl-low-rank", tol=1e-5))
    exact, found = ends
    assert case.error > 0.01
    assert found.lower_bound <= exact.upper_bound
    assert exact.lower_bound <= found.upper_bound


def test_an_estimated_error_is_called_one() -> None:
    """Two samples of either class between two nodes: no rule over few nodes tells them apart."""
    X = np.array([[0.2], [0.5], [0.501], [0.8]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    model = TessellatedKernelClassifier(
        kernel=Case("0", X, y, 1.0, 8, 0.0).family, C=1e4, scale=False, units="absolute"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    words = "of the sum over the nodes, 8 in each dimension"
    assert words in str(model.certificate_)
    assert words in model.result_.message
    # both stand beside each other: that of the sum as near as was asked
    low, high = model.problem_.family.estimate(model.problem_, model.result_)
    assert f"without proof, between {low:.4g} and {high:.4g}" in str(model.certificate_)
    assert low < 0.5 * model.certificate_.lower_bound
    assert model.certificate_.gap <= model.tol
    # what is proved is proved of the sum
    nodes, weights = np.polynomial.legendre.leggauss(8)
    Z, w = (0.6 * (nodes + 1.0) - 0.1)[:, None], 0.6 * weights

    def block(a: Array, b: Array) -> Array:
        return (indicators(0)(Z, a) * w[:, None]).T @ indicators(0)(Z, b)

    summed = Problem(CallableFamily(block, 2), SVC(C=1e4), Spectahedron(), X, y)
    exact = solve(summed, "tkl-low-rank", tol=1e-6)
    assert model.certificate_.lower_bound <= exact.upper_bound
    assert exact.lower_bound <= model.certificate_.upper_bound


def test_a_stated_error_has_no_premise() -> None:
    case = next(case for case in cases(12) if case.stated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = solve(case.problem(case.family), "tkl-low-rank", tol=1e-3, max_iter=50)
    assert found.premise == ""
    assert "nodes" not in found.message or "quadrature" in found.message
