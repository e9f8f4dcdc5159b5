"""What every kernel must do, checked on samples: for our kernels and for third parties'."""

from __future__ import annotations

import pickle

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..arrays import RealArray
from ..grams.psd import spectrum
from ..kernels.base import Kernel


def _need(condition: object, kernel: Kernel, what: str) -> None:
    if not condition:
        raise AssertionError(f"{kernel!r}: {what}")


def _close(a: ArrayLike, b: ArrayLike, scale: float, dtype: DTypeLike = np.float64) -> bool:
    tolerance = 1e4 * float(np.finfo(dtype).eps)
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * scale))


def check_kernel(kernel: Kernel, X: ArrayLike | None = None) -> None:
    """Check that a kernel keeps the promises of `Kernel`.

    Symmetry to the last bit, positive semidefiniteness (skipped where ``kernel.is_psd`` is
    False), ``diag``, copies through ``get_params`` and pickle, ``repr`` and equality, float32,
    k(X)[a][:, b] = k(X[a], X[b]), calls on two vectors, parameters left alone by a call, and
    clear refusals of NaN and of a wrong number of features.

    Parameters
    ----------
    kernel : Kernel
    X : array-like, shape (n, n_features), optional
        At least 4 samples in the kernel's domain; default 12 samples with 3 features in [0, 1].

    Raises
    ------
    AssertionError
        Naming the kernel and the broken promise.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import RBF
    >>> from kernelweave.kernels_core.testing import check_kernel
    >>> check_kernel(RBF(gamma=2.0))
    """
    if not isinstance(kernel, Kernel):
        raise AssertionError(f"{kernel!r} is not derived from kernelweave.kernels_core Kernel")
    if X is None:
        X = np.random.default_rng(0).uniform(size=(12, 3))
    samples = np.asarray(X, dtype=np.float64)
    if samples.ndim != 2 or len(samples) < 4:
        raise ValueError(f"X must hold at least 4 samples, got shape {samples.shape}")
    K = kernel(samples)
    _check_matrix(kernel, samples, K)
    _check_value(kernel, samples, K)
    _check_calls(kernel, samples, K)
    _check_refusals(kernel, samples)


def _check_matrix(kernel: Kernel, X: RealArray, K: RealArray) -> None:
    n = len(X)
    _need(isinstance(K, np.ndarray) and K.shape == (n, n), kernel, f"k(X) is not ({n}, {n})")
    _need(K.dtype == np.float64, kernel, f"k(X) is {K.dtype} for float64 samples")
    _need(np.isfinite(K).all(), kernel, "k(X) is not finite")
    _need(np.array_equal(K, K.T), kernel, "k(X) is not exactly symmetric")
    scale = float(np.abs(K).max())
    _need(_close(kernel.diag(X), K.diagonal(), scale), kernel, "diag(X) is not k(X)'s diagonal")
    if kernel.is_psd is not False:
        ends = spectrum(K)
        _need(
            ends.is_psd,
            kernel,
            f"k(X) has the eigenvalue {ends.lambda_min:.3g}: a kernel that is not positive "
            "semidefinite declares is_psd False",
        )
    single = kernel(X.astype(np.float32))
    _need(single.dtype == np.float32, kernel, f"k(X) is {single.dtype} for float32 samples")
    _need(np.array_equal(single, single.T), kernel, "k(X) is not symmetric in float32")
    _need(_close(single, K, scale, np.float32), kernel, "float32 and float64 disagree")


def _check_value(kernel: Kernel, X: RealArray, K: RealArray) -> None:
    _need(isinstance(kernel.name, str) and kernel.name, kernel, "name is not a string")
    _need(isinstance(repr(kernel), str), kernel, "repr is not a string")
    params = kernel.get_params(deep=False)
    again = type(kernel)(**params)
    for name, value in again.get_params(deep=False).items():
        _need(value is params[name], kernel, f"the constructor changes its parameter {name}")
    for how, other in (("get_params", again), ("pickle", pickle.loads(pickle.dumps(kernel)))):
        _need(other == kernel, kernel, f"its copy through {how} is not equal to it")
        _need(hash(other) == hash(kernel), kernel, f"its copy through {how} has another hash")
        _need(repr(other) == repr(kernel), kernel, f"its copy through {how} prints differently")
        _need(np.array_equal(other(X), K), kernel, f"its copy through {how} computes differently")
    _need(kernel != object() and kernel == again.set_params(), kernel, "equality is broken")


def _check_calls(kernel: Kernel, X: RealArray, K: RealArray) -> None:
    scale = float(np.abs(K).max())
    a, b = [2, 0, 3], [1, 2]
    part = kernel(X[a], X[b])
    _need(part.shape == (3, 2), kernel, f"k(X, Y) has shape {part.shape}, not (n_x, n_y)")
    _need(_close(part, K[np.ix_(a, b)], scale), kernel, "k(X[a], X[b]) is not k(X)[a][:, b]")
    _need(_close(kernel(X[b], X[a]), part.T, scale), kernel, "k(Y, X) is not k(X, Y)ᵀ")
    number = kernel(X[0], X[1])
    _need(np.ndim(number) == 0, kernel, "k(x, y) of two vectors is not a number")
    _need(_close(number, K[0, 1], scale), kernel, "k(x, y) of two vectors is not k(X)[0, 1]")
    _need(np.array_equal(kernel(X), K), kernel, "a second call computes differently")


def _check_refusals(kernel: Kernel, X: RealArray) -> None:
    broken = X.copy()
    broken[0, 0] = np.nan
    for what, arguments in (
        ("NaN", (broken,)),
        ("another number of features", (X, X[:, :-1] if X.shape[1] > 1 else X[:, [0, 0]])),
        ("a 3-dimensional array", (X[None],)),
    ):
        try:
            kernel(*arguments)
        except ValueError:
            continue
        raise AssertionError(f"{kernel!r}: accepts {what} instead of raising ValueError")
