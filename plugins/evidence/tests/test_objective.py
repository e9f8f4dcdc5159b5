"""The evidence and its gradient, against differences, plain NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence._njit_exp import exp_of_multiples
from kernelweave.evidence._njit_pairs import packed_changes
from kernelweave.evidence.cross import CrossKernel, cross_kernel, own_kernel
from kernelweave.evidence.objective import Evidence, inverse_of, log_prior, start
from kernelweave.evidence.terms import JITTER, GaussianTerm, PairTerms, Scales
from kernelweave.evidence.views import Points, Views
from scipy.linalg import cholesky
from scipy.stats import multivariate_normal


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    state = np.random.RandomState(seed)
    numeric, codes = state.randn(n, 3), state.randint(0, 4, (n, 2))
    y = np.sin(2 * numeric[:, 0]) + (codes[:, 0] == 1) + 0.1 * state.randn(n)
    return numeric, codes.astype(np.int64), (y - y.mean()) / y.std()


def scales(n: int, seed: int = 0) -> Scales:
    theta = start(n)
    return Scales.from_vector(theta + 0.4 * np.random.RandomState(seed).randn(len(theta)))


def plain_kernel(views: Views, points: Points, s: Scales) -> np.ndarray:
    """The five terms, written down as the formulas read."""
    p = len(points.X)
    d2 = np.einsum("i,iab->ab", s.ell[:p] ** 2, (points.X[:, :, None] - points.X[:, None]) ** 2)
    linear = np.einsum("i,ia,ib->ab", s.ell[:p] ** 2, points.X, points.X)
    kappas = []
    for u in points.U:
        a, b = u[:, None], u[None]
        kappas.append(3 * (-abs(a - b) + a * a - a + 0.5 + b * b - b + 0.5 - 1 / 3))
    for j, share in enumerate(views.shares):
        code = points.C[j]
        same = (code[:, None] == code).astype(float)
        d2 += s.ell[p + j] ** 2 * (1 - same)
        overlap = same - share[code][:, None] - share[code] + np.sum(share**2)
        linear += s.ell[p + j] ** 2 * 0.5 * overlap
        kappas.append(overlap / (1 - np.sum(share**2)))
    product = np.prod([(1 + t * k) / (1 + t) for t, k in zip(s.strength, kappas, strict=True)], 0)
    terms = (np.exp(-d2 / 2), np.exp(-np.sqrt(d2)), linear, product, np.exp(-d2 / 200))
    return sum(w * term for w, term in zip(s.weights, terms, strict=True))


def test_kernel_is_the_formula() -> None:
    numeric, codes, _ = table(30)
    views = Views.of(numeric, codes)
    points, s = views.points(numeric, codes), scales(5)
    expected = plain_kernel(views, points, s)
    cross = cross_kernel(points, points, (s,), views.match_weight)
    np.testing.assert_allclose(cross, expected, atol=1e-12)
    packed = PairTerms(points, views.match_weight).fill(s)
    np.testing.assert_allclose(packed, cross[np.tril_indices(30)], atol=1e-13)
    np.testing.assert_allclose(
        own_kernel(points, s, views.match_weight), cross.diagonal(), atol=1e-12
    )
    assert np.linalg.eigvalsh(cross).min() > -1e-10


def test_rows_of_a_block_are_those_of_the_whole() -> None:
    numeric, codes, _ = table(20)
    views = Views.of(numeric, codes)
    points, s = views.points(numeric, codes), scales(5)
    whole = cross_kernel(points, points, (s,), views.match_weight)
    np.testing.assert_array_equal(
        cross_kernel(points, points, (s,), views.match_weight, slice(7, 12)), whole[7:12]
    )


def test_a_symmetric_kernel_is_the_kernel_and_symmetric_to_the_last_bit() -> None:
    numeric, codes, _ = table(600)
    views = Views.of(numeric, codes)
    points, s = views.points(numeric, codes), scales(5)
    kernel = CrossKernel(points, (s, scales(5, 1)), views.match_weight)
    gram, half = kernel.gram(), kernel.gram(whole=False)
    np.testing.assert_allclose(gram, kernel(points), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.tril(half), np.tril(gram))


def test_many_numbers_without_a_product_term_have_the_distances_of_a_few() -> None:
    """Their distances are one product of matrices; by the formula they are sums of squares."""
    state = np.random.RandomState(0)
    numeric, codes = state.randn(20, 90), state.randint(0, 3, (20, 2))
    views = Views.of(numeric, codes)
    points, theta = views.points(numeric, codes), start(92)
    theta[92:184] = -60.0
    theta[184 + 3] = -60.0
    s = Scales.from_vector(theta)
    found = cross_kernel(points, points, (s,), views.match_weight)
    np.testing.assert_allclose(found, plain_kernel(views, points, s), atol=1e-7)


def test_the_exponential_is_that_of_long_double() -> None:
    state = np.random.RandomState(0)
    sizes = 1e-9, 30.0, 700.0
    x = np.concatenate([[0.0], *(size * state.rand(300) for size in sizes)])
    out, spare = np.empty((2, len(x)))
    exp_of_multiples(x, -1.0, out, spare)
    exact = np.exp(-x.astype(np.longdouble))
    assert float(np.max(np.abs(out - exact) / exact)) < 5e-16
    # and far away it is nothing
    exp_of_multiples(np.full(1, 1e6), -1.0, out[:1], spare[:1])
    assert 0.0 <= out[0] < 1e-300


def test_kappa_is_centred_with_unit_mean_diagonal() -> None:
    """Under the ranks of many rows, and exactly under the shares of levels."""
    state = np.random.RandomState(0)
    numeric, codes = state.randn(2000, 1), state.randint(0, 5, (2000, 1)).astype(np.int64)
    views = Views.of(numeric, codes)
    H = views.points(numeric, codes).H
    assert 2 * H[0].mean() == pytest.approx(1.0, abs=1e-2)
    assert (2 * H[1] + views.match_weight[1]).mean() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gradient_matches_differences(weighted: bool, n_outputs: int) -> None:
    numeric, codes, y = table(35)
    views = Views.of(numeric, codes)
    targets = np.vstack([y, y**2, np.cos(y)])[:n_outputs]
    weight = np.random.RandomState(1).uniform(0.5, 3.0, 35) if weighted else None
    evidence = Evidence(views.points(numeric, codes), views.match_weight, targets, 5.0, weight)
    theta = scales(5).to_vector()
    _, slope = evidence(theta)
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        difference = (evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-5
        assert slope[i] == pytest.approx(difference, abs=2e-7, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curvature_is_the_average_of_observed_and_expected_information(weighted: bool) -> None:
    """½ Σ (∂S a)ᵀ S⁻¹ (∂S a) and the priors, with ∂S by differences."""
    numeric, codes, y = table(25)
    views = Views.of(numeric, codes)
    points, targets = views.points(numeric, codes), np.vstack([y, np.cos(y)])
    weight = np.random.RandomState(1).uniform(0.5, 3.0, 25) if weighted else np.ones(25)
    theta = scales(5).to_vector()

    def covariance(theta: np.ndarray) -> np.ndarray:
        s = Scales.from_vector(theta)
        return cross_kernel(points, points, (s,), views.match_weight) + np.diag(
            s.noise / weight + JITTER
        )

    evidence = Evidence(points, views.match_weight, targets, 5.0, weight)
    evidence.value(theta)
    _, curvature = evidence.derivatives()
    S = covariance(theta)
    steps = 1e-5 * np.eye(len(theta))
    changes = [(covariance(theta + e) - covariance(theta - e)) / 2e-5 for e in steps]
    moved = np.array([change @ np.linalg.solve(S, targets.T) for change in changes])
    solved = np.linalg.solve(S, moved.transpose(1, 0, 2).reshape(25, -1)).reshape(25, -1, 2)
    expected = 0.5 * np.einsum("iat,ajt->ij", moved, solved)
    slopes = [log_prior(theta + e, 5.0)[1] - log_prior(theta - e, 5.0)[1] for e in steps]
    np.testing.assert_allclose(curvature, expected + np.array(slopes) / 2e-5, atol=1e-5)


def test_a_value_that_is_known_is_that_of_the_argument_and_keeps_its_gradient() -> None:
    numeric, codes, y = table(20)
    views = Views.of(numeric, codes)
    given = (views.points(numeric, codes), views.match_weight, y[None], 5.0)
    theta, evidence = scales(5).to_vector(), Evidence(*given)
    for _ in range(2):
        # the caller's array may change, and a gradient uses the factor up
        theta += 0.1
        expected = Evidence(*given)(theta)
        assert evidence.value(theta) == evidence.value(theta) == expected[0]
        np.testing.assert_array_equal(evidence.gradient(), expected[1])
        assert evidence.value(theta) == expected[0]
        np.testing.assert_array_equal(evidence.gradient(), expected[1])


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_the_gaussian_term_alone_is_all_terms_with_weights_of_zero(n_outputs: int) -> None:
    numeric, codes, y = table(30)
    views = Views.of(numeric, codes)
    points, targets = (
        views.points(numeric, codes),
        np.array([y**k for k in range(1, n_outputs + 1)]),
    )
    theta = scales(5).to_vector()
    theta[11:15] = -60.0
    whole = Evidence(points, views.match_weight, targets, 0.5)
    alone = Evidence(points, views.match_weight, targets, 0.5, terms=GaussianTerm)
    assert alone.value(theta) == pytest.approx(whole.value(theta), rel=1e-12)
    (slope, curvature), (expected, other) = alone.derivatives(), whole.derivatives()
    free = alone.free
    assert free.sum() == 7
    assert not slope[~free].any()
    np.testing.assert_allclose(slope[free], expected[free], atol=1e-9)
    block = np.ix_(free, free)
    np.testing.assert_allclose(curvature[block], other[block], atol=1e-9)


def test_value_is_the_density_of_the_targets() -> None:
    numeric, codes, y = table(25)
    views = Views.of(numeric, codes)
    points, s = views.points(numeric, codes), scales(5)
    S = cross_kernel(points, points, (s,), views.match_weight) + (s.noise + JITTER) * np.eye(25)
    density = multivariate_normal(np.zeros(25), S).logpdf(y)
    theta = s.to_vector()
    prior, _ = log_prior(theta, 5.0)
    value, _ = Evidence(points, views.match_weight, y[None], 5.0)(theta)
    assert value - prior == pytest.approx(-density - 12.5 * np.log(2 * np.pi), abs=1e-8)


def test_a_gaussian_term_alone_is_scikit_learns_process() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    numeric, _, y = table(40)
    none = np.empty((40, 0), dtype=np.int64)
    views = Views.of(numeric, none)
    points = views.points(numeric, none)
    ell, noise = np.array([0.7, 0.4, 1.1]), 0.05
    s = Scales(ell, np.full(3, 1e-12), np.array([1.3, 0.0, 0.0, 0.0, 0.0]), noise)
    kernel = ConstantKernel(1.3) * RBF(1.0 / ell) + WhiteKernel(noise)
    process = GaussianProcessRegressor(kernel, alpha=JITTER, optimizer=None).fit(points.X.T, y)
    theirs = process.log_marginal_likelihood_value_ + 20.0 * np.log(2 * np.pi)
    theta = np.maximum(s.to_vector(), -60.0)
    prior, _ = log_prior(theta, 0.5)
    assert Evidence(points, views.match_weight, y[None], 0.5)(theta)[0] - prior == pytest.approx(
        -theirs
    )


def test_a_row_of_weight_two_counts_as_the_row_twice() -> None:
    """Up to a constant, which no scale changes."""
    numeric, codes, y = table(20)
    views = Views.of(numeric, codes)
    weight = np.ones(20)
    weight[:5] = 2.0
    twice = np.concatenate([np.arange(20), np.arange(5)])
    once = Evidence(views.points(numeric, codes), views.match_weight, y[None], 5.0, weight)
    both = Evidence(
        views.points(numeric[twice], codes[twice]), views.match_weight, y[None, twice], 5.0
    )
    values = [(once(t)[0], both(t)[0]) for t in (scales(5, k).to_vector() for k in range(3))]
    gaps = np.diff(values).ravel()
    # the jitter is not divided by the weight
    np.testing.assert_allclose(gaps, gaps[0], atol=2e-3)


def test_the_recorded_value_and_slopes(golden) -> None:
    """Fifty digits, by a script that knows nothing of this package."""
    case = golden("evidence")
    numeric, codes = np.array(case["numeric"]), np.array(case["codes"], dtype=np.int64)
    weight = np.array(case["weight"])
    views = Views.of(numeric, codes, weight)
    points = views.points(numeric, codes)
    evidence = Evidence(
        points, views.match_weight, np.array(case["targets"]), case["precision"], weight
    )
    value, slopes = evidence(np.array(case["theta"]))
    assert value == pytest.approx(case["value"], rel=1e-12)
    np.testing.assert_allclose(slopes, case["slopes"], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [17, 20])
def test_sums_do_not_hang_on_where_arrays_lie(n: int) -> None:
    """As in fits at once, whose small arrays lie in other places each time."""
    state = np.random.RandomState(0)
    numeric, codes, _ = table(n)
    points = Views.of(numeric, codes).points(numeric, codes)
    p = len(points.H)
    strength = np.vstack([state.rand(2, p), np.ones(p)])
    values, probes = state.rand(3, n * (n + 1) // 2), state.randn(1, n)
    said, others = set(), []
    for _ in range(1000):
        others.append(np.empty(state.randint(1, 2 * n)))
        if len(others) > 60:
            others.pop(state.randint(60))
        far, shape, slope = (value.copy() for value in values)
        slopes, moved = np.zeros(2 * p), np.zeros((2 * p, 1, n))
        parts = ((slopes[part], moved[part]) for part in (slice(p), slice(p, 2 * p)))
        again = Points(*(np.array(part) for part in points))
        packed_changes(
            again[:4], 0, n, strength.copy(), far, 0.3, shape, slope, probes.copy(), *parts
        )
        said.add(slopes.tobytes() + moved.tobytes())
    assert len(said) == 1


@pytest.mark.parametrize("n", [1, 64, 65, 130, 331])
def test_the_inverse_by_halves_is_that_of_numpy(n: int) -> None:
    A = np.random.RandomState(n).randn(n, n)
    S = A @ A.T + n * np.eye(n)
    inverse = np.triu(inverse_of(np.asfortranarray(cholesky(S))))
    assert inverse == pytest.approx(np.triu(np.linalg.inv(S)), rel=1e-10, abs=1e-14)
