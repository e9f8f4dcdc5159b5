"""Do the scores that a fit expects of new groups and of later rows hold on such rows?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels

from ..data import drawn, notes
from ..measuring import CLASSES, Method, class_of, mean, score_of, within
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .methods import EXTRA, N_FOLDS, QUICK_ROWS
from .new_rows_tables import TASKS, NewRowsTask
from .sets import SETS, address, samples

if TYPE_CHECKING:
    import pandas as pd

# of the training rows: the blocks that a fit without and with their order predicts, and as many
# origins behind them
_BLOCKS, _PASSED_BLOCKS, _ORIGINS = 12, 6, 3
_MOST_TESTED = 600
# GPBoost's trees: as small steps as its examples take
_TREES = {"learning_rate": 0.05, "max_depth": 3, "verbose": -1, "num_threads": 1}
_MOST_TREES = 500
_CONFIDENCE, _NORMAL = 0.9, 1.645
_ROWS, _MOST_DRAWS = 300, 3
_QUICK, _QUICK_SETS = ("cities that do not matter", "rows in no order"), ("wine", "diabetes")
PLAIN, PASSED, _WARNED = "evidence", "evidence, passed", "warned"
_OF_GROUPS = ("MixedLM", "GPBoost")
_NOTES = notes("study.new_rows", n_origins=_ORIGINS, extra=EXTRA)
_Predict = Callable[["pd.DataFrame"], Labels]
_Interval = Callable[["pd.DataFrame"], tuple[FloatArray, FloatArray]]


class Expecting(NamedTuple):
    """The score that a method expects for given kinds of new rows, and how it predicts them.

    `usual`: what it expects of rows like those of training; `n_groups`: groups or blocks that the
    error is over; `share`: of rows left out, all together, to those that one fit learned from.
    """

    predict: _Predict
    interval: _Interval | None = None
    expected: float = np.nan
    error: float = np.nan
    n_groups: float = np.nan
    share: float = np.nan
    usual: float = np.nan


def judged(truth: Labels, predicted: Labels, parts: Index, *, classes: bool) -> tuple[float, float]:
    """Return R² or accuracy, and its standard error over groups or blocks, by the jackknife.

    Examples
    --------
    >>> truth, parts = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    >>> score, error = judged(truth, np.array([0.0, 1.0, 2.0, 2.0]), parts, classes=False)
    >>> round(score, 3), round(error, 1)
    (0.8, 1.0)
    """
    kept = [parts != part for part in np.unique(parts)]
    replicates = [
        score_of(truth[rows], predicted[rows], classes=classes) for rows in kept if len(kept) > 1
    ]
    error = np.sqrt((len(replicates) - 1) * np.var(replicates)) if replicates else np.nan
    return score_of(truth, predicted, classes=classes), float(error)


def _fitted(X: Any, y: object, *, classes: bool, **passed: object) -> tuple[Any, bool]:
    """Return a fitted evidence model, and whether it warned of a score or of intervals."""
    from kernelweave.evidence import HeldOutWarning

    kind = class_of("kernelweave.evidence", "EvidenceKernel", classes=classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kind().fit(X, y, **passed)
    return model, any(issubclass(each.category, HeldOutWarning) for each in caught)


def _ours(X: pd.DataFrame, y: Labels, task: NewRowsTask, *, passed: bool) -> Expecting:
    given = {task.by: task.column} if passed else {}
    model, _ = _fitted(X, y, classes=task.classes, **given)
    lines = model.held_out_
    start = f"new {task.column}" if task.by == "groups" else "later"
    chosen = lines.iloc[:1] if passed else lines[lines.index.str.startswith(start)]
    interval = None if task.classes else partial(model.predict_interval, confidence=_CONFIDENCE)
    fit = Expecting(model.predict, interval, usual=lines["score"].iloc[0])
    if not len(chosen):
        return fit
    score, error, n_rows, n_groups = chosen.iloc[0]
    n_turns = model.held_out_fold_.max() + 1 if passed else n_groups
    share = n_rows / (len(X) - n_rows / n_turns)
    return fit._replace(expected=score, error=error, n_groups=n_groups, share=share)


def _numbers(X: pd.DataFrame, task: NewRowsTask) -> FloatArray:
    """Return the columns as numbers, without one that names groups."""
    if task.by == "groups":
        return X.drop(columns=task.column).to_numpy(dtype=np.float64)
    dates = X[task.column].dtype.kind == "M"
    return X.astype({task.column: "int64"} if dates else {}).to_numpy(dtype=np.float64)


def _crossed(
    fit: Callable[[pd.DataFrame, Labels], Expecting],
    X: pd.DataFrame,
    y: Labels,
    task: NewRowsTask,
    *,
    passed: bool = True,
) -> Expecting:
    """Return the fit to all rows with the score of its folds: groups or blocks if passed."""
    from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

    n = len(X)
    if not passed:
        parts, splits = np.arange(n), KFold(N_FOLDS, shuffle=True, random_state=0).split(X)
    elif task.by == "groups":
        parts = np.unique(X[task.column], return_inverse=True)[1]
        splits = GroupKFold(N_FOLDS).split(X, groups=parts)
    else:
        parts = np.arange(n) * _PASSED_BLOCKS // n
        splits = TimeSeriesSplit(_ORIGINS, test_size=n // _PASSED_BLOCKS).split(X)
    folds = list(splits)
    predictions = [fit(X.iloc[one], y[one]).predict(X.iloc[other]) for one, other in folds]
    held = np.concatenate([other for _, other in folds])
    score, error = judged(y[held], np.concatenate(predictions), parts[held], classes=task.classes)
    n_groups = len(np.unique(parts[held]))
    share = len(held) / float(np.mean([len(one) for one, _ in folds]))
    return fit(X, y)._replace(expected=score, error=error, n_groups=n_groups, share=share)


def _boosted(X: pd.DataFrame, y: Labels, task: NewRowsTask, *, passed: bool) -> Expecting:
    boosting = class_of("sklearn.ensemble", "HistGradientBoosting", classes=task.classes)
    levels = {name: code for code, name in enumerate(X[task.column].unique())}

    def numbers(X: pd.DataFrame) -> FloatArray:
        Z = _numbers(X, task)
        if passed or task.by != "groups":
            return Z
        return np.column_stack([Z, X[task.column].map(levels).to_numpy(dtype=np.float64)])

    def fit(X: pd.DataFrame, y: Labels) -> Expecting:
        model = boosting(random_state=0).fit(numbers(X), y)
        return Expecting(lambda new: model.predict(numbers(new)))

    return _crossed(fit, X, y, task, passed=passed)


def _mixed(X: pd.DataFrame, y: Labels, task: NewRowsTask) -> Expecting:
    """Fit a linear model with a normal level for each group, of which a new one has the mean."""
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from statsmodels.regression.mixed_linear_model import MixedLM

    def fit(X: pd.DataFrame, y: Labels) -> Expecting:
        one = PolynomialFeatures(1)
        design = make_pipeline(SimpleImputer(), VarianceThreshold(), StandardScaler(), one)
        Z = design.fit_transform(_numbers(X, task))
        model = MixedLM(y, Z, groups=X[task.column].to_numpy()).fit()
        half = _NORMAL * np.sqrt(model.scale + float(np.ravel(model.cov_re)[0]))

        def predict(new: pd.DataFrame) -> FloatArray:
            return np.asarray(design.transform(_numbers(new, task)) @ model.fe_params)

        return Expecting(predict, lambda new: (predict(new) - half, predict(new) + half))

    return _crossed(fit, X, y, task)


def _boosted_with_levels(X: pd.DataFrame, y: Labels, task: NewRowsTask) -> Expecting:
    """Fit trees with a normal level for each group, as many as predict other groups best."""
    import gpboost
    from sklearn.model_selection import GroupKFold

    def fit(X: pd.DataFrame, y: Labels) -> Expecting:
        Z, groups = _numbers(X, task), X[task.column].to_numpy()
        data = gpboost.Dataset(Z, y, free_raw_data=False)
        kind = partial(gpboost.GPModel, group_data=groups, num_parallel_threads=1)
        folds = list(GroupKFold(N_FOLDS).split(Z, groups=groups))
        evals = gpboost.cv(_TREES, data, kind(), _MOST_TREES, early_stopping_rounds=20, folds=folds)
        model = gpboost.train(_TREES, data, len(next(iter(evals.values()))), gp_model=kind())

        def says(new: pd.DataFrame) -> dict[str, FloatArray]:
            options = {"group_data_pred": new[task.column].to_numpy(), "pred_latent": False}
            intervals: dict[str, FloatArray] = model.predict(
                _numbers(new, task), predict_var=True, **options
            )
            return intervals

        def interval(new: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
            response = says(new)
            half = _NORMAL * np.sqrt(response["response_var"])
            return response["response_mean"] - half, response["response_mean"] + half

        return Expecting(lambda new: says(new)["response_mean"], interval)

    return _crossed(fit, X, y, task)


METHODS = {
    PLAIN: Method("kernelweave.evidence", 4.0, partial(_ours, passed=False)),
    PASSED: Method("kernelweave.evidence", 4.0, partial(_ours, passed=True)),
    "HistGB": Method("sklearn", 2.0, partial(_boosted, passed=False)),
    "HistGB, passed": Method("sklearn", 2.0, partial(_boosted, passed=True)),
    "MixedLM": Method("statsmodels", 1.0, _mixed),
    "GPBoost": Method("gpboost", 1.0, _boosted_with_levels),
}


def _splits(
    task: NewRowsTask, X: pd.DataFrame, seed: int, n_blocks: int
) -> Iterator[tuple[Index, Index]]:
    """Yield places to learn from and of rows to meet: other groups, or the block behind."""
    n, step = task.n_train, task.n_train // _PASSED_BLOCKS
    if task.by == "groups":
        codes = np.unique(X[task.column], return_inverse=True)[1]
        places = np.argsort(np.random.RandomState(seed).permutation(codes.max() + 1))[codes]
        last = n + max(1, _MOST_TESTED * (codes.max() + 1) // len(X))
        yield np.flatnonzero(places < n), np.flatnonzero((places >= n) & (places < last))
        return
    spare = len(X) - n - _ORIGINS * step
    begin = spare * seed // max(1, task.draws - 1)
    for end in range(begin + n, begin + n + _ORIGINS * step, step):
        yield np.arange(begin, end), np.arange(end, end + n // n_blocks)


def measure(name: str, method: str, seed: int) -> dict[str, float]:
    """Return what a method expects of new groups or later rows, and what comes.

    `seed`: which draw of groups, or which part of a series.
    """
    task = TASKS[name]
    X, y = task.table(seed)
    fits: list[Expecting] = []
    predicted, parts, held = [], [], []
    met: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for old, new in _splits(task, X, seed, _BLOCKS if method == PLAIN else _PASSED_BLOCKS):
            fit: Expecting = METHODS[method].run(X.iloc[old].reset_index(drop=True), y[old], task)
            X_new = X.iloc[new].reset_index(drop=True)
            predicted.append(fit.predict(X_new))
            groups = X_new[task.column] if task.by == "groups" else np.full(len(new), len(fits))
            parts.append(np.asarray(groups))
            fits.append(fit)
            met.append(y[new])
            if fit.interval is not None:
                low, high = fit.interval(X_new)
                held.append(float(np.mean((low <= met[-1]) & (met[-1] <= high))))
    score, error = judged(*map(np.concatenate, (met, predicted, parts)), classes=task.classes)
    names, share = ("expected", "error", "n_groups", "share", "usual"), mean(held)
    expected = {name: float(getattr(fits[0], name)) for name in names}
    return {**expected, "realised": score, "realised error": error,
            "realised groups": float(len(np.unique(np.concatenate(parts)))),
            "held": np.nan if share is None else share}  # fmt: skip


def warned(where: str, task: str, rows: int) -> bool:
    """Return whether a fit to rows drawn at random, in no order, doubts its score on new rows."""
    X, y = drawn(*samples(where), rows)
    return _fitted(X, y, classes=task == CLASSES)[1]


def study(request: Request) -> Plan:
    """Plan the study: a cell per task, method and draw, and one per set without groups or order."""
    names, sets = (_QUICK, _QUICK_SETS) if request.quick else (tuple(TASKS), tuple(SETS))
    most = 1 if request.quick else request.repeats or _MOST_DRAWS
    reduced = most < _MOST_DRAWS
    cells = [
        cell(f"{name}/{method}/{seed}", of.seconds, reduced, measure, name, method, seed)
        for seed in range(most)
        for name in names
        for method, of in METHODS.items()
        if seed < TASKS[name].draws and not reason_not_run(method, TASKS[name])
    ]
    for name in sets:
        given = address(SETS[name], request), SETS[name].task
        rows = QUICK_ROWS if request.quick else _ROWS
        cells.append(cell(f"{name}/{_WARNED}", 3.0, request.quick, warned, *given, rows))
    return Plan(cells, lambda results: _present(results, names))


def reason_not_run(method: str, task: NewRowsTask) -> str:
    """Return in words why a method is not run on a task, empty where it is."""
    if not METHODS[method].is_installed:
        return "not installed"
    wrong = method in _OF_GROUPS and (task.by != "groups" or task.classes)
    return "numbers in groups only" if wrong else ""


@dataclass(frozen=True)
class Came:
    """What was expected of some draws, and what came."""

    draws: Sequence[Mapping[str, float]]

    def mean_text(self, figure: str) -> str | None:
        """Return the mean of a figure where there is one."""
        value = mean(each[figure] for each in self.draws if np.isfinite(each[figure]))
        return None if value is None else f"{value:.2f}"

    @property
    def row(self) -> list[Value]:
        """Return expected, realised, on how many draws they agree, and what intervals hold.

        They agree where their difference is within its 95 % interval: of the errors over groups,
        and with that of the expected score as the command's intervals have it, since fits to other
        groups differ (Nadeau and Bengio 2003).
        """
        from kernelweave.evidence.scores import margin_of_error

        agree = np.array([
            [
                abs(each["expected"] - each["realised"])
                <= margin_of_error(
                    (factor * each["error"], int(each["n_groups"])),
                    (each["realised error"], int(each["realised groups"])),
                )
                for factor in (1.0, np.sqrt(1.0 + each["share"]))
            ]
            for each in self.draws
            if np.isfinite(each["expected"])
        ])  # fmt: skip
        counts: list[Value] = [f"{sum(column)} of {len(column)}" for column in agree.T]
        counts = counts or [None, None]
        figures = [self.mean_text(name) for name in ("expected", "realised")]
        held = self.mean_text("held") or ("no intervals" if self.draws else None)
        return [*figures, *counts, held]


def _present(results: Results, names: Sequence[str]) -> list[Sheet]:
    def came(method: str, of_kind: Sequence[str]) -> Came:
        return Came([each for name in of_kind for each in within(results, name, method).values()])

    rows: list[list[Value]] = []
    for name in names:
        plain, passed = came(PLAIN, [name]), came(PASSED, [name])
        rows.append([name, plain.mean_text("usual"), *plain.row[:4], *passed.row])
    same = ("expected", "realised", "agree", "agree, as fits differ")
    heads = ("task", "rows like these", *same)
    more = (*(f"passed: {each}" for each in same), "passed: 90 % intervals hold")
    title = "Scores expected of new groups and later rows"
    sheets = [Sheet(title, (*heads, *more), rows, _NOTES)]
    rows = []
    for kind in dict.fromkeys(TASKS[name].kind for name in names):
        of_kind = [name for name in names if TASKS[name].kind == kind]
        for method in METHODS:
            reasons = [reason_not_run(method, TASKS[name]) for name in of_kind]
            lost = reasons[0] if all(reasons) else None
            rows.append([kind, method, *([lost] * 5 if lost else came(method, of_kind).row)])
    kinds = ("tasks", "method", *same, "90 % intervals hold")
    sheets.append(Sheet("By kind of task and method", kinds, rows, is_aggregate=True))
    doubted = [name for name in SETS if results.get(f"{name}/{_WARNED}")]
    n_sets = sum(f"{name}/{_WARNED}" in results for name in SETS)
    title = "Warnings on the sets of the study, whose rows are in no order"
    row: list[Value] = [n_sets, len(doubted), ", ".join(doubted) or "none"]
    return [*sheets, Sheet(title, ("sets", "warned", "which"), [row], is_aggregate=True)]
