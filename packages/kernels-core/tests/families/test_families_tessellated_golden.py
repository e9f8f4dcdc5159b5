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


def test_blocks_and_monomials(cases):
    for index, case in enumerate(cases):
        family, said = family_of(case), f"case {index}"
        assert family.n_P == case["nP"] == family.trace, said
        assert np.array_equal(family.monomials, case["monomials_x_then_z"]), said
        G, transposed = family.block(case["x"], case["y"]), family.block(case["y"], case["x"]).T
        assert G.shape == (case["nP"], case["nP"]), said
        rows, columns, values = zip(*case["entries"], strict=True)
        # where 0 is expected, exactly 0
        expected = np.array(values, dtype=float)
        for got in (G, transposed):
            np.testing.assert_allclose(got[rows, columns], expected, rtol=1e-12, err_msg=said)


def test_rank_one_and_identity(cases):
    for index, case in enumerate(cases):
        family, x, y = family_of(case), case["x"], case["y"]
        v, identity = np.array(case["v"]), np.eye(case["nP"])
        found = [
            family.gram([x], np.outer(v, v), [y])[0, 0],
            family.gram([x, y], np.outer(v, v))[1, 0],
            family.gram([x], identity, [y])[0, 0],
            family.gram([x, y], identity)[0, 1],
        ]
        expected = np.repeat([float(case["vGv"]), float(case["trG"])], 2)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"case {index}")


def test_exact_zeros_are_many(cases):
    zeros = [e for case in cases if case["d"] <= 2 for e in case["entries"] if float(e[2]) == 0.0]
    assert len(zeros) == 481
