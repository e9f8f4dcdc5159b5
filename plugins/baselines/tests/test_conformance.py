"""The conformance kit: nothing may fail, nothing is expected to."""

from __future__ import annotations

import pytest
from kernelweave.kernels_core.testing import check_algorithm

NAMES = ("average", "easy", "cka", "pwmk", "simple", "elastic-net")


@pytest.mark.faults
@pytest.mark.parametrize("name", NAMES)
def test_conformance(name: str) -> None:
    check_algorithm(f"mkl-{name}")
