"""Families as values: equality, pickling, refusals, memory, laziness."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from math import comb

import numpy as np
import pytest
from kernelweave.kernels_core.config import config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.kernels_core.families import (
    CallableFamily,
    Family,
    PolynomialFamily,
    PreparedFamily,
    TessellatedFamily,
)

BOX = {"lower": [-0.1, -0.1], "upper": [1.1, 1.1]}


def test_tessellated_is_a_frozen_value():
    family = TessellatedFamily(1, **BOX)
    assert family == TessellatedFamily(lower=np.array(BOX["lower"]), upper=(1.1, 1.1), z_degree=1)
    assert hash(family) == hash(TessellatedFamily(1, **BOX))
    assert family != TessellatedFamily(2, **BOX)
    assert family != TessellatedFamily(1, **BOX, z_degree=0)
    assert family != "tessellated"
    assert pickle.loads(pickle.dumps(family)) == family
    assert eval(repr(family)) == family
    assert eval(repr(TessellatedFamily(1, **BOX, z_degree=0))).z_degree == 0
    with pytest.raises(FrozenInstanceError):
        family.degree = 2
    with pytest.raises(FrozenInstanceError):
        del family.degree
    with pytest.raises(ValueError, match="read-only"):
        family.lower[0] = 0.0


@pytest.mark.parametrize(
    ("n", "degree", "z_degree"), [(3, 1, None), (2, 3, 1), (4, 2, 0), (5, 0, 0)]
)
def test_size_is_counted(n, degree, z_degree):
    family = TessellatedFamily(degree, lower=np.zeros(n), upper=np.ones(n), z_degree=z_degree)
    assert family.n_P == 2 * len(family.monomials)
    assert family.trace == family.n_P
    if z_degree is None:
        assert family.n_P == 2 * comb(2 * n + degree, degree)
    if z_degree == 0:
        assert family.n_P == 2 * comb(n + degree, degree)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"degree": -1, **BOX}, "degree must be an integer >= 0, got -1"),
        ({"degree": 1.5, **BOX}, "degree must be an integer"),
        ({"z_degree": 2, **BOX}, "z_degree must be at most degree = 1, got 2"),
        ({"lower": 0.0, "upper": 1.0}, "one number per feature"),
        ({"lower": [0.0], "upper": [1.0, 1.0]}, "same shape"),
        ({"lower": [0.0, 1.0], "upper": [1.0, 1.0]}, "in feature 1: widen the box"),
        ({"lower": [0.0], "upper": [np.inf]}, "upper must be finite"),
    ],
)
def test_tessellated_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        TessellatedFamily(**arguments)


@pytest.mark.parametrize("degree", [1, 2])
def test_points_outside_the_box(degree):
    family = TessellatedFamily(degree, **BOX)
    message = "row 1, feature 0: 1.25 is not in"
    bad, good = [[0.5, 0.5], [1.25, 0.5]], [[0.5, 0.5]]
    v = np.ones(family.n_P)
    for call in (
        lambda: family.gram(bad, np.eye(family.n_P)),
        lambda: family.gram(good, np.outer(v, v), bad),
        lambda: family.gram(good, np.eye(family.n_P), bad),
        lambda: family.prepare(bad),
        lambda: family.prepare(bad).moment([1.0, 1.0]),
        lambda: family.diag(bad, np.eye(family.n_P)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="y leaves the box at row 0, feature 0"):
        family.block([0.5, 0.5], bad[1])


@pytest.mark.parametrize("family", [TessellatedFamily(1, **BOX), PolynomialFamily(2, 2)])
def test_wrong_arrays_are_named(family):
    X = np.full((3, 2), 0.5)
    prepared = family.prepare(X)
    n_P = family.n_P
    with pytest.raises(ValueError, match=r"v must have shape"):
        prepared.gram_rank_one(np.ones(n_P + 1))
    with pytest.raises(ValueError, match=r"P must have shape"):
        prepared.gram(np.eye(n_P + 1))
    with pytest.raises(ValueError, match="P must be symmetric"):
        prepared.gram(np.triu(np.ones((n_P, n_P))))
    with pytest.raises(ValueError, match="P must be finite"):
        prepared.gram(np.full((n_P, n_P), np.nan))
    with pytest.raises(ValueError, match="W must have shape"):
        prepared.moment(np.ones(4))
    with pytest.raises(ValueError, match="W must be finite"):
        prepared.moment([1.0, np.inf, 0.0])
    with pytest.raises(ValueError, match="out must be a C-contiguous"):
        prepared.gram_rank_one(np.ones(n_P), np.empty((3, 3), dtype=np.float32))
    with pytest.raises(ValueError, match="X has 3 features"):
        family.prepare(np.ones((2, 3)))
    with pytest.raises(ValueError, match="X must be finite, got nan at row 0, feature 1"):
        family.prepare([[0.5, np.nan]])
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32'"):
        family.prepare(X, np.int64)
    with pytest.raises(ValueError, match="non-empty"):
        family.prepare(np.ones(2))


def test_memory_is_asked_for_before_the_work():
    X = np.random.default_rng(0).random((400, 2))
    family = TessellatedFamily(1, **BOX)
    with config_context(memory_limit=10_000):
        with pytest.raises(MemoryBudgetError, match="400 x 400"):
            family.prepare(X).gram_rank_one(np.ones(10))
        with pytest.raises(MemoryBudgetError, match="400 x 400"):
            TessellatedFamily(2, **BOX).prepare(X).gram_rank_one(np.ones(30))
        with pytest.raises(MemoryBudgetError, match="400 x 50"):
            family.gram(X, np.ones((10, 10)), X[:50])
        with pytest.raises(MemoryBudgetError, match="monomials"):
            PolynomialFamily(4).prepare(X)
        assert family.prepare(X[:50]).moment(np.ones(50)).shape == (10, 10)


@pytest.mark.parametrize(
    "family",
    [
        TessellatedFamily(1, **BOX),
        TessellatedFamily(2, **BOX),
        PolynomialFamily(2, 2),
        CallableFamily(lambda x, y: np.outer(x, y), 2),
    ],
)
def test_families_keep_the_protocol(family):
    prepared = family.prepare(np.random.default_rng(0).random((4, 2)))
    assert isinstance(family, Family)
    assert isinstance(prepared, PreparedFamily)
    assert prepared.scale > 0.0


def test_importing_the_package_is_light():
    code = (
        "import sys, kernelweave.kernels_core.families as f; dir(f);"
        "heavy = {'numba', 'scipy', 'sklearn'} & set(sys.modules); assert not heavy, heavy;"
        "f.TessellatedFamily(1, lower=[0.0], upper=[1.0]).n_P;"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name():
    import kernelweave.kernels_core.families as families

    assert "TessellatedFamily" in dir(families)
    with pytest.raises(AttributeError, match="attribute Nothing"):
        _ = families.Nothing
