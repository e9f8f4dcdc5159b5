from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import NotPSDError
from kernelweave.qp_smo import SVC, SVR, SquaredHingeSVC, solve_svc, solve_svr
from svm_problems import rbf, two_classes

X, Y = two_classes(n=20)
K = rbf(X, 0.5)


def broken(i, j, value):
    bad = K.copy()
    bad[i, j] = value
    return bad


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 17), (19, 19), (17, 3)])
def test_a_bad_entry_is_named(value, place):
    with pytest.raises(ValueError, match=rf"position \({place[0]}, {place[1]}\)"):
        solve_svc(broken(*place, value), Y, C=1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 1), (130, 130), (70, 3)])
def test_a_bad_entry_among_many_is_named(value, place):
    X, y = two_classes(n=131)
    bad = rbf(X, 0.5)
    bad[place] = value
    with pytest.raises(ValueError, match=rf"position \({place[0]}, {place[1]}\)"):
        solve_svc(bad, y, C=10.0)


@pytest.mark.parametrize("n", [20, 100, 131])
@pytest.mark.parametrize("corner", [(0, -1), (-1, 0), (1, 2)])
def test_asymmetry_is_refused_wherever_it_is(n, corner):
    X, y = two_classes(n=n)
    bad = rbf(X, 0.5)
    bad[corner] += 1e-3
    with pytest.raises(ValueError, match="symmetric"):
        solve_svc(bad, y, C=1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [20, 131])
def test_two_rows_that_show_a_negative_eigenvalue_are_named(n, dtype):
    X, y = two_classes(n=n)
    bad = rbf(X, 0.5).astype(dtype)
    bad[2, 7] = bad[7, 2] = 1.001
    with pytest.raises(NotPSDError, match="rows 2 and 7"):
        solve_svc(bad, y, C=1.0)
    bad = rbf(X, 0.5).astype(dtype)
    bad[3, 3] = -1e-3
    with pytest.raises(NotPSDError, match=r"rows [0-9]+ and [0-9]+"):
        solve_svr(bad, y, C=1.0, epsilon=0.1)
    # equal points: entries as large as their diagonal, which is no negative eigenvalue
    same = np.repeat(X[: n // 2], 2, axis=0)
    solve_svc((same @ same.T).astype(dtype), y[: len(same)], C=1.0)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"C": 0.0}, "C must be a finite number > 0, got 0.0"),
        ({"C": -1.0}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"C": "one"}, "C must be a finite number > 0, got 'one'"),
        ({"tol": 0.0}, "tol must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"max_time": -1.0}, "max_time"),
        ({"max_time": np.nan}, "max_time"),
        ({"alpha0": np.zeros(3)}, "alpha0 must have shape"),
        ({"alpha0": np.full(20, np.nan)}, "alpha0 must be finite"),
        ({"sample_weight": -np.ones(20)}, "sample_weight must be at least 0"),
        ({"sample_weight": np.full(20, np.inf)}, "sample_weight must be finite"),
        ({"sample_weight": np.ones(3)}, "sample_weight must have shape"),
        ({"sample_weight": np.where(Y > 0, 0.0, 1.0)}, r"class \+1 is missing .*weight 0"),
        ({"C": 1e300, "sample_weight": np.full(20, 1e300)}, "overflow"),
        ({"backend": "quantum"}, "backend must be one of"),
    ],
)
def test_bad_arguments_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        solve_svc(K, Y, **{"C": 1.0, **arguments})


def squared_hinge(K, y, *, C):
    return SquaredHingeSVC(C=C).solve(K, y)


@pytest.mark.parametrize("solve", [solve_svc, squared_hinge])
def test_bad_labels_are_refused(solve):
    with pytest.raises(ValueError, match="class -1 is missing"):
        solve(K, np.ones(20), C=1.0)
    with pytest.raises(ValueError, match=r"class \+1 is missing"):
        solve(K, -np.ones(20), C=1.0)
    with pytest.raises(ValueError, match=r"-1 and \+1 only, got 0.0 at position 4"):
        solve(K, np.where(np.arange(20) == 4, 0.0, Y), C=1.0)
    with pytest.raises(ValueError, match="shape"):
        solve(K, Y[:-1], C=1.0)


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="y must be finite, got nan at position 2"):
        solve_svr(K, np.where(np.arange(20) == 2, np.nan, Y), C=1.0, epsilon=0.1)
    with pytest.raises(ValueError, match="epsilon"):
        solve_svr(K, Y, C=1.0, epsilon=-0.1)
    with pytest.raises(ValueError, match="zeros only"):
        solve_svr(K, Y, C=1.0, epsilon=0.1, sample_weight=np.zeros(20))


@pytest.mark.parametrize("shape", [(20,), (20, 19), (2, 20, 20)])
def test_a_kernel_that_is_not_square_is_refused(shape):
    with pytest.raises(ValueError, match="square"):
        solve_svc(np.ones(shape), Y, C=1.0)


def test_an_empty_or_complex_kernel_is_refused():
    with pytest.raises(ValueError, match="no samples"):
        solve_svc(np.ones((0, 0)), np.ones(0), C=1.0)
    with pytest.raises(ValueError, match="real numbers"):
        solve_svc(K.astype(complex), Y, C=1.0)


def test_layouts_give_the_same_answer():
    reference = solve_svc(K, Y, C=1.0)
    frozen = K.copy()
    frozen.flags.writeable = False
    spread = np.zeros((40, 40))[::2, ::2]
    spread[:] = K
    for same in (frozen, np.asfortranarray(K), spread, K.tolist()):
        np.testing.assert_array_equal(solve_svc(same, Y, C=1.0).alpha, reference.alpha)
    integers = np.round(10 * K).astype(int)
    assert solve_svc(integers, Y, C=1.0).alpha.shape == (20,)


def test_inputs_are_left_alone():
    start, labels, weight = np.full(20, 0.5), Y.copy(), np.ones(20)
    kernel = K.copy()
    solve_svc(kernel, labels, C=1.0, alpha0=start, sample_weight=weight)
    np.testing.assert_array_equal(start, 0.5)
    np.testing.assert_array_equal(kernel, K)
    np.testing.assert_array_equal(labels, Y)


@pytest.mark.parametrize("learner", [SVC(C=0.0), SVC(C=np.nan), SVR(C=-1.0), SVR(epsilon=-1.0)])
def test_learners_check_lazily(learner):
    with pytest.raises(ValueError, match="must be a finite number >"):
        learner.validate()
    with pytest.raises(ValueError, match="must be a finite number >"):
        learner.solve(K, Y)


def test_learners_check_shapes():
    with pytest.raises(ValueError, match="dual0 must have the shape"):
        SVC().solve(K, np.stack([Y, -Y]), dual0=np.zeros(20))
    with pytest.raises(ValueError, match="shape"):
        SVC().solve(K, Y[:-1])


def test_learners_are_values():
    assert SVC(C=2.0) == SVC(C=2.0)
    assert hash(SVR()) == hash(SVR(1.0, 0.1))
    assert (SVC.name, SVC.task, SVR.name, SVR.task) == (
        "svc",
        "classification",
        "svr",
        "regression",
    )
