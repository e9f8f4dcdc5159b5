"""Twelve fits from data to answer, small enough to count every instruction of.

Each function makes the data and returns what is counted: a fit, a Gram matrix or predictions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[[], object]


def classes(n_samples: int, n_features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform points and the classes of a noisy checkerboard."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, n_features))
    noise = 0.05 * rng.standard_normal(n_samples)
    return X, np.where((X[:, 0] - 0.5) * (X[:, -1] - 0.5) + noise > 0.0, 1.0, -1.0)


def numbers(n_samples: int, n_features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform points and a noisy function of the first two columns."""
    rng = np.random.default_rng(1)
    X = rng.random((n_samples, n_features))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n_samples)


def tessellated() -> Run:
    """Learn a tessellated kernel of a classification."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    X, y = classes(150, 3)
    return lambda: TessellatedKernelClassifier(tol=1e-2).fit(X, y)


def sparse() -> Run:
    """Choose two of twelve kernels."""
    from kernelweave.kernels_core import RBF
    from kernelweave.mkl_sparse import SparseMKLClassifier

    X, y = classes(120)
    kernels = [RBF(gamma=g) for g in np.geomspace(0.1, 30.0, 12)]
    model = SparseMKLClassifier(kernels, k0=2, algorithm="smkl-best-response")
    return lambda: model.fit(X, y)


def ridge() -> Run:
    """Learn weights of kernels for ridge regression."""
    from kernelweave.ridge_mkl import RidgeMKLRegressor

    X, y = numbers(200)
    return lambda: RidgeMKLRegressor(lam=0.1).fit(X, y)


def matrix_valued() -> Run:
    """Learn weights and an output kernel of four outputs together."""
    from kernelweave.kernels_core import RBF
    from kernelweave.vv_rkhs import MatrixValuedKernelRegressor

    X, y = numbers(80)
    Y = np.column_stack([y, y[::-1], X[:, 0] + y, X[:, 1] ** 2])
    kernels = [RBF(gamma=g) for g in (0.1, 1.0, 10.0)]
    model = MatrixValuedKernelRegressor(kernels, lam=1e-2, learn_output=True, tol=1e-3)
    return lambda: model.fit(X, Y)


def svc() -> Run:
    """Solve a support vector machine on a Gram matrix that is symmetric up to rounding."""
    from kernelweave.qp_smo import solve_svc
    from sklearn.metrics.pairwise import rbf_kernel

    X, y = classes(1000)
    K = rbf_kernel(X, gamma=10.0)
    return lambda: solve_svc(K, y, C=10.0)


def relaxations() -> Run:
    """Prove the best three of eight kernels."""
    from benchmarks.relaxations import optimum, stack_of

    stack, y = stack_of(100, 8)
    return lambda: optimum(stack, y)


def simplemkl() -> Run:
    """Learn weights of twelve kernels on the simplex."""
    from kernelweave.baselines import SimpleMKLClassifier
    from kernelweave.kernels_core import RBF

    X, y = classes(200)
    model = SimpleMKLClassifier([RBF(gamma=g) for g in np.geomspace(0.1, 30.0, 12)])
    return lambda: model.fit(X, y)


def evidence_exact() -> Run:
    """Learn a kernel by the evidence, with exact algebra."""
    from kernelweave.evidence import EvidenceKernelRegressor

    X, y = numbers(60)
    return lambda: EvidenceKernelRegressor(random_state=0).fit(X, y)


def evidence_large() -> Run:
    """Sum over many rows what a fit on landmarks needs."""
    from benchmarks.evidence_large import landmarks
    from kernelweave.evidence.large.sums import block_sums
    from kernelweave.evidence.rows import Rows, Standardised

    X = np.random.RandomState(1).rand(8000, 10)
    rows = Rows(X, np.zeros((len(X), 0), dtype=np.int64), X[:, :1].T)
    own, targets = landmarks(100), Standardised.of(rows)
    return lambda: block_sums(own, rows, targets)


def granger() -> Run:
    """Learn the graph of a known system of six series."""
    from kernelweave.granger import GrangerGraph, lorenz96

    X, _ = lorenz96(6, 60, noise=0.5, random_state=0)
    return lambda: GrangerGraph(lam=0.1, cv=None, tol=1e-2, max_iter=5).fit(X)


def gram() -> Run:
    """Form the Gram matrix of a tessellated kernel."""
    from kernelweave.kernels_core import TessellatedFamily

    X, _ = classes(600, 4)
    family = TessellatedFamily.from_data(X)
    P = np.eye(family.n_P)
    return lambda: family.prepare(X).gram(P)


def prediction() -> Run:
    """Predict many rows with a tessellated kernel that was learned."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    X, y = classes(80, 3)
    model = TessellatedKernelClassifier(tol=1e-1).fit(X, y)
    rows, _ = classes(2000, 3)
    return lambda: model.decision_function(rows)


FITS: dict[str, Callable[[], Run]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        *(tessellated, sparse, ridge, matrix_valued, svc, evidence_exact, evidence_large),
        *(granger, gram, prediction, relaxations, simplemkl),
    )
}
