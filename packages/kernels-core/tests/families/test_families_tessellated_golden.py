"""Equality with exact rational integrals, through the public names."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.families import TessellatedFamily

CASES = range(46)


@pytest.fixture(scope="module")
def cases(golden):
    found = golden("tk_golden")["cases"]
    assert len(found) == len(CASES)
    return found


def family_of(case):
    return TessellatedFamily(case["d"], lower=case["a"], upper=case["b"])


@pytest.mark.parametrize("index", CASES)
def test_block_and_monomials(cases, index):
    case = cases[index]
    family = family_of(case)
    assert family.n_P == case["nP"] == family.trace
    assert np.array_equal(family.monomials, case["monomials_x_then_z"])
    G, transposed = family.block(case["x"], case["y"]), family.block(case["y"], case["x"]).T
    assert G.shape == (case["nP"], case["nP"])
    for i, j, value in case["entries"]:
        expected = float(value)
        for got in (G[i, j], transposed[i, j]):
            if expected == 0.0:
                assert got == 0.0
            else:
                assert got == pytest.approx(expected, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("index", CASES)
def test_rank_one_and_identity(cases, index):
    case = cases[index]
    family, x, y = family_of(case), case["x"], case["y"]
    v, identity = np.array(case["v"]), np.eye(case["nP"])
    rank_one, trace = float(case["vGv"]), float(case["trG"])
    assert family.gram([x], np.outer(v, v), [y])[0, 0] == pytest.approx(rank_one, rel=1e-12)
    assert family.gram([x, y], np.outer(v, v))[1, 0] == pytest.approx(rank_one, rel=1e-12)
    assert family.gram([x], identity, [y])[0, 0] == pytest.approx(trace, rel=1e-12)
    assert family.gram([x, y], identity)[0, 1] == pytest.approx(trace, rel=1e-12)


def test_exact_zeros_are_many(cases):
    zeros = [e for case in cases if case["d"] <= 2 for e in case["entries"] if float(e[2]) == 0.0]
    assert len(zeros) == 481
