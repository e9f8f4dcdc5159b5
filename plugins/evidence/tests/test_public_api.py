"""Public names of what estimators return."""

from __future__ import annotations

import kernelweave.evidence
import numpy as np


def test_dimensions_and_rows_have_public_names() -> None:
    from kernelweave.evidence import Dimension, Encoded

    words = Dimension("colour", "colour", "category", ("blue", "red"), np.array([0.25, 0.75]))
    assert dict(zip(words.categories, words.frequencies, strict=True)) == {
        "blue": 0.25,
        "red": 0.75,
    }
    numeric, codes = Encoded(np.ones((2, 1)), np.ones((2, 1), dtype=np.int64))
    assert numeric.shape == codes.shape


def test_public_names_are_listed_before_they_are_loaded() -> None:
    assert set(kernelweave.evidence.__all__) <= set(dir(kernelweave.evidence))
