"""scikit-learn's checks and the conformance kit: nothing may fail, nothing is expected to."""

from __future__ import annotations

from typing import Any

import pytest
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    ElasticNetMKLClassifier,
    ElasticNetMKLRegressor,
    KernelQuantileRegressor,
    PWMKClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from kernelweave.kernels_core.testing import check_algorithm, check_estimator
from sklearn.utils.estimator_checks import parametrize_with_checks

ESTIMATORS = [
    AverageMKLClassifier(),
    EasyMKLClassifier(),
    CKAClassifier(),
    PWMKClassifier(),
    SimpleMKLClassifier(),
    SimpleMKLRegressor(),
    ElasticNetMKLClassifier(),
    ElasticNetMKLRegressor(),
    KernelQuantileRegressor(),
]
NAMES = ("average", "easy", "cka", "pwmk", "simple", "elastic-net")


# some of the checks learn from noise
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=None)
def test_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.faults
@pytest.mark.parametrize("name", NAMES)
def test_conformance(name: str) -> None:
    check_algorithm(f"mkl-{name}")


@pytest.mark.slow  # scikit-learn's checks again, which run one by one above
@pytest.mark.faults
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda est: type(est).__name__)
def test_conformance_kit(estimator: Any) -> None:
    check_estimator(estimator)
