"""Everything public is lazy, and only public names of other packages are used."""

from __future__ import annotations

import subprocess
import sys

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


def test_importing_loads_nothing_heavy() -> None:
    assert set(kernelweave.evidence.__all__) <= set(dir(kernelweave.evidence))
    code = (
        "import sys, kernelweave.evidence; "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'pandas', 'skrub') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
