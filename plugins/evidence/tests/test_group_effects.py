"""Several groupings, effects of numbers that differ by group, and the table of what groups add."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    Dimension,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    groupings,
)
from kernelweave.evidence.columns.encoded import GroupColumn, GroupTerm
from kernelweave.evidence.cross import cross_kernel, own_kernel
from kernelweave.evidence.explaining.shapley import shapley_values
from kernelweave.evidence.group_effects import effects_of
from kernelweave.evidence.groupings import groupings_of
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.objective import Evidence, start
from kernelweave.evidence.path import Fit, PathPlan
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.slopes import with_slopes_that_pay
from kernelweave.evidence.terms import GaussianTerm, PairTerms, Scales

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
PUPILS, SCHOOLS = 24, 6


def classes(n: int, seed: int = 0) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Pupils who change their schools; the effect of a dose differs from pupil to pupil."""
    state = np.random.RandomState(seed)
    pupil, school = state.permutation(np.arange(n) % PUPILS), state.randint(0, SCHOOLS, n)
    level, at = state.randn(PUPILS), 0.7 * state.randn(SCHOOLS)
    slope, dose, x = 0.8 * state.randn(PUPILS), state.randn(n), state.randn(n)
    y = 10.0 + 0.5 * x + dose * (0.3 + slope[pupil]) + level[pupil] + at[school]
    X = pd.DataFrame({"x": x, "dose": dose})
    X["pupil"], X["school"] = [f"p{k:02d}" for k in pupil], [f"s{k}" for k in school]
    truth = {"pupil": level, "school": at, "dose by pupil": slope}
    return X, truth | {"y": 2.0 * (y + 0.3 * state.randn(n)), "codes": (pupil, school)}


@pytest.fixture(scope="module")
def fitted() -> tuple[EvidenceKernelRegressor, pd.DataFrame, dict[str, Any]]:
    X, truth = classes(110)
    model = EvidenceKernelRegressor(max_iter=20, precisions=(5.0,), n_folds=2, warp=False)
    with_all = model.fit(X, truth["y"], groups=["pupil", "school"], slopes="dose", new="school")
    return with_all, X, truth


@pytest.mark.parametrize("terms", [PairTerms, GaussianTerm])
def test_each_term_is_a_product_of_numbers_of_one_group(terms: Any) -> None:
    """The kernel by hand, and slopes by differences."""
    X, truth = classes(30)
    codes = np.column_stack(truth["codes"])
    numeric, y = X[["x", "dose"]].to_numpy(), truth["y"]
    pupil, school = (GroupColumn(2 + j, -1, (99,), j) for j in (0, 1))
    further = (GroupTerm(school, "school"), GroupTerm(pupil, "pupil", 1, "dose"))
    rows = Rows(numeric, codes, y[None], group=pupil, further=further)
    views = rows.views()
    points, theta = views.points(numeric, codes), start(4, 3)
    assert points.Z is not None
    theta[8:-1] += np.linspace(-0.5, 0.5, 8)
    s = Scales.from_vector(theta, 8)
    assert len(s.of_groups) == 3
    K = cross_kernel(points, points, (s,), views.match_weight)
    alone = Scales(s.ell, s.strength, s.weights[:5], s.noise)
    same = codes.T[:, :, None] == codes.T[:, None, :]
    z = points.X[1]
    expected = s.of_groups[0] * same[0] + s.of_groups[1] * same[1]
    expected = expected + s.of_groups[2] * same[0] * np.outer(z, z)
    expected += cross_kernel(points, points, (alone,), views.match_weight)
    np.testing.assert_allclose(K, expected, atol=1e-12)
    np.testing.assert_allclose(own_kernel(points, s, views.match_weight), K.diagonal(), atol=1e-12)
    evidence = Evidence(points, views.match_weight, Standardised.of(rows).values, 5.0, None, terms)
    assert evidence.n_weights == 8
    _, slope = evidence(theta)
    for i in np.flatnonzero(evidence.free)[-6:]:
        step = 1e-5 * np.eye(len(theta))[i]
        difference = (evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-5
        assert slope[i] == pytest.approx(difference, abs=2e-7, rel=1e-6)


def test_effects_are_best_linear_predictions(fitted: Any) -> None:
    """By numpy alone, with the kernel that was learned: S⁻¹ of all rows, to eight digits."""
    model, X, truth = fitted
    effects, mixture = model.group_effects_, model._predictor.mixture
    K = model.kernel_(model.encode(X))
    S = K + np.diag(mixture.diagonal)
    rows = model._predictor.rows
    assert len(rows) == len(X)
    y = truth["y"]
    spread = y.std()
    inverse = np.linalg.inv(S)
    inflation = model._predictor.expansion().inflation[0]
    weights = sum(each.of_groups for each in mixture.scales)
    codes = X.pupil.to_numpy()
    z = (X.dose - X.dose.mean()) / X.dose.std(ddof=0)
    z = (z / np.sqrt(1.0 + (z / 8.0) ** 2)).to_numpy()
    found = effects[effects.grouping == "dose by pupil"].set_index("group")
    # less the mean over pupils by their rows, which is an effect of all of them
    share = X.pupil.value_counts(normalize=True)
    for name in ("p00", "p07", "p23"):
        contrast = (share.index == name) - share
        k = weights[2] * contrast[codes].to_numpy() * z
        u = k @ inverse @ ((y - y.mean()) / spread)
        error = np.sqrt((weights[2] * contrast @ contrast - k @ inverse @ k) * inflation)
        np.testing.assert_allclose(found.effect[name], spread * u, atol=1e-8)
        np.testing.assert_allclose(found.error[name], spread * error, atol=1e-8)
        assert found.n_rows[name] == np.sum(codes == name)
    # a level is the mean of rows set to it, less the mean over levels by their rows
    found = effects[effects.grouping == "school"].set_index("group")
    # in the order that the model has its rows
    drawn = np.argsort(model._owner)[np.linspace(0, 109, 100).astype(int)]
    names, own = X.school.value_counts().sort_index().index, model.encode(X)
    places = [model.encode(X.iloc[drawn].assign(school=name)) for name in names]
    means = np.array([model.kernel_(each, own).mean(axis=0) for each in places])
    among = np.array([[model.kernel_(a, b).mean() for b in places] for a in places])
    share = X.school.value_counts(normalize=True).sort_index().to_numpy()
    for j in (0, 3):
        contrast = np.eye(len(names))[j] - share
        k, prior = contrast @ means, contrast @ among @ contrast
        u = k @ inverse @ ((y - y.mean()) / spread)
        np.testing.assert_allclose(found.effect[names[j]], spread * u, atol=1e-8)
        error = np.sqrt((prior - k @ inverse @ k) * inflation)
        np.testing.assert_allclose(found.error[names[j]], spread * error, atol=1e-8)
    assert found.effect @ share == pytest.approx(0.0, abs=1e-9)


def test_effects_are_whole_whichever_term_learned_them() -> None:
    """Terms of groups have a small share where others tell categories apart as well."""
    rng = np.random.default_rng(0)
    pupil, x = np.repeat(np.arange(20), 5), rng.normal(size=100)
    made, slopes = rng.normal(size=20), 0.4 * rng.normal(size=20)
    y = (1.0 + slopes[pupil]) * x + made[pupil] + 0.3 * rng.normal(size=100)
    X = pd.DataFrame({"pupil": [f"p{k:02d}" for k in pupil], "x": x})
    effects = EvidenceKernelRegressor(max_iter=20, warp=False).fit(X, y, groups="pupil")
    found = effects.group_effects_
    away = found.effect - (made - made.mean())
    assert np.corrcoef(found.effect, made)[0, 1] > 0.9
    assert 0.5 < np.sqrt(np.mean((away / found.error) ** 2)) < 2.0


def test_effects_are_those_that_made_the_rows(fitted: Any) -> None:
    model, _, truth = fitted
    effects = model.group_effects_
    assert effects.columns.tolist() == ["grouping", "group", "effect", "error", "n_rows"]
    squares: list[Any] = []
    for name, part in effects.groupby("grouping"):
        made = 2.0 * truth[name]
        assert np.corrcoef(part.effect, made)[0, 1] > 0.8, name
        centre = np.average(made, weights=part.n_rows)
        away = (part.effect - (made - centre)) / part.error
        squares.append(away**2)
        assert np.sqrt(np.mean(away**2)) < 2.5, name
        if name != "dose by pupil":
            assert part.n_rows.sum() == 110
    assert 0.5 < np.sqrt(np.mean(np.concatenate(squares))) < 1.6
    assert model.held_out_.index[0] == "new school"
    assert "slopes of dose by pupil kept" in model.certificate_.work


def test_shapley_values_share_a_slope_by_its_two_columns(fitted: Any) -> None:
    """Of the slope's term alone, where all coalitions can be told by hand."""
    model, X, _ = fitted
    told = model.explain(X[:2], n_background=30)
    np.testing.assert_allclose(told.values.sum(axis=1) + told.base_values, model.predict(X[:2]))
    expansion = model._predictor.expansion()
    s, points = expansion.scales[0], expansion.points
    weights = np.append(np.zeros(7), 1.3)
    alone = replace(expansion, scales=(replace(s, weights=weights),))
    rows, dual, share = points.take(np.array([3, 8])), alone.dual[:, 0], np.full(110, 1 / 110)
    values, base, _ = shapley_values(alone, [np.array([k]) for k in range(4)], rows, None, share)
    same, z = points.G[2][:, None] == points.G[2], points.Z[2]
    for row, at in enumerate((3, 8)):
        either = (
            (1.3 * z.mean() * same[at] * z) @ dual,
            (1.3 * z[at] * same.mean(axis=0) * z) @ dual,
        )
        both = (1.3 * z[at] * same[at] * z) @ dual
        none = (1.3 * z.mean() * same.mean(axis=0) * z) @ dual
        pupil, dose = (0.5 * (both - other + own - none) for own, other in (either, either[::-1]))
        np.testing.assert_allclose(values[row, :, 0], [0.0, dose, pupil, 0.0], atol=1e-10)
        np.testing.assert_allclose(base, none, atol=1e-10)


def test_a_slope_that_does_not_pay_is_left_out() -> None:
    X, truth = classes(90, seed=1)
    numeric, codes = X[["x", "dose"]].to_numpy(), np.column_stack(truth["codes"])
    term = GroupTerm(GroupColumn(2, -1, (99,), 0), "pupil", 0, "x")
    rows = Rows(numeric, codes, truth["y"][None], group=term.column, further=(term,))
    kept, (found,) = with_slopes_that_pay(rows, PathPlan(), np.random.RandomState(0))
    assert not found.kept
    assert kept.further == ()
    assert "slopes of x by pupil left out: rows of known groups" in str(found)
    assert found.gain <= found.error


def test_landmarks_have_levels_and_other_groups_beside_them() -> None:
    """Effects and errors of normal equations that are solved for all levels at once."""
    X, truth = classes(500, seed=2)
    numeric, codes = X[["x"]].to_numpy(), np.column_stack(truth["codes"])
    pupil, school = (GroupColumn(1 + j, -1, (99,), j) for j in (0, 1))
    rows = Rows(
        numeric, codes, truth["y"][None], groups=codes[:, 0].astype(np.intp), group=pupil,
        further=(GroupTerm(school, "school"),),
    )  # fmt: skip
    plan = LargePlan.of(PathPlan(precisions=(5.0,), max_iter=10), 60, 2)
    found = learn_large(rows, plan, np.random.RandomState(0)).predictor
    levels = found.levels
    assert levels is not None
    assert [len(names) for names, _ in found.group_counts] == [PUPILS, SCHOOLS]
    assert found.group_counts[0][1].sum() == 500
    phi = found.landmarks.features(numeric, codes).astype(float)
    Z = (codes[:, :1] == np.arange(PUPILS)).astype(float)
    m, ridge = phi.shape[1], found.ridge
    A = np.hstack([phi, Z]).T @ np.hstack([phi, Z])
    A[:m, :m] += ridge * found.landmarks.gram()
    A[m:, m:] += levels.ratio * np.eye(PUPILS)
    y = found.targets.of_rows(rows).values.T
    expected = np.linalg.solve(A, np.hstack([phi, Z]).T @ y)[m:]
    np.testing.assert_allclose(levels.effects, expected, atol=2e-3)
    dimensions = [Dimension("x", "x", "number")]
    dimensions += [
        Dimension(name, name, "category", tuple(map(str, range(size))))
        for name, size in (("pupil", PUPILS), ("school", SCHOOLS))
    ]
    table = effects_of(found, np.arange(500), dimensions, flat=True)
    assert table.grouping.value_counts().to_dict() == {"pupil": PUPILS, "school": SCHOOLS}
    drawn = np.linspace(0, 499, 2000 // PUPILS).astype(int)
    means = []
    for k in range(PUPILS):
        told = codes[drawn].copy()
        told[:, 0] = k
        means.append(found.landmarks.features(numeric[drawn], told).astype(float).mean(axis=0))
    share, j = np.bincount(codes[:, 0]) / 500, 4
    h = means[j] - share @ np.array(means)
    functional = np.append(h, np.arange(PUPILS) == j)
    variance = ridge * functional @ np.linalg.solve(A, functional)
    error = found.targets.spread[0] * np.sqrt(variance * found.inflation[0])
    assert table.error[j] == pytest.approx(error, rel=0.02)
    for name, part in table.groupby("grouping"):
        away = part.effect - 2.0 * (truth[name] - truth[name].mean())
        assert np.corrcoef(part.effect, truth[name])[0, 1] > 0.8
        assert 0.3 < np.sqrt(np.mean((away - away.mean()) ** 2 / part.error**2)) < 2.0


def test_what_cannot_be_is_refused_and_the_model_stays(
    fitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, truth = fitted
    before, y = model.predict(X), truth["y"]
    for given, words in (
        ({"groups": ["pupil", "scool"]}, "did you mean 'school'"),
        ({"groups": ["pupil", "pupil"]}, "groups names 'pupil' twice"),
        ({"groups": ["pupil", "school"], "new": "x"}, "new must be one of the groups, 'pupil'"),
        ({"slopes": "dose"}, "slopes is for groups that are named"),
        ({"groups": y > y.mean(), "new": "pupil"}, "new is for groups that are named"),
        ({"groups": ["pupil", X.school]}, "names of columns alone, got one of type Series"),
        ({"groups": "pupil", "slopes": "school"}, "'school', which is read as text and not as num"),
        ({"groups": "pupil", "slopes": "dosis"}, "column of X, got 'dosis': did you mean 'dose'"),
        (
            {"groups": X.pupil.tolist()[1:]},
            "one value a sample, shape \\(110,\\), got shape \\(109,",
        ),
        ({"groups": "pupil", "slopes": X.dose}, "of numbers, such as 'dose', got Series"),
        ({"groups": "pupil", "slopes": "pupil"}, "slopes and groups both name 'pupil'"),
        ({"groups": "pupil", "slopes": 3}, "slopes must be names of columns"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, **given)
    parts = Batches(X.assign(y=y), "y")
    with pytest.raises(ValueError, match="several groups are for tables in memory"):
        EvidenceKernelRegressor().fit(parts, groups=["pupil", "school"])
    with pytest.raises(ValueError, match="slopes or several groups"):
        model.update(X[:3], y[:3])
    monkeypatch.setattr(groupings, "_MOST_BESIDE", 5)
    terms = (GroupTerm(GroupColumn(3, -1, (99,), 1), "school"),)
    rows = Rows(X[["x"]].to_numpy(), np.column_stack(truth["codes"]), y[None])
    named = groupings_of(X, ["pupil", "school"], None, None)
    with pytest.raises(ValueError, match="groups names 'school', of 6 groups, beside 'pupil'"):
        groupings._refuse_of_many(terms, named, rows, 100)
    named = groupings_of(X, "pupil", "dose", None)
    with pytest.raises(ValueError, match="slopes are for at most 100 rows, got 110"):
        groupings._refuse_of_many(terms, named, rows, 100)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(AttributeError, match="are of a regression"):
        _ = EvidenceKernelClassifier().group_effects_


def test_a_model_and_its_effects_survive_a_file(fitted: Any) -> None:
    model, X, _ = fitted
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.group_effects_, model.group_effects_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # a fit of an older file, which an odd number of scales told of groups
    theta = start(4, 1)
    old = Fit.__new__(Fit)
    old.__setstate__({"precision": 5.0, "theta": theta, "value": 0.0})
    assert len(old.scales.ell) == 4
    assert len(old.scales.of_groups) == 1


def test_what_is_no_column_of_groups_names_none() -> None:
    """Where each row is a group of its own, any column of distinct numbers divides rows so."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=40), "treated": np.arange(40) % 3 == 0, "one": 1.0})
    y = X.x + 0.1 * rng.normal(size=40)
    model = EvidenceKernelRegressor(max_iter=5, precisions=(5.0,), n_folds=2, warp=False)
    model.fit(X, y, groups=np.arange(40))
    assert model._predictor.rows.group is None
    with pytest.raises(AttributeError, match="fit with groups='column'"):
        _ = model.group_effects_
    X["ward"] = np.repeat(list("abcd"), 10)
    for name, words in (
        ("one", r"slopes names 'one', which tells nothing \(constant \(1\)\): leave it out"),
        (
            "treated",
            "slopes names 'treated', which is read as booleans and not as numbers: give it",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, groups="ward", slopes=name)
