"""Settings of algorithms as values, and what is said of a setting that is none."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    AlgorithmSpec,
    algorithms,
    get_algorithm,
    hookimpl,
    register_plugin,
    solve,
)
from kernelweave.kernels_core.settings import Settings, known_settings, prepared
from kernelweave.spectahedron import (
    AcceleratedPrimalDual,
    FrankWolfe,
    Hybrid,
    InteriorPoint,
    LowRank,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
)
from kernelweave.spectahedron.low_rank import LowRankSearch
from sklearn.base import clone
from sklearn.datasets import load_iris

X, Y = load_iris(return_X_y=True)
X, Y = X[50:, 2:], Y[50:]


class Plain:
    """A third party's algorithm, which has no setting at all."""

    def __init__(self, problem: Any, random_state: Any) -> None:
        self.inner = LowRankSearch(problem, random_state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Plugin:
    """Registers it."""

    __name__ = "plain"

    @hookimpl
    def kernelweave_register_algorithms(self, register: Any) -> None:
        register(
            AlgorithmSpec(
                name="plain",
                target=f"{__name__}:Plain",
                needs=get_algorithm("tkl-low-rank").needs,
                tasks=("classification", "regression"),
            )
        )


@pytest.mark.parametrize(
    "kind", [LowRank, InteriorPoint, FrankWolfe, AcceleratedPrimalDual, Hybrid]
)
def test_settings_are_values(kind: type[Settings]) -> None:
    value = kind()
    assert pickle.loads(pickle.dumps(value)) == value == kind(dtype="float64")  # type: ignore[call-arg]
    assert algorithms()[value.algorithm].load().settings == value
    assert "Parameters\n----------\ndtype : {" in (kind.__doc__ or "")
    with pytest.raises(AttributeError):
        value.dtype = "float32"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32', got 'int'"):
        kind(dtype="int").validate()  # type: ignore[call-arg]


def test_a_name_and_its_settings_solve_alike() -> None:
    by_name = TessellatedKernelClassifier(tol=1e-6).fit(X, Y)
    by_value = TessellatedKernelClassifier(algorithm=LowRank(), tol=1e-6).fit(X, Y)
    np.testing.assert_array_equal(by_name.P_, by_value.P_)
    model = TessellatedKernelClassifier(algorithm=LowRank(rank=2, rescue=False), tol=1e-6)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.algorithm == LowRank(rank=2, rescue=False)
    other = pickle.loads(pickle.dumps(model.fit(X, Y)))
    assert other.result_.value == pytest.approx(by_name.result_.value, rel=1e-5)
    assert other.result_.algorithm == "tkl-low-rank"
    assert "algorithm=LowRank(rank=2, rescue=False)" in repr(model)


def test_an_unknown_setting_is_refused_with_the_nearest() -> None:
    sentence = r"tkl-low-rank has no setting 'rnk': did you mean 'rank'\? Its settings are dtype, "
    with pytest.raises(ValueError, match=sentence):
        prepared("tkl-low-rank", {"rnk": 8})
    with pytest.raises(ValueError, match=sentence):
        prepared(LowRank(), {"rnk": 8})
    with pytest.raises(ValueError, match="threshold must be a finite number > 0, got 0"):
        prepared(Hybrid(), {"threshold": 0})
    with pytest.raises(ValueError, match="the name of one, its settings or its record, got 3"):
        prepared(3, {})  # type: ignore[arg-type]


def test_every_algorithm_says_so() -> None:
    assert algorithms()
    assert [name for name in algorithms() if known_settings(name) is None] == []
    for name in algorithms():
        with pytest.raises(ValueError, match=f"^{name} has no setting 'nonsense': "):
            prepared(name, {"nonsense": 1})


def test_a_third_party_needs_no_setting_of_ours() -> None:
    if "plain" not in algorithms():
        register_plugin(Plugin())
    ours = TessellatedKernelClassifier(tol=1e-4).fit(X, Y)
    theirs = TessellatedKernelClassifier(algorithm="plain", tol=1e-4).fit(X, Y)
    np.testing.assert_array_equal(ours.P_, theirs.P_)
    with pytest.raises(ValueError, match="dtype='float32' needs an algorithm with a setting"):
        TessellatedKernelRegressor(algorithm="plain", dtype="float32").fit(X, Y)
    with pytest.raises(ValueError, match="plain has no setting 'rank': It has none"):
        solve(ours_problem(), "plain", rank=3)


def ours_problem() -> Any:
    from kernelweave.kernels_core import Problem, TessellatedFamily
    from kernelweave.qp_smo import SVC
    from kernelweave.spectahedron import Spectahedron

    family = TessellatedFamily.from_data(X)
    return Problem(family, SVC(), Spectahedron(), X, np.where(Y == 1, 1.0, -1.0))
