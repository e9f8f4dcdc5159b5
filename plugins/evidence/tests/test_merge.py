"""Sums of places that share no rows, and the model that they make together."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    SharedSums,
    merge,
)
from kernelweave.evidence.large.kept import key_of
from kernelweave.evidence.living.basis import basis_of
from kernelweave.evidence.living.merge import own_sums
from kernelweave.evidence.living.parts import PartSums, content_of
from kernelweave.evidence.rows import Rows
from kernelweave.kernels_core import KernelWeaveWarning
from numpy.typing import NDArray
from scipy.linalg.lapack import dtfttr
from scipy.optimize import least_squares
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 10, "warp": False}
Floats = NDArray[np.float64]


@pytest.fixture(autouse=True)
def few_rows() -> Iterator[None]:
    """Let places of few rows pass: the warning of them has a test of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sums of", KernelWeaveWarning)
        warnings.filterwarnings("ignore", "the kernel suits", KernelWeaveWarning)
        yield


def friedman(n: int) -> tuple[Floats, Floats]:
    return make_friedman1(n, n_features=6, noise=0.5, random_state=0)


@pytest.fixture(scope="module")
def kernel() -> EvidenceKernelRegressor:
    X, y = friedman(700)
    return EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])


def places(n_places: int) -> list[slice]:
    cuts = np.linspace(60, 500, n_places + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(cuts.tolist())]


def solved(model: Any, X: Floats, y: Floats, weight: Floats | None = None) -> dict[str, Floats]:
    """Return landmarks, root, ridge and coefficients by least squares of stacked rows."""
    w = np.ones(len(X)) if weight is None else weight
    mixture = model._predictor.mixture
    Z = model.encode(friedman(700)[0][:60])
    ridge = sum(each.noise for each in mixture.scales) + 1e-6
    G = model.kernel_(Z)
    values, vectors = np.linalg.eigh(G + 1e-12 * np.abs(G).sum(axis=0).mean() * np.eye(len(G)))
    # β = V Λ^(−½) γ, so that the penalty is ρ |γ|²
    root = vectors / np.sqrt(values)
    F = model.kernel_(model.encode(X), Z) @ root
    v = (y.reshape(len(y), -1) - mixture.target.centre) / mixture.target.spread
    stacked = np.vstack([np.sqrt(w)[:, None] * F, np.sqrt(ridge) * np.eye(len(G))])
    sides = np.vstack([np.sqrt(w)[:, None] * v, np.zeros((len(G), v.shape[1]))])
    gamma = np.linalg.lstsq(stacked, sides, rcond=None)[0]
    return {"Z": Z, "root": root, "gamma": gamma, "ridge": np.array(ridge), "F": F, "v": v, "w": w}


def predicted(model: Any, found: dict[str, Floats], X: Floats) -> Floats:
    target = model._predictor.mixture.target
    latent = model.kernel_(model.encode(X), found["Z"]) @ found["root"] @ found["gamma"]
    return latent * target.spread + target.centre


@pytest.mark.parametrize("n_places", [2, 5])
def test_places_together_are_the_pooled_fit(kernel: Any, n_places: int) -> None:
    X, y = friedman(700)
    sums = [kernel.sums(X[each], y[each]) for each in places(n_places)]
    merged = merge(sums, kernel=kernel)
    pooled = merge([kernel.sums(X[60:500], y[60:500])], kernel=kernel)
    for one, other in zip(
        merged.predict(X[500:], return_std=True), pooled.predict(X[500:], return_std=True),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    found = solved(kernel, X[60:500], y[60:500])
    expected = predicted(kernel, found, X[500:])[:, 0]
    np.testing.assert_allclose(merged.predict(X[500:]), expected, rtol=0, atol=1e-8)
    assert merged.held_out_score_ == pytest.approx(pooled.held_out_score_, abs=1e-9)
    # the kernel's model, and its rows, are not part of it
    assert np.abs(merged.predict(X[500:]) - kernel.predict(X[500:])).max() > 0.1
    assert merged.score(X[500:], y[500:]) > kernel.score(X[500:], y[500:])


def test_the_order_of_places_tells_nothing(kernel: Any) -> None:
    X, y = friedman(700)
    sums = [kernel.sums(X[each], y[each]) for each in places(3)]
    one, other = merge([kernel, *sums]), merge([*sums[::-1], kernel])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=0, atol=1e-8)
    # the first of them has the kernel, and its rows count
    both = np.r_[:500]
    found = solved(kernel, X[both], y[both])
    np.testing.assert_allclose(one.predict(X), predicted(kernel, found, X)[:, 0], atol=1e-8)


def test_with_all_rows_as_landmarks_it_is_the_model_of_all_pairs(kernel: Any) -> None:
    X, _ = friedman(700)
    merged = merge([own_sums(basis_of(kernel), kernel, kernel)], kernel=kernel)
    one, other = (each.predict(X, return_std=True) for each in (merged, kernel))
    np.testing.assert_allclose(one[0], other[0], atol=1e-4)
    # none of them was held out, for all are landmarks
    np.testing.assert_allclose(one[1], other[1], rtol=1e-4)
    assert np.isnan(merged.held_out_score_)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_folds_left_out(kernel: Any, weighted: bool) -> None:
    X, y = friedman(700)
    weight = np.random.RandomState(1).uniform(0.2, 3.0, 700) if weighted else np.ones(700)
    sums = [kernel.sums(X[each], y[each], weight[each]) for each in places(3)]
    merged = merge(sums, kernel=kernel)
    rows = np.r_[60:500]
    encoded = Rows(*kernel.encoder_.transform(X[rows]), y[None, rows])
    fold = np.array([key_of(key) % 3 for key in content_of(encoded)])
    held_out = np.empty(len(rows))
    for k in range(3):
        learned = rows[fold != k]
        found = solved(kernel, X[learned], y[learned], weight[learned])
        held_out[fold == k] = predicted(kernel, found, X[rows[fold == k]])[:, 0]
    expected = r2_score(y[rows], held_out, sample_weight=weight[rows])
    assert merged.held_out_score_ == pytest.approx(expected, abs=1e-8)
    # nine parts of some fifty rows: their spread is the error over parts
    means = [np.mean((y[rows] - held_out)[fold == k] ** 2) for k in range(3)]
    assert 0.2 < merged.held_out_error_ / (np.std(means) / np.var(y[rows])) < 5.0
    places_of_rows = np.repeat(np.arange(3), [each.stop - each.start for each in places(3)])
    for k in range(3):
        learned = rows[places_of_rows != k]
        found = solved(kernel, X[learned], y[learned], weight[learned])
        at = places_of_rows == k
        held_out[at] = predicted(kernel, found, X[rows[at]])[:, 0]
    new_place = r2_score(y[rows], held_out, sample_weight=weight[rows])
    assert merged.held_out_.loc["new place", "score"] == pytest.approx(new_place, abs=1e-8)
    assert merged.held_out_.loc["new place", "n_groups"] == 3


def test_deviations_are_those_of_the_added_sums(kernel: Any) -> None:
    X, y = friedman(700)
    merged = merge([kernel.sums(X[each], y[each]) for each in places(2)], kernel=kernel)
    found = solved(kernel, X[60:500], y[60:500])
    F = kernel.kernel_(kernel.encode(X[500:]), found["Z"]) @ found["root"]
    A = found["F"].T @ found["F"] + found["ridge"] * np.eye(60)
    own = np.diag(kernel.kernel_(kernel.encode(X[500:])))
    variance = own - np.sum(F**2, axis=1)
    variance += found["ridge"] * np.einsum("ij,ij->i", F @ np.linalg.inv(A), F) + found["ridge"]
    std = merged.predict(X[500:], return_std=True)[1]
    ratio = std / np.sqrt(variance)
    # but for what the parts left out say of their size
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-4)
    low, high = merged.predict_interval(X[500:])
    assert 0.85 < np.mean((y[500:] >= low) & (y[500:] <= high)) < 0.95
    quantiles = merged.predict_quantiles(X[500:], (0.05, 0.95))
    assert 0.85 < np.mean((y[500:] >= quantiles[:, 0]) & (y[500:] <= quantiles[:, 1])) < 0.95


def test_weights_are_in_the_unit_of_the_fit(kernel: Any) -> None:
    X, y = friedman(700)
    weight = np.random.RandomState(2).randint(1, 4, 700)
    repeated = np.repeat(np.arange(60, 200), weight[60:200])
    one = merge([kernel.sums(X[60:200], y[60:200], weight[60:200])], kernel=kernel)
    other = merge([kernel.sums(X[repeated], y[repeated])], kernel=kernel)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-8)
    zero = np.where(np.arange(60, 300) < 200, weight[60:300], 0)
    without = merge([kernel.sums(X[60:300], y[60:300], zero)], kernel=kernel)
    np.testing.assert_allclose(one.predict(X), without.predict(X), atol=1e-8)


def test_several_outputs() -> None:
    X, y = friedman(400)
    Y = np.column_stack([y, -2.0 * y + X[:, 0]])
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], Y[:60])
    sums = [kernel.sums(X[60:200], Y[60:200]), kernel.sums(X[200:300], Y[200:300])]
    merged = merge(sums, kernel=kernel)
    pooled = merge([kernel.sums(X[60:300], Y[60:300])], kernel=kernel)
    assert merged.predict(X[300:]).shape == (100, 2)
    np.testing.assert_allclose(merged.predict(X[300:]), pooled.predict(X[300:]), atol=1e-8)
    assert merged.score(X[300:], Y[300:]) > 0.8
    low, high = merged.predict_interval(X[300:])
    assert low.shape == (100, 2)
    assert (low < high).all()


def test_a_range_is_of_all_places() -> None:
    X, y = friedman(300)
    y = np.maximum(y - 10.0, 0.0)
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])
    positive = kernel.sums(X[60:150], y[60:150])
    assert merge([positive], kernel=kernel).predict(X).min() == 0.0
    negative = kernel.sums(X[150:], y[150:] - 20.0 * (X[150:, 0] > 0.9))
    assert merge([positive, negative], kernel=kernel).predict(X).min() < 0.0
    low, _ = merge([positive, negative], kernel=kernel).predict_interval(X)
    assert low.min() < 0.0


def test_classes_are_least_squares_with_the_calibration_of_the_kernel() -> None:
    X, y = friedman(700)
    labels = np.array(["low", "high", "middle"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
    for names in (labels, np.where(y > np.median(y), "yes", "no")):
        kernel = EvidenceKernelClassifier(**QUICK).fit(X[:80], names[:80])
        sums = [kernel.sums(X[80:300], names[80:300]), kernel.sums(X[300:500], names[300:500])]
        merged = merge([kernel, *sums])
        pooled = merge([kernel, kernel.sums(X[80:500], names[80:500])])
        np.testing.assert_allclose(
            merged.predict_proba(X[500:]), pooled.predict_proba(X[500:]), atol=1e-8
        )
        assert merged.score(X[500:], names[500:]) > kernel.score(X[500:], names[500:])
        assert np.isnan(merged.held_out_score_)
        np.testing.assert_array_equal(merged.classes_, kernel.classes_)
        with pytest.raises(ValueError, match="class 'other' in row 9 is none that"):
            kernel.sums(X[80:90], np.r_[names[80:89], ["other"]])


def grouped(n: int) -> tuple[pd.DataFrame, Floats]:
    X, y = friedman(n)
    state = np.random.RandomState(3)
    patient = np.sort(state.randint(0, n // 8, n))
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(6)])
    frame["patient"] = [f"p{k}" for k in patient]
    return frame, y + 3.0 * state.normal(size=n // 8)[patient]


def test_groups_keep_their_levels_in_their_place() -> None:
    X, y = grouped(640)
    cut = int(np.flatnonzero(X["patient"] == X["patient"][160])[0])
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:cut], y[:cut], groups="patient")
    middle = int(np.flatnonzero(X["patient"] == X["patient"][400])[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sums = [kernel.sums(X[cut:middle], y[cut:middle]), kernel.sums(X[middle:], y[middle:])]
        merged = merge([kernel, *sums])
        pooled = merge([kernel, kernel.sums(X[cut:], y[cut:])])
        np.testing.assert_allclose(merged.predict(X), pooled.predict(X), atol=1e-8)
        # the joint equations of all rows, with a level of each group
        level = merged._predictor.levels
        p = merged._predictor
        rows = kernel.encoder_.transform(X)
        Z = kernel.encode(X[:cut])
        first = np.sort(np.unique(Z, axis=0, return_index=True)[1])
        F = kernel.kernel_(kernel.encode(X), Z[first])
        same = (X["patient"].to_numpy()[:, None] == X["patient"].to_numpy()).astype(float)
        K_groups = p.ridge / level.ratio
        F -= K_groups * (X["patient"].to_numpy()[:, None] == X["patient"].to_numpy()[first])
        G = F[first]
        V = np.linalg.inv(np.eye(len(X)) + same / level.ratio)
        target = kernel._predictor.mixture.target
        v = (y - target.centre[0]) / target.spread[0]
        A = F.T @ V @ F + p.ridge * (G + 1e-12 * np.abs(G).sum(axis=0).mean() * np.eye(len(G)))
        beta = np.linalg.solve(A, F.T @ V @ v)
        new = p.landmarks.products(*rows, p.dual)[:, 0]
        np.testing.assert_allclose(new, F @ beta, atol=1e-5)
        # patients of the kernel's model keep their levels, others are new ones
        rest = v[:cut] - (F @ beta)[:cut]
        names = X["patient"][:cut].to_numpy()
        at = names == names[0]
        u = rest[at].sum() / (at.sum() + level.ratio)
        inside = merged.predict(X[:1])[0] - (new[0] * target.spread[0] + target.centre[0])
        assert inside == pytest.approx(u * target.spread[0], abs=1e-4)
        outside = merged.predict(X[-5:])
        np.testing.assert_allclose(
            outside, new[-5:] * target.spread[0] + target.centre[0], atol=1e-9
        )
        known, unknown = (merged.predict(each, return_std=True)[1] for each in (X[:cut], X[cut:]))
        assert known.mean() < unknown.mean()


def test_groups_are_in_one_fold_and_must_be_said() -> None:
    X, y = friedman(300)
    groups = np.repeat(np.arange(60), 5)
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:100], y[:100], groups=groups[:100])
    with pytest.raises(ValueError, match="give groups for the new rows"):
        kernel.sums(X[100:], y[100:])
    sums = kernel.sums(X[100:], y[100:], groups=groups[100:])
    assert sorted(part.n_rows % 5 for part in sums.parts) == [0, 0, 0]


def test_a_file_has_no_row(kernel: Any, tmp_path: Path) -> None:
    X, y = friedman(700)
    sums = kernel.sums(X[60:300], y[60:300])
    path = tmp_path / "place.sums"
    sums.save(path)
    content = path.read_bytes()
    for value in [*X[60:300].ravel(), *y[60:300]]:
        assert np.float64(value).tobytes() not in content
    again = SharedSums.load(path)
    assert (again.kernel, again.n_landmarks) == (sums.kernel, sums.n_landmarks)
    np.testing.assert_array_equal(again.facts, sums.facts)
    for read, made in zip(again.parts, sums.parts, strict=True):
        for each in fields(PartSums):
            np.testing.assert_array_equal(getattr(read, each.name), getattr(made, each.name))
    one, other = merge([again], kernel=kernel), merge([sums], kernel=kernel)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    path.unlink()
    sums.save(path)
    assert path.read_bytes() == content


def test_damaged_and_foreign_files_are_refused(kernel: Any, tmp_path: Path) -> None:
    X, y = friedman(700)
    path = tmp_path / "place.sums"
    kernel.sums(X[60:300], y[60:300]).save(path)
    content = path.read_bytes()
    for place in (len(content) // 3, len(content) // 2, 200):
        broken = bytearray(content)
        broken[place] ^= 255
        path.write_bytes(bytes(broken))
        with pytest.raises(ValueError, match=r"place\.sums (is damaged|holds no sums of rows)"):
            SharedSums.load(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="holds no sums of rows, or is damaged"):
        SharedSums.load(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="holds no sums of rows"):
        SharedSums.load(path)
    np.savez(path.with_suffix(".npz"), a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(ValueError, match="holds no sums of rows"):
        SharedSums.load(path.with_suffix(".npz"))
    np.savez(path.with_suffix(".npz"), a=np.zeros(3))
    with pytest.raises(ValueError, match="holds no sums of rows, or those of another version"):
        SharedSums.load(path.with_suffix(".npz"))
    # a file that would unpack to more than it is, and one that says so of an array
    np.savez_compressed(path.with_suffix(".npz"), a=np.zeros(10**6))
    with pytest.raises(ValueError, match="holds no sums of rows, or is damaged"):
        SharedSums.load(path.with_suffix(".npz"))
    with zipfile.ZipFile(path, "w") as file, file.open("a.npy", "w") as stream:
        head = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(stream, head)
    with pytest.raises(ValueError, match="holds no sums of rows, or is damaged"):
        SharedSums.load(path)
    with pytest.raises(FileNotFoundError):
        SharedSums.load(tmp_path / "none.sums")


def test_other_kernels_and_the_same_sums_twice_are_refused(kernel: Any) -> None:
    X, y = friedman(700)
    sums = kernel.sums(X[60:300], y[60:300])
    backwards = kernel.sums(X[299:59:-1], y[299:59:-1])
    for again in (sums, kernel.sums(X[60:300], y[60:300]), backwards):
        match = r"parts\[0\] and parts\[1\] are sums of the same 240 rows"
        with pytest.raises(ValueError, match=match):
            merge([sums, again], kernel=kernel)
    with pytest.raises(ValueError, match="are sums of the same 60 rows"):
        merge([kernel, kernel.sums(X[:60], y[:60])])
    other = EvidenceKernelRegressor(**QUICK).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=r"parts\[1\] has another kernel .*50 landmarks for 60"):
        merge([sums, other.sums(X[60:300], y[60:300])], kernel=kernel)
    scaled = EvidenceKernelRegressor(**QUICK).fit(X[:60], 2.0 * y[:60])
    with pytest.raises(ValueError, match="other columns, scales, classes or units"):
        merge([sums, scaled], kernel=kernel)
    with pytest.raises(ValueError, match="sums have no kernel: give the model that made them"):
        merge([sums])
    with pytest.raises(ValueError, match="parts must hold at least one model"):
        merge([], kernel=kernel)
    with pytest.raises(TypeError, match=r"parts\[1\] must be .* got str"):
        merge([sums, "b.sums"], kernel=kernel)


def test_what_has_no_sums_is_refused() -> None:
    X, _ = friedman(200)
    counts = np.random.RandomState(0).poisson(np.exp(2.0 * X[:, 0]))
    kernel = EvidenceKernelRegressor(precisions=(5.0,), max_iter=10).fit(X[:100], counts[:100])
    with pytest.raises(ValueError, match="learned counts by their likelihood"):
        kernel.sums(X[100:], counts[100:])
    half = EvidenceKernelRegressor(**QUICK).fit(
        X[:60], [f"<{v:.2f}" if k % 5 == 0 else f"{v:.2f}" for k, v in enumerate(1 + X[:60, 0])]
    )
    with pytest.raises(ValueError, match="learned targets that are known by half"):
        half.sums(X[60:], X[60:, 0])


def test_few_rows_are_warned_of(kernel: Any) -> None:
    X, y = friedman(1200)
    with pytest.warns(KernelWeaveWarning, match="for 60 landmarks, and tells whether a row"):
        kernel.sums(X[60:90], y[60:90])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.sums(X[60:], y[60:])


def root_of_landmarks(kernel: Any, Z: Floats) -> Floats:
    K = kernel.kernel_(Z)
    return np.linalg.cholesky(K + 1e-12 * np.abs(K).sum(axis=0).mean() * np.eye(len(K)))


def test_sums_of_one_row_are_the_row(kernel: Any) -> None:
    """Two files, of which one has a row more, tell the row and its target: docs/sharing.md."""
    X, y = friedman(700)
    Z = np.unique(kernel.encode(friedman(60)[0]), axis=0)
    before, after = kernel.sums(X[60:300], y[60:300]), kernel.sums(X[60:301], y[60:301])
    pairs = zip(before.parts, after.parts, strict=True)
    (old, new), *_ = [pair for pair in pairs if pair[0].n_rows != pair[1].n_rows]
    product = dtfttr(60, new.inner - old.inner, uplo="L")[0]
    z = product[:, 0] / np.sqrt(product[0, 0])
    values = root_of_landmarks(kernel, Z) @ z
    target = kernel._predictor.mixture.target
    told = float((new.right - old.right)[0, 0] / z[0]) * target.spread[0] + target.centre[0]
    assert told == pytest.approx(y[300], abs=1e-6)
    guesses = [
        least_squares(lambda x: kernel.kernel_(x[None], Z)[0] - values, start)
        for start in Z[np.argsort(-values)[:5]]
    ]
    best = min(guesses, key=lambda each: each.cost)
    np.testing.assert_allclose(best.x, X[300], atol=1e-4)


@pytest.mark.parametrize(("n_rows", "least", "most"), [(40, 1.0, 1.0), (640, 0.0, 0.5)])
def test_sums_of_few_rows_tell_who_is_not_among_them(
    kernel: Any, n_rows: int, least: float, most: float
) -> None:
    X, y = friedman(1000)
    Z = np.unique(kernel.encode(friedman(60)[0]), axis=0)
    root = root_of_landmarks(kernel, Z)
    sums = kernel.sums(X[60 : 60 + n_rows], y[60 : 60 + n_rows])
    lower = np.tril(dtfttr(60, sum(part.inner for part in sums.parts), uplo="L")[0])
    inner = lower + np.tril(lower, -1).T + 1e-9 * np.eye(60)
    shares = []
    for rows in (X[60 : 60 + n_rows], X[700:]):
        z = np.linalg.solve(root, kernel.kernel_(Z, kernel.encode(rows)))
        # of a row in the sums it is at most 1
        shares.append(np.mean(np.sum(z * np.linalg.solve(inner, z), axis=0) > 1.001))
    assert shares[0] == 0.0
    assert least <= shares[1] <= most


def worded(n: int) -> tuple[pd.DataFrame, Floats]:
    X, y = friedman(n)
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(6)])
    frame["town"] = np.array(["Ulm", "Bonn", "Kiel"])[(3 * X[:, 5]).astype(int)]
    return frame, y + 2.0 * (frame["town"] == "Kiel").to_numpy()


@pytest.mark.parametrize("n_places", [2, 5])
def test_models_of_all_pairs_are_joined_row_by_row(n_places: int) -> None:
    X, y = worded(700)
    cuts = places(n_places)
    # towns that the kernel has not, each in one place
    for k, each in enumerate(cuts):
        X.loc[X.index[each][:10], "town"] = f"town {9 - k}"
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])
    models = [deepcopy(kernel).refit(X[each], y[each]) for each in cuts]
    before = [pickle.dumps(each) for each in models]
    merged = merge(models)
    pooled = deepcopy(kernel).refit(X[60:500], y[60:500])
    for one, other in zip(
        merged.predict(X[500:], return_std=True), pooled.predict(X[500:], return_std=True),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        merged.predict_interval(X[500:]), pooled.predict_interval(X[500:]), atol=1e-8
    )
    assert merged.held_out_score_ == pytest.approx(pooled.held_out_score_, abs=1e-8)
    # the rows of one place after those of the other
    np.testing.assert_allclose(
        merged.held_out_prediction_, pooled.held_out_prediction_, rtol=0, atol=1e-8
    )
    assert merged.dimensions_[-1].categories == pooled.dimensions_[-1].categories
    assert [pickle.dumps(each) for each in models] == before
    # it lives on
    merged.update(X[500:520], y[500:520])
    pooled.update(X[500:520], y[500:520])
    np.testing.assert_allclose(merged.predict(X), pooled.predict(X), rtol=0, atol=1e-8)


def test_joined_classes_and_groups_are_those_of_one_model() -> None:
    X, y = grouped(320)
    cut, middle = (int(np.flatnonzero(X["patient"] == X["patient"][k])[0]) for k in (100, 200))
    labels = np.where(y > np.median(y), "high", "low")
    for model, targets in (
        (EvidenceKernelRegressor(**QUICK), y),
        (EvidenceKernelClassifier(**QUICK), labels),
    ):
        kernel = model.fit(X[:cut], targets[:cut], groups="patient")
        weight = np.random.RandomState(0).randint(1, 4, 320)
        parts = [
            deepcopy(kernel).refit(X[each], targets[each], weight[each])
            for each in (slice(cut, middle), slice(middle, 320))
        ]
        merged = merge(parts)
        pooled = deepcopy(kernel).refit(X[cut:], targets[cut:], weight[cut:])
        door = "predict" if targets is y else "predict_proba"
        one, other = getattr(merged, door)(X), getattr(pooled, door)(X)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)
        assert merged.held_out_score_ == pytest.approx(pooled.held_out_score_, abs=1e-8)


def test_rows_that_two_models_have_are_warned_of() -> None:
    X, y = worded(200)
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])
    one, other = (deepcopy(kernel).update(X[a:b], y[a:b]) for a, b in ((60, 100), (100, 200)))
    with pytest.warns(
        KernelWeaveWarning, match=r"60 of 160 rows of parts\[1\] equal rows of parts\[0\]"
    ):
        merge([one, other])


def test_a_model_beside_sums_counts_its_rows() -> None:
    X, y = worded(400)
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])
    X.loc[60:80, "town"] = "Jena"
    other = deepcopy(kernel).refit(X[60:200], y[60:200])
    sums = kernel.sums(X[200:300], y[200:300])
    merged = merge([other, sums], kernel=kernel)
    pooled = merge([kernel.sums(X[60:300], y[60:300])], kernel=kernel)
    np.testing.assert_allclose(merged.predict(X), pooled.predict(X), rtol=0, atol=1e-8)
    assert merged.held_out_score_ == pytest.approx(pooled.held_out_score_, abs=1e-8)
    with pytest.raises(ValueError, match="has no rows that others could join or leave"):
        merged.update(X[300:], y[300:])
    # sums of a place that comes later are added to what was merged
    later = merge([merged, kernel.sums(X[300:], y[300:])], kernel=kernel)
    pooled = merge([kernel.sums(X[60:], y[60:])], kernel=kernel)
    np.testing.assert_allclose(later.predict(X), pooled.predict(X), rtol=0, atol=1e-8)


def test_a_merged_model_is_kept_in_a_file() -> None:
    X, y = friedman(300)
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:60], y[:60])
    merged = merge([kernel.sums(X[60:], y[60:])], kernel=kernel)
    again = pickle.loads(pickle.dumps(merged))
    for one, other in zip(
        merged.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert "over 60 landmarks" in str(again.certificate_)
    values = again.explain(X[:3])
    np.testing.assert_allclose(values.values.sum(axis=1) + values.base_values, again.predict(X[:3]))
    assert np.isnan([each.importance for each in again.importance_]).all()


def test_what_was_found_of_the_kernels_own_rows_is_not_said_of_all(kernel: Any) -> None:
    X, y = friedman(700)
    changed = deepcopy(kernel).update(X[60:100], y[60:100]).forget([0])
    assert changed.certificate_.relearn is not None
    assert changed.certificate_.forgotten is not None
    told = merge([changed.sums(X[100:300], y[100:300])], kernel=changed).certificate_
    assert (told.relearn, told.forgotten) == (None, None)
    one, other, both = (
        deepcopy(kernel).refit(X[each], y[each])
        for each in (slice(60, 130), slice(130, 200), slice(60, 200))
    )
    joined = merge([one, other]).certificate_
    assert joined.relearn == both.certificate_.relearn


def test_a_file_of_sums_is_as_open_as_others(kernel: Any, tmp_path: Path) -> None:
    X, y = friedman(700)
    path, other = tmp_path / "place.sums", tmp_path / "other"
    other.touch()
    kernel.sums(X[60:300], y[60:300]).save(path)
    assert path.stat().st_mode == other.stat().st_mode
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "place.sums"]
