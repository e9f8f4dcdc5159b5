"""Kernels as values: equality, copies, arithmetic, columns, and scikit-learn's protocols."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from kernelweave.kernels_core.kernels import (
    RBF,
    Columns,
    Combination,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    UnitDiagonal,
    standard_kernels,
)
from kernelweave.kernels_core.kernels.base import Kernel
from kernelweave.kernels_core.testing import check_kernel
from sklearn.base import clone

KERNELS = [
    Linear(),
    Polynomial(degree=5, gamma=0.3, coef0=0.5),
    RBF(gamma=0.7),
    Laplacian(gamma=0.4),
    Sigmoid(gamma=0.5, coef0=1.0),
    Linear() + RBF(gamma=2.0) * Polynomial(degree=2),
    2.5 * RBF(gamma=0.1).on([0, 2]),
    UnitDiagonal(Polynomial(degree=3)),
    Combination([Linear(), RBF(0.2), Laplacian(0.1)], np.array([0.25, 0.0, 0.75])),
]


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(40, 4))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel_keeps_its_promises(kernel, X):
    check_kernel(kernel)
    check_kernel(kernel, X)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_copies_are_equal_and_independent(kernel, X):
    for other in (clone(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other is not kernel
        assert other == kernel
        assert hash(other) == hash(kernel)
        np.testing.assert_array_equal(other(X), kernel(X))


@pytest.mark.parametrize("n", [1, 2, 17, 1030, 2100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grams_are_exactly_symmetric_at_every_size(n, dtype):
    X = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
    for kernel in KERNELS[:6]:
        K = kernel(X)
        assert K.dtype == dtype
        assert np.array_equal(K, K.T), kernel


def test_composition_is_arithmetic_on_matrices(X):
    a, b = RBF(gamma=0.5), Polynomial(degree=2)
    np.testing.assert_array_equal((a + b)(X), a(X) + b(X))
    np.testing.assert_array_equal((a * b)(X), a(X) * b(X))
    np.testing.assert_array_equal((3.0 * a)(X), (a * 3)(X))
    np.testing.assert_array_equal(sum([a, b])(X), (a + b)(X))
    np.testing.assert_allclose(
        Combination([a, b], [0.5, 2.0])(X), 0.5 * a(X) + 2.0 * b(X), rtol=1e-14
    )
    np.testing.assert_array_equal(a.on([1, 3])(X), a(X[:, [1, 3]]))
    np.testing.assert_array_equal(a.on(2)(X, X[:5]), a(X[:, [2]], X[:5, [2]]))


def test_numpy_numbers_scale_kernels():
    assert np.float64(2.0) * RBF() == Scaled(RBF(), 2.0)
    assert RBF() * np.float32(2.0) == Scaled(RBF(), 2.0)


def test_arithmetic_with_anything_else_is_refused():
    with pytest.raises(TypeError):
        RBF() + 1.0
    with pytest.raises(TypeError):
        RBF() * "2"


def test_repr_rebuilds_the_value():
    names = {c.__name__: c for c in (*standard_kernels().values(), Sum, Product, Columns)}
    for kernel in [*KERNELS[:7], (Linear() + RBF()).on([1]), 2.0 * (Linear() + RBF())]:
        assert eval(repr(kernel), names)([[1.0, 2.0, 3.0]]) == kernel([[1.0, 2.0, 3.0]])


def test_equality_sees_types_parameters_and_arrays():
    assert RBF(gamma=0.5) == RBF(gamma=0.5)
    assert RBF(gamma=0.5) != RBF(gamma=0.6)
    assert RBF(gamma=0.5) != Laplacian(gamma=0.5)
    assert Linear().on([0]) != Linear().on([1])
    w = np.array([1.0, 2.0])
    assert Combination([Linear(), RBF()], w) == Combination([Linear(), RBF()], w.copy())
    assert Combination([Linear(), RBF()], w) != Combination([Linear(), RBF()], 2 * w)
    assert len({RBF(gamma=0.5), RBF(gamma=0.5), RBF(gamma=1.0)}) == 2


def test_nested_parameters_reach_everything():
    kernel = Linear() + RBF(gamma=1.0) * Polynomial(degree=2)
    params = kernel.get_params()
    assert params["k2__k1__gamma"] == 1.0
    assert params["k2__k2__degree"] == 2
    assert kernel.set_params(k2__k1__gamma=3.0, k1=Laplacian()) is kernel
    assert kernel == Laplacian() + RBF(gamma=3.0) * Polynomial(degree=2)
    combined = Combination([Linear(), RBF(gamma=1.0)], [0.5, 0.5])
    assert combined.get_params()["kernels__1__gamma"] == 1.0
    combined.set_params(kernels__1__gamma=9.0, kernels__0=Laplacian())
    assert combined.kernels == [Laplacian(), RBF(gamma=9.0)]
    with pytest.raises(ValueError, match="RBF has no parameter 'sigma': its parameters are gamma"):
        RBF().set_params(sigma=1.0)
    with pytest.raises(ValueError, match="names nothing inside"):
        combined.set_params(kernels__7__gamma=1.0)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(gamma=0.0), "RBF: gamma must be a finite number > 0, got 0.0"),
        (RBF(gamma="scale"), "got 'scale'"),
        (Laplacian(gamma=-1.0), "Laplacian: gamma"),
        (Sigmoid(gamma=np.nan), "Sigmoid: gamma"),
        (Polynomial(degree=2.5), "degree must be an integer >= 1, got 2.5"),
        (Polynomial(degree=0), "degree"),
        (Polynomial(coef0=np.inf), "coef0"),
        (Scaled(RBF(), -1.0), "weight must be a finite number >= 0"),
        (Sum(RBF(), "rbf"), "k2 must be a kernel"),
        (RBF(gamma=-1.0) + Linear(), "RBF: gamma"),
        (Linear().on([0, 0]), "repetitions"),
        (Linear().on([True, False]), "0-based column numbers"),
        (Linear().on([]), "at least one"),
        (Linear().on([7]), "needs column 7, but the samples have 4 features"),
        (Combination([Linear()], [1.0, 2.0]), "weights must be 1 finite numbers"),
        (
            Combination([Linear()], [np.nan]),
            r"weights must be 1 finite .* got array\(\[nan\]\)",
        ),
    ],
    ids=lambda p: repr(p) if isinstance(p, Kernel) else "",
)
def test_bad_parameters_are_refused_when_called_not_when_built(kernel, message, X):
    with pytest.raises(ValueError, match=message):
        kernel(X)
    with pytest.raises(ValueError, match=message):
        kernel.diag(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[np.nan]],), "NaN or infinity"),
        (([[1.0, 2.0]], [[1.0]]), "X has 2 features and Y has 1"),
        (([[[1.0]]],), "2-dimensional"),
        (([["a"]],), "real numbers"),
        (([[1j]],), "complex128"),
        (([[1.0], [1.0, 2.0]],), "rows of one length"),
        (([1.0, 2.0], [[1.0, 2.0]]), "two vectors"),
        ((np.empty((3, 0)),), "at least one feature"),
    ],
)
def test_bad_samples_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RBF()(*arguments)


def test_vectors_give_numbers(X):
    k = RBF(gamma=0.3)
    assert np.ndim(k(X[0], X[1])) == 0
    assert k(X[0], X[1]) == pytest.approx(k(X)[0, 1], rel=1e-14)
    assert k(X[0]) == 1.0


def test_types_of_samples(X):
    pd = pytest.importorskip("pandas")
    k = RBF(gamma=0.3)
    np.testing.assert_array_equal(k(pd.DataFrame(X)), k(X))
    np.testing.assert_array_equal(k(np.asfortranarray(X)), k(X))
    assert k([[1, 2]]).dtype == np.float64
    assert k(X.astype(np.float32), X).dtype == np.float64
    assert k(X.astype(np.float16)).dtype == np.float64


def test_proofs_of_positive_semidefiniteness():
    assert all(k.is_psd for k in (Linear(), RBF(), Laplacian(), Polynomial()))
    assert (Linear() + 2.0 * RBF() * Polynomial()).on([0]).is_psd is True
    assert Polynomial(coef0=-1.0).is_psd is None
    assert Sigmoid().is_psd is False
    assert (Linear() + Sigmoid()).is_psd is False
    assert Combination([Linear(), Sigmoid()], [1.0, 0.0]).is_psd is True
    assert Combination([Linear(), RBF()], [1.0, -1.0]).is_psd is False


def test_check_kernel_finds_broken_kernels():
    class Asymmetric(RBF):
        def _gram(self, X, Y):
            K = super()._gram(X, Y)
            K[0] *= 1.0 + 1e-15
            return K + np.triu(np.full_like(K, 1e-9))

    class NotPSD(RBF):
        def _gram(self, X, Y):
            return -super()._gram(X, Y)

        def _diag(self, X):
            return -super()._diag(X)

    class WrongDiagonal(RBF):
        def _diag(self, X):
            return 2.0 * super()._diag(X)

    class ChangesParameter(RBF):
        def __init__(self, gamma=1.0):
            self.gamma = float(gamma) + 0.0

    class DependsOnSample(RBF):
        def _gram(self, X, Y):
            return super()._gram(X, Y) * (1.0 + len(X) / 100.0)

        def _diag(self, X):
            return super()._diag(X) * (1.0 + len(X) / 100.0)

    for cls, message in (
        (Asymmetric, "not exactly symmetric"),
        (NotPSD, "eigenvalue"),
        (WrongDiagonal, "diagonal"),
        (ChangesParameter, "changes its parameter gamma"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_kernel(cls(gamma=np.float64(1.5)))
    # local classes cannot be pickled, so this one is checked by its own part
    from kernelweave.kernels_core.testing.kernel import _check_calls

    X = np.random.default_rng(0).uniform(size=(12, 3))
    broken = DependsOnSample()
    with pytest.raises(AssertionError, match=r"k\(X\[a\], X\[b\]\)"):
        _check_calls(broken, X, broken(X))
    with pytest.raises(AssertionError, match="not derived"):
        check_kernel(lambda x, y: 0.0)


def test_a_kernel_needs_only_its_gram(X):
    class Minimum(Kernel):
        name = "minimum"

        def _gram(self, X, Y):
            return np.minimum(X[:, None, 0], (X if Y is None else Y)[None, :, 0])

    k = Minimum()
    np.testing.assert_array_equal(k.diag(X), k(X).diagonal())
    with pytest.raises(TypeError, match=r"Minimum\(\) does not accept sparse"):
        k(scipy.sparse.csr_array(X))


def test_importing_loads_neither_scipy_nor_numba_nor_scikit_learn():
    code = (
        "import sys; from kernelweave.kernels_core.families import FamilyKernel; "
        "from kernelweave.kernels_core.grams import PrecomputedGrams, UnstoredKernel; "
        "from kernelweave.kernels_core.kernels import RBF, PAPER_TEN, KernelDictionary; "
        "from kernelweave.kernels_core.testing import check_kernel; RBF()([[0.0], [1.0]]); "
        "KernelDictionary([RBF()]).fit_grams([[0.0], [1.0]]); "
        "bad = {'scipy', 'numba', 'sklearn', 'cvxpy'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_of_the_package():
    import kernelweave.kernels_core.kernels as package

    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="attribute RBFF"):
        _ = package.RBFF
