"""The methods of Tables 3 and 4, each tuned by two folds of the training part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from ..data import drawn, folds
from ..measuring import CLASSES, class_of

if TYPE_CHECKING:
    from kernelweave.kernels_core.kernels import Kernel, KernelDictionary
    from sklearn.base import BaseEstimator


_OF_CLASSES = ("AverageMKL", "PWMK", "CKA")
XGBOOST = "XGBoost"
_OTHERS = ("perceptron", "random forest", "boosted trees", XGBOOST)
OF_DICTIONARIES = ("SimpleMKL", *_OF_CLASSES)
# not the paper's: C, δ and ε by the search of the estimator
FINE = "TKL, five folds"
EVERY = ("TKL", FINE, "RBF-SVM", *OF_DICTIONARIES, *_OTHERS)
MOST_TUNED = 8000
GAP = 1e-2
# more training samples than these are fitted with Gram matrices in float32
_SINGLE = 10_000
MOST_STEPS, QUICK_STEPS = 500, 100
# the box [-δ, 1 + δ] has the volume (1 + 2δ)ⁿ, which scales the kernel
_MANY_FEATURES = 24
_Grid = Mapping[str, Sequence[object]]


def methods_for(task: str) -> tuple[str, ...]:
    """Return the methods that a task has in the paper, and ours beside them."""
    absent = (FINE,) if task == CLASSES else _OF_CLASSES
    return tuple(name for name in EVERY if name not in absent)


def is_installed(name: str) -> bool:
    """Return whether a method can run: XGBoost is an extra."""
    return name != XGBOOST or find_spec("xgboost") is not None


def fit_tuned(
    name: str,
    task: str,
    X: FloatArray,
    y: FloatArray,
    seed: int,
    *,
    quick: bool,
    per_feature: bool = True,
    n_folds: int = 2,
) -> tuple[BaseEstimator, dict[str, object]]:
    """Tune a method by folds, on 8000 samples at most, and fit it to all.

    A quick run has a coarser grid, ``FINE`` five folds and the estimator's own search of C, δ and
    ε; ``per_feature`` says whether a dictionary of kernels has them on every feature too, as the
    paper's has. Returns the fitted estimator and what was chosen.
    """
    from sklearn.model_selection import GridSearchCV

    classes = task == CLASSES
    fine = name == FINE
    cv = folds(5 if fine else n_folds, seed, classes=classes)
    some = drawn(X, y, MOST_TUNED, seed)
    scoring = "accuracy" if classes else "neg_mean_squared_error"
    if fine or name == "TKL":
        search = _tessellated(X.shape[1], y, classes=classes, quick=quick, fine=fine)
        search.set_params(cv=cv, scoring=scoring).fit(*some)
        names = ("C", "delta", "epsilon") if fine else ("C", "delta")
        chosen = {key: search.best_params_[key] for key in names}
        if len(X) > MOST_TUNED:
            # the same estimator with one value each has nothing to choose
            dtype = "float32" if len(X) > _SINGLE else "float64"
            search.set_params(**search.best_params_, dtype=dtype).fit(X, y)
        return search, chosen
    if name == "RBF-SVM":
        model, grid = _gaussian(y, classes=classes, quick=quick)
    elif name in _OTHERS:
        model, grid = _other(name, seed, classes=classes, quick=quick)
    else:
        kernels = paper_dictionary(X.shape[1], quick=quick, per_feature=per_feature)
        model, grid = _multiple(name, kernels, y, classes=classes, quick=quick)
    tuned = GridSearchCV(model, grid, cv=cv, scoring=scoring, refit=False).fit(*some)
    chosen = tuned.best_params_
    model.set_params(**chosen).fit(X, y)
    return model, {key.rpartition("__")[2]: value for key, value in chosen.items()}


def _tube(y: FloatArray) -> float:
    """Return the paper's ε = .1, or a tenth of the spread where the targets are small."""
    return min(0.1, 0.1 * float(np.std(y)))


def _standardised(model: object, **grid: Sequence[object]) -> tuple[BaseEstimator, _Grid]:
    """Return a pipeline that standardises the features first, and the grid of its last step."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    step = type(model).__name__.lower()
    named = {f"{step}__{name}": values for name, values in grid.items()}
    return make_pipeline(StandardScaler(), model), named


def _tessellated(
    n_features: int, y: FloatArray, *, classes: bool, quick: bool, fine: bool
) -> BaseEstimator:
    """Return the search over C and δ, whose folds begin at their neighbours' solutions."""
    from kernelweave import spectahedron as tkl

    steps = QUICK_STEPS if quick else MOST_STEPS
    # the papers' kernel compares all columns
    limits: dict[str, Any] = {"tol": GAP, "max_iter": steps, "order": n_features}
    if fine:
        return tkl.TessellatedKernelRegressorCV(**limits)
    limits["units"] = "absolute"
    reach = (0.1, 0.5) if n_features <= _MANY_FEATURES else (0.01, 0.1)
    delta = reach[:1] if quick else reach
    penalties: tuple[float, ...] = (0.01, 1.0) if quick else (0.001, 0.01, 0.1, 1.0, 10.0)
    if classes:
        return tkl.TessellatedKernelClassifierCV(C=penalties, delta=delta, **limits)
    unit, tube = float(np.std(y)), _tube(y)
    penalties = tuple(unit * C for C in penalties)
    return tkl.TessellatedKernelRegressorCV(C=penalties, epsilon=tube, delta=delta, **limits)


def _gaussian(y: FloatArray, *, classes: bool, quick: bool) -> tuple[BaseEstimator, _Grid]:
    from sklearn.svm import SVC, SVR

    unit = 1.0 if classes else float(np.std(y))
    powers = (0, 2) if quick else (-1, 0, 1, 2, 3)
    return _standardised(
        SVC() if classes else SVR(epsilon=_tube(y)),
        C=[unit * 10.0**power for power in powers],
        gamma=[10.0**power for power in ((-2, -1) if quick else (-3, -2, -1, 0, 1))],
    )


def _other(name: str, seed: int, *, classes: bool, quick: bool) -> tuple[BaseEstimator, _Grid]:
    trees = [50, 350] if quick else list(range(50, 700, 50))
    if name == "random forest":
        forest = class_of("sklearn.ensemble", "RandomForest", classes=classes)
        return forest(random_state=seed), {"n_estimators": trees}
    if name == "boosted trees":
        boosted = class_of("sklearn.ensemble", "HistGradientBoosting", classes=classes)
        model = boosted(random_state=seed, early_stopping=False)
        return model, {"max_iter": trees[:1] if quick else trees}
    if name == XGBOOST:
        boosted = class_of("xgboost", "XGB", classes=classes)
        return boosted(random_state=seed), {"n_estimators": trees}
    net = class_of("sklearn.neural_network", "MLP", classes=classes)(
        hidden_layer_sizes=(50, 50, 50),
        early_stopping=True,
        n_iter_no_change=50,
        random_state=seed,
        max_iter=200 if quick else 2000,
    )
    return _standardised(net, alpha=[1e-4])


def paper_dictionary(n_features: int, *, quick: bool, per_feature: bool = True) -> KernelDictionary:
    """Return Gaussians of bandwidth .5 to 10 and polynomials of degree 1 to 3, 13 each.

    On every feature and on all together: 13(p + 1) kernels, as the paper counts them. A quick run
    takes 3 + 2 kernels on all features together.
    """
    from kernelweave.kernels_core import RBF, KernelDictionary, Polynomial

    widths = np.linspace(0.5, 10.0, 3 if quick else 10)
    degrees = (1, 2) if quick else (1, 2, 3)
    base: list[Kernel] = [RBF(gamma=float(1.0 / (2.0 * width**2))) for width in widths]
    base += [Polynomial(degree=degree, gamma=1.0, coef0=1.0) for degree in degrees]
    views = [list(range(n_features))]
    if per_feature and not quick:
        views += [[feature] for feature in range(n_features)]
    return KernelDictionary(base, columns=views, normalize="unit-diagonal")


def _multiple(
    name: str, kernels: object, y: FloatArray, *, classes: bool, quick: bool
) -> tuple[BaseEstimator, _Grid]:
    from kernelweave import baselines

    unit = 1.0 if classes else float(np.std(y))
    if classes:
        model = getattr(baselines, f"{name}Classifier")(kernels)
    else:
        model = getattr(baselines, f"{name}Regressor")(kernels, epsilon=_tube(y))
    powers = (0, 1) if quick else (-1, 0, 1, 2)
    return _standardised(model, C=[unit * 10.0**power for power in powers])
