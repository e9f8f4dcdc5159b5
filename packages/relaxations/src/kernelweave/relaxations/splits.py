"""The proof behind a conic bound: a dual point split into parts with shares.

For positive semidefinite K, ``u = Σ vₗ`` and shares ``aₗ > 0`` with ``Σ aₗ ≤ 1``, Cauchy's
inequality gives ``uᵀKu ≤ Σ vₗᵀKvₗ/aₗ``. The multipliers of a relaxation suggest vₗ and aₗ; that the
parts add up to u exactly is seen to here, so that nothing depends on the solver's accuracy.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import Stack
from kernelweave.kernels_core.rounding import UNIT

# Shares below this part of their sum are raised to it: the proof divides by them.
_SMALLEST_SHARE = 1e-12
# The share of what rounding leaves over in the pairs; the bound loses as much.
_LEFT_OVER = 1e-10


def positive_shares(share: FloatArray) -> FloatArray:
    """Return shares at least 1e-12 that sum to at most 1, proportional to ``share`` elsewhere.

    `share` of shape (L,): at least 0, not all 0.
    """
    raised = share / share.sum() + _SMALLEST_SHARE
    lowered: FloatArray = raised / (raised.sum() * (1.0 + 4.0 * share.size * UNIT))
    return lowered


def forms_by_vectors(
    grams: Stack, vectors: FloatArray, along: FloatArray, share: FloatArray, u: FloatArray
) -> FloatArray:
    """Return upper bounds of ``uᵀKⱼu`` by ``u = Σ cₗxₗ``, shape (q,).

    - `vectors` of shape (L, n): the rows x; the last n are the unit vectors, which take up what the
      others leave of u
    - `along` of shape (L,): c, of which the last n entries are not used
    - `share` of shape (L,): a before normalisation
    - `u` of shape (n,)
    """
    n = u.size
    extra = len(vectors) - n
    others, coefficient = vectors[:extra], along[:extra]
    margin = 2.0 * (extra + 4) * UNIT
    left = np.abs(u - others.T @ coefficient)
    left += margin * (np.abs(others.T) @ np.abs(coefficient) + np.abs(u))
    a = positive_shares(share)
    forms = (grams.diagonals * (left**2 / a[extra:])).sum(axis=1)
    for x, c, part in zip(others, coefficient, a[:extra], strict=True):
        if c != 0.0:
            forms += grams.quadratic_forms(x) * (c * c / part)
    raised: FloatArray = forms + 4.0 * (len(vectors) + 8) * UNIT * np.abs(forms)
    return raised


def forms_by_pairs(grams: Stack, parts: FloatArray, share: FloatArray, u: FloatArray) -> FloatArray:
    """Return upper bounds of ``uᵀKⱼu`` by parts on two samples each, shape (q,).

    `parts` of shape (n(n − 1)/2, 2): roughly what each pair, in the order of
    ``numpy.triu_indices``, holds of u; `share` of shape (n(n − 1)/2,): a before normalisation; `u`
    of shape (n,).
    """
    n = u.size
    first, second = np.triu_indices(n, 1)
    pairs = np.stack([first, second], axis=1)
    a = positive_shares(share)
    mass = np.bincount(pairs.ravel(), weights=np.repeat(a, 2), minlength=n)
    held = np.bincount(pairs.ravel(), weights=parts.ravel(), minlength=n)
    # what the parts miss of u is spread over the pairs of each sample by their shares
    v = parts + a[:, None] * ((u - held) / mass)[pairs]
    held = np.bincount(pairs.ravel(), weights=v.ravel(), minlength=n)
    size = np.bincount(pairs.ravel(), weights=np.abs(v).ravel(), minlength=n)
    # rounding leaves a little of each sample over, which gets a share of its own
    left = np.abs(u - held) + 2.0 * (n + 4) * UNIT * (size + np.abs(u))
    forms = (grams.diagonals * left**2).sum(axis=1) * (n / _LEFT_OVER)
    for j, K in enumerate(grams.matrices):
        diagonal = grams.diagonals[j]
        off = np.asarray(K[first, second], dtype=np.float64)
        squares = v[:, 0] ** 2 * diagonal[first] + v[:, 1] ** 2 * diagonal[second]
        mixed = 2.0 * v[:, 0] * v[:, 1] * off
        terms = np.maximum(squares + mixed, 0.0) + 8.0 * UNIT * (squares + np.abs(mixed))
        forms[j] += float((terms / a).sum()) * (1.0 + 2.0 * _LEFT_OVER)
    raised: FloatArray = forms + 4.0 * (a.size + 8) * UNIT * np.abs(forms)
    return raised
