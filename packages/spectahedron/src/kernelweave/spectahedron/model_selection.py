"""Choice of C, ε and δ by cross-validation, each fit started at the solution of a similar one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Result
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, Points
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE
from kernelweave.kernels_core.estimators.folds import (
    Fold,
    FoldFit,
    FoldScore,
    Scores,
    Setting,
    score_settings,
)
from kernelweave.kernels_core.estimators.kernel import Data
from kernelweave.kernels_core.estimators.samples import standard_deviation
from kernelweave.kernels_core.estimators.search import (
    CrossValidatedEstimator,
    one_or_several,
    part_of,
    values_of,
)
from kernelweave.kernels_core.exceptions import (
    UnderfitWarning,
    convergence_warning,
    warn,
)
from kernelweave.kernels_core.fit import FitResult
from kernelweave.kernels_core.parameters import fitted, parameter
from sklearn.base import BaseEstimator, clone

from .estimators import (
    PositiveMatrixKernel,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
    in_absolute_units,
    integration_box,
    scale_features,
)
from .settings import Start, dual_coef_at_new_penalty

# Values of C that "cv" tries first, in the units of 1 / mean k(x, x). They are a factor of ten
# apart, since the error changes slowly with C and each value costs a fit in each fold.
_STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# Limits of that search, in the same units: a smaller C learns nothing, and data that need a larger
# one are separable.
_LEAST, _MOST = 1e-4, 1e10
# Where "cv" begins on the other axes. The tube stays between these limits in the standard deviation
# of y: a thinner one has nearly every sample as a support vector, and a wider one nearly none.
_BEGIN = {"delta": 0.5, "epsilon": 0.1}
_THIN, _WIDE = 0.0125, 0.8


def grid_ends(settings: list[Setting], chosen: Setting) -> dict[str, str]:
    """Return which parameters of a setting are the smallest or the largest of their grid.

    They are ``"smallest"`` or ``"largest"``. A grid of one value has no ends.
    """
    ends = {}
    others = {name: value for name, value in chosen.items() if name != "C"}
    same_others = [setting for setting in settings if others.items() <= setting.items()]
    for name, value in chosen.items():
        grid = [setting[name] for setting in (same_others if name == "C" else settings)]
        if min(grid) < max(grid) and value in (min(grid), max(grid)):
            ends[name] = "smallest" if value == min(grid) else "largest"
    return ends


def _incumbent(tried: list[Setting], scores: FloatArray, n_first: int) -> int:
    """Return the place of the setting where a search goes on.

    The best of the first settings, until a later one is better: in C alone by any gain, in the
    others by more than the standard error of the gain over folds, since in a flat valley a search
    would go far for nothing.

    - `scores` of shape (n_settings, n_folds); `n_first`: settings that were tried first
    """
    means = scores.mean(axis=1)
    best = int(np.argmax(means[:n_first]))
    for i in range(n_first, len(scores)):
        gain = scores[i] - scores[best]
        least = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        if _key({**tried[i], "C": 1.0}) == _key({**tried[best], "C": 1.0}):
            least = 0.0
        if means[i] > means[best] + least:
            best = i
    return best


def _key(setting: Setting) -> tuple[tuple[str, str], ...]:
    """Return what tells settings apart, whatever way their values were computed."""
    return tuple((name, f"{value:.6g}") for name, value in sorted(setting.items()))


@dataclass
class _FittedModel:
    """A fit of a search that another fit may start from.

    `rows` of shape (n_train,): its training samples; `P` of shape (n_P, n_P); `dual_coef` of shape
    (n_tasks, n_samples): zero for all other samples.
    """

    rows: Index
    P: FloatArray
    dual_coef: FloatArray
    C: float
    classes: Labels | None

    def start(self, rows: Index, C: float) -> Start:
        """Return the start of a fit to some rows with another C."""
        return Start(self.P, dual_coef_at_new_penalty(self.dual_coef[:, rows], self.C, C))


@dataclass
class _WarmStarts:
    """The last fit of each fold of a search, and the number of learner solves so far."""

    n_samples: int
    n_solves: int = 0
    fits: dict[int, _FittedModel] = field(default_factory=dict)
    last: _FittedModel | None = None
    averages: dict[tuple[Any, ...], _FittedModel | None] = field(default_factory=dict)

    def fit(
        self, model: PositiveMatrixKernel, X: Points, y: Labels, data: Data, rows: Index, fold: int
    ) -> None:
        """Fit on ``rows``, started at the most similar fit so far."""
        similar = self._most_similar(fold, model.C)
        if similar is not None and (
            similar.classes is None or np.array_equal(np.unique(y[rows]), similar.classes)
        ):
            model._start = similar.start(rows, model.C)
        groups = None if data.groups is None else data.groups[rows]
        model.fit(X[rows], y[rows], data.weight[rows], groups=groups)
        self.n_solves += _solves_of(model.result_)
        dual = np.atleast_2d(model.dual_coef_)
        dual_coef = np.zeros((len(dual), self.n_samples))
        dual_coef[:, rows] = dual
        classes = getattr(model, "classes_", None)
        self.last = self.fits[fold] = _FittedModel(rows, model.P_, dual_coef, model.C, classes)

    def _most_similar(self, fold: int, C: float) -> _FittedModel | None:
        """Return this fold's last fit if none of its coefficients is at ±C, else the last fit.

        If no coefficient is at ±C, a larger C has the same solution. Otherwise another fold with
        the same C is more similar than this fold with another.
        """
        fit = self.fits.get(fold)
        if fit is not None and fit.C <= C and np.abs(fit.dual_coef).max() < (1.0 - 1e-6) * fit.C:
            return fit
        return self.last if self.last is None or self.last.C == C else (fit or self.last)

    def average(self) -> _FittedModel | None:
        """Return the mean of the folds' last fits, for each sample over those that it was in."""
        fits = list(self.fits.values())
        shapes = {(fit.P.shape, fit.dual_coef.shape, fit.C) for fit in fits}
        if len(shapes) != 1:
            return None
        counts = np.zeros(self.n_samples)
        for fit in fits:
            counts[fit.rows] += 1.0
        total = np.sum([fit.dual_coef for fit in fits], axis=0)
        P, every = np.mean([fit.P for fit in fits], axis=0), np.arange(self.n_samples)
        return replace(fits[0], rows=every, P=P, dual_coef=total / np.maximum(counts, 1.0))


def _solves_of(result: Result) -> int:
    """Return the learner solves that led to a result."""
    return int(result.history.counts.get("n_solves", [0])[-1])


class _Search(CrossValidatedEstimator, PositiveMatrixKernel):
    """Base of both searches: the grid, the short fits of folds and the start of the last fit."""

    C: Any = parameter(
        "Penalties to try, in ``units``: a list, or 0.1 to 1000 times 1 / mean k(x, x) at P = I, "
        "and further by tens while the best has a neighbour that was not tried.",
        kind='float, list of float or "cv"',
        default="cv",
        rule=one_or_several(POSITIVE),
        kw_only=False,
    )
    delta: Any = parameter(
        "The box of integration is [−δ, 1 + δ] in each scaled feature. A number, or several to "
        'choose among; ``"cv"`` begins at 0.5 and tries 0.1 and 0.02 with the best C.',
        kind='float, list of float or "cv"',
        default="cv",
        rule=one_or_several(NONNEGATIVE),
    )
    cv_tol: float = parameter(
        "Relative certified gap of the folds' fits; the last fit reaches ``tol``.",
        default=0.02,
        rule=NONNEGATIVE,
    )
    cv_max_iter: int = parameter(
        "Maximum number of steps of the folds' fits, enough to rank settings; ``split0_gap`` "
        "and so on have the relative gap of each fit.",
        default=8,
        rule=COUNT,
    )

    delta_: float = fitted("float", "The δ of the fit.")
    at_end_: dict[str, str] = fitted(
        "dict",
        'Chosen parameters that are the ``"smallest"`` or ``"largest"`` of their grid: a better '
        "value may lie beyond, and for grids of three values or more a warning says so. A grid of "
        "one value has no ends.",
    )
    n_solves_: int = fitted("int", "Learner solves of the whole search and the last fit.")

    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"delta": (0.02, 0.1, 0.5), "C": _STEPS}

    def settings(self, data: Data) -> list[Setting]:
        """Return the first settings with similar ones next to each other: C varies fastest."""
        data, settings = data.part(np.flatnonzero(data.weight > 0)), []
        axes = {name: values_of(self, name) for name in self.grids if name != "C"}
        for name in axes:
            if isinstance(getattr(self, name), str):
                unit = self._tube_unit(data) if name == "epsilon" else 1.0
                axes[name] = [_BEGIN[name] * unit]
        for values in product(*axes.values()):
            setting = dict(zip(axes, values, strict=True))
            unit = self._c_unit(setting, data)
            settings += [{**setting, "C": unit * C} for C in values_of(self, "C")]
        # one alone is taken as it is: a search has a second to begin with
        return settings if len(settings) > 1 else settings + self._next(settings[0], settings, data)

    @staticmethod
    def complexity(setting: Setting) -> tuple[float, float]:
        """Return a key that orders settings by C, then by decreasing ε: the simplest is first."""
        return setting["C"], -setting.get("epsilon", 0.0)

    def _searched(self) -> list[str]:
        """Return the parameters that are ``"cv"``: the tube, the box where it counts, C."""
        is_tessellated = isinstance(self.kernel, str) and self.kernel == "tessellated"
        has_box = is_tessellated and self.domain is None
        names = ("epsilon", "delta", "C") if has_box else ("epsilon", "C")
        return [each for each in names if isinstance(getattr(self, each, None), str)]

    def _next(self, best: Setting, tried: list[Setting], data: Data) -> list[Setting]:
        """Return the next setting to try beside the best one, or none where it is best of all.

        First C beyond all values tried, then the tube, the box, and C between.
        """
        searched, known = self._searched(), {_key(each) for each in tried}
        units = [setting["C"] / self._c_unit(setting, data) for setting in tried]
        at = best["C"] / self._c_unit(best, data)
        if "C" in searched and not 1.5 * min(units) < at < max(units) / 1.5:
            searched = ["C", *searched[:-1]]
        for name in searched:
            for value in self._steps(name, best, data):
                step = {**best, name: value}
                # another box keeps C in the units of 1 / mean k(x, x)
                step["C"] *= self._c_unit(step, data) / self._c_unit(best, data)
                if _key(step) not in known:
                    return [step]
        return []

    def _steps(self, name: str, setting: Setting, data: Data) -> list[float]:
        """Return the values next to one of a parameter that is searched, the finer fit first."""
        value = setting[name]
        if name == "delta":
            at = self.grids[name].index(value)
            return [*self.grids[name][max(0, at - 1) : at], *self.grids[name][at + 1 : at + 2]]
        if name == "epsilon":
            unit, factor, least, most = self._tube_unit(data), 0.5, _THIN, _WIDE
        else:
            unit, factor, least, most = self._c_unit(setting, data), 10.0, _LEAST, _MOST
        steps = [value * factor, value / factor]
        return [step for step in steps if 0.75 * least * unit < step < 1.5 * most * unit]

    def _c_unit(self, setting: Setting, data: Data) -> float:
        """Return the unit of C where it is searched, else 1."""
        return self._unit(setting, data) if isinstance(self.C, str) else 1.0

    def _tube_unit(self, data: Data) -> float:
        """Return the standard deviation of y in the units of ε."""
        if self.units == "scale":
            return 1.0
        return standard_deviation(data.targets[0], data.weight)

    def _unit(self, setting: Setting, data: Data) -> float:
        """Return the value of 1 in the automatic grid of C in the units of the estimator."""
        if self.units == "scale":
            return 1.0
        model = clone(self).set_params(**{**setting, "units": "scale", "C": 1.0})
        # targets of ±1 have spread 1, so the penalty is 1 / mean k(x, x) in absolute units
        signs = np.tile([-1.0, 1.0], len(data.weight))[: len(data.weight)]
        return float(in_absolute_units(model, data.X, signs[None, :], data.weight)["C"])

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores of short fits, each started at a similar one."""
        n_first = len(settings)

        def further(tried: list[Setting], scores: FloatArray) -> list[Setting]:
            return self._next(tried[_incumbent(tried, scores, n_first)], tried, data)

        self._warm = _WarmStarts(len(data.weight))
        fit = self._fold_fits(data, folds, self._warm)
        return score_settings(settings, folds, fit, score, by_fold=False, further=further)

    def _fold_fits(self, data: Data, folds: list[Fold], warm: _WarmStarts) -> FoldFit:
        """Return a function that fits one fold, with the scaling, box and units of all samples."""
        y, scaled = data.labels(getattr(self, "classes_", None)), scale_features(self, data.X)
        limits = {"tol": self.cv_tol, "max_iter": self.cv_max_iter, "scale": False}
        part = part_of(self)

        def fit(setting: Setting, fold: int) -> tuple[BaseEstimator, Any]:
            train, test = folds[fold]
            model = clone(part).set_params(**setting)
            box = integration_box(model, scaled)
            units = in_absolute_units(model, data.X, data.targets, data.weight)
            model.set_params(**units, **limits, domain=box)
            with warnings.catch_warnings():
                # these fits end early on purpose; the last fit warns
                warnings.simplefilter("ignore", convergence_warning())
                warnings.simplefilter("ignore", UnderfitWarning)
                warm.fit(model, scaled, y, data, train, fold)
            if fold == len(folds) - 1:
                warm.averages[tuple(setting.items())] = warm.average()
            return model, scaled[test]

        return fit

    def take(self, setting: Setting, data: Data) -> None:
        """Take the chosen setting, and start the last fit at the mean of its folds."""
        super().take(setting, data)
        warm, average = vars(self).get("_warm"), None
        if warm is not None:
            average = warm.averages.get(tuple(setting.items()))
        if average is not None:
            data = data.part(np.flatnonzero(data.weight > 0))
            C = float(in_absolute_units(self, data.X, data.targets, data.weight)["C"])
            self._start = average.start(average.rows, C)

    @staticmethod
    def _at_end(tried: list[Setting], best: Setting, searched: list[str]) -> dict[str, str]:
        """Return the ends of listed values, and those of C where its search came to its limits."""
        listed = [name for name in best if name == "C" or name not in searched]
        # another box has other values of C where they are searched in absolute units
        names = best if "C" in searched else listed
        settings = [{name: each[name] for name in names} for each in tried]
        ends = grid_ends(settings, {name: best[name] for name in names})
        return {name: end for name, end in ends.items() if name in listed}

    def _learn(self, data: Data) -> FitResult:
        searched = self._searched()
        fit = super()._learn(data)
        self.__dict__.pop("_start", None)
        attributes, warm = fit.attributes, self.__dict__.pop("_warm", _WarmStarts(0))
        results, best = attributes["cv_results_"], attributes["best_params_"]
        at_end = {} if results is None else self._at_end(results["params"], best, searched)
        for name, end in at_end.items():
            if len({setting[name] for setting in results["params"]}) > 2:
                warn(
                    f"the best {name} of the search, {best[name]:.6g}, is the {end} "
                    f"of its grid: a better one may lie beyond, so widen the grid of {name}"
                )
        n_solves = warm.n_solves + _solves_of(attributes["result_"])
        return replace(fit, attributes={**attributes, "at_end_": at_end, "n_solves_": n_solves})


class TessellatedKernelClassifierCV(_Search, TessellatedKernelClassifier):
    """Classifier that learns its kernel, with C and δ chosen by cross-validation.

    Each fit starts at the kernel and the coefficients of a similar one, and the fits of the folds
    end early, so that the search costs a few learner solves per setting. The fit to all samples
    starts at the mean of the best setting's folds. The folds share the scaling and the box of all
    samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TessellatedKernelClassifierCV(C=(0.1, 1.0), cv=3).fit(X, y)
    >>> bool(model.best_score_ > 0.9)
    True
    """


class TessellatedKernelRegressorCV(_Search, TessellatedKernelRegressor):
    """Regressor that learns its kernel, with C, ε and δ chosen by cross-validation.

    As `TessellatedKernelClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.spectahedron import TessellatedKernelRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TessellatedKernelRegressorCV(C=(0.1, 1.0), cv=3).fit(X, y)
    >>> bool(model.best_score_ > 0.3)
    True
    """

    epsilon: Any = parameter(
        "Half-width of the tube without loss, in the standard deviation of y or in the units of y: "
        'see ``units``. A number, or several to choose among; ``"cv"`` begins at a tenth of the '
        "standard deviation and goes on by factors of two.",
        kind='float, list of float or "cv"',
        default="cv",
        rule=one_or_several(NONNEGATIVE),
    )

    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "delta": (0.02, 0.1, 0.5),
        "epsilon": (0.05, 0.1, 0.2),
        "C": _STEPS,
    }
