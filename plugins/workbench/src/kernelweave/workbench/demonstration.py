"""The demo's work: one split, a tuned RBF machine, a learned kernel, a picture of the latter."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.exceptions import convergence_warning

from .data import Target, choose_target, read_table, read_target
from .errors import CommandError
from .models import Model
from .progress import gap_bar
from .summaries import summary

MAX_FEATURES = 13
HELD_OUT = 0.3
SEED = 0
FOLDS = 5
TOL = 1e-3
MAX_SECONDS = 60.0
# C needs no finished kernel: Frank-Wolfe is the quickest to a rough one
_ROUGH = {"algorithm": "tkl-frank-wolfe", "tol": 0.1, "max_iter": 30}
_RBF_GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-3, 1, 5)}
_OUR_GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_MAX_DRAWN = 300
_EPSILON_SHARE = 0.1


class Demonstration:
    """Everything the demo shows, computed once.

    Parameters
    ----------
    name : str
        A data set by name or a file whose last column is the target.

    Attributes
    ----------
    found : dict
        Both scores, bounds, gap, times: what ``--json`` prints.
    picture : bytes
        A PNG.
    """

    def __init__(self, name: str) -> None:
        table = read_table(name)
        self.target = read_target(table, choose_target(table, None))
        columns = [each for each in table.columns if each != self.target.column]
        if len(columns) > MAX_FEATURES:
            raise CommandError(
                f"{name} has {len(columns)} features, the demo takes at most {MAX_FEATURES} so "
                f"that it ends in seconds: use `kernelweave fit {name}`"
            )
        self.name = name
        self._split(table.features(columns), self.target.values)
        rival = self._tuned_rbf()
        ours = self._learned()
        model = Model.of(
            self.machine,
            columns=columns,
            target=self.target,
            source=name,
        )
        self.found = {
            **summary(model),
            "n_train": len(self.X),
            "n_test": len(self.X_test),
            "held_out_score": ours,
            "candidates": len(_OUR_GRID),
            "rbf": rival,
            "tuning_seconds": self.tuning_seconds,
            "fit_seconds": self.fit_seconds,
        }

    @property
    def _classes(self) -> bool:
        return self.target.task == "classification"

    def _split(self, X: npt.NDArray[np.float64], y: npt.NDArray[Any]) -> None:
        from sklearn.model_selection import train_test_split

        self.X, self.X_test, self.y, self.y_test = train_test_split(
            X, y, test_size=HELD_OUT, random_state=SEED, stratify=y if self._classes else None
        )

    def _folds(self) -> Any:
        """Return the folds on which both machines are tuned."""
        from sklearn.model_selection import KFold, StratifiedKFold

        kind = StratifiedKFold if self._classes else KFold
        return kind(n_splits=FOLDS, shuffle=True, random_state=SEED)

    def _tuned_rbf(self) -> dict[str, Any]:
        """Return the held-out score of an RBF machine tuned on the training part."""
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, SVR

        machine = SVC() if self._classes else SVR(epsilon=self._epsilon())
        step = type(machine).__name__.lower()
        grid = {f"{step}__{name}": values for name, values in _RBF_GRID.items()}
        started = time.perf_counter()
        search = GridSearchCV(make_pipeline(StandardScaler(), machine), grid, cv=self._folds())
        search.fit(self.X, self.y)
        chosen = {name.partition("__")[2]: float(v) for name, v in search.best_params_.items()}
        return {
            "score": float(search.score(self.X_test, self.y_test)),
            "tuned": chosen,
            "candidates": len(search.cv_results_["params"]),
            "seconds": time.perf_counter() - started,
        }

    def _epsilon(self) -> float:
        """Return a tube of a tenth of the targets' spread, for both machines."""
        return float(_EPSILON_SHARE * np.std(self.y))

    def _machine(self, C: float, **params: Any) -> Any:
        from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor

        if self._classes:
            return TessellatedKernelClassifier(C=C, random_state=SEED, **params)
        params["epsilon"] = self._epsilon()
        return TessellatedKernelRegressor(C=C, random_state=SEED, **params)

    def _chosen_C(self) -> float:
        """Return the best C on the same folds as the rival's, for roughly learned kernels."""
        from sklearn.model_selection import cross_val_score

        started = time.perf_counter()
        scores = []
        for number, C in enumerate(_OUR_GRID, 1):
            with gap_bar(f"choosing C, {number} of {len(_OUR_GRID)}"), warnings.catch_warnings():
                warnings.simplefilter("ignore", convergence_warning())
                machine = self._machine(C, **_ROUGH)
                scores.append(cross_val_score(machine, self.X, self.y, cv=self._folds()).mean())
        self.tuning_seconds = time.perf_counter() - started
        return _OUR_GRID[int(np.argmax(scores))]

    def _learned(self) -> float:
        """Choose C, learn the kernel to the end, and return the held-out score."""
        self.machine = self._machine(self._chosen_C(), tol=TOL, max_time=MAX_SECONDS)
        started = time.perf_counter()
        with gap_bar(f"learning a kernel on {len(self.X)} samples"):
            self.machine.fit(self.X, self.y)
        self.fit_seconds = time.perf_counter() - started
        return float(self.machine.score(self.X_test, self.y_test))

    @property
    def picture(self) -> bytes:
        """The PNG: convergence, and the kernel between the held-out samples."""
        from .displays import demo_picture

        X, y = self.X_test[:_MAX_DRAWN], self.y_test[:_MAX_DRAWN]
        title = f"{self.name}: a kernel learned from {len(self.X)} samples"
        return demo_picture(
            self.machine.result_,
            self.machine.kernel_(X),
            y,
            tol=self.machine.tol,
            title=title,
            classes=self._classes,
        )

    def target_sentence(self) -> str:
        """Return what is predicted, for people."""
        return _target_sentence(self.target)


def _target_sentence(target: Target) -> str:
    if target.task == "regression":
        return f"regression, targets {target.values.min():g} to {target.values.max():g}"
    labels, counts = np.unique(target.values, return_counts=True)
    parts = [f"{label} {count}" for label, count in zip(labels, counts, strict=True)]
    return f"classification: {', '.join(parts)}"
