from dataclasses import replace

import numpy as np
import pytest
from kernelweave.kernels_core import (
    ContradictoryBoundsError,
    KernelDictionary,
    KernelLearningClassifier,
    KernelWeaveWarning,
    NotPSDError,
)
from kernelweave.kernels_core.kernels import Linear, Sigmoid
from kernelweave.kernels_core.testing import check_algorithm, check_estimator
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.relaxations import certify
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    return X, X[:, 0] + X[:, 1] ** 2 > 0.7


def test_certify_brackets_the_fitted_objective():
    X, y = data()
    model = SparseMKLClassifier(k0=1, algorithm="smkl-best-response", init="random", random_state=0)
    with pytest.warns(ConvergenceWarning, match="is not proved"):
        model.fit(X, y)
    proof = certify(model)
    assert proof.lower_bound <= proof.upper_bound == model.result_.upper_bound
    best = SparseMKLClassifier(k0=1).fit(X, y)
    assert best.result_.algorithm == "smkl-global"
    assert certify(best).gap <= 2e-4
    assert best.result_.upper_bound <= model.result_.upper_bound * (1 + 1e-4)


def test_a_bound_that_the_model_claims_and_its_objective_refutes_is_an_error():
    X, y = data()
    model = SparseMKLClassifier(k0=1).fit(X, y)
    model.result_ = replace(model.result_, lower_bound=1.01 * model.result_.upper_bound)
    with pytest.raises(ContradictoryBoundsError, match="certify: the lower bound"):
        certify(model)


def test_certify_refuses_other_models():
    X, y = data()
    with pytest.raises(TypeError, match="SparseMKL"):
        certify(SVC().fit(X, y))
    with pytest.raises(TypeError, match="got SVC: fit one of these first"):
        certify(SVC())
    with pytest.raises(TypeError, match="got a SparseMKLClassifier that is not fitted: fit it"):
        certify(SparseMKLClassifier())
    with pytest.raises(TypeError, match="its own certificate_ says how good it is"):
        certify(KernelLearningClassifier("tkl-low-rank", C=0.01, tol=0.1).fit(X, y))


def test_certify_sends_ridge_models_to_their_own_proof():
    ridge = pytest.importorskip("kernelweave.ridge_mkl")
    X, y = data()
    for model, targets in ((ridge.RidgeMKLRegressor(), X[:, 0]), (ridge.RidgeMKLClassifier(), y)):
        unfitted = f"got a {type(model).__name__} that is not fitted: its own certificate_ says how"
        with pytest.raises(TypeError, match=unfitted):
            certify(model)
        with pytest.raises(TypeError, match="its own certificate_ says how good it is"):
            certify(model.fit(X, targets))


def test_certify_takes_one_problem():
    X, _ = data()
    model = SparseMKLClassifier(k0=1, multiclass="ovr").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    with pytest.raises(TypeError, match=r"each of estimator\.estimators_"):
        certify(model)
    assert certify(model.estimators_[0]).gap >= 0.0


def test_nothing_is_certified_with_an_indefinite_kernel():
    X, y = data()
    kernels = KernelDictionary([Sigmoid(0.7, 1.0), Linear()], psd="keep")
    with pytest.warns(KernelWeaveWarning, match="no bound is claimed"):
        model = SparseMKLClassifier(
            kernels, k0=1, algorithm="smkl-best-response", init="random"
        ).fit(X, y)
    with pytest.raises(NotPSDError, match="Sigmoid"):
        certify(model)
    with pytest.raises(NotPSDError, match="Sigmoid"):
        SparseMKLClassifier(kernels, k0=1, algorithm="smkl-global").fit(X, y)


def test_the_algorithm_keeps_the_promises_of_the_registry():
    check_algorithm("smkl-global")


@pytest.mark.faults
@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize("kind", [SparseMKLClassifier, SparseMKLRegressor])
def test_global_estimators_are_scikit_learn_citizens(kind):
    check_estimator(kind(algorithm="smkl-global"))


@pytest.mark.filterwarnings("ignore:.*no step of the search")
@pytest.mark.parametrize("init", ["sdp-3x3", "soc-random"])
def test_relaxed_starts(init):
    X, y = data()
    model = SparseMKLClassifier(k0=2, algorithm="smkl-best-response", init=init).fit(X[:16], y[:16])
    assert len(model.kernel_support_) <= 2
