"""Choice of C, ε and δ by cross-validation, every fit begun at its neighbour's solution."""

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
from kernelweave.kernels_core.estimators.search import (
    CrossValidatedEstimator,
    learn_chosen,
    one_or_several,
    part_of,
    values_of,
)
from kernelweave.kernels_core.exceptions import (
    KernelWeaveWarning,
    UnderfitWarning,
    convergence_warning,
)
from kernelweave.kernels_core.fit import FitResult
from kernelweave.kernels_core.parameters import fitted, parameter
from sklearn.base import BaseEstimator, clone

from .estimators import (
    PositiveMatrixKernel,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
    absolute,
    box_of,
    scaled_by,
)
from .settings import Start, at_new_caps

# Values of C that "cv" tries, in the units of 1 / mean k(x, x): a factor of ten apart, since the
# error changes slowly with C, and every value is a fit in each fold. Where the best lies at an end
# the search goes on by the same factor.
_STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# in the units of 1 / mean k(x, x): less than the first learns nothing, and what needs more than the
# last separates the classes exactly
_LEAST, _MOST = 1e-4, 1e10
_SEVERAL = 'A number, or several to choose among; ``"cv"`` is'


def ends(settings: list[Setting], chosen: Setting) -> dict[str, str]:
    """Return which parameters of a setting lie at an end of their grid, and at which.

    `settings`: a product of grids; that of C may depend on the other parameters; `chosen`: one of
    them. Name to ``"smallest"`` or ``"largest"``. A grid of one value has no ends.

    Examples
    --------
    >>> ends([{"C": 1.0, "delta": 0.5}, {"C": 10.0, "delta": 0.5}], {"C": 10.0, "delta": 0.5})
    {'C': 'largest'}
    """
    found = {}
    others = {name: value for name, value in chosen.items() if name != "C"}
    beside = [setting for setting in settings if others.items() <= setting.items()]
    for name, value in chosen.items():
        grid = [setting[name] for setting in (beside if name == "C" else settings)]
        if min(grid) < max(grid) and value in (min(grid), max(grid)):
            found[name] = "smallest" if value == min(grid) else "largest"
    return found


@dataclass
class _Fitted:
    """What a fit leaves for its neighbours.

    `rows` of shape (n_train,): the samples it saw; `P` of shape (n_P, n_P); `dual_coef` of shape
    (n_tasks, n_samples): zero for samples that it did not see.
    """

    rows: Index
    P: FloatArray
    dual_coef: FloatArray
    C: float
    classes: Labels | None

    def start(self, rows: Index, C: float) -> Start:
        """Return where a fit to some rows at another C begins."""
        return Start(self.P, at_new_caps(self.dual_coef[:, rows], self.C, C))


@dataclass
class _Warm:
    """The fits of a search, by fold, and how many learner solves they took."""

    n_samples: int
    n_solves: int = 0
    fits: dict[int, _Fitted] = field(default_factory=dict)
    last: _Fitted | None = None
    averages: dict[tuple[Any, ...], _Fitted | None] = field(default_factory=dict)

    def fit(
        self, model: PositiveMatrixKernel, X: Points, y: Labels, data: Data, rows: Index, fold: int
    ) -> None:
        """Fit on ``rows``, begun at a neighbour."""
        near = self._neighbour(fold, model.C)
        if near is not None and (
            near.classes is None or np.array_equal(np.unique(y[rows]), near.classes)
        ):
            model._start = near.start(rows, model.C)
        groups = None if data.groups is None else data.groups[rows]
        model.fit(X[rows], y[rows], data.weight[rows], groups=groups)
        self.n_solves += _solves_of(model.result_)
        dual = np.atleast_2d(model.dual_coef_)
        spread = np.zeros((len(dual), self.n_samples))
        spread[:, rows] = dual
        classes = getattr(model, "classes_", None)
        self.last = self.fits[fold] = _Fitted(rows, model.P_, spread, model.C, classes)

    def _neighbour(self, fold: int, C: float) -> _Fitted | None:
        """Return this fold's last fit where no coefficient was at its cap, else the last fit.

        Without a coefficient at its cap a larger C changes nothing. Otherwise another fold at the
        same C is nearer than this one at another.
        """
        own = self.fits.get(fold)
        if own is not None and own.C <= C and np.abs(own.dual_coef).max() < (1.0 - 1e-6) * own.C:
            return own
        return self.last if self.last is None or self.last.C == C else (own or self.last)

    def average(self) -> _Fitted | None:
        """Return the mean of the folds' last fits, each sample over the folds that saw it."""
        fits = list(self.fits.values())
        shapes = {(fit.P.shape, fit.dual_coef.shape, fit.C) for fit in fits}
        if len(shapes) != 1:
            return None
        seen = np.zeros(self.n_samples)
        for fit in fits:
            seen[fit.rows] += 1.0
        total = np.sum([fit.dual_coef for fit in fits], axis=0)
        P, every = np.mean([fit.P for fit in fits], axis=0), np.arange(self.n_samples)
        return replace(fits[0], rows=every, P=P, dual_coef=total / np.maximum(seen, 1.0))


def _solves_of(result: Result) -> int:
    """Return the learner solves that led to a result."""
    return int(result.history.counts.get("n_solves", [0])[-1])


class _Search(CrossValidatedEstimator, PositiveMatrixKernel):
    """The grid, the short fits of the folds, and where the last fit begins."""

    C: Any = parameter(
        "Penalties to try, in ``units``: a list, or 0.1 to 1000 times 1 / mean k(x, x) at P = I, "
        "and further by tens while the best lies at an end.",
        kind='float, list of float or "cv"',
        default="cv",
        rule=one_or_several(POSITIVE),
        kw_only=False,
    )
    delta: Any = parameter(
        f"The box of integration is [−δ, 1 + δ] in each scaled feature. {_SEVERAL} 0.1 and 0.5.",
        kind='float, list of float or "cv"',
        default=0.5,
        rule=one_or_several(NONNEGATIVE),
    )
    cv_tol: float = parameter(
        "Relative certified gap of the folds' fits; the last fit reaches ``tol``.",
        default=0.02,
        rule=NONNEGATIVE,
    )
    cv_max_iter: int = parameter(
        "Steps of a fold's fit at most: enough to rank settings, with ``split0_gap`` and so on "
        "saying how near to its optimum each fit is.",
        default=8,
        rule=COUNT,
    )

    delta_: float = fitted("float", "The δ of the fit.")
    at_end_: dict[str, str] = fitted(
        "dict",
        'Chosen parameters at an end of their grid, with ``"smallest"`` or ``"largest"``: beyond '
        "it may lie a better value. A grid of one value has no ends. Of three values or more a "
        "warning says so.",
    )
    n_solves_: int = fitted("int", "Learner solves of the whole search and the last fit.")

    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"delta": (0.1, 0.5), "C": _STEPS}

    def settings(self, data: Data) -> list[Setting]:
        """Return settings in an order in which neighbours follow one another: C fastest."""
        axes = {name: values_of(self, name) for name in self.grids if name != "C"}
        data, settings = data.part(np.flatnonzero(data.weight > 0)), []
        for values in product(*axes.values()):
            setting = dict(zip(axes, values, strict=True))
            unit = self._unit(setting, data) if isinstance(self.C, str) else 1.0
            settings += [{**setting, "C": unit * C} for C in values_of(self, "C")]
        return settings

    @staticmethod
    def complexity(setting: Setting) -> tuple[float, float]:
        """Return what is less for a smaller C, then a wider tube."""
        return setting["C"], -setting.get("epsilon", 0.0)

    def _unit(self, setting: Setting, data: Data) -> float:
        """Return what 1 in the automatic grid of C is in the units of the estimator."""
        if self.units == "scale":
            return 1.0
        model = clone(self).set_params(**{**setting, "units": "scale", "C": 1.0})
        # of penalties in absolute units, one is for targets of spread one
        signs = np.tile([-1.0, 1.0], len(data.weight))[: len(data.weight)]
        return float(absolute(model, data.X, signs[None, :], data.weight)["C"])

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores of short fits, each begun at a neighbour."""

        def further(tried: list[Setting], means: FloatArray) -> list[Setting]:
            best = tried[int(np.argmax(means))]
            end = ends(tried, best).get("C")
            if not isinstance(self.C, str) or end is None:
                return []
            C = best["C"] * (10.0 if end == "largest" else 0.1)
            unit = self._unit({k: v for k, v in best.items() if k != "C"}, data)
            return [{**best, "C": C}] if _LEAST * unit < 1.5 * C < 2.0 * _MOST * unit else []

        self._warm = _Warm(len(data.weight))
        fit = self._fold_fits(data, folds, self._warm)
        return score_settings(settings, folds, fit, score, by_fold=False, further=further)

    def _fold_fits(self, data: Data, folds: list[Fold], warm: _Warm) -> FoldFit:
        """Return what fits a fold shortly, with the scaling, the box and units of all samples."""
        y, scaled = data.labels(getattr(self, "classes_", None)), scaled_by(self, data.X)
        limits = {"tol": self.cv_tol, "max_iter": self.cv_max_iter, "scale": False}
        part = part_of(self)

        def fit(setting: Setting, fold: int) -> tuple[BaseEstimator, Any]:
            train, test = folds[fold]
            model = clone(part).set_params(**setting)
            box = box_of(model, scaled)
            units = absolute(model, data.X, data.targets, data.weight)
            model.set_params(**units, **limits, domain=box)
            with warnings.catch_warnings():
                # a short fit is what is asked for; the last one does warn
                warnings.simplefilter("ignore", convergence_warning())
                warnings.simplefilter("ignore", UnderfitWarning)
                warm.fit(model, scaled, y, data, train, fold)
            if fold == len(folds) - 1:
                warm.averages[tuple(setting.items())] = warm.average()
            return model, scaled[test]

        return fit

    def take(self, setting: Setting, data: Data) -> None:
        """Take what was chosen, and begin the last fit at the mean of its folds."""
        super().take(setting, data)
        warm, near = vars(self).get("_warm"), None
        if warm is not None:
            near = warm.averages.get(tuple(setting.items()))
        if near is not None:
            data = data.part(np.flatnonzero(data.weight > 0))
            C = float(absolute(self, data.X, data.targets, data.weight)["C"])
            self._start = near.start(near.rows, C)

    def _learn(self, data: Data) -> FitResult:
        fit = learn_chosen(self, data)
        self.__dict__.pop("_start", None)
        found, warm = fit.attributes, self.__dict__.pop("_warm", _Warm(0))
        results, best = found["cv_results_"], found["best_params_"]
        at_end = {} if results is None else ends(results["params"], best)
        for name, end in at_end.items():
            if len({setting[name] for setting in results["params"]}) > 2:
                warnings.warn(
                    f"the best {name} of the search, {best[name]:.6g}, is the {end} "
                    f"of its grid: a better one may lie beyond, so widen the grid of {name}",
                    KernelWeaveWarning,
                    stacklevel=4,
                )
        n_solves = warm.n_solves + _solves_of(found["result_"])
        return replace(fit, attributes={**found, "at_end_": at_end, "n_solves_": n_solves})


class TessellatedKernelClassifierCV(_Search, TessellatedKernelClassifier):
    """Classifier that learns its kernel, with C and δ chosen by cross-validation.

    Every fit begins at the kernel and the coefficients of its neighbour in the grid, and the
    folds' fits are short, so that the search costs a few learner solves a setting; the fit to
    all samples begins at the mean of the best setting's folds. The folds share the scaling and
    the box of all samples.

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
        f"see ``units``. {_SEVERAL} 0.05, 0.1 and 0.2.",
        kind='float, list of float or "cv"',
        default=0.1,
        rule=one_or_several(NONNEGATIVE),
    )

    epsilon_: float = fitted("float", "The ε of the fit, in ``units``.")

    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "delta": (0.1, 0.5),
        "epsilon": (0.05, 0.1, 0.2),
        "C": _STEPS,
    }
