"""A fit that is refused or interrupted leaves the old model whole."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
)
from kernelweave.kernels_core import Status

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.KernelWeaveWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK = {"precisions": (5.0,), "max_iter": 2, "n_folds": 2, "warp": False}
MODELS = {
    "regressor": EvidenceKernelRegressor(**QUICK),
    "classifier": EvidenceKernelClassifier(**QUICK),
    "mkl regressor": EvidenceMKLRegressor(max_iter=1, n_folds=2),
    "mkl classifier": EvidenceMKLClassifier(max_iter=1, n_folds=2),
}


def table(seed: int, shift: float = 0.0) -> tuple[Any, Any]:
    """Thirty rows whose target, or class, is the sign and size of the first column."""
    X = np.random.default_rng(seed).normal(size=(30, 2)) + shift
    return X, X[:, 0] - shift


def fitted(name: str) -> tuple[Any, Any]:
    X, y = table(0)
    model = MODELS[name].__sklearn_clone__()
    return model.fit(X, y > 0 if "classifier" in name else y), X


def with_nan(y: Any) -> Any:
    y = y.astype(float)
    y[7] = np.nan
    return y


REFUSED: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "a target is missing": lambda X, y: (X, with_nan(y)),
    "too few targets": lambda X, y: (X, y[:-1]),
    "no targets": lambda X, y: (X, None),
    "one value": lambda X, y: (X, np.ones(len(y))),
    "a weight is negative": lambda X, y: (X, y, -np.ones(len(y))),
    "an infinite value": lambda X, y: (np.where(X.mean() < X, np.inf, X), y),
    "one row": lambda X, y: (X[:1], y[:1]),
    "another width and no target": lambda X, y: (np.hstack([X, X]), with_nan(y)),
}
PARTS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "batches with a gap": lambda X, y: (
        Batches(pd.DataFrame(X).assign(y=with_nan(y)).rename(columns=str), "y", size=8),
    ),
    "batches of other kinds": lambda X, y: (Batches(lambda: iter([(X, y), "no table"])),),
    "dask with a gap": lambda X, y: (
        dd.from_pandas(pd.DataFrame(X).rename(columns=str), npartitions=2),
        dd.from_pandas(pd.Series(with_nan(y)), npartitions=2),
    ),
}
CASES = [(name, case) for name in MODELS for case in REFUSED] + [
    (name, case) for name in list(MODELS)[:2] for case in PARTS
]
# there a constant is a target like others
CASES.remove(("mkl regressor", "one value"))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_refused_refit_leaves_the_old_model(name: str, case: str) -> None:
    model, X = fitted(name)
    before, said = dict(vars(model)), model.predict(X)
    X_new, y_new = table(1, shift=50.0)
    bad = (REFUSED | PARTS)[case](X_new, y_new > 0 if "classifier" in name else y_new)
    with pytest.raises((ValueError, TypeError)):
        model.fit(*bad)
    after = vars(model)
    assert after.keys() == before.keys()
    assert [key for key in after if after[key] is not before[key]] == []
    np.testing.assert_array_equal(model.predict(X), said)


class Countdown:
    """Raises a Ctrl-C at the n-th call of a function of the package.

    But none inside the handler of signals, which holds them back where it is not whole itself.
    """

    def __init__(self, at: float) -> None:
        self.at, self.calls = at, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or "kernelweave" not in name or name.endswith("interrupts.py"):
            return
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt

    def run(self, fit: Callable[[], Any]) -> bool:
        """Return whether the fit was interrupted."""
        sys.setprofile(self)
        try:
            fit()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


def left_of(before: dict[str, Any], model: Any) -> list[str]:
    """Return what a fit has in common with the one before it, but parameters and plain values."""
    found = before.keys() - model.get_params().keys()
    objects = [name for name in found if not isinstance(before[name], str | float | int | None)]
    return [name for name in objects if vars(model).get(name) is before[name]]


# Python drops what is raised while a generator is closed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", list(MODELS))
def test_a_ctrl_c_anywhere_leaves_a_whole_model(name: str) -> None:
    model, X = fitted(name)
    X_new, y_new = table(1, shift=50.0)
    y_new = y_new > 0 if "classifier" in name else y_new
    before, said = dict(vars(model)), model.predict(X)
    whole = Countdown(np.inf)
    other, _ = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not whole.run(lambda: other.fit(X_new, y_new))
    # late ones meet what stores the model
    places = np.unique(np.r_[np.linspace(1, whole.calls, 12), whole.calls - np.arange(1, 40, 3)])
    kept, taken = 0, 0
    for at in places.astype(int):
        model.__dict__ = dict(before)
        if not Countdown(at).run(lambda: model.fit(X_new, y_new)):
            continue
        if model.result_ is before["result_"]:
            kept += 1
            assert [key for key in vars(model) if vars(model)[key] is not before[key]] == []
            np.testing.assert_array_equal(model.predict(X), said)
        else:
            taken += 1
            assert model.result_.status is Status.INTERRUPTED
            assert left_of(before, model) == []
            assert np.isfinite(np.asarray(model.predict(X_new), dtype=float)).all()
            assert model.held_out_prediction_.shape[0] == len(X_new)
    assert kept >= 8
