"""The same box problems by LIBSVM, as a cross-check: precomputed kernels, through ``ctypes``.

It stays, although our own solvers need it for nothing: with cvxpy and MOSEK it is one of the
solvers that the project's plan names, and the only second opinion on a dual that users can run.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import warn

from .problem import BoxProblem, Budget

if TYPE_CHECKING:
    from types import ModuleType

    from sklearn.base import BaseEstimator
    from threadpoolctl import threadpool_limits

# A `svm_node` of LIBSVM: an index and a float64, aligned.
_BYTES_PER_ENTRY = 16


def _library() -> tuple[ModuleType, type[threadpool_limits]]:
    try:
        from libsvm import svm
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise ImportError(
            'backend="libsvm" needs libsvm-official and threadpoolctl: '
            "pip install kernelweave-qp-smo[libsvm]"
        ) from error
    return svm, threadpool_limits


def _class_weights(problem: BoxProblem) -> tuple[float, list[float]]:
    """Return C and the factors of the classes -1 and +1, or raise where C varies inside a class."""
    size = np.maximum(problem.upper, -problem.lower)
    if not problem.exact_kappa:
        if (problem.upper != -problem.lower).any():
            raise ValueError(_ONE_SIDED)
        if np.ptp(size) > 0.0:
            raise ValueError(_UNIFORM)
        return float(size[0]), []
    negative, positive = size[problem.p < 0.0], size[problem.p > 0.0]
    if np.ptp(negative) > 0.0 or np.ptp(positive) > 0.0:
        raise ValueError(_UNIFORM)
    return 1.0, [float(negative[0]), float(positive[0])]


_ONE_SIDED = (
    'backend="libsvm" charges residuals above and below alike, which a quantile does not: use '
    'backend="smo"'
)
_UNIFORM = (
    'backend="libsvm" has weights of classes but none of samples: sample_weight must be equal '
    'inside each class (use backend="smo")'
)


def _nodes(svm: ModuleType, K: np.ndarray) -> tuple[ctypes.Array, np.ndarray]:
    """Return LIBSVM's problem rows: serial number, then (index, value) pairs, then the end mark."""
    n = K.shape[0]
    layout = np.dtype([("index", np.int32), ("value", np.float64)], align=True)
    nodes = np.zeros((n, n + 2), dtype=layout)
    nodes["index"][:, : n + 1] = np.arange(n + 1, dtype=np.int32)
    nodes["index"][:, n + 1] = -1
    nodes["value"][:, 0] = np.arange(1, n + 1)
    nodes["value"][:, 1 : n + 1] = K
    pointer = ctypes.POINTER(svm.svm_node)
    base, stride = nodes.ctypes.data, nodes.strides[0]
    rows = (pointer * n)(*(ctypes.cast(base + i * stride, pointer) for i in range(n)))
    return rows, nodes


def _options(problem: BoxProblem, budget: Budget) -> str:
    C, weights = _class_weights(problem)
    megabytes = max(100, problem.n_samples**2 * 4 // 2**20 + 1)
    common = f"-q -t 4 -c {C!r} -e {budget.tol!r} -m {megabytes} -h 1"
    if not problem.exact_kappa:
        return f"-s 3 -p {problem.epsilon!r} {common}"
    return f"-s 0 -w-1 {weights[0]!r} -w1 {weights[1]!r} {common}"


def _coefficients(problem: BoxProblem, model: BaseEstimator) -> FloatArray:
    u = np.zeros(problem.n_samples)
    count = model.contents.l
    index = np.array(model.contents.sv_indices[:count], dtype=np.int64) - 1
    u[index] = model.contents.sv_coef[0][:count]
    # LIBSVM signs its coefficients by the first label it sees.
    if problem.exact_kappa and model.contents.label[0] < 0:
        u = -u
    return u


def libsvm(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> FloatArray:
    """Return LIBSVM's dual point u of shape (n,), feasible up to rounding: the cross-check.

    Its OpenMP threads make small problems up to 500 times slower on a busy machine and deadlock a
    child forked after a solve, so it runs with one thread and nothing here forks.

    `problem`: equal bounds inside each class; `start` of shape (n,): ignored, with a warning:
    LIBSVM cannot be warm-started; `budget`: only the tolerance is used: LIBSVM cannot be
    interrupted. Returns shape (n,). Raises ImportError if libsvm-official or threadpoolctl is not
    installed; ValueError if the sample weights differ inside a class; MemoryBudgetError if its copy
    of K, 16 bytes an entry, does not fit.
    """
    svm, threadpool_limits = _library()
    n = problem.n_samples
    options = _options(problem, budget)
    memory.require(
        _BYTES_PER_ENTRY * n * (n + 2),
        f"LIBSVM's copy of the Gram matrix of {n} samples (16 bytes an entry)",
        alternative='use backend="smo", which copies nothing',
    )
    if start is not None:
        warn('alpha0 is ignored: backend="libsvm" has no warm start (use backend="smo")')
    rows, nodes = _nodes(svm, problem.K)
    targets = np.ascontiguousarray(problem.p, dtype=np.float64)
    parameters = svm.svm_parameter(options)
    data = svm.svm_problem.__new__(svm.svm_problem)
    data.l = n
    data.y = targets.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    data.x = ctypes.cast(rows, ctypes.POINTER(ctypes.POINTER(svm.svm_node)))
    with threadpool_limits(1, user_api="openmp"):
        model = svm.libsvm.svm_train(ctypes.byref(data), ctypes.byref(parameters))
    try:
        return _coefficients(problem, model)
    finally:
        svm.libsvm.svm_free_and_destroy_model(ctypes.byref(model))
        del nodes
