"""The likelihood of targets known by half, each part beside another way to work it out."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence.censored.concordance import concordance, losses
from kernelweave.evidence.censored.likelihood import mode_of, normal_of, sites
from kernelweave.evidence.censored.residuals import ResidualDistribution
from kernelweave.evidence.censored.task import CensoredRegression
from kernelweave.evidence.rows import Rows
from kernelweave.evidence.tasks import score_of
from scipy.optimize import minimize
from scipy.stats import CensoredData, ecdf, norm

INF = np.inf
# known, below, above, between; far in either tail
ENDS = np.array(
    [
        [0.3, -INF, 1.5, -0.2, 0.1, 9.0, -INF, 40.0, -30.0],
        [0.3, -0.7, INF, 1.1, 0.1 + 1e-5, INF, -8.0, INF, -29.0],
    ]
)
F = np.array([0.1, 0.4, 0.2, 0.0, 0.5, 0.0, 0.3, 0.0, 0.0])


def log_likelihood(f: np.ndarray, deviation: float, ends: np.ndarray) -> np.ndarray:
    """From distribution functions of the tail that is small, and the middle of narrow ranges."""
    low, high = (ends - f) / deviation
    out = np.empty(len(f))
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        if a == b:
            out[i] = norm.logpdf(a) - np.log(deviation)
        elif b - a < 1e-3:
            out[i] = norm.logpdf(0.5 * (a + b)) + np.log(b - a)
        elif a > 0:
            out[i] = np.log(norm.sf(a) - norm.sf(b)) if a < 30 else norm.logsf(a)
        else:
            out[i] = np.log(norm.cdf(b) - norm.cdf(a))
    return out


def test_slope_and_curvature_are_those_of_the_log_likelihood() -> None:
    deviation, h = 0.8, 1e-4
    found = sites(F, deviation, ENDS)
    at = {step: log_likelihood(F + step * h, deviation, ENDS) for step in (-1, 0, 1)}
    # of a narrow range what is left of a second difference is rounding
    near = [0, 1, 2, 3, 5, 6]
    assert found.log_likelihood == pytest.approx(at[0], rel=1e-9, abs=1e-9)
    slope = (at[1] - at[-1]) / (2 * h)
    by_sites = found.trust / deviation**2 * (found.targets - F)
    assert by_sites == pytest.approx(slope, rel=1e-6, abs=1e-6)
    curvature = -(at[1] - 2 * at[0] + at[-1]) / h**2
    assert found.trust[near] / deviation**2 == pytest.approx(curvature[near], rel=1e-4, abs=1e-5)
    assert found.trust[4] == pytest.approx(1.0, abs=1e-6)
    # so far above its mean a limit is as good as a number
    assert found.trust[7] == pytest.approx(1.0, abs=1e-3)


def test_far_limits_are_as_good_as_numbers() -> None:
    for z in (20.0, 900.0, 1100.0, 1e5, 1e8):
        ends = np.array([[z, -INF, z], [INF, -z, z + 2.0 / z]])
        found = sites(np.zeros(3), 1.0, ends)
        # a normal tail has the hazard z + 1/z, about, and hardly varies
        assert found.trust[:2] == pytest.approx(1.0 - 1.0 / z**2, abs=6.0 / z**4 + 1e-3 / z)
        slope = found.trust * found.targets
        assert slope[:2] == pytest.approx([z + 1.0 / z, -z - 1.0 / z], rel=3.0 / z**4 + 1e-9)
        assert z <= slope[2] <= z + 1.0 / z


def test_a_narrow_range_has_the_probability_of_its_width() -> None:
    widths = np.array([1e-6, 9e-4, 1.1e-3])
    ends = np.array([np.full(3, 0.5), 0.5 + widths])
    told = sites(np.zeros(3), 1.0, ends).log_likelihood - np.log(widths)
    assert told == pytest.approx(norm.logpdf(0.5 + 0.5 * widths), abs=1e-6)


def test_a_limit_that_tells_nothing_has_hardly_any_trust() -> None:
    ends = np.array([[-50.0, -INF, -INF], [INF, INF, 50.0]])
    found = sites(np.zeros(3), 1.0, ends)
    assert found.log_likelihood == pytest.approx(0.0)
    assert found.trust.max() < 1e-5
    assert np.isfinite(found.targets).all()


def test_the_likeliest_normal_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    t = 3.0 + 2.0 * rng.standard_normal(200)
    known, below, above, between = np.split(t, (80, 120, 170))
    limits = [below + 0.5, above - 1.0, (np.floor(between), np.floor(between) + 1.0)]
    ends = np.hstack(
        [
            [known, known],
            [np.full(40, -INF), limits[0]],
            [limits[1], np.full(50, INF)],
            limits[2],
        ]
    )
    data = CensoredData(
        uncensored=known, left=limits[0], right=limits[1], interval=np.column_stack(limits[2])
    )
    assert normal_of(ends, np.ones(200)) == pytest.approx(norm.fit(data), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_mode_is_the_least_of_the_objective(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, n = np.sort(rng.uniform(-2, 2, 18)), 18
    gram = np.exp(-((x[:, None] - x) ** 2)) + 1e-6 * np.eye(n)
    truth = np.sin(2 * x) + 0.3 * rng.standard_normal(n)
    ends = np.array([truth, truth])
    ends[1, ::3], ends[0, ::3] = INF, truth[::3] - 0.5
    ends[0, 1::5] = -INF
    ends[1, 2::7] = truth[2::7] + 0.4
    ends.sort(axis=0)
    noise, mass = 0.09, rng.uniform(0.5, 2.0, n)
    root = np.linalg.cholesky(gram)

    def objective(z: np.ndarray) -> float:
        return 0.5 * z @ z - mass @ log_likelihood(root @ z, np.sqrt(noise), ends)

    best = minimize(objective, np.zeros(n), method="BFGS", options={"gtol": 1e-6})
    found = mode_of(gram, noise, ends, mass)
    S = gram + np.diag(noise / (mass * found.trust))
    f = gram @ np.linalg.solve(S, found.targets)
    assert f == pytest.approx(root @ best.x, abs=2e-4)
    assert objective(np.linalg.solve(root, f)) <= best.fun + 1e-6


def test_residuals_are_those_of_kaplan_and_meier() -> None:
    rng = np.random.default_rng(1)
    t, c = rng.standard_normal(99), rng.standard_normal(99) + 0.5
    low, event = np.minimum(t, c), t <= c
    ends = np.array([low, np.where(event, low, INF)])
    found = ResidualDistribution.of(ends, np.ones(99)).quantiles
    right = ecdf(CensoredData.right_censored(low, ~event)).cdf
    levels = np.arange(1, 100) / 100
    # the estimator's share of n residuals is one of n + 1 here: what is beyond all has one as well
    at = np.searchsorted(right.probabilities * 0.99, levels - 1e-6)
    expected = np.append(right.quantiles, INF)[np.minimum(at, len(right.quantiles))]
    assert found.tolist() == expected.tolist()


def test_residuals_are_where_ranges_overlap() -> None:
    def quantiles(*ranges: tuple[float, float]) -> list[float]:
        return ResidualDistribution.of(np.array(ranges).T, np.ones(len(ranges))).quantiles.tolist()

    # of Turnbull's innermost intervals the likeliest has all the mass
    assert quantiles((0.0, 3.0), (2.0, 5.0)) == [2.5, 2.5]
    assert quantiles((0.0, 3.0), (2.0, 5.0), (-INF, 1.0)) == [0.5, 2.5, 2.5]
    # each limit alone leaves all open, both meet between 0 and 1
    assert quantiles((0.0, INF), (-INF, 1.0)) == [0.5, 0.5]
    assert quantiles((-INF, 0.0), (1.0, INF)) == [-INF, INF]
    assert quantiles((-1.0, -1.0), (1.0, 1.0), (0.5, INF)) == [-1.0, 1.0, 1.0]


def test_limits_alone_tell_a_distribution() -> None:
    rng = np.random.default_rng(0)
    t, limit = rng.standard_normal(4000), rng.uniform(-2, 2, 4000)
    nothing = np.full(4000, INF)
    ends = np.where(t <= limit, [-nothing, limit], [limit, nothing])
    found = ResidualDistribution.of(ends, np.ones(4000)).quantiles
    # of such limits the estimator converges as the cube root of the rows
    told = found[[1000, 2000, 3000]]
    assert told == pytest.approx(norm.ppf([0.25, 0.5, 0.75]), abs=0.2)


def test_concordance_counts_pairs_whose_order_is_known() -> None:
    rng = np.random.default_rng(2)
    low = rng.integers(0, 12, 40).astype(float)
    high = np.where(rng.random(40) < 0.4, INF, low)
    low[::9] = -INF
    predicted, mass = rng.integers(0, 8, 40).astype(float), rng.uniform(0.5, 2, 40)
    right = every = 0.0
    for i in range(40):
        for j in range(40):
            both = low[i] == high[i] == low[j] == high[j]
            if high[i] <= low[j] and not both:
                weight = mass[i] * mass[j]
                every += weight
                right += weight * (predicted[i] < predicted[j])
                right += 0.5 * weight * (predicted[i] == predicted[j])
    ends = np.array([low, high])
    assert concordance(ends, predicted, mass) == pytest.approx(right / every)
    lost, units = losses(ends, predicted, mass)
    assert 1.0 - (mass @ lost[:, 0]) / (mass @ units[:, 0]) == pytest.approx(right / every)


def test_the_error_of_a_concordance_is_that_of_its_draws() -> None:
    from kernelweave.evidence.scores import ratio_with_error

    rng = np.random.default_rng(3)
    values, errors = [], []
    for _ in range(300):
        f = rng.standard_normal(80)
        t, c = f + rng.standard_normal(80), rng.standard_normal(80) + 0.5
        low = np.minimum(t, c)
        ends = np.array([low, np.where(t <= c, low, INF)])
        lost, error = ratio_with_error(*losses(ends, f, np.ones(80)), np.ones(80))
        values.append(1.0 - lost)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


def test_a_perfect_concordance_of_rows_held_out_has_an_error() -> None:
    """Beside the workbench's error of the same predictions, over rows and over groups."""
    time = np.arange(1.0, 13.0)
    ends = np.array([time, np.where(time <= 9.0, time, INF)])
    rows = Rows(time[:, None], np.empty((12, 0), dtype=np.int64), time[None], ends=ends)
    task = CensoredRegression()
    pairs = np.array([11.0] * 9 + [9.0] * 3)
    share = pairs / pairs.sum()
    for sign, value in ((1.0, 1.0), (-1.0, 0.0)):
        held_out = sign * time[:, None]
        found = task.calibrated(rows, held_out)[1:]
        assert found == pytest.approx((value, 1.5 * np.sum(share**2)))
        parts = np.repeat(np.arange(4), 3)
        by_group = np.bincount(parts, share)
        found = score_of(task, rows, held_out, parts)
        assert found == pytest.approx((value, 1.5 * np.sum(by_group**2)))
    assert np.isnan(score_of(task, rows, time[:, None], np.zeros(12, dtype=np.intp))[1])
