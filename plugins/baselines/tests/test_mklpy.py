"""The weights that MKLpy 0.6 finds on five data sets, recorded by tests/golden/make_mklpy.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import AverageWeights, alignment_weights, easymkl_weights

SETS = ("iris", "wine", "parkinsons", "heart", "haberman")
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", SETS)
def test_weights_equal_mklpy(
    name: str, golden: Callable[[str], Any], paper_set: Callable[[str], Any]
) -> None:
    record = golden("mklpy")["sets"][name]
    grams, y, _ = paper_set(name)
    assert len(y) == record["n_train"]
    np.testing.assert_allclose(
        AverageWeights().weights(grams, y), record["average"], atol=TOLERANCE
    )
    closed = alignment_weights(grams, y, method="closed-form")
    np.testing.assert_allclose(closed, record["cka"], atol=TOLERANCE)
    assert len(record["easymkl"]) == 4
    for lam, wanted in record["easymkl"].items():
        found = easymkl_weights(grams, y, lam=float(lam))
        np.testing.assert_allclose(found, wanted, atol=TOLERANCE)


def test_another_parameter_would_be_seen(
    golden: Callable[[str], Any], paper_set: Callable[[str], Any]
) -> None:
    record = golden("mklpy")["sets"]["heart"]
    grams, y, _ = paper_set("heart")
    found = easymkl_weights(grams, y, lam=0.15)
    assert np.abs(found - record["easymkl"]["0.1"]).max() > TOLERANCE
    assert np.abs(alignment_weights(grams, y) - record["cka"]).max() > 0.1
