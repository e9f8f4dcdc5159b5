"""The conformance kit: nothing may fail, nothing is expected to."""

from __future__ import annotations

import pytest
from kernelweave.kernels_core.testing import check_algorithm

# those whose kit is dear and whose kin are in the light tests
DEAR = ("krr-rpgd", "krr-pgd2", "krr-rpgd2", "krr-gmkl", "svm-gmkl", "krr-mm", "krr-spg")
NAMES = (
    *("krr-pgd", "krr-iia", "krr-riia", "krr-trust-region", "krr-newton", "krr-auto"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in DEAR),
)


@pytest.mark.faults
@pytest.mark.parametrize("name", NAMES)
def test_conformance(name: str) -> None:
    check_algorithm(name)
