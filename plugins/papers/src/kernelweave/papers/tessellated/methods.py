"""The methods of Tables 3 and 4, each tuned by two folds of the training part."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
from kernelweave.workbench.errors import CommandError

from ..data import FloatArray

EVERY = (
    "TKL",
    "RBF-SVM",
    "SimpleMKL",
    "AverageMKL",
    "PWMK",
    "CKA",
    "perceptron",
    "random forest",
    "boosted trees",
)
_NOT_FOR_REGRESSION = {"AverageMKL", "PWMK", "CKA"}
OF_DICTIONARIES = {"SimpleMKL", *_NOT_FOR_REGRESSION}
_BASELINES = "kernelweave.baselines"
MOST_TUNED = 8000
_GAP = 1e-2
# more training samples than these are fitted with Gram matrices in float32
_SINGLE = 10_000
_MOST_SECONDS = 3600.0
_QUICK_SECONDS = 10.0
# the box [-δ, 1 + δ] has the volume (1 + 2δ)ⁿ, which scales the kernel
_MANY_FEATURES = 24


def methods_for(task: str) -> tuple[str, ...]:
    """Return the methods that a task has in the paper, and ours beside them."""
    if task == "classification":
        return EVERY
    return tuple(name for name in EVERY if name not in _NOT_FOR_REGRESSION)


def fit_tuned(
    name: str,
    task: str,
    X: FloatArray,
    y: FloatArray,
    seed: int,
    *,
    quick: bool,
    per_feature: bool = True,
) -> tuple[Any, dict[str, Any]]:
    """Tune a method by two folds, on 8000 samples at most, and fit it to all.

    Parameters
    ----------
    name : str
        One of `EVERY`.
    task : {"classification", "regression"}
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
    seed : int
    quick : bool
        A coarser grid.
    per_feature : bool
        Whether a dictionary of kernels has them on every feature too, as the paper's has.

    Returns
    -------
    estimator : object
        Fitted.
    chosen : dict
        The settings that were chosen.
    """
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    classes = task == "classification"
    kind: Any = StratifiedKFold if classes else KFold
    folds = kind(n_splits=2, shuffle=True, random_state=seed)
    rows = np.random.RandomState(seed).permutation(len(X))[:MOST_TUNED]
    scoring = "accuracy" if classes else "neg_mean_squared_error"
    if name == "TKL":
        search = _tessellated(X.shape[1], y, classes=classes, quick=quick)
        search.set_params(cv=folds, scoring=scoring).fit(X[rows], y[rows])
        estimator = search.best_estimator_
        if len(rows) < len(X):
            dtype = "float32" if len(X) > _SINGLE else "float64"
            estimator.set_params(dtype=dtype).fit(X, y)
        return estimator, {key: search.best_params_[key] for key in ("C", "delta")}
    views = per_feature and not quick
    estimator, grid = _build(name, X, y, seed, classes=classes, quick=quick, per_feature=views)
    search = GridSearchCV(estimator, grid, cv=folds, scoring=scoring, refit=False)
    search.fit(X[rows], y[rows])
    estimator.set_params(**search.best_params_).fit(X, y)
    return estimator, {key.rpartition("__")[2]: value for key, value in search.best_params_.items()}


def _build(
    name: str,
    X: FloatArray,
    y: FloatArray,
    seed: int,
    *,
    classes: bool,
    quick: bool,
    per_feature: bool,
) -> tuple[Any, dict[str, list[Any]]]:
    """Return the estimator and the grid it is tuned over."""
    if name == "RBF-SVM":
        return _gaussian(y, classes=classes, quick=quick)
    if name in ("perceptron", "random forest", "boosted trees"):
        return _other(name, seed, classes=classes, quick=quick)
    kernels = paper_dictionary(X.shape[1], quick=quick, per_feature=per_feature)
    return _multiple(name, kernels, y, classes=classes, quick=quick)


def _tube(y: FloatArray) -> float:
    """Return the paper's ε = .1, or a tenth of the spread where the targets are small."""
    return min(0.1, 0.1 * float(np.std(y)))


def _tessellated(n_features: int, y: FloatArray, *, classes: bool, quick: bool) -> Any:
    """Return the search over C and δ, whose folds begin at their neighbours' solutions."""
    from kernelweave import spectahedron as tkl

    most = _QUICK_SECONDS if quick else _MOST_SECONDS
    limits: dict[str, Any] = {"tol": _GAP, "max_iter": 500, "max_time": most}
    reach = (0.1, 0.5) if n_features <= _MANY_FEATURES else (0.01, 0.1)
    delta = reach[:1] if quick else reach
    penalties = (0.01, 1.0) if quick else (0.001, 0.01, 0.1, 1.0, 10.0)
    if classes:
        machine = tkl.TessellatedKernelClassifier(**limits)
        return tkl.TessellatedKernelClassifierCV(machine, C=penalties, delta=delta)
    unit, tube = float(np.std(y)), _tube(y)
    return tkl.TessellatedKernelRegressorCV(
        tkl.TessellatedKernelRegressor(epsilon=tube, **limits),
        C=[unit * C for C in penalties],
        epsilon=(tube,),
        delta=delta,
    )


def _gaussian(y: FloatArray, *, classes: bool, quick: bool) -> tuple[Any, dict[str, list[Any]]]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    machine = SVC() if classes else SVR(epsilon=_tube(y))
    unit = 1.0 if classes else float(np.std(y))
    step = type(machine).__name__.lower()
    powers = (0, 2) if quick else (-1, 0, 1, 2, 3)
    grid = {
        f"{step}__C": [unit * 10.0**power for power in powers],
        f"{step}__gamma": [10.0**power for power in ((-2, -1) if quick else (-3, -2, -1, 0, 1))],
    }
    return make_pipeline(StandardScaler(), machine), grid


def _other(name: str, seed: int, *, classes: bool, quick: bool) -> tuple[Any, dict[str, list[Any]]]:
    from sklearn import ensemble
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ending = "Classifier" if classes else "Regressor"
    trees = [50, 350] if quick else list(range(50, 700, 50))
    if name == "random forest":
        forest = getattr(ensemble, f"RandomForest{ending}")(random_state=seed)
        return forest, {"n_estimators": trees}
    if name == "boosted trees":
        boosted = getattr(ensemble, f"HistGradientBoosting{ending}")(
            random_state=seed, early_stopping=False
        )
        return boosted, {"max_iter": trees[:1] if quick else trees}
    kind: Any = MLPClassifier if classes else MLPRegressor
    net = kind(hidden_layer_sizes=(50, 50, 50), early_stopping=True, n_iter_no_change=50)
    net.set_params(random_state=seed, max_iter=200 if quick else 2000)
    step = type(net).__name__.lower()
    return make_pipeline(StandardScaler(), net), {f"{step}__alpha": [1e-4]}


def paper_dictionary(n_features: int, *, quick: bool, per_feature: bool = True) -> Any:
    """Return Gaussians of bandwidth .5 to 10 and polynomials of degree 1 to 3, 13 each.

    On every feature and on all together: 13(p + 1) kernels, as the paper counts them. A quick run
    takes 3 + 2 kernels on all features together.
    """
    from kernelweave.kernels_core import RBF, KernelDictionary, Polynomial

    widths = np.linspace(0.5, 10.0, 3 if quick else 10)
    degrees = (1, 2) if quick else (1, 2, 3)
    base: list[Any] = [RBF(gamma=float(1.0 / (2.0 * width**2))) for width in widths]
    base += [Polynomial(degree=degree, gamma=1.0, coef0=1.0) for degree in degrees]
    views = [list(range(n_features))]
    if per_feature and not quick:
        views += [[feature] for feature in range(n_features)]
    return KernelDictionary(base, columns=views, normalize="unit-diagonal")


def _multiple(
    name: str, kernels: Any, y: FloatArray, *, classes: bool, quick: bool
) -> tuple[Any, dict[str, list[Any]]]:
    if importlib.util.find_spec(_BASELINES) is None:
        raise CommandError(f"{name} needs the package kernelweave-baselines, which is not here")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    baselines = importlib.import_module(_BASELINES)
    if classes:
        machine, unit = getattr(baselines, f"{name}Classifier")(kernels), 1.0
    else:
        machine = getattr(baselines, f"{name}Regressor")(kernels, epsilon=_tube(y))
        unit = float(np.std(y))
    step = type(machine).__name__.lower()
    powers = (0, 1) if quick else (-1, 0, 1, 2)
    grid = {f"{step}__C": [unit * 10.0**power for power in powers]}
    return make_pipeline(StandardScaler(), machine), grid
