"""CKA: weights by centred alignment with the labels, in closed form or nonnegative."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.checks import check_sample_weight, check_targets, one_of
from kernelweave.kernels_core.exceptions import KernelWeaveWarning
from kernelweave.kernels_core.formula import Learner
from kernelweave.kernels_core.grams import as_grams
from kernelweave.kernels_core.parameters import Value, parameter
from numpy.typing import ArrayLike

METHOD = one_of("qp", "closed-form")
# Bytes of the rows of all kernels that are centred and multiplied at a time: about what a core's
# cache holds.
_BLOCK_BYTES = 1 << 21


def centered_products(
    grams: ArrayLike, targets: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return ``Mᵢⱼ = ⟨Kᵢᶜ, Kⱼᶜ⟩`` and ``aⱼ = Σₜ yₜᵀKⱼᶜyₜ``, ``Kᶜ = (I − 11ᵀ/n) K (I − 11ᵀ/n)``.

    `grams` of shape (q, n, n), `targets` of shape (n,) or (t, n). ``q²n²`` flops by blocks of rows.
    The kernels are centred before they are multiplied: the means of polynomial kernels are 100
    times larger than the rest, and M is nearly singular.
    """
    stack = np.asarray(grams)
    y = np.atleast_2d(np.asarray(targets, dtype=np.float64))
    n = stack.shape[1]
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    root = np.sqrt(weight)
    row = np.matmul(stack, weight, dtype=np.float64) / weight.sum()
    left = row - (row @ weight)[:, None] / weight.sum()
    M = np.zeros((len(stack), len(stack)))
    a = np.zeros(len(stack))
    step = max(1, _BLOCK_BYTES // (8 * n * len(stack)))
    for start in range(0, n, step):
        at = slice(start, start + step)
        block = np.asarray(stack[:, at], dtype=np.float64) - left[:, at, None]
        block -= row[:, None, :]
        block *= root[at, None] * root
        flat = block.reshape(len(stack), -1)
        M += flat @ flat.T
        a += np.einsum("jik,ti,tk->j", block, y[:, at] * root[at], y * root, optimize=True)
    return M, a


def alignment_weights(
    grams: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    method: str = "qp",
    sample_weight: npt.ArrayLike | None = None,
    check: bool = True,
) -> FloatArray:
    """Return the β of largest centred alignment with the labels, ``(βᵀa)²/βᵀMβ``, ‖β‖₂ = 1.

    Without a constraint on signs the optimum is ``M⁻¹a/‖M⁻¹a‖``; over ``β ≥ 0`` it is ``v/‖v‖``
    with v the minimiser of ``vᵀMv − 2vᵀa`` over ``v ≥ 0``.

    Parameters
    ----------
    grams : array-like of shape (q, n, n)
        Symmetric.
    targets : array-like of shape (n,) or (t, n)
        Labels ±1 or numbers; for several tasks the target kernel is the sum of theirs.
    method : {"qp", "closed-form"}
        The nonnegative quadratic program, or the closed form as the sparse multiple kernel
        learning paper prints it, whose weights may be negative.
    sample_weight : array-like of shape (n,), optional
        How many times each sample counts.
    check : bool, default=True
        Whether to check the arguments; without it the caller vouches for them.

    Returns
    -------
    ndarray of shape (q,)
        β. Where no kernel is aligned with the labels, equal weights.

    Raises
    ------
    ValueError
        If the method is unknown, a matrix is not finite and symmetric, or targets or weights do
        not fit.

    Notes
    -----
    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 2012: section 4.1 and proposition 9 for the quadratic program, which is solved by
    nonnegative least squares in exact arithmetic steps. The sparse multiple kernel learning paper
    states ``β ≥ 0`` and prints the closed form, which ignores it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import alignment_weights
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> grams = np.stack([np.outer(y, y), np.eye(4)])
    >>> alignment_weights(grams, y).round(6) + 0.0
    array([1., 0.])
    """
    METHOD.check("method", method)
    if check:
        grams = as_grams(grams, "grams", square=True)
        targets = check_targets("targets", targets, grams.shape[1])
        sample_weight = check_sample_weight(sample_weight, grams.shape[1])
    M, a = centered_products(grams, targets, sample_weight)
    scale = np.sqrt(np.diagonal(M))
    scale[scale == 0.0] = 1.0
    solve = _nonnegative if method == "qp" else _unconstrained
    cosines = a / scale
    # ⟨Kᶜ, yyᵀ⟩ ≤ ‖Kᶜ‖‖y‖²: what is smaller by n roundings is rounding
    squares = np.square(np.atleast_2d(np.asarray(targets, dtype=np.float64)))
    size = float(np.sum(squares if sample_weight is None else squares @ np.asarray(sample_weight)))
    cosines[np.abs(cosines) <= np.finfo(np.float64).eps * np.shape(grams)[1] * size] = 0.0
    v = solve(M / np.outer(scale, scale), cosines) / scale
    largest = float(np.abs(v).max())
    if not largest > 0.0:
        warnings.warn(
            "no kernel is aligned with the labels after centring: equal weights are used",
            KernelWeaveWarning,
            stacklevel=2,
        )
        return np.full(len(a), len(a) ** -0.5)
    # the squares of kernels with tiny Gram matrices are no numbers
    v = v / largest
    return np.asarray(v / np.linalg.norm(v))


def _unconstrained(M: FloatArray, a: FloatArray) -> FloatArray:
    """Return M⁻¹a; of least norm where M is singular."""
    from scipy.linalg import LinAlgError, solve

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(solve(M, a, assume_a="sym"))
    except (LinAlgError, Warning):
        return np.asarray(np.linalg.pinv(M, hermitian=True) @ a)


def _nonnegative(M: FloatArray, a: FloatArray) -> FloatArray:
    """Return the minimiser of vᵀMv − 2vᵀa over v ≥ 0: least squares with M = FᵀF."""
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(M)
    kept = values > len(a) * np.finfo(np.float64).eps * values[-1]
    if not kept.any():
        # nnls reads memory that nobody wrote where there is no row
        return np.zeros(len(a))
    root = np.sqrt(values[kept])
    F = root[:, None] * vectors[:, kept].T
    v, _ = nnls(F, (vectors[:, kept].T @ a) / root)
    return np.asarray(v)


class AlignmentWeights(Value):
    """The one point {β : β of largest centred alignment with the labels}.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import AlignmentWeights
    >>> y = np.array([[-1.0, -1.0, 1.0, 1.0]])
    >>> AlignmentWeights().weights(np.stack([y.T @ y, np.eye(4)]), y).round(6) + 0.0
    array([1., 0.])
    """

    name: ClassVar[str] = "alignment-weights"
    is_point: ClassVar[bool] = True
    method: str = parameter(
        '``"qp"`` maximises over β ≥ 0; ``"closed-form"`` is M⁻¹a/‖M⁻¹a‖ with any signs, and '
        "raises an error if the combination is not positive semidefinite.",
        default="qp",
        rule=METHOD,
    )

    def weights(
        self,
        grams: RealArray,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        learner: Learner | None = None,
    ) -> FloatArray:
        """Return β for targets of shape (t, n); the learner is not used."""
        return alignment_weights(
            grams, targets, method=self.method, sample_weight=sample_weight, check=False
        )
