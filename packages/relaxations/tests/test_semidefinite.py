import numpy as np
import pytest
from kernelweave.kernels_core import (
    PolynomialFamily,
    Problem,
    Status,
    TessellatedFamily,
    UnsupportedProblemError,
    solve,
)
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.relaxations import conic
from kernelweave.relaxations.semidefinite import Entries
from kernelweave.spectahedron import Spectahedron, TessellatedKernelClassifier


def tessellated(task, *, m=24, min_eig=0.0, sample_weight=None):
    make = make_classification if task == "classification" else make_regression
    X, y = make(m)
    learner = SVC(C=5.0) if task == "classification" else SVR(C=5.0, epsilon=0.05)
    box = TessellatedFamily(1, lower=np.full(2, -0.1), upper=np.full(2, 1.1))
    return Problem(box, learner, Spectahedron(min_eig), X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("min_eig", [0.0, 0.2])
def test_agrees_with_our_own_methods(task, min_eig):
    problem = tessellated(task, min_eig=min_eig)
    sdp = solve(problem, "tkl-sdp", tol=1e-6)
    ours = solve(problem, "tkl-low-rank", tol=1e-6)
    assert sdp.status is Status.CONVERGED
    assert sdp.n_iter == 1
    assert max(sdp.lower_bound, ours.lower_bound) <= min(sdp.upper_bound, ours.upper_bound)
    assert np.linalg.eigvalsh(sdp.parameters)[0] >= min_eig - 1e-9
    np.testing.assert_allclose(np.trace(sdp.parameters), problem.family.n_P, rtol=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("order", [1, 2, ((0, 1), (2,))])
@pytest.mark.parametrize("degree", [0, 1])
def test_agrees_where_groups_of_columns_are_compared(task, order, degree):
    rng = np.random.default_rng(0)
    X = rng.random((24, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    classes = task == "classification"
    learner = SVC(C=5.0) if classes else SVR(C=5.0, epsilon=0.05)
    family = TessellatedFamily(degree, lower=[-0.1] * 3, upper=[1.1] * 3, order=order)
    y = np.sign(y - np.median(y)) if classes else y
    problem = Problem(family, learner, Spectahedron(), X, y)
    # a conic solver leaves 3e-6 on some of them
    sdp = solve(problem, "tkl-sdp", tol=1e-5)
    found = [solve(problem, name, tol=1e-5) for name in ("tkl-low-rank", "tkl-interior-point")]
    found += [solve(problem, name, tol=1e-2) for name in ("tkl-frank-wolfe", "tkl-hybrid")]
    assert all(each.status is Status.CONVERGED for each in (sdp, *found))
    assert max(each.lower_bound for each in (sdp, *found)) <= min(
        each.upper_bound for each in (sdp, *found)
    )


def test_sample_weights_count_like_copies():
    problem = tessellated("classification", m=16)
    weight = np.ones(16)
    weight[[1, 4]] = 2.0, 3.0
    rows = np.repeat(np.arange(16), weight.astype(int))
    copies = Problem(
        problem.family, problem.learner, problem.constraint, problem.X[rows], problem.y[rows]
    )
    weighted = solve(tessellated("classification", m=16, sample_weight=weight), "tkl-sdp", tol=1e-6)
    # the matrix inequality of copies is singular, and the solver leaves 2e-6
    copied = solve(copies, "tkl-sdp", tol=1e-5)
    assert max(weighted.lower_bound, copied.lower_bound) <= min(
        weighted.upper_bound, copied.upper_bound
    )


def test_learns_polynomial_kernels():
    X, y = make_classification(20)
    problem = Problem(PolynomialFamily.from_data(X), SVC(C=1.0), Spectahedron(), X, y)
    sdp = solve(problem, "tkl-sdp", tol=1e-6)
    frank_wolfe = solve(problem, "tkl-frank-wolfe", tol=1e-2)
    assert sdp.gap <= 1e-6
    assert frank_wolfe.lower_bound <= sdp.upper_bound
    assert sdp.lower_bound <= frank_wolfe.upper_bound


@pytest.mark.slow
@pytest.mark.faults
def test_conformance():
    # its cost grows with the fourth power of the samples
    check_algorithm("tkl-sdp", tol=1e-5, n_samples=())


def test_more_samples_than_it_takes_are_refused_before_work():
    with pytest.raises(UnsupportedProblemError, match="at most 100 samples, got 101"):
        solve(tessellated("classification", m=101), "tkl-sdp")


def test_the_classifier_takes_it():
    X, y = make_classification(30)
    model = TessellatedKernelClassifier(C=10.0, algorithm="tkl-sdp").fit(X, y)
    assert model.result_.algorithm == "tkl-sdp"
    assert model.dual_gap_ <= 1e-3 * model.result_.upper_bound
    assert model.score(X, y) > 0.8


def test_a_solver_that_is_absent_is_named():
    with pytest.raises(ValueError, match="solver='SEDUMI' is not installed"):
        solve(tessellated("classification"), "tkl-sdp", solver="SEDUMI")


def test_entries_keep_the_matrix():
    entries = Entries.of(4)
    vector = np.arange(1.0, 11.0)
    whole = conic.cvxpy().Variable(10)
    whole.value = vector
    np.testing.assert_array_equal(entries.square(whole).value, entries.unpack(vector))
    np.testing.assert_array_equal(entries.unpack(vector), entries.unpack(vector).T)
    assert len(np.unique(entries.unpack(vector))) == 10


@pytest.mark.parametrize("strength", [0.1, 10.0, 1e3])
def test_the_interior_point_ends_at_any_strength(strength, monkeypatch):
    """Without units of its own this program stopped it, and SCS took minutes after it."""
    monkeypatch.setattr(conic, "CHAIN", ("CLARABEL",))
    X, y = make_classification(25)
    X = np.hstack([X[:, :1], np.random.default_rng(0).random((25, 7))])
    family = TessellatedFamily.from_data(X)
    C = strength / float(family.gram(X, np.eye(family.n_P)).max())
    found = solve(Problem(family, SVC(C=C), Spectahedron(), X, y), "tkl-sdp", tol=1e-6)
    assert found.status is Status.CONVERGED
