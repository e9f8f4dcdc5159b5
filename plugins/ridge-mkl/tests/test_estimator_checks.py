"""scikit-learn's checks and the conformance kit: nothing may fail, nothing is expected to."""

from __future__ import annotations

from typing import Any

import pytest
from kernelweave.kernels_core.testing import check_algorithm
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLClassifierCV,
    RidgeMKLRegressor,
    RidgeMKLRegressorCV,
)
from sklearn.utils.estimator_checks import parametrize_with_checks


# some of the checks learn from noise
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
@parametrize_with_checks(
    [
        RidgeMKLRegressor(),
        RidgeMKLClassifier(),
        RidgeMKLRegressorCV(cv=2),
        RidgeMKLClassifierCV(cv=2),
        GeneralizedMKLClassifier(),
    ],
    expected_failed_checks=None,
)
def test_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)


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
