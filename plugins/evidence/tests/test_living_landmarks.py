"""Models of landmarks learn new rows and forget some: a dense oracle, files, orders, refusals."""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence import fit as fit_module
from kernelweave.evidence.large.again import white_sums
from kernelweave.evidence.large.kept import content_keys
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.rows import Rows
from sklearn.model_selection import KFold

pytestmark = [
    # rough scales gain by another search, which no test here asks about
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.living.relearn.RelearnWarning"),
    pytest.mark.usefixtures("four_hundred_are_few"),
]
QUICK: dict[str, Any] = {"n_landmarks": 60, "precisions": (50.0, 5.0), "max_iter": 15}
N, MORE = 640, 100
NEW = np.arange(N, N + MORE)
EVERY = np.arange(N + MORE)


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    X = random.uniform(-1.0, 1.0, (n, 3))
    y = np.sin(3.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    return X, y + (0.1 + 0.2 * (X[:, 0] > 0.0)) * random.normal(size=n)


X, Y = table(N + MORE)
ASKED = table(60, 9)[0]


def fitted(X: Any = X, y: Any = Y, **given: Any) -> Any:
    of_fit = {k: v if isinstance(v, str) else v[:N] for k, v in given.items()}
    model = EvidenceKernelRegressor(**QUICK)
    return model.fit(X[:N], y[:N], **of_fit)


@pytest.fixture(scope="module")
def four_hundred_are_few() -> Iterator[None]:
    """Let more rows than that be learned by landmarks, in models that tests share too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
        yield


@pytest.fixture(scope="module")
def model(four_hundred_are_few: None) -> Any:
    return fitted()


@pytest.fixture(scope="module")
def model_of_sums(four_hundred_are_few: None) -> Any:
    """A model of more rows than it keeps, as one of more than 50,000 is."""

    class Few:
        @staticmethod
        def of(*given: Any) -> LargePlan:
            return replace(LargePlan.of(*given), sample_rows=300, metric_rows=100)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "LargePlan", Few)
        return fitted()


def answers(model: Any, asked: Any = ASKED) -> list[np.ndarray]:
    mean, deviation = model.predict(asked, return_std=True)
    return [mean, deviation, *model.predict_interval(asked)]


def assert_same(one: Any, two: Any, atol: float, asked: Any = ASKED) -> None:
    for left, right in zip(answers(one, asked), answers(two, asked), strict=True):
        np.testing.assert_allclose(left, right, rtol=0.0, atol=atol)
    assert one.held_out_score_ == pytest.approx(two.held_out_score_, abs=atol)
    np.testing.assert_allclose(
        one.held_out_prediction_, two.held_out_prediction_, rtol=0.0, atol=atol
    )


def dense_means(model: Any, X: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Means by least squares of features and the root of the ridge's term, without any sums."""
    predictor = model._predictor
    landmarks, units = predictor.landmarks, predictor.targets
    none = np.empty((len(X), 0), dtype=np.int64)
    phi, new = (
        landmarks.features(each, none[: len(each)]).astype(np.float64) for each in (X, asked)
    )
    K = landmarks.gram()
    K[np.diag_indices(len(K))] += 1e-7 * np.abs(K).sum(axis=0).mean()
    root = np.linalg.cholesky(K)
    z = np.linalg.solve(root, phi.T)
    left = np.vstack([z.T, np.sqrt(predictor.ridge) * np.eye(len(K))])
    right = np.concatenate([(y - units.centre[0]) / units.spread[0], np.zeros(len(K))])
    gamma = np.linalg.lstsq(left, right, rcond=None)[0]
    latent = np.linalg.solve(root, new.T).T @ gamma
    return latent * units.spread[0] + units.centre[0]


def test_an_update_is_least_squares_over_all_rows(model: Any) -> None:
    updated = deepcopy(model).update(X[NEW], Y[NEW])
    assert updated._unsettled_ is not None
    at_once = updated.predict(ASKED)
    expected = dense_means(model, X, Y, ASKED)
    np.testing.assert_allclose(at_once, expected, rtol=0.0, atol=1e-9)
    assert np.abs(model.predict(ASKED) - expected).max() > 1e-4
    assert np.isfinite(updated.held_out_score_)
    np.testing.assert_allclose(updated.predict(ASKED), expected, rtol=0.0, atol=1e-9)


def test_a_refit_to_its_own_rows_gives_the_fit_back(model: Any) -> None:
    assert_same(deepcopy(model).refit(X[:N], Y[:N]), model, 1e-7)


def test_updates_in_any_order_are_a_refit(model: Any) -> None:
    once = deepcopy(model).update(X[NEW], Y[NEW])
    parts = np.array_split(NEW[::-1], 3)
    often = deepcopy(model)
    for k, part in enumerate(parts):
        often.update(X[part], Y[part])
        if k == 1:
            assert np.isfinite(often.held_out_score_)
    refit = deepcopy(model).refit(X, Y)
    assert_same(once, refit, 1e-9)
    np.testing.assert_allclose(often.predict(ASKED), refit.predict(ASKED), rtol=0.0, atol=1e-9)
    assert often.held_out_score_ == pytest.approx(refit.held_out_score_, abs=1e-9)
    # about a third of new rows judge too, as of those of the fit
    n_judging = len(once._predictor.scores) - len(model._predictor.scores)
    assert 0.2 * MORE < n_judging < 0.5 * MORE


def test_a_file_has_no_byte_of_what_was_forgotten(model: Any) -> None:
    """Landmarks are forgotten too: other rows take their places."""
    updated = deepcopy(model).update(X[NEW], Y[NEW])
    gone = np.union1d([3, 17, N + 5], model._predictor.kept.landmark_at[:4])
    rest = np.setdiff1d(EVERY, gone)
    assert len(rest) < len(EVERY) - 4
    forgetful, never = deepcopy(updated).forget(gone), deepcopy(model).refit(X[rest], Y[rest])
    content = pickle.dumps(forgetful)
    assert content == pickle.dumps(never)
    assert len(forgetful._predictor.landmarks) == len(model._predictor.landmarks)
    targets = {Y[row].tobytes() for row in gone}
    assert not any(each in content for each in targets)
    assert all(each in pickle.dumps(updated) for each in targets)
    expected = dense_means(forgetful, X[rest], Y[rest], ASKED)
    np.testing.assert_allclose(forgetful.predict(ASKED), expected, rtol=0.0, atol=1e-9)


def test_what_was_learned_and_forgotten_leaves_the_refit(model: Any) -> None:
    changed = deepcopy(model)
    random = np.random.RandomState(1)
    for _ in range(8):
        new, y = random.uniform(-1.0, 1.0, (20, 3)), random.normal(size=20)
        changed.update(new, y)
        changed.forget(np.arange(N, N + 20))
    assert pickle.dumps(changed) == pickle.dumps(deepcopy(model).refit(X[:N], Y[:N]))


def test_weights_and_classes(model: Any) -> None:
    weight = np.random.RandomState(2).randint(1, 4, N + MORE).astype(np.float64)
    weighted = fitted(sample_weight=weight)
    refit = deepcopy(weighted).refit(X, Y, weight)
    assert_same(weighted.update(X[NEW], Y[NEW], weight[NEW]), refit, 1e-9)
    doubled = deepcopy(model).update(X[NEW], Y[NEW], np.full(MORE, 2.0))
    twice = deepcopy(model)
    for _ in range(2):
        twice.update(X[NEW], Y[NEW])
    np.testing.assert_allclose(doubled.predict(ASKED), twice.predict(ASKED), rtol=0.0, atol=1e-9)
    labels = np.where(Y > 0.7, "c", np.where(Y > 0.2, "b", "a"))
    classes = EvidenceKernelClassifier(**QUICK).fit(X[:N], labels[:N])
    refit = deepcopy(classes).refit(X, labels)
    classes.update(X[NEW], labels[NEW])
    np.testing.assert_allclose(
        classes.predict_proba(ASKED), refit.predict_proba(ASKED), rtol=0.0, atol=1e-9
    )
    assert classes.held_out_score_ == pytest.approx(refit.held_out_score_)
    with pytest.raises(ValueError, match="z"):
        classes.update(X[:1], ["z"])


def words_of(content: bytes) -> set[str]:
    """All texts of a pickled model; three bytes of its numbers may look like one by chance."""
    return {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}


def in_groups() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    groups = np.arange(N + MORE) // 20
    y = Y + np.random.RandomState(3).normal(size=groups.max() + 1)[groups]
    frame = pd.DataFrame(X, columns=list("abc")).assign(g=[f"p{k}" for k in groups])
    asked = pd.DataFrame(ASKED, columns=list("abc")).assign(g=[f"p{k}" for k in range(12, 72)])
    return frame, y, asked


def test_groups_keep_their_levels_and_new_ones_get_theirs() -> None:
    frame, y, asked = in_groups()
    grouped = fitted(frame, y, groups="g")
    assert grouped._predictor.levels is not None
    # the last group of the fit goes on
    new = np.r_[NEW, 0]
    frame = pd.concat([frame, frame.iloc[:1]], ignore_index=True)
    y = np.append(y, 3.0)
    order = np.r_[np.arange(N), new]
    refit = deepcopy(grouped).refit(frame.iloc[order], y[order], groups="g")
    updated = deepcopy(grouped).update(frame.iloc[new], y[new])
    assert_same(updated, refit, 1e-9, asked)
    known = updated._predictor.is_known(*updated._encoded(asked))
    assert known[: (N + MORE) // 20 - 12].all()
    updated_before, forgetful = updated, deepcopy(updated).forget(g="p7")
    rest = np.flatnonzero(frame["g"].to_numpy()[order] != "p7")
    never = grouped.refit(frame.iloc[order[rest]], y[order[rest]], groups="g")
    assert pickle.dumps(forgetful) == pickle.dumps(never)
    assert "p7" in words_of(pickle.dumps(updated_before))
    assert "p7" not in words_of(pickle.dumps(forgetful))


@pytest.mark.parametrize("how", ["order", "groups", "cv"])
def test_rows_held_out_as_the_user_said(how: str) -> None:
    keys = {"order": np.arange(N + MORE, dtype=np.float64), "groups": np.arange(N + MORE) // 20}
    by, at = {}, {}
    model = EvidenceKernelRegressor(**QUICK, cv=KFold(6) if how == "cv" else None)
    if how != "cv":
        by, at = {how: keys[how]}, {how: keys[how][NEW]}
    model.fit(X[:N], Y[:N], **{name: each[:N] for name, each in by.items()})
    refit = deepcopy(model).refit(X, Y, **by)
    judged = len(model._predictor.scores)
    model.update(X[NEW], Y[NEW], **at)
    assert_same(model, refit, 1e-9)
    more = len(model._predictor.scores) - judged
    assert more == {"order": MORE, "cv": 0}.get(how, more)
    assert 0 < more < MORE or how != "groups"


def test_a_model_of_sums_adds_rows_and_takes_them_away(model_of_sums: Any) -> None:
    model = model_of_sums
    assert not model._predictor.kept.is_whole
    updated = deepcopy(model).update(X[NEW], Y[NEW])
    expected = dense_means(model, X, Y, ASKED)
    np.testing.assert_allclose(updated.predict(ASKED), expected, rtol=0.0, atol=1e-7)
    refit = deepcopy(model).refit(X, Y)
    np.testing.assert_allclose(refit.predict(ASKED), expected, rtol=0.0, atol=1e-9)
    assert refit.held_out_score_ == pytest.approx(updated.held_out_score_, abs=0.01)
    n_judging = len(updated._predictor.scores) - len(model._predictor.scores)
    assert 0 < n_judging < 0.5 * MORE
    copied = pickle.loads(pickle.dumps(updated))
    assert_same(copied, updated, 1e-9)
    copied.forget(X=X[NEW], y=Y[NEW])
    # of the rows that are kept, in an order of their own
    for left, right in zip(answers(copied), answers(model), strict=True):
        np.testing.assert_allclose(left, right, rtol=0.0, atol=1e-9)
    assert copied.held_out_score_ == pytest.approx(model.held_out_score_, abs=1e-9)
    with pytest.raises(ValueError, match=r"forget\(X=\.\.\., y=\.\.\.\)"):
        copied.forget(3)
    own = deepcopy(model).refit(X[:N], Y[:N])
    np.testing.assert_allclose(own.predict(ASKED), model.predict(ASKED), rtol=0.0, atol=1e-7)
    assert own.held_out_score_ == pytest.approx(model.held_out_score_, abs=1e-7)


def test_copies_of_rows_that_judge_are_left_out_with_them(model_of_sums: Any) -> None:
    """A far target of a copy must not tell the fold that holds its twin out."""
    kept = model_of_sums._predictor.kept
    twins = kept.rows.numeric[:1]
    updated = deepcopy(model_of_sums).update(twins, [50.0])
    own = updated._predictor
    fold = own.fold[np.flatnonzero((own.rows.numeric == twins).all(axis=1))]
    assert len(fold) == 2
    assert (fold == fold[0]).all()
    before = model_of_sums._predictor
    np.testing.assert_allclose(own.duals[fold[0]], before.duals[fold[0]], rtol=0.0, atol=1e-6)


def test_whitened_sums_do_not_depend_on_the_order_of_the_rows(model: Any) -> None:
    """Where sums of features are whitened afterwards, the means differ by 1e-6 and more."""
    predictor = model._predictor
    by = np.random.RandomState(0).permutation(N)
    rows, targets = predictor.kept.rows, predictor.targets
    landmarks = replace(
        predictor.landmarks,
        scales=tuple(replace(s, ell=0.1 * s.ell) for s in predictor.landmarks.scales),
    )
    features = landmarks.features(ASKED, np.empty((60, 0), dtype=np.int64))
    one, two = (
        features @ white_sums(landmarks, each, targets).solved(1e-4)[1]
        for each in (rows, rows.take(by))
    )
    np.testing.assert_allclose(one, two, rtol=0.0, atol=1e-9)


def test_what_is_refused_leaves_the_model_whole(model: Any, monkeypatch: Any) -> None:
    kept = deepcopy(model)
    before = pickle.dumps(kept)
    with pytest.raises(ValueError):
        kept.update(X[NEW][:, :2], Y[NEW])
    with pytest.raises(ValueError):
        kept.update(X[NEW], np.full(MORE, np.nan))
    with pytest.raises(ValueError, match="places from 0"):
        kept.forget([N + 1])

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for name in ("kernelweave.evidence.living.landmarks.added", "scipy.linalg.lapack.dpotrf"):
        with monkeypatch.context() as patch:
            patch.setattr(name, stop)
            with pytest.raises(KeyboardInterrupt):
                kept.update(X[NEW], Y[NEW])
    assert pickle.dumps(kept) == before
    kept._predictor.__dict__["kept"] = None
    with pytest.raises(ValueError, match="fit it again"):
        kept.update(X[NEW], Y[NEW])


def test_keys_tell_rows_by_what_they_hold() -> None:
    none = np.empty((3, 0), dtype=np.int64)
    rows = Rows(np.array([[0.0], [-0.0], [1.0]]), none, np.array([[1.0, 2.0, 3.0]]))
    first, second, third = content_keys(rows).tolist()
    assert first == second != third
    assert len(set(content_keys(rows, with_targets=True).tolist())) == 3
