"""Brier score and calibration of predictions, each beside another way to work it out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceKernelRegressor,
    SurvivalCalibrationDisplay,
    SurvivalDisplay,
)
from kernelweave.evidence.censored.judging import (
    Distributions,
    curves_of_strata,
    held_out_targets,
    measures_of,
)
from kernelweave.evidence.censored.measures import (
    calibration_p,
    integrated_brier,
    observed_curve,
    shares_of_bins,
    strata_of,
)
from kernelweave.evidence.censored.residuals import ResidualDistribution
from kernelweave.kernels_core.arrays import FloatArray
from scipy.integrate import trapezoid
from scipy.stats import CensoredData, ecdf, expon, kstest, norm

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
]
INF = np.inf
FAST = {"precisions": (10.0,), "warp": False, "tol": 1e-3}
COLUMNS = ["brier", "brier_one_curve", "calibration_p"]


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def made(n: int, seed: int = 0, uneven: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Log-normal times; `uneven`: how much wider the noise is where times are long."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    centre = (2.0 + X["a"] - 0.7 * X["b"] ** 2).to_numpy()
    noise = 0.5 * np.exp(uneven * (centre - 1.3)) * rng.standard_normal(n)
    until = np.exp(2.5 + rng.standard_normal(n))
    true = np.exp(centre + noise)
    return X, pd.DataFrame({"died": true <= until, "days": np.minimum(true, until)})


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.DataFrame]:
    return made(200)


@pytest.fixture(scope="module")
def model(data: tuple[pd.DataFrame, pd.DataFrame]) -> EvidenceKernelRegressor:
    return EvidenceKernelRegressor(**FAST).fit(*data)


def right_censored(n: int, seed: int, *, ties: bool = False) -> FloatArray:
    rng = np.random.default_rng(seed)
    t, c = rng.exponential(1.0, n), rng.exponential(1.5, n)
    if ties:
        t, c = np.ceil(5 * t) / 5, np.ceil(5 * c) / 5
    low = np.minimum(t, c)
    return np.array([low, np.where(t <= c, low, INF)])


def exponential(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rates of rows, for survival functions."""
    rates = np.random.default_rng(seed).uniform(0.3, 2.0, n)
    return rates, np.ones(n)


# the Brier score


@pytest.mark.parametrize("ties", [False, True])
def test_brier_is_the_sum_over_rows_and_times(ties: bool) -> None:
    ends = right_censored(30, 0, ties=ties)
    mass = np.random.default_rng(1).uniform(0.5, 2.0, 30)
    rates, _ = exponential(30, 2)
    low, high = ends
    died = np.isfinite(high)

    def observed(before: float) -> float:
        """Return the probability not to be censored before a time."""
        share = 1.0
        for place in np.unique(low[low < before]):
            # an event comes before a censoring at the same time
            at_risk = mass[(low > place) | ((low == place) & ~died)].sum()
            left = mass[(low == place) & ~died].sum()
            share *= 1.0 - left / at_risk if left else 1.0
        return share

    by = np.argsort(low)
    cumulative = np.cumsum(mass[by]) / mass.sum()
    begin, end = (low[by][np.argmax(cumulative >= share - 1e-12)] for share in (0.1, 0.9))
    times, scores = np.linspace(begin, end, 200), []
    for time in times:
        score = 0.0
        for i in range(30):
            chance = np.exp(-rates[i] * time)
            if died[i] and low[i] <= time:
                score += mass[i] * chance**2 / observed(low[i])
            elif low[i] > time or low[i] == time:
                score += mass[i] * (1.0 - chance) ** 2 / observed(time)
        scores.append(score / mass.sum())
    expected = trapezoid(scores, times) / (end - begin)
    found = integrated_brier(ends, mass, lambda points: np.exp(-rates[:, None] * points), log=False)
    assert found.score == pytest.approx(expected, rel=1e-9)


def test_brier_is_that_of_scikit_survival() -> None:
    metrics = pytest.importorskip("sksurv.metrics")
    util = pytest.importorskip("sksurv.util")
    ends = right_censored(300, 3)
    rates, mass = exponential(300, 4)
    low, high = ends
    y = util.Surv.from_arrays(np.isfinite(high), low)
    times = np.linspace(*np.quantile(low, [0.1, 0.9], method="inverted_cdf"), 200)
    # at the last time it counts that row as gone
    times[-1] -= 1e-9
    expected = metrics.integrated_brier_score(y, y, np.exp(-rates[:, None] * times), times)
    found = integrated_brier(ends, mass, lambda points: np.exp(-rates[:, None] * points), log=False)
    assert found.score == pytest.approx(expected, rel=1e-4)


def test_brier_does_not_depend_on_how_many_are_censored() -> None:
    rng = np.random.default_rng(5)
    rates, mass = exponential(20_000, 6)
    t, c = rng.exponential(1.0 / rates), rng.exponential(2.0, 20_000)
    # between the same times, which the rows last seen would set otherwise
    window = np.array([0.1, 1.0])
    scores = []
    for low, high in ((t, t), (np.minimum(t, c), np.where(t <= c, t, INF))):
        inside = np.clip(low, *window), np.where(np.isinf(high), INF, np.clip(high, *window))
        late = low >= window[1]
        ends = np.array([inside[0], np.where(late, INF, inside[1])])
        found = integrated_brier(
            ends, mass, lambda points: np.exp(-rates[:, None] * points), log=False
        )
        scores.append((found.score, found.one_curve))
    assert scores[0] == pytest.approx(scores[1], abs=6e-3)
    # what rows differ by lowers the score of right curves below that of one for all
    assert scores[0][0] < scores[0][1]


def test_the_right_curves_have_the_least_brier_score() -> None:
    rng = np.random.default_rng(7)
    rates, mass = exponential(3000, 8)
    t, c = rng.exponential(1.0 / rates), rng.exponential(2.0, 3000)
    ends = np.array([np.minimum(t, c), np.where(t <= c, t, INF)])
    scores = {
        factor: integrated_brier(
            ends, mass, lambda points, k=factor: np.exp(-k * rates[:, None] * points), log=False
        ).score
        for factor in (0.5, 0.8, 1.0, 1.25, 2.0)
    }
    assert min(scores, key=lambda factor: scores[factor]) == 1.0


def test_logarithms_are_averaged_over_what_they_are_logarithms_of() -> None:
    ends = right_censored(80, 9)
    rates, mass = exponential(80, 10)
    plain = integrated_brier(ends, mass, lambda points: np.exp(-rates[:, None] * points), log=False)
    of_logs = integrated_brier(
        np.log(ends), mass, lambda points: np.exp(-rates[:, None] * np.exp(points)), log=True
    )
    assert of_logs == pytest.approx(plain, rel=1e-9)


def test_where_limits_leave_it_open_there_is_no_brier_score() -> None:
    low = np.arange(1.0, 41.0)

    def brier(high: FloatArray, low: FloatArray = low) -> float:
        half = lambda points: np.full((40, len(points)), 0.5)  # noqa: E731
        return integrated_brier(np.array([low, high]), np.ones(40), half, log=False).score

    assert brier(low) == pytest.approx(0.25)
    assert np.isnan(brier(np.where(low == 20.0, 25.0, low)))
    below = np.where(low == 20.0, -INF, low)
    assert np.isnan(brier(low, below))
    # below the first time and beyond the last they say enough
    assert brier(np.where(low == 1.0, 3.0, low)) == pytest.approx(0.25)
    assert brier(low, np.where(low < 5.0, -INF, low)) == pytest.approx(0.25)
    assert np.isnan(brier(np.full(40, 7.0), np.full(40, 7.0)))


# curves without a model


def test_the_observed_curve_is_that_of_kaplan_and_meier() -> None:
    for ties in (False, True):
        low, high = right_censored(80, 11, ties=ties)
        data = CensoredData.right_censored(low, np.isinf(high))
        theirs = ecdf(data).sf
        with warnings.catch_warnings():
            # none of the first and last places
            warnings.simplefilter("ignore", RuntimeWarning)
            interval = theirs.confidence_interval(method="log-log")
        ours = observed_curve(np.array([low, high]), np.ones(80))
        points = np.linspace(0.0, 4.0, 50)
        assert ours.at(points) == pytest.approx(theirs.evaluate(points))
        at = np.isin(ours.places, theirs.quantiles)
        inside = (theirs.probabilities > 0.0) & (theirs.probabilities < 1.0)
        assert ours.low is not None
        assert ours.high is not None
        for band, end in ((ours.low, interval.low), (ours.high, interval.high)):
            assert band[at][inside] == pytest.approx(end.probabilities[inside], abs=1e-9)


def test_the_observed_curve_of_ranges_is_that_of_turnbull() -> None:
    rng = np.random.default_rng(12)
    t = rng.exponential(1.0, 4000)
    low = np.floor(4.0 * t) / 4.0
    curve = observed_curve(np.array([low, low + 0.25]), np.ones(4000))
    assert curve.low is None
    # at the ends of the ranges it is the share beyond
    for place in (0.25, 0.5, 1.0, 2.0):
        assert curve.at(np.array([place]))[0] == pytest.approx(np.mean(low >= place), abs=1e-6)


def test_below_all_limits_nothing_is_known_of_a_curve() -> None:
    ends = np.array([[-INF, -INF, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]])
    curve = observed_curve(ends, np.ones(4))
    at = curve.at(np.array([0.5, 2.0, 2.5, 3.0]))
    assert np.isnan(at[0])
    # three of four are 2 at most
    assert at[1:] == pytest.approx([0.25, 0.25, 0.0], abs=1e-6)


def test_rows_that_say_nothing_change_no_curve() -> None:
    right, lab = right_censored(40, 30), np.array([[-INF, -INF, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]])
    nothing = np.array([[-INF] * 7, [INF] * 7])
    for ends in (right, lab, np.array([[1.0, 2.0, 4.0], [3.0, 2.0, 4.0]])):
        n = ends.shape[1]
        alone = observed_curve(ends, np.ones(n))
        more = observed_curve(np.hstack([ends, nothing]), np.ones(n + 7))
        for one, other in zip(alone, more, strict=True):
            np.testing.assert_equal(other, one)
    # without others it is not known
    assert np.isnan(observed_curve(nothing, np.ones(7)).at(np.array([0.0, 1.0]))).all()


def test_a_curve_has_the_weights_of_its_rows() -> None:
    ends = right_censored(30, 13)
    twice = np.r_[np.arange(30), np.arange(10)]
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    points = np.linspace(0, 3, 20)
    by_copies = observed_curve(ends[:, twice], np.ones(40)).at(points)
    assert observed_curve(ends, weight).at(points) == pytest.approx(by_copies)


# calibration


def test_rows_are_spread_over_bins_evenly() -> None:
    rng = np.random.default_rng(14)
    low, high = np.sort(rng.random((2, 20)), axis=0)
    found = shares_of_bins(low, high, 10)
    for i in range(20):
        inside = rng.uniform(low[i], high[i], 40_000)
        expected = np.histogram(inside, 10, (0.0, 1.0))[0] / 40_000
        assert found[i] == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("case", ["plain", "censored", "weights", "groups", "few"])
def test_p_values_of_right_distributions_are_uniform(case: str) -> None:
    rng = np.random.default_rng(15)
    n, found = 60 if case == "few" else 240, []
    for _ in range(400):
        f, e = rng.standard_normal((2, n))
        parts = np.arange(n)
        if case == "groups":
            parts = rng.integers(0, 80, n)
            e = np.sqrt(0.5) * (rng.standard_normal(80)[parts] + e)
        t, c = f + e, np.full(n, INF) if case == "plain" else rng.standard_normal(n) + 0.3
        mass = rng.choice([1.0, 4.0], n) if case == "weights" else np.ones(n)
        low = norm.cdf(np.minimum(t, c) - f)
        high = np.where(t <= c, low + 1e-9, 1.0)
        found.append(calibration_p(np.minimum(low, high - 1e-9), high, strata_of(f), mass, parts))
    assert not np.isnan(found).any()
    assert kstest(found, "uniform").pvalue > 1e-3
    assert np.mean(np.array(found) < 0.05) < 0.09


def test_p_values_of_wrong_distributions_are_small() -> None:
    rng = np.random.default_rng(16)
    found: dict[str, list[float]] = {"too wide and too narrow": [], "too low and too high": []}
    for _ in range(50):
        f, e = rng.standard_normal((2, 240))
        for name, u in zip(
            found, (norm.cdf(e * np.exp(0.5 * f)), norm.cdf(e + 0.6 * f)), strict=True
        ):
            u = np.clip(u, 1e-9, 1 - 1e-9)
            parts = np.arange(240)
            found[name].append(calibration_p(u, u + 1e-9, strata_of(f), np.ones(240), parts))
    for name, values in found.items():
        assert np.mean(np.array(values) < 0.05) > 0.9, name


def test_a_group_counts_once_however_often_it_was_given() -> None:
    rng = np.random.default_rng(17)
    u, f = rng.random((2, 60))
    low, high = u * 0.999, u * 0.999 + 1e-3
    strata, many = strata_of(f), np.tile(np.arange(60), 5)
    once = calibration_p(low, high, strata, np.ones(60), np.arange(60))
    copies = calibration_p(low[many], high[many], strata[many], np.ones(300), many)
    alone = calibration_p(low[many], high[many], strata[many], np.ones(300), np.arange(300))
    assert copies == pytest.approx(once)
    assert alone < 0.1 * once
    weighted = calibration_p(low, high, strata, np.full(60, 7.0), np.arange(60))
    assert weighted == pytest.approx(once)


@pytest.mark.parametrize("n_residuals", [150, 1500])
def test_new_rows_should_have_a_tenth_in_every_bin(n_residuals: int) -> None:
    """The residuals that give the shape are a sample too, which p-values allow for."""
    rng = np.random.default_rng(22)
    n, found, moved = 300, [], []
    for _ in range(300):
        residuals = np.sort(rng.standard_normal(n_residuals))
        f, e = rng.standard_normal((2, n))
        c, parts = rng.standard_normal(n) + 0.8, np.arange(n)
        for values, shift in ((found, 0.0), (moved, 0.8)):
            t = f + e + shift
            told = Distributions(f, np.ones(n), np.zeros(n), (residuals,), parts * 0)
            ends = np.array([np.minimum(t, c), np.where(t <= c, t, INF)])
            between = told.between(ends)
            p = calibration_p(*between, strata_of(f), np.ones(n), parts, n_residuals=n_residuals)
            values.append(p)
    assert np.mean(np.array(found) < 0.05) < 0.09
    assert 0.3 < np.median(found) < 0.85
    # all are moved alike, which no comparison of strata would find
    assert np.mean(np.array(moved) < 0.05) > 0.7


def test_few_rows_or_one_stratum_have_no_test() -> None:
    u = np.linspace(0.01, 0.99, 40)
    given = (u, u + 1e-3)
    parts = np.arange(40)
    assert 0.0 <= calibration_p(*given, parts % 3, np.ones(40), parts) <= 1.0
    assert np.isnan(calibration_p(*given, parts * 0, np.ones(40), parts))
    assert np.isnan(calibration_p(*given, parts % 3, np.ones(40), parts % 35))


# distributions of held-out rows


def test_targets_lie_between_the_probabilities_of_their_ends() -> None:
    quantiles = np.array([-2.0, -1.0, 0.0, 0.0, 1.0, INF])
    ends = np.array(
        [[-1.0, 0.0, 0.5, -INF, -0.5, 9.0], [-1.0, 0.0, INF, -1.5, 0.5, 9.0]]
    )  # fmt: skip
    n = ends.shape[1]
    told = Distributions(
        np.zeros(n), np.ones(n), np.zeros(n), (quantiles,), np.zeros(n, dtype=np.intp)
    )
    low, high = told.between(ends)
    # of seven ranks: a known target has its own, or that of those equal to it
    assert 7.0 * low == pytest.approx([1.0, 2.0, 4.5, 0.0, 2.5, 5.0])
    assert 7.0 * high == pytest.approx([3.0, 5.0, 7.0, 1.5, 4.5, 6.0])


def test_ranks_of_the_targets_of_a_distribution_are_uniform() -> None:
    rng = np.random.default_rng(18)
    n = 2000
    which = np.arange(n) % 2
    quantiles = tuple(
        ResidualDistribution.of(np.array([each, each]), np.ones(500)).quantiles
        for each in rng.standard_normal((2, 500))
    )
    centre, deviation = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    told = Distributions(centre, deviation, np.zeros(n), quantiles, which)
    t = centre + deviation * rng.standard_normal(n)
    low, high = told.between(np.array([t, t]))
    assert (high - low)[high < 1.0].min() == pytest.approx(1.0 / 501)
    assert kstest(0.5 * (low + high), "uniform").statistic < 0.06
    half = np.diagonal(told.survival(centre))
    assert half == pytest.approx(0.5, abs=0.06)


def test_each_fold_is_judged_by_the_residuals_of_the_others(
    model: EvidenceKernelRegressor,
) -> None:
    held_out = held_out_targets(model._predictor)
    assert held_out is not None
    told, fold = held_out.told, model._predictor.fold[held_out.rows]
    residuals = (held_out.ends - told.centre) / told.deviation
    for k, quantiles in enumerate(told.residuals):
        others = fold != fold[told.which == k][0]
        assert others.sum() < len(fold)
        expected = ResidualDistribution.of(residuals[:, others], held_out.mass[others])
        assert quantiles.tolist() == expected.quantiles.tolist()
    # where all residuals are taken they are those of new rows, whose median is the prediction
    pooled = ResidualDistribution.of(residuals, held_out.mass).quantiles
    shape = model._predictor.distribution.quantiles
    assert shape == pytest.approx(pooled - np.median(pooled))


def test_held_out_rows_tell_how_right_new_distributions_are(
    model: EvidenceKernelRegressor,
) -> None:
    told = model.held_out_
    assert told.columns.tolist() == ["score", "error", "n_rows", "n_groups", *COLUMNS]
    assert tuple(told[COLUMNS].iloc[0]) == measures_of(held_out_targets(model._predictor), log=True)
    assert told[COLUMNS].iloc[1:].isna().all(axis=None)
    X, y = made(3000, seed=1)
    survival = model.predict_distribution(X).sf
    low, high = y["days"].to_numpy(), np.where(y["died"], y["days"], INF)
    new = integrated_brier(
        np.array([low, high]), np.ones(3000),
        lambda points: np.column_stack([survival(point) for point in points]), log=False,
    )  # fmt: skip
    assert told["brier"].iloc[0] == pytest.approx(new.score, abs=0.015)
    assert told["brier_one_curve"].iloc[0] == pytest.approx(new.one_curve, abs=0.015)
    assert new.score < 0.6 * new.one_curve
    assert "Brier score" in model._repr_html_()


def test_other_fits_have_the_columns_they_had() -> None:
    rng = np.random.default_rng(19)
    X = rng.standard_normal((60, 2))
    model = EvidenceKernelRegressor(**FAST).fit(X, X[:, 0])
    assert model.held_out_.columns.tolist() == ["score", "error", "n_rows", "n_groups"]
    assert "Brier" not in model._repr_html_()


def test_noise_that_grows_with_the_prediction_is_found() -> None:
    X, y = made(300, seed=3, uneven=0.7)
    wrong = EvidenceKernelRegressor(**FAST).fit(X, y).held_out_["calibration_p"].iloc[0]
    assert wrong < 0.01


@pytest.mark.slow
def test_p_values_of_fits_find_what_is_wrong_and_no_more() -> None:
    found: dict[float, list[float]] = {0.0: [], 0.5: []}
    for uneven, values in found.items():
        for seed in range(20):
            model = EvidenceKernelRegressor(**FAST).fit(*made(200, seed, uneven))
            values.append(model.held_out_["calibration_p"].iloc[0])
    assert np.median(found[0.0]) > 0.2
    assert np.mean(np.array(found[0.0]) < 0.05) <= 0.2
    assert np.mean(np.array(found[0.5]) < 0.05) > 0.7


def test_one_fold_and_limits_within_tell_less() -> None:
    X, y = made(60)
    one = EvidenceKernelRegressor(**FAST, cv=[(np.arange(40), np.arange(40, 60))]).fit(X, y)
    assert one.held_out_[COLUMNS].iloc[0].isna().all()
    with pytest.raises(ValueError, match="must have held out rows in two folds or more: give X"):
        SurvivalCalibrationDisplay.from_estimator(one)
    ends = pd.DataFrame({"low": np.floor(y["days"]), "high": np.floor(y["days"]) + 1.0})
    ranges = EvidenceKernelRegressor(**FAST)
    with pytest.warns(UserWarning, match="read as ranges"):
        told = ranges.fit(X, ends).held_out_.iloc[0]
    assert np.isnan(told["brier"])
    assert 0.0 <= told["calibration_p"] <= 1.0
    limit = np.quantile(y["days"], 0.4)
    lab = pd.DataFrame({"low": np.where(y["days"] < limit, -INF, y["days"]),
                        "high": np.maximum(y["days"], limit)})  # fmt: skip
    # all that is known by half is below the times that are averaged over
    assert EvidenceKernelRegressor(**FAST).fit(X, lab).held_out_["brier"].iloc[0] < 0.3


def test_weights_and_copies_say_the_same() -> None:
    X, y = made(80)
    X = X.round(1)
    twice = np.r_[np.arange(80), np.arange(25)]
    weight = np.where(np.arange(80) < 25, 2.0, 1.0)
    by_weight = EvidenceKernelRegressor(**FAST).fit(X, y, weight).held_out_
    copies = EvidenceKernelRegressor(**FAST).fit(X.iloc[twice], y.iloc[twice]).held_out_
    assert copies[COLUMNS].iloc[0].to_numpy() == pytest.approx(
        by_weight[COLUMNS].iloc[0].to_numpy(), rel=1e-4
    )


# displays


def test_curves_are_those_of_the_predicted_distribution(
    model: EvidenceKernelRegressor, data: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X = data[0].iloc[:3].set_axis(["p", "q", "r"])
    points = np.array([0.5, 2.0, 7.0, 20.0])
    display = SurvivalDisplay.from_estimator(model, X, points=points)
    told = model.predict_distribution(X)
    expected = np.column_stack([told.sf(point) for point in points])
    assert display.survival == pytest.approx(expected)
    assert display.labels == ["row p", "row q", "row r"]
    assert [line.get_label() for line in display.ax_.get_lines()] == display.labels
    assert display.ax_.get_xlabel() == "time"
    # the band is by the posterior mean moved by two of its deviations, on the scale of logarithms
    mixture = model._predictor.mixture
    known = mixture.variance(model._predictor.views.points(*model._encoded(X)))
    factor = np.exp(2.0 * np.sqrt(known) * mixture.target.spread[0])
    low = np.column_stack([told.sf(point * factor) for point in points])
    assert display.low == pytest.approx(low, abs=1e-9)
    assert (display.low <= display.survival).all()
    assert (display.survival <= display.high).all()


def test_a_band_is_wide_where_rows_are_far(model: EvidenceKernelRegressor) -> None:
    X = pd.DataFrame({"a": [0.0, 6.0], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    display = SurvivalDisplay.from_estimator(model, X)
    near, far = (display.high - display.low).max(axis=1)
    assert far > near


def test_rows_held_out_have_curves_of_their_folds(model: EvidenceKernelRegressor) -> None:
    display = SurvivalDisplay.from_held_out(model, response="days")
    assert [each.split(" (")[0] for each in display.labels] == ["short", "middle", "long"]
    rows = [int(each.split("row ")[1].rstrip(")")) for each in display.labels]
    predicted = model.held_out_prediction_[rows]
    expected = np.quantile(model.held_out_prediction_, [0.1, 0.5, 0.9])
    assert predicted == pytest.approx(expected, rel=0.1)
    again = SurvivalDisplay.from_held_out(model, rows, points=display.points)
    assert again.survival.tolist() == display.survival.tolist()
    assert display.ax_.get_xlabel() == "days"
    # the median of a curve is the row's prediction, by its fold and the residuals of the others
    at = np.array([np.interp(-0.5, -curve, display.points) for curve in display.survival])
    assert at == pytest.approx(predicted, rel=0.25)


def test_groups_have_their_own_curves(
    model: EvidenceKernelRegressor, data: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    display = SurvivalCalibrationDisplay.from_estimator(model)
    assert display.labels == ["short", "middle", "long"]
    assert tuple(display.measures or ()) == tuple(model.held_out_[COLUMNS].iloc[0])
    told = model.held_out_prediction_
    low, high = data[1]["days"].to_numpy(), np.where(data[1]["died"], data[1]["days"], INF)
    short = np.flatnonzero(told <= np.quantile(told, 1 / 3))
    points = np.array([1.0, 3.0, 6.0])
    own = observed_curve(np.array([low, high])[:, short], np.ones(len(short)))
    assert display.groups[0].observed.at(points) == pytest.approx(own.at(points))
    # those predicted longer live longer, as predicted and in truth
    means = np.array([group.predicted.mean() for group in display.groups])
    seen = np.array([group.observed.at(group.points).mean() for group in display.groups])
    assert np.all(np.diff(means) > 0.05)
    assert seen == pytest.approx(means, abs=0.06)
    one = SurvivalCalibrationDisplay.from_estimator(model, n_groups=1)
    assert (one.labels, one.groups[0].n_rows) == (["all"], 200)


def test_new_rows_are_judged_beside_their_own_curve(model: EvidenceKernelRegressor) -> None:
    X, y = made(900, seed=3)
    display = SurvivalCalibrationDisplay.from_estimator(model, X, y, n_groups=2)
    assert display.labels == ["short", "long"]
    survival = model.predict_distribution(X).sf
    told = model.predict(X)
    group, point = display.groups[0], display.groups[0].points[20]
    expected = survival(point)[told <= np.median(told)].mean()
    assert group.predicted[20] == pytest.approx(expected)
    seen = group.observed.at(group.points)
    assert np.abs(seen - group.predicted).max() < 0.12
    assert display.measures is not None
    assert display.measures.brier < 0.6 * display.measures.brier_one_curve
    # times of another unit are not those that were predicted
    wrong = SurvivalCalibrationDisplay.from_estimator(
        model, X, y.assign(days=1.5 * y["days"]), n_groups=1
    )
    assert wrong.measures is not None
    assert wrong.measures.calibration_p < 1e-6


def test_limits_on_both_sides_have_curves_without_bands() -> None:
    rng = np.random.default_rng(20)
    f = rng.standard_normal(90)
    low = np.floor(f + rng.standard_normal(90))
    n = np.zeros(90, dtype=np.intp)
    told = Distributions(f, np.ones(90), 0.1 * np.ones(90), (norm.ppf(np.arange(1, 100) / 100),), n)
    ends = np.array([low, low + 1.0])
    groups = curves_of_strata(told, ends, np.ones(90), 3, log=False, times=False)
    assert [group.observed.low for group in groups] == [None] * 3
    display = SurvivalCalibrationDisplay(groups, labels=["a", "b", "c"], times=False).plot()
    assert display.ax_.get_ylabel() == "share with more"
    assert len(display.ax_.get_lines()) == 6


def test_an_exponential_curve_is_met_by_its_own_draws() -> None:
    rng = np.random.default_rng(21)
    n = 4000
    t = rng.exponential(1.0, n)
    quantiles = np.log(expon.ppf(np.arange(1, 400) / 400))
    zero = np.zeros(n)
    told = Distributions(zero, zero + 1.0, zero, (quantiles,), np.zeros(n, dtype=np.intp))
    ends = np.log(np.array([t, t]))
    (group,) = curves_of_strata(told, ends, np.ones(n), 1, log=True, times=True)
    assert group.predicted == pytest.approx(np.exp(-group.points), abs=5e-3)
    assert group.observed.at(group.points) == pytest.approx(group.predicted, abs=0.03)


def test_an_event_at_zero_is_one_at_the_first_time() -> None:
    X, y = made(60)
    y.loc[:3, "days"], y.loc[:3, "died"] = 0.0, True
    model = EvidenceKernelRegressor(**FAST).fit(X, y)
    (group,) = SurvivalCalibrationDisplay.from_estimator(model, n_groups=1).groups
    assert group.observed.low is not None
    first = y["days"][y["days"] > 0.0].min()
    theirs = ecdf(CensoredData.right_censored(np.maximum(y["days"], first), ~y["died"])).sf
    points = np.linspace(first, 8.0, 20)
    assert group.observed.at(points) == pytest.approx(theirs.evaluate(points))
    assert np.isfinite(model.held_out_["brier"].iloc[0])


def test_rows_censored_at_zero_change_no_curve(
    model: EvidenceKernelRegressor, data: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, y = data[0].iloc[:60], data[1].iloc[:60]
    at_zero = pd.DataFrame({"died": [False] * 15, "days": [0.0] * 15})
    more = pd.concat([X, data[0].iloc[60:75]]), pd.concat([y, at_zero])
    (alone,), (with_zero,) = (
        SurvivalCalibrationDisplay.from_estimator(model, *given, n_groups=1).groups
        for given in ((X, y), more)
    )
    for one, other in zip(alone.observed, with_zero.observed, strict=True):
        np.testing.assert_equal(other, one)
    with pytest.raises(ValueError, match="each of the 15 rows ended at time 0 without an event"):
        SurvivalCalibrationDisplay.from_estimator(model, data[0].iloc[60:75], at_zero)


def test_new_rows_may_be_lists_and_labels_an_array(
    model: EvidenceKernelRegressor, data: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    numbers = EvidenceKernelRegressor(**FAST).fit(data[0].to_numpy()[:40], data[1][:40])
    shown = SurvivalDisplay.from_estimator(numbers, data[0].to_numpy()[:2].tolist())
    assert shown.labels == ["row 0", "row 1"]
    named = np.array(["p", "q", "r"])
    for rows in (None, np.array([3, 5, 8])):
        assert SurvivalDisplay.from_held_out(model, rows, labels=named).labels == ["p", "q", "r"]
    with pytest.raises(ValueError, match="labels must be 3, one a row, got 0"):
        SurvivalDisplay.from_held_out(model, labels=[])


def test_displays_say_what_is_wrong(
    model: EvidenceKernelRegressor, data: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, y = data
    numbers = EvidenceKernelRegressor(**FAST).fit(X, y["days"])
    for display in (SurvivalDisplay.from_held_out, SurvivalCalibrationDisplay.from_estimator):
        with pytest.raises(
            ValueError, match=r"fitted to targets known by half, .* fitted to other"
        ):
            display(numbers)
    with pytest.raises(ValueError, match="X and y must be given both"):
        SurvivalCalibrationDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match="n_groups must be an integer >= 1"):
        SurvivalCalibrationDisplay.from_estimator(model, n_groups=0)
    with pytest.raises(ValueError, match="labels must be 2, one a row, got 1"):
        SurvivalDisplay.from_estimator(model, X.iloc[:2], labels=["one"])
    with pytest.raises(ValueError, match=r"rows must be places from 0 to 199 .*, got 200"):
        SurvivalDisplay.from_held_out(model, [200])
    with pytest.raises(ValueError, match="rows must name a row or more, got none"):
        SurvivalDisplay.from_held_out(model, [])
