"""scikit-learn's own checks: every public estimator passes all of them, and none is excused."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
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
from kernelweave.evidence import (
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
)
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import (
    RBF,
    KernelLearningClassifier,
    KernelLearningRegressor,
    Linear,
)
from kernelweave.kernels_core.testing import check_estimator as check_with_proof
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLClassifierCV,
    RidgeMKLRegressor,
    RidgeMKLRegressorCV,
)
from kernelweave.spectahedron import (
    TessellatedKernelClassifier,
    TessellatedKernelClassifierCV,
    TessellatedKernelRegressor,
    TessellatedKernelRegressorCV,
)
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator
from workspace import ROOT, members

KERNELS = [Linear(), RBF(0.1), RBF(1.0)]
NYSTROEM: dict[str, Any] = {"approximation": "nystroem", "n_components": 9, "random_state": 0}
ALGORITHM_1 = "smkl-best-response"
# the evidence's checks are about the interface
QUICKER: dict[str, Any] = {"precisions": (5.0,), "max_iter": 5}
SLOW = pytest.mark.slow


def cases(*estimators: BaseEstimator, but: str = "", marks: Any = ()) -> list[Any]:
    """Return parameters of a test in which the warnings that ``but`` describes are no errors."""
    quiet = [pytest.mark.filterwarnings(f"ignore:{but}")] if but else []
    return [pytest.param(each, marks=[*quiet, *marks], id=repr(each)) for each in estimators]


AT_REST = ".*no step of the search"
HELD_OUT = ":kernelweave.evidence.HeldOutWarning"

# the kit of conformance runs scikit-learn's checks, and what a proof must keep
PROVED = [
    *cases(SparseMKLClassifier(), SparseMKLRegressor(), but=AT_REST),
    *cases(AverageMKLClassifier(), EasyMKLClassifier(), CKAClassifier(), PWMKClassifier()),
    *cases(SimpleMKLClassifier(), SimpleMKLRegressor(), KernelQuantileRegressor()),
    *cases(ElasticNetMKLClassifier(), ElasticNetMKLRegressor()),
    *cases(RidgeMKLRegressor(), RidgeMKLClassifier()),
    *cases(EvidenceMKLRegressor(), EvidenceMKLClassifier(), but=HELD_OUT),
    # at tol=1e-3 and 1e-2 below
    *cases(
        MatrixValuedKernelRegressor(), MatrixValuedKernelClassifier(), but=AT_REST, marks=[SLOW]
    ),
]
OTHERS = [
    # the checks' features of about 100 leave no precision to kernels that are not scaled
    *cases(
        KernelLearningClassifier(),
        KernelLearningClassifier(algorithm="mkl-simple"),
        KernelLearningClassifier(algorithm=ALGORITHM_1),
        KernelLearningRegressor(),
        KernelLearningRegressor(algorithm="krr-auto"),
        but=":sklearn.exceptions.ConvergenceWarning",
    ),
    *cases(
        SparseMKLClassifier(KERNELS, k0=1, multiclass="ovr"),
        SparseMKLClassifier(
            KERNELS, algorithm=ALGORITHM_1, init="random", n_init=2, multiclass="ovo"
        ),
        SparseMKLRegressor(algorithm=ALGORITHM_1),
        SparseMKLClassifier(KERNELS, **NYSTROEM),
        SparseMKLRegressor(**NYSTROEM),
        MatrixValuedKernelRegressor(tol=1e-3),
        MatrixValuedKernelClassifier(tol=1e-2),
        but=AT_REST,
    ),
    # problems so easy that the relative gap is not proved, which is said
    *cases(
        TessellatedKernelClassifier(),
        TessellatedKernelRegressor(),
        but=".*is not proved:sklearn.exceptions.ConvergenceWarning",
    ),
    *cases(
        TessellatedKernelClassifierCV(C=(1.0,), delta=0.5, cv=2, cv_max_iter=1),
        TessellatedKernelRegressorCV(C=(1.0,), delta=0.5, epsilon=0.1, cv=2, cv_max_iter=1),
        RidgeMKLRegressorCV(cv=2),
        RidgeMKLClassifierCV(cv=2),
        GeneralizedMKLClassifier(),
    ),
    # tables of a few rows are too small to choose a kernel, and are told so
    *cases(
        EvidenceKernelRegressor(**QUICKER),
        EvidenceKernelClassifier(**QUICKER),
        but=":kernelweave.kernels_core.exceptions.KernelWeaveWarning",
        marks=[pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")],
    ),
    # of few candidates most are an end
    *cases(
        GrangerGraph(cv=3, lams=[0.1, 1.0]),
        GrangerGraph(lam=0.1, cv=None),
        but=".*of lams, has the least held-out error",
    ),
]


@pytest.mark.faults
# what a check needs may not be installed
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
# some of the checks learn from noise
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(*each.values, check, marks=each.marks, id=each.id)
        for check, those in ((check_with_proof, PROVED), (check_estimator, OTHERS))
        for each in those
    ],
)
def test_sklearn(estimator: BaseEstimator, check: Callable[[BaseEstimator], object]) -> None:
    check(estimator)


def public_estimators() -> set[type]:
    found = set()
    for member in members().values():
        package = importlib.import_module(member.import_name)
        for name in getattr(package, "__all__", ()):
            it = getattr(package, name)
            if inspect.isclass(it) and issubclass(it, BaseEstimator) and hasattr(it, "fit"):
                found.add(it)
    return found


def test_every_public_estimator_is_checked() -> None:
    """In the light tests: a new one is put into one of the lists."""
    light = [each for each in (*PROVED, *OTHERS) if SLOW not in each.marks]
    estimators = public_estimators()
    assert len(estimators) >= 20
    assert estimators - {type(each.values[0]) for each in light} == set()


def excuses(text: str) -> list[str]:
    """Return what lets a test fail without a word."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg == "expected_failed_checks":
            found.append(f"line {node.value.lineno} excuses checks")
        if isinstance(node, ast.Attribute) and node.attr == "xfail":
            found.append(f"line {node.lineno} expects a failure")
    return found


def test_no_failure_is_expected_anywhere() -> None:
    folders = [*(member.folder / "tests" for member in members().values()), ROOT / "tests"]
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    }
    suspects = {
        path: text
        for path, text in texts.items()
        if "expected_failed_checks" in text or "xfail" in text
    }
    assert len(texts) > 200
    assert {str(path): found for path, text in suspects.items() if (found := excuses(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "@parametrize_with_checks([A()], expected_failed_checks={'a': 'b'})\ndef test(): ...",
        "check_estimator(A(), expected_failed_checks={'a': 'b'})",
        "@pytest.mark.xfail(reason='later')\ndef test(): ...",
    ],
)
def test_an_excuse_is_noticed(text: str) -> None:
    assert len(excuses(text)) == 1
    assert not excuses("@parametrize_with_checks([A()])\ndef test(): ...")
