"""Settings of every algorithm are values: by name and by value alike, cloned, pickled, refused."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import algorithms, get_algorithm
from kernelweave.kernels_core.settings import Settings, prepared
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.mkl_sparse import BestResponse, SparseMKLClassifier
from kernelweave.relaxations import BranchAndBound
from kernelweave.vv_rkhs import BlockDescent, MatrixValuedKernelRegressor, SpectralGradient
from sklearn.base import clone

OURS = sorted(name for name, spec in algorithms().items() if spec.target.startswith("kernelweave."))


@pytest.mark.parametrize("name", OURS)
def test_settings_are_values(name: str) -> None:
    search = get_algorithm(name).load()
    taken = inspect.signature(search).parameters
    own = getattr(search, "settings", None)
    if inspect.isfunction(search) and "settings" in taken:
        own = taken["settings"].default
    given = ["problem", "random_state", *(["settings"] if own is not None else [])]
    assert list(taken) == given, "settings belong in a Settings"
    if own is None:
        return
    assert isinstance(own, Settings)
    # by value the same search runs, under the name of its most general form
    assert get_algorithm(own.algorithm).target == get_algorithm(name).target
    assert pickle.loads(pickle.dumps(own)) == own == type(own)()
    assert "Parameters\n----------\n" in (own.__doc__ or "")
    own.validate()
    with pytest.raises(AttributeError):
        own.anything = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=f"{name} has no setting"):
        prepared(name, {"nonsense": 1})
    with pytest.raises(ValueError, match=f"{type(own).__name__} has no setting 'nonsense'"):
        type(own)(nonsense=1)  # type: ignore[call-arg]


def sparse(**params: Any) -> Any:
    X, y = make_classification(40)
    return SparseMKLClassifier(k0=2, **params).fit(X, y)


def matrix_valued(**params: Any) -> Any:
    X, y = make_regression(30)
    return MatrixValuedKernelRegressor(lam=0.1, tol=1e-3, **params).fit(X, np.c_[y, y**2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("fit", "name", "value", "change"),
    [
        (sparse, "smkl-best-response", BestResponse(init="saddle"), BestResponse(init="random")),
        (sparse, "smkl-global", BranchAndBound(), BranchAndBound(accuracy=1e-6)),
        (matrix_valued, "vv-spg", SpectralGradient(), SpectralGradient(memory=1)),
        (matrix_valued, "vv-block-descent", BlockDescent(), BlockDescent(sdp_iter=5)),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_name_and_its_settings_fit_alike(fit: Any, name: str, value: Any, change: Any) -> None:
    by_name, by_value = fit(algorithm=name), fit(algorithm=value)
    np.testing.assert_array_equal(by_name.weights_, by_value.weights_)
    assert by_name.result_.upper_bound == by_value.result_.upper_bound
    other = fit(algorithm=change)
    assert other.result_.algorithm == name
    for copy in (clone(other), pickle.loads(pickle.dumps(other))):
        assert copy.algorithm == change
        assert f"algorithm={change!r}" in repr(copy)
