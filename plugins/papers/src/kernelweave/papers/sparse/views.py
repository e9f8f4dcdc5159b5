"""Ours: which views matter? Three of many made ones, and nine of real digits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from sklearn.base import BaseEstimator, ClassifierMixin

from ..data import notes
from ..engine.verdicts import lead
from ..measuring import mean, settled, spread, within
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_TRUE, WIDTH = 3, 3
_N_VIEWS, _N_TRAIN, _N_TEST, _N_SEEDS = 40, 300, 1000, 10
# seconds of a cell of forty views, measured on one core
METHODS = {
    "three views, proved": 3.0,
    "views by folds, proved": 25.0,
    "SimpleMKL": 3.0,
    "EasyMKL": 5.0,
    "tuned Gaussian SVM": 4.0,
    "random forest": 1.0,
    "boosted trees": 6.0,
    "l1 SVM on squares": 8.0,
    "group lasso": 2.0,
    "group lasso on squares": 2.0,
}
# what is linear in squares, or knows two classes alone, is not run there
_ON_DIGITS = tuple(METHODS)[:-3]
_NOTES = notes(
    "sparse.views", n_views=_N_VIEWS, width=WIDTH, n_true=N_TRUE, n_train=_N_TRAIN, n_test=_N_TEST
)
_ON_LEADS = notes("sparse.views leads")
_NOTES_DIGITS = notes("sparse.views digits", n_train=_N_TRAIN)
_NOTES_PHASE = notes("sparse.views phase", width=WIDTH, n_true=N_TRUE)
# rows and views of the phase diagram
_ROWS, _VIEWS = (50, 75, 100, 150, 200, 300), (10, 20, 40, 80)

NEEDS = "skglm"


class GroupLasso(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression whose coefficients vanish by groups of columns, or of their squares too.

    `share`: the penalty, as a share of the least at which all coefficients are 0; ``coef_`` of
    shape (1, n_columns), or (2, n_columns) with a row for the squares.
    """

    def __init__(
        self, groups: Sequence[list[int]] = (), share: float = 0.3, squares: bool = False
    ) -> None:
        self.groups = groups
        self.share = share
        self.squares = squares

    def fit(self, X: FloatArray, y: Labels) -> GroupLasso:
        """Fit signs of the two classes."""
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import LogisticGroup
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupProxNewton

        self.classes_ = np.unique(y)
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        wide = np.asfortranarray(self._wide(X))
        shifts = range(0, wide.shape[1], X.shape[1])
        members = [np.concatenate([np.add(at, by) for by in shifts]) for at in self.groups]
        ends = np.cumsum([0, *map(len, members)]).astype(np.int32)
        order = np.concatenate(members).astype(np.int32)
        weights = np.sqrt(np.diff(ends))
        # the gradient at the best intercept alone
        rest = signs / (1.0 + np.exp(signs * np.log((signs > 0).sum() / (signs < 0).sum())))
        slopes = [np.linalg.norm(wide[:, at].T @ rest) / len(signs) for at in members]
        penalty = WeightedGroupL2(
            self.share * float(np.max(slopes / weights)), weights, ends, order
        )
        self.model_ = GeneralizedLinearEstimator(
            LogisticGroup(ends, order), penalty, GroupProxNewton(fit_intercept=True, tol=1e-5)
        ).fit(wide, signs)
        self.coef_ = np.ravel(self.model_.coef_).reshape(-1, X.shape[1])
        return self

    def predict(self, X: FloatArray) -> Labels:
        """Return the class of each row."""
        values = self._wide(X) @ self.coef_.ravel() + float(np.ravel(self.model_.intercept_)[0])
        return np.asarray(self.classes_[(values > 0.0).astype(np.intp)])

    def _wide(self, X: FloatArray) -> FloatArray:
        return np.hstack([X, X**2]) if self.squares else X


class SampledViews(NamedTuple):
    """Training and test rows, which columns are a view, and which views matter."""

    X: FloatArray
    y: Labels
    X_test: FloatArray
    y_test: Labels
    columns: dict[str, list[int]]
    true: list[str]


def made(n_train: int, n_views: int, seed: int) -> SampledViews:
    """Return rows whose class depends on three of the views, through squares."""
    rng = np.random.default_rng(seed)
    true = np.sort(rng.choice(n_views, N_TRUE, replace=False))
    X = rng.standard_normal((n_train + _N_TEST, WIDTH * n_views))
    away = (X.reshape(len(X), n_views, WIDTH)[:, true] ** 2).sum(axis=(1, 2))
    y = away + 0.3 * rng.standard_normal(len(X)) > N_TRUE * WIDTH
    columns = {str(v): list(range(WIDTH * v, WIDTH * v + WIDTH)) for v in range(n_views)}
    parts = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    return SampledViews(*parts, columns, [str(v) for v in true])


def digits(n_train: int, seed: int) -> SampledViews:
    """Return the digits in nine views, of which two are noise."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, y = load_digits(return_X_y=True)
    image = pixels.reshape(-1, 8, 8)
    mirrored = image[:, :, ::-1]
    rng = np.random.default_rng(seed)
    blocks = {
        "pixels": pixels,
        "rows": image.sum(axis=2),
        "columns": image.sum(axis=1),
        "diagonals": np.stack(
            [each.trace(k, 1, 2) for each in (image, mirrored) for k in range(-7, 8)], axis=1
        ),
        "blocks": image.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16),
        "Fourier": np.abs(np.fft.rfft2(image)).reshape(-1, 40),
        "slopes": np.concatenate([np.diff(image, axis=k).reshape(-1, 56) for k in (1, 2)], axis=1),
        "noise": rng.standard_normal((len(y), 16)),
        "more noise": rng.standard_normal((len(y), 16)),
    }
    X = np.hstack(list(blocks.values()))
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    ends = np.cumsum([block.shape[1] for block in blocks.values()]).tolist()
    columns = {
        name: list(range(end - block.shape[1], end))
        for (name, block), end in zip(blocks.items(), ends, strict=True)
    }
    parts = train_test_split(X, y, train_size=n_train, random_state=seed, stratify=y)
    return SampledViews(parts[0], parts[2], parts[1], parts[3], columns, list(blocks)[:-2])


def method(name: str, columns: Mapping[str, list[int]], *, real: bool) -> BaseEstimator:
    """Return the method, not fitted; ``real`` chooses widths for columns of any kind."""
    from kernelweave.baselines import EasyMKLClassifier, SimpleMKLClassifier
    from kernelweave.kernels_core import RBF, KernelDictionary
    from kernelweave.mkl_sparse import SparseMKLClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import SVC, LinearSVC

    kernels = KernelDictionary(["rbf" if real else RBF(0.3)], columns=columns)
    C = 10.0 if real else 1.0
    proved = SparseMKLClassifier(kernels, C=C, lam=0.1, k0=N_TRUE, tol=1e-3)
    if name.startswith("group lasso"):
        lasso = GroupLasso(list(columns.values()), squares=name.endswith("squares"))
        return GridSearchCV(lasso, {"share": [0.03, 0.1, 0.2, 0.3, 0.5, 0.7]})
    width = 0.01 if real else 0.03
    models = {
        "three views, proved": proved,
        "SimpleMKL": SimpleMKLClassifier(kernels, C=C, tol=1e-3),
        "EasyMKL": GridSearchCV(EasyMKLClassifier(kernels, C=C), {"lam": [0.01, 0.1, 0.5]}, cv=3),
        "tuned Gaussian SVM": GridSearchCV(
            SVC(), {"C": [1, 10], "gamma": [width / 30, width / 10, width / 3, width]}
        ),
        "random forest": RandomForestClassifier(random_state=0),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
        "l1 SVM on squares": GridSearchCV(
            make_pipeline(
                FunctionTransformer(lambda X: np.hstack([X, X**2])),
                LinearSVC(penalty="l1", dual=False, max_iter=20_000, random_state=0),
            ),
            {"linearsvc__C": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]},
        ),
    }
    if name == "views by folds, proved":
        return proved.set_params(k0=[1, 2, 3, 4])
    return models[name]


def kept_by(model: BaseEstimator, columns: Mapping[str, list[int]]) -> list[str] | None:
    """Return the views that a fitted model keeps, None where it cannot tell."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "view_weights_"):
        return [name for name, weight in model.view_weights_.items() if weight > 1e-3]
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "coef_"):
        n_columns = sum(map(len, columns.values()))
        size = np.abs(np.ravel(last.coef_)).reshape(-1, n_columns).max(axis=0)
        return [name for name, at in columns.items() if size[at].max() > 0.0]
    if hasattr(model, "feature_importances_"):
        sums = {name: model.feature_importances_[at].sum() for name, at in columns.items()}
        return sorted(sums, key=lambda name: -sums[name])[:N_TRUE]
    return None


def measure(name: str, n_train: int, n_views: int, seed: int) -> dict[str, object]:
    """Fit a method to one draw: accuracy, views and CPU seconds; of 0 views, the digits."""
    data = made(n_train, n_views, seed) if n_views else digits(n_train, seed)
    model, seconds = settled(
        lambda: method(name, data.columns, real=not n_views).fit(data.X, data.y)
    )
    record: dict[str, object] = {
        "accuracy": 100.0 * float(np.mean(model.predict(data.X_test) == data.y_test)),
        "seconds": seconds,
    }
    kept = kept_by(model, data.columns)
    if kept is not None:
        record |= {"kept": kept, "true": data.true}
    return record


def table(request: Request, n_views: int = _N_VIEWS) -> Plan:
    """Accuracy and views of each method; with ``n_views=0`` on the digits."""
    n_train = min(_N_TRAIN, request.sample_limit or _N_TRAIN)
    n_train = 150 if request.quick else n_train
    seeds = range(1 if request.quick else request.repeats or _N_SEEDS)
    reduced = n_train < _N_TRAIN
    cells = [
        cell(f"{name}/{seed}", METHODS[name], reduced, measure, name, n_train, n_views, seed)
        for seed in seeds
        for name in (METHODS if n_views else _ON_DIGITS)
        if _is_there(name)
    ]
    return Plan(cells, partial(_present, n_views))


def _is_there(name: str) -> bool:
    return not name.startswith("group lasso") or find_spec(NEEDS) is not None


def _present(n_views: int, results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    several = any(key.endswith("/1") for key in results)
    for name in METHODS if n_views else _ON_DIGITS:
        draws = list(within(results, name).values())
        if not _is_there(name):
            lost = "not run" if several else None
            rows.append([name, f"{NEEDS} is not installed", lost, *["not run"] * 4])
            continue
        accuracy = [each["accuracy"] for each in draws]
        row: list[Value] = [name, mean(accuracy), spread(accuracy)]
        row += _views_of(name, draws, made=bool(n_views))
        seconds = [each["seconds"] for each in draws]
        rows.append([*row, float(np.median(seconds)) if seconds else None])
    kept = ("found, of 3", "kept", "exact") if n_views else ("kept", "of them noise", "most kept")
    columns = ("method", "accuracy (%)", "±", *kept, "CPU seconds, median")
    title = f"{n_views} made views, three of which matter"
    if not n_views:
        title = "Nine views of digits, two of them noise"
    leads = Sheet(
        "Leads of three views, and what they say",
        ("first", "second", "lead", "from", "to", "verdict"),
        _leads(results, n_views),
        _ON_LEADS,
    )
    return [Sheet(title, columns, rows, _NOTES if n_views else _NOTES_DIGITS), leads]


def _leads(results: Results, n_views: int) -> list[list[Value]]:
    """Return the leads of the three views that are proved over each other method that was run."""
    first, *others = METHODS if n_views else _ON_DIGITS
    ours = within(results, first)
    rows = []
    for second in filter(_is_there, others):
        theirs = within(results, second)
        seeds = sorted(ours.keys() & theirs)
        differences = (ours[seed]["accuracy"] - theirs[seed]["accuracy"] for seed in seeds)
        rows.append(lead(first, second, differences))
    return rows


def _views_of(name: str, draws: list[Any], *, made: bool) -> list[Value]:
    """Return which views a method keeps: against the truth of made ones, else by their names."""
    selecting = [each for each in draws if "kept" in each]
    if not selecting:
        return ["not given" if draws else None] * 3
    pairs = [(set(each["kept"]), set(each["true"])) for each in selecting]
    size = "ranks all" if name == "random forest" else mean(len(kept) for kept, _ in pairs)
    if made:
        exact = f"{sum(kept == true for kept, true in pairs)} of {len(pairs)}"
        return [mean(len(kept & true) for kept, true in pairs), size, exact]
    most = Counter(view for each in selecting for view in each["kept"]).most_common(4)
    noise = mean(len(kept - true) for kept, true in pairs)
    return [size, noise, ", ".join(f"{view} {n}" for view, n in most) or None]


def phase(request: Request) -> Plan:
    """Plan the phase diagram: how recovery grows with rows and falls with views."""
    quick, name = request.quick, "three views, proved"
    cells = [
        cell(
            f"{n_rows}/{n_views}/{seed}",
            *(2.0 * (n_rows / 300) ** 2 * (n_views / 40), quick, measure),
            *(name, n_rows, n_views, seed),
        )
        for n_views in (_VIEWS[:2] if quick else _VIEWS)
        for n_rows in _ROWS
        for seed in range(2 if quick else request.repeats or _N_SEEDS)
    ]
    return Plan(cells, _present_phase)


def _present_phase(results: Results) -> list[Sheet | Drawing]:
    share = np.full((len(_VIEWS), len(_ROWS)), np.nan)
    rows: list[list[Value]] = []
    for i, n_views in enumerate(_VIEWS):
        for j, n_rows in enumerate(_ROWS):
            draws = list(within(results, n_rows, n_views).values())
            if not draws:
                continue
            right = [len(set(each["kept"]) & set(each["true"])) for each in draws]
            share[i, j] = np.mean([set(each["kept"]) == set(each["true"]) for each in draws])
            accuracy = np.mean([each["accuracy"] for each in draws])
            seconds = np.median([each["seconds"] for each in draws])
            numbers = (share[i, j], np.mean(right), accuracy, seconds)
            rows.append([n_views, n_rows, *(float(value) for value in numbers)])

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.imshow(share, origin="lower", cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), value in np.ndenumerate(share):
            if np.isfinite(value):
                colour = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=colour)
        ax.set(xlabel="training rows", ylabel="views")
        ax.set_xticks(range(len(_ROWS)), [str(n) for n in _ROWS])
        ax.set_yticks(range(len(_VIEWS)), [str(n) for n in _VIEWS])

    title = "Recovery of three true views by rows and views"
    text = "Share of draws in which exactly the true views are kept; darker is more."
    columns = ("views", "rows", "recovery", "found, of 3", "accuracy (%)", "CPU seconds, median")
    return [Drawing(title, text, draw, _NOTES_PHASE), Sheet(title, columns, rows, _NOTES_PHASE)]
