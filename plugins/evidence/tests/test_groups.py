"""Levels of groups: a term of the kernel, left out of sums of rows by Woodbury's identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.columns.encoded import GroupColumn
from kernelweave.evidence.cross import cross_kernel, own_kernel
from kernelweave.evidence.large import landmark_search, levels
from kernelweave.evidence.large.features import Landmarks
from kernelweave.evidence.large.held_out import RowBlock
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.leave_out import LandmarksLeaveOut
from kernelweave.evidence.large.levels import GroupLevels, whole_groups
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.large.posterior import PosteriorOfSums, root_of
from kernelweave.evidence.large.solution import LandmarkSolution, Trial
from kernelweave.evidence.large.sums import NormalEquations, Sums, block_sums
from kernelweave.evidence.objective import Evidence, start
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import GaussianTerm, PairTerms, Scales

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    # of new groups little can be known
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"),
]


def clinic(n: int, n_groups: int, seed: int = 0) -> Rows:
    """Visits whose patient is named by a code; two of them by nothing."""
    state = np.random.RandomState(seed)
    who = state.permutation(np.arange(n) % n_groups)
    codes, groups = who[:, None].astype(np.int64), who.astype(np.intp)
    codes[:2], groups[:2] = n_groups, [n_groups, n_groups + 1]
    numeric = state.randn(n, 2)
    y = np.sin(numeric[:, 0]) + state.randn(n_groups + 2)[groups] + 0.3 * state.randn(n)
    weight = state.uniform(0.5, 2.0, n)
    column = GroupColumn(2, -1, (n_groups,), 0)
    return Rows(numeric, codes, y[None], weight, groups=groups, group=column)


@pytest.mark.parametrize("terms", [PairTerms, GaussianTerm])
def test_the_term_is_1_for_rows_of_one_group(terms: Any) -> None:
    rows = clinic(30, 8)
    views = rows.views()
    points, targets = views.points(rows.numeric, rows.codes), Standardised.of(rows).values
    theta = start(3, 1)
    theta[6:-1] += np.linspace(-0.5, 0.5, 6)
    s = Scales.from_vector(theta, 6)
    K = cross_kernel(points, points, (s,), views.match_weight)
    alone = Scales(s.ell, s.strength, s.weights[:5], s.noise)
    rest = cross_kernel(points, points, (alone,), views.match_weight)
    same = rows.groups[:, None] == rows.groups
    np.testing.assert_allclose(K, rest + s.weights[5] * same, atol=1e-12)
    np.testing.assert_allclose(own_kernel(points, s, views.match_weight), K.diagonal(), atol=1e-12)
    evidence = Evidence(points, views.match_weight, targets, 5.0, rows.weight, terms)
    _, slope = evidence(theta)
    for i in np.flatnonzero(evidence.free):
        step = 1e-5 * np.eye(len(theta))[i]
        difference = (evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-5
        assert slope[i] == pytest.approx(difference, abs=2e-7, rel=1e-6)


def test_levels_are_shrunk_as_a_balanced_layout_says() -> None:
    """Best linear predictions, the variances by the mean squares within and between."""
    state = np.random.default_rng(3)
    n_groups, n = 50, 4
    who = np.repeat(np.arange(n_groups), n)
    y = 0.8 * state.normal(size=n_groups)[who] + state.normal(size=n_groups * n)
    X = pd.DataFrame({"x": state.normal(size=n_groups * n), "who": [f"m{k}" for k in who]})
    model = EvidenceKernelRegressor(warp=False).fit(X, y, groups="who")
    means = y.reshape(n_groups, n).mean(axis=1)
    within = np.sum((y.reshape(n_groups, n) - means[:, None]) ** 2) / (n_groups * (n - 1))
    level = means.var(ddof=1) - within / n
    expected = y.mean() + n * level / (n * level + within) * (means - y.mean())
    known = X[::n].assign(x=0.0)
    found, known_error = model.predict(known, return_std=True)
    np.testing.assert_allclose(found, expected, atol=0.2 * means.std())
    mean, error = model.predict(known[:1].assign(who="another"), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=0.2)
    np.testing.assert_allclose(error, np.sqrt(level + within), rtol=0.1)
    left = within + 1.0 / (1.0 / level + n / within)
    np.testing.assert_allclose(known_error, np.sqrt(left), rtol=0.1)


def test_sums_of_rows_are_those_of_joint_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients and levels solved at once, also without a fold, and without any rows."""
    monkeypatch.setattr(levels, "BLOCK", 50)
    rows, ratio, ridge = clinic(160, 25), 0.7, 0.2
    views, targets = rows.views(), Standardised.of(rows)
    s = Scales.from_vector(start(3))
    at = np.append(np.full(150, -1), np.arange(10))
    points = views.points(rows.numeric[150:], rows.codes[150:])
    landmarks = Landmarks(views, points, (s,), np.float64)
    root = root_of(landmarks.gram())
    phi, y = landmarks.features(rows.numeric, rows.codes), targets.values.T

    def joint(kept: Any, used: Any) -> tuple[Any, Any]:
        Z = (rows.groups[:, None] == np.arange(27)).astype(float)
        both, W = np.hstack([phi[:, used], Z])[kept], rows.weight[kept]
        A = both.T @ (W[:, None] * both)
        n = len(used)
        A[:n, :n] += ridge * (root @ root.T)[np.ix_(used, used)]
        A[n:, n:] += ratio * np.eye(27)
        beta, u = np.split(np.linalg.solve(A, both.T @ (W[:, None] * y[kept])), [n])
        return beta, u

    total = Sums.zeros(10, 1)
    blocks = list(whole_groups(rows))
    assert len(blocks) > 2
    for block in blocks:
        total.add(block_sums(landmarks, block, targets, ratio=ratio))
    equations = NormalEquations.of(root, total)
    dual, factor = equations.solve(ridge)
    beta, u = joint(np.arange(160), np.arange(10))
    np.testing.assert_allclose(dual, beta, atol=1e-8)
    found = GroupLevels.of(rows, lambda own: y - phi @ dual, ratio, ridge)
    np.testing.assert_allclose(found.values(rows.numeric, rows.codes)[2:], u[rows.groups][2:])
    # a fold of whole groups leaves as if it had never been summed
    fold = np.flatnonzero(rows.groups < 6)
    own, mass = rows.take(fold), rows.weight[fold]
    share = RowBlock(own, mass, mass[:, None] * y[fold], ratio)
    rest = equations.with_block(landmarks, share, -1.0).solve(ridge)[0]
    np.testing.assert_allclose(rest, joint(np.setdiff1d(np.arange(160), fold), np.arange(10))[0])
    # and so do some rows of a group whose others stay
    some, others = fold[::3], np.setdiff1d(fold, fold[::3])
    blocks = [
        RowBlock(rows.take(each), rows.weight[each], rows.weight[each, None] * y[each], ratio)
        for each in (some, others)
    ]
    rest = equations.with_block(landmarks, blocks[0]._replace(rest=blocks[1]), -1.0).solve(ridge)[0]
    np.testing.assert_allclose(rest, joint(np.setdiff1d(np.arange(160), some), np.arange(10))[0])
    posterior = PosteriorOfSums.of(landmarks, ridge, equations, factor)
    solution = LandmarkSolution(landmarks, ridge, 0.0, dual, posterior, (), ratio)
    leaves = LandmarksLeaveOut(solution, targets, rows, np.arange(160), at, found)
    for out in (np.array([7]), np.array([0, 12, 155]), fold):
        used = np.setdiff1d(np.arange(10), at[out])
        others = np.setdiff1d(np.arange(160), out)
        # the others have a mean of their own
        mean = np.average(targets.values[0, others], weights=rows.weight[others])
        y = targets.values.T - mean
        beta, u = joint(others, used)
        expected = y[out] - phi[np.ix_(out, used)] @ beta - u[rows.groups[out]]
        # the factor is in single precision
        np.testing.assert_allclose(leaves.residuals(out), expected, atol=1e-5)
    # rows alone, of which ten are landmarks
    alone = np.vstack([leaves.residuals(np.array([k])) for k in range(160)])
    np.testing.assert_allclose(leaves.residuals_of_one(np.arange(160)), alone, atol=1e-6)


@pytest.mark.parametrize("n_groups", [20, 400])
def test_what_columns_add_sums_to_predictions_with_levels(n_groups: int) -> None:
    state = np.random.default_rng(0)
    who = np.repeat(np.arange(n_groups), 6)
    X = pd.DataFrame({"x": state.normal(size=6 * n_groups), "who": [f"m{k}" for k in who]})
    y = X["x"].to_numpy() + state.normal(size=n_groups)[who] + 0.2 * state.normal(size=len(X))
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=8, n_landmarks=50, warp=False)
    model.fit(X, y, groups="who")
    told = model.explain(X[:6], n_background=40)
    # features of rows are in single precision where rows are many; levels are of size 1
    np.testing.assert_allclose(told.predictions, model.predict(X[:6]), atol=1e-3)


def test_a_single_precision_in_place_of_the_path_keeps_the_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Landmarks of sums have no groups' term, which the ratio of the levels is read from."""
    monkeypatch.setattr(landmark_search, "_CLEAR", 2.0)
    monkeypatch.setattr(Trial, "gain_over", lambda *_: (1.0, 0.5))
    plan = LargePlan(
        PathPlan((50.0, 5.0), max_iter=3), metric_rows=60, sample_rows=200, first=20, most=20,
    )  # fmt: skip
    learned = learn_large(clinic(400, 40), plan, np.random.RandomState(0))
    assert sorted(learned.weights) == [0.0, 1.0]
    assert learned.predictor.levels is not None
    assert np.ptp(learned.predictor.levels.effects) > 0.0
