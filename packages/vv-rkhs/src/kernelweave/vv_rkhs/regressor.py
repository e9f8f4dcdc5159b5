"""Regression of several outputs with learned input and output kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin

from .machine import MatrixValuedKernelMachine
from .training import checked_regression

FloatArray = npt.NDArray[np.float64]


class MatrixValuedKernelRegressor(MultiOutputMixin, RegressorMixin, MatrixValuedKernelMachine):  # type: ignore[misc]
    """Regressor for several outputs that learns which inputs matter and how outputs go together.

    min over f, η, L of (1/l) Σ ‖f(xᵢ) − yᵢ‖² + λ Σ ‖fⱼ‖²/ηⱼ + λω(η), f = Σ fⱼ, fⱼ in the space of
    the matrix-valued kernel kⱼ L, L ⪰ 0, tr L ≤ τ. With one kernel and L = I it is
    ``KernelRidge(alpha=lam * n_samples)``.

    Parameters
    ----------
    kernels : None, KernelDictionary, GaussianGrid, list of Kernel, dict or "precomputed"
        The dictionary; ``None`` is the default dictionary of eight kernels, each scaled to mean
        diagonal 1. Scales matter: a kernel of large trace is cheap to select. Of a `GaussianGrid`
        no matrix but the sum is stored. With ``"precomputed"`` X is a `PrecomputedGrams` or an
        array of shape (n_kernels, n_samples, n_train).
    p : float, default=1.0
        Exponent of the squared ℓp norm over kernels, in [1, 2]; 1 selects few.
    penalty : {"lp", "elastic-net", "group"} or Penalty, default="lp"
        The regulariser over kernels. A `Penalty` of your own needs ``prox`` for ``"vv-spg"``.
    mu : float, default=0.5
        Share of the squared norm in the elastic net.
    groups : sequence of int, optional
        Group of each kernel, for ``penalty="group"``.
    lam : float, default=1e-3
        λ.
    tau : float, optional
        Bound on the trace of L; the number of outputs by default. Only λ/τ matters, except to the
        elastic net, whose λω(η) knows no τ.
    rho : float, default=1.0
        Weight of ‖L‖² for ``algorithm="vv-dinuzzo"``, which fixes η at 1/m: ``p``, ``penalty``,
        ``mu``, ``groups``, ``tau`` and ``learn_input`` mean nothing to it.
    learn_input, learn_output : bool, default=True
        Whether η and L are learned. Both: IOKL, a stationary point; one: IKL or OKL, optimal.
        What is not learned is even: η = 1/m, L = (τ/n) I.
    algorithm : str, default="vv-spg"
        Registered algorithm: ``"vv-spg"``, ``"vv-block-descent"`` or ``"vv-dinuzzo"``.
    algorithm_params : dict, optional
        Passed to the algorithm.
    center : bool, default=False
        Whether the weighted mean of the targets is taken off first and added to predictions; the
        paper's model has no offset.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stack of Gram matrices; precomputed ones keep theirs.
    tol : float, default=1e-4
        Relative certified gap; for joint learning, relative stationarity.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    memory_limit : float, optional
        Bytes that the fit may allocate beside its data; refused before the work otherwise.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The algorithms are deterministic; kept for the interface.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        η.
    output_kernel_ : ndarray of shape (n_outputs, n_outputs)
        L.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        C L: predictions are ``kernel_(X, X_train) @ dual_coef_ + intercept_``.
    intercept_ : ndarray of shape (n_outputs,)
        Zeros unless ``center``.
    kernel_ : callable
        The learned input kernel k_η; absent for precomputed kernels.
    kernel_names_ : tuple of str
        Names of the kernels, in the order of ``weights_``; absent likewise.
    result_ : Result
        Bounds, gap, status, history.
    certificate_ : Certificate
        Both bounds. Joint learning of several outputs is not convex: ``result_.status`` says
        stationary, and the lower bound is that of a relaxation, valid but not tight.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import RBF
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
    >>> X = np.linspace(0, 1, 20)[:, None] * [1.0, 0.0]
    >>> X[:, 1] = X[::-1, 0] ** 2 % 0.3
    >>> Y = np.column_stack([np.sin(6 * X[:, 0]), 2 * np.sin(6 * X[:, 0])])
    >>> kernels = [RBF(gamma=10.0).on([0]), RBF(gamma=10.0).on([1])]
    >>> model = MatrixValuedKernelRegressor(kernels).fit(X, Y)
    >>> model.weights_.round(2) + 0.0
    array([1., 0.])
    >>> model.predict(X[:3]).shape
    (3, 2)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MatrixValuedKernelRegressor:
        """Learn the kernel and the function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or precomputed Gram matrices
            Training points.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets. An output of larger numbers weighs more, in the squared error and in
            tr L: bring outputs to one scale first (`TransformedTargetRegressor`).
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the squared error per sample, and l is their sum; a weight of 0 equals
            leaving the sample out, 2 equals the sample twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        X, Y, weight, single = checked_regression(self, X, y, sample_weight)
        self._single = single
        self._fit_arrays(X, Y, weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or cross-Gram matrices
            Points to predict.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As many columns as y had.
        """
        values = self._values(X)
        return values[:, 0] if self._single else values
