"""Is a kernel chosen by the evidence better than what a user would pick today?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.workbench.displays.axes import SERIES
from kernelweave.workbench.scoring.scores import MeanInterval, mean_interval

from ..data import notes
from ..measuring import CLASSES, in_words, mean, within
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell
from .methods import (
    EXTRA,
    METHODS,
    N_FOLDS,
    OURS,
    QUICK_ROWS,
    SIZES,
    measure,
    reason_not_run,
    rows_trained,
)
from .sets import SETS, SetSource, address

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUICK_FOLDS = 2
# a quick run shows that everything works, on one small set of each kind
_QUICK_SETS = ("wine", "diabetes", "Gu and Wahba")
_QUICK_METHODS = (OURS, "RBF-SVM", "HistGB", "CatBoost")
# "within" the best: at most this many points behind it
_MARGIN = 1.0
# points that rounding makes of equal scores
_TIE = 1e-9
_DRAWN = ("RBF-SVM", "CatBoost")
_HEADS = (
    *("method", "sets", "folds", "ahead on", "significantly ahead", "significantly behind"),
    *("median", "mean", "mean, classes", "mean, numbers", "mean, other sets", "median CPU s"),
)
_NOTES = notes("study.comparison", n_folds=N_FOLDS, extra=EXTRA)


def study(request: Request) -> Plan:
    """Plan the study: a cell per set, method, number of rows and outer fold."""
    most = request.subsample or SIZES[-1]
    sizes = [QUICK_ROWS] if request.quick else [size for size in SIZES if size <= most] or [most]
    n_folds = _QUICK_FOLDS if request.quick else min(request.repeats or N_FOLDS, N_FOLDS)
    names = _QUICK_SETS if request.quick else tuple(SETS)
    methods = _QUICK_METHODS if request.quick else tuple(METHODS)
    reduced = request.quick or (request.repeats or N_FOLDS) < N_FOLDS
    share = 0.3 if request.quick else 1.0
    cells = [
        cell(
            f"{name}/{method}/{rows}/{fold}",
            *(METHODS[method].seconds * (n / 300.0) ** 1.7 * share, reduced, measure),
            *(address(SETS[name], request), SETS[name].task, method, fold, n, request.quick),
        )
        for i, rows in enumerate(sizes)
        for fold in range(n_folds)
        for name in names
        for method in methods
        if not reason_not_run(method, SETS[name])
        for n in [rows_trained(SETS[name], rows)]
        if i == 0 or n > sizes[i - 1]
    ]

    def present(results: Results) -> list[Sheet | Drawing]:
        shown: list[Sheet | Drawing] = []
        for rows in sizes:
            at_size = SizeResults(results, rows, names, methods)
            shown += [verdict(at_size), shares(at_size), *scores(at_size), drawing(at_size)]
        return shown

    return Plan(cells, present)


@dataclass(frozen=True)
class SizeResults:
    """The results at one number of training rows."""

    results: Results
    rows: int
    names: Sequence[str]
    methods: Sequence[str]

    @property
    def others(self) -> list[str]:
        """Every method but ours."""
        return [method for method in self.methods if method != OURS]

    def folds(self, name: str, method: str) -> dict[str, Any]:
        """Return score and seconds by outer fold."""
        return within(self.results, name, method, self.rows)

    def paired(self, name: str, other: str) -> list[float]:
        """Return our score minus the other's, on each fold that both have."""
        ours, theirs = self.folds(name, OURS), self.folds(name, other)
        both = [fold for fold in sorted(ours) if fold in theirs]
        return [ours[fold]["score"] - theirs[fold]["score"] for fold in both]

    @cached_property
    def sizable(self) -> list[str]:
        """The sets that have a result of ours."""
        return [name for name in self.names if self.folds(name, OURS)]

    def differences(self, other: str) -> dict[str, list[float]]:
        """Return the paired differences by set, where there are any."""
        by_set = {name: self.paired(name, other) for name in self.sizable}
        return {name: each for name, each in by_set.items() if each}

    @cached_property
    def to_best(self) -> dict[str, float]:
        """Our mean difference to the method that is best on a set."""
        means = [
            {name: float(np.mean(each)) for name, each in self.differences(other).items()}
            for other in self.others
        ]
        names = [name for name in self.sizable if any(name in each for each in means)]
        return {name: min(each[name] for each in means if name in each) for name in names}


def _interval(paired: Sequence[float]) -> MeanInterval | None:
    return mean_interval(paired, 1.0 / (N_FOLDS - 1)) if len(paired) > 1 else None


def verdict(at_size: SizeResults) -> Sheet:
    """Return a row per method: on how many sets we are ahead of it, and by how many points."""
    rows: list[list[Value]] = []
    for other in at_size.others:
        by_set = at_size.differences(other)
        if by_set:
            rows.append([other, *against(by_set), *_by_group(by_set), _seconds(at_size, other)])
        else:
            reason = reason_not_run(other, SETS["iris, one class"]) or None
            rows.append([other, *([reason] * (len(_HEADS) - 1))])
    rows.append([OURS, *["itself"] * (len(_HEADS) - 2), _seconds(at_size, OURS)])
    most = f"at most {at_size.rows} training rows"
    title = f"Points of the evidence kernel above each other method, {most}"
    return Sheet(title, _HEADS, rows, _NOTES)


def against(by_set: Mapping[str, list[float]]) -> list[Value]:
    """Return counts of sets and folds, then the median and mean of the differences."""
    means = [float(np.mean(each)) for each in by_set.values()]
    intervals = [_interval(each) for each in by_set.values()]
    signs = [each.sign for each in intervals if each is not None]
    decided: list[Value] = [signs.count(1), signs.count(-1)] if signs else ["one fold"] * 2
    ahead = sum(value > _TIE for value in means)
    middle = f"{float(np.median(means)):+.1f}"
    return [len(means), sum(map(len, by_set.values())), ahead, *decided, middle, in_words(means)]


def _by_group(by_set: Mapping[str, list[float]]) -> list[Value]:
    """Return the mean differences for classes, for numbers, and on sets without a say."""
    groups = [
        [name for name in by_set if SETS[name].task == CLASSES],
        [name for name in by_set if SETS[name].task != CLASSES],
        [name for name in by_set if not SETS[name].had_a_say],
    ]
    return [
        in_words([float(np.mean(by_set[name])) for name in group]) or "none" for group in groups
    ]


def _seconds(at_size: SizeResults, method: str) -> float | None:
    every = [
        each["seconds"] for name in at_size.names for each in at_size.folds(name, method).values()
    ]
    return round(float(np.median(every)), 2) if every else None


def _groups() -> dict[str, list[str]]:
    has: dict[str, Callable[[SetSource], bool]] = {
        "all": lambda source: True,
        "with classes": lambda source: source.task == CLASSES,
        "with numbers": lambda source: source.task != CLASSES,
        "used while the model was chosen": lambda source: source.had_a_say,
        "others": lambda source: not source.had_a_say,
    }
    return {group: [name for name in SETS if of(SETS[name])] for group, of in has.items()}


def shares(at_size: SizeResults, groups: Mapping[str, Sequence[str]] | None = None) -> Sheet:
    """Return on which share of the sets of each group we are close to the best other, or ahead."""
    rows: list[list[Value]] = []
    for group, members in (groups or _groups()).items():
        to_best = [value for name, value in at_size.to_best.items() if name in members]
        if to_best:
            close = 100.0 * float(np.mean([value >= -_MARGIN - _TIE for value in to_best]))
            first = 100.0 * float(np.mean([value > _TIE for value in to_best]))
            rows.append(
                [group, len(to_best), f"{close:.0f} %", f"{first:.0f} %", in_words(to_best)]
            )
    heads = ("sets", "number", "within 1 point of the best", "ahead of all", "mean to the best")
    title = f"Compared with the best other method of each set, at most {at_size.rows} training rows"
    return Sheet(
        title, heads, rows, ("The best of several is partly luck: no single method is that good.",)
    )


def scores(at_size: SizeResults) -> list[Sheet]:
    """Return the mean scores, sets with a say and without apart, where we lose first."""
    names = sorted(at_size.to_best, key=lambda name: at_size.to_best[name])
    groups = {
        "sets used while the model was chosen": [n for n in names if SETS[n].had_a_say],
        "other sets": [n for n in names if not SETS[n].had_a_say],
    }
    return [
        Sheet(
            f"Mean scores on {group}, at most {at_size.rows} training rows, worst for us first",
            ("data", "score", "rows", "columns", "to the best", *at_size.methods),
            [_scores_of(at_size, name) for name in members],
        )
        for group, members in groups.items()
        if members
    ]


def _scores_of(at_size: SizeResults, name: str) -> list[Value]:
    source = SETS[name]
    values: list[Value] = [
        _rounded(mean(each["score"] for each in at_size.folds(name, method).values()))
        or reason_not_run(method, source)
        or None
        for method in at_size.methods
    ]
    kind = "accuracy" if source.task == CLASSES else "R²"
    rows = rows_trained(source, at_size.rows)
    return [name, kind, rows, source.n_columns, f"{at_size.to_best[name]:+.1f}", *values]


def _rounded(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"


def drawing(at_size: SizeResults) -> Drawing:
    """Return a picture of the differences to two methods, set by set, with intervals."""
    others = [other for other in _DRAWN if other in at_size.methods]
    by_other = {other: at_size.differences(other) for other in others}

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import NullLocator

        names = sorted(at_size.to_best, key=lambda name: at_size.to_best[name])
        figure.set_size_inches(6.4, max(2.0, 0.2 * len(names) + 1.0))
        ax = figure.subplots()
        for number, (other, by_set) in enumerate(by_other.items()):
            at = [i for i, name in enumerate(names) if name in by_set]
            means = [float(np.mean(by_set[names[i]])) for i in at]
            each = [_interval(by_set[names[i]]) for i in at]
            halves = [0.0 if one is None else one.high - one.mean for one in each]
            style = SERIES[number]
            ax.errorbar(
                *(means, [i + 0.3 * (number - 0.5) for i in at]),
                xerr=halves, fmt=style["marker"], color=style["color"], markersize=3,
                linewidth=1, label=f"above {other}",
            )  # fmt: skip
        ax.axvline(0.0, color="0.4", linewidth=1)
        ax.set_xscale("symlog", linthresh=5.0)
        ticks = (-40, -20, -10, -5, 0, 5, 10, 20, 40)
        ax.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel("points of the evidence kernel above another method")
        ax.grid(axis="x", alpha=0.2)
        if by_other:
            figure.legend(loc="outside upper center", ncols=len(by_other), frameon=False)

    description = (
        f"For each set the mean difference of the evidence kernel to {' and to '.join(others)}, "
        "with its 95 % interval; the scale is linear within five points, logarithmic outside."
    )
    return Drawing(f"Differences at most {at_size.rows} training rows", description, draw)
