"""Normal equations of landmark features, summed over blocks of rows, and their solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, row_slices
from scipy.linalg import blas, lapack

from ..terms import Stopped
from .levels import GroupSums
from .source import Source, refuse_other_rows

if TYPE_CHECKING:
    from ..copies import KnownRows
    from ..rows import Rows, Standardised
    from .features import Landmarks
    from .held_out import RowBlock

# rows multiplied at once; Ctrl-C and time limits are checked between two such pieces
_PIECE = 512
# rows added or taken away at once
_SHARE = 1024
# from one ridge to the next where rounding asks for more
_STEP = float(np.sqrt(10.0))
# powers of 10 that a ridge is raised by, where rounding asks for more
_POWERS = 21


@dataclass
class Sums:
    """KₓₘᵀWKₓₘ, stored as its lower triangle, and KₓₘᵀWY, for landmarks m and rows x.

    `gram` of shape (n_landmarks, n_landmarks); `cross` of shape (n_landmarks, n_outputs); `copies`:
    Σw, shape (n_known,), and Σwy, shape (n_known, n_outputs), over the copies of known rows.
    """

    gram: FloatArray
    cross: FloatArray
    copies: tuple[FloatArray, FloatArray]
    n_rows: int = 0

    @classmethod
    def zeros(cls, n_landmarks: int, n_outputs: int, n_known: int = 0) -> Sums:
        """Return the sums over no rows."""
        shape = (n_landmarks, n_landmarks)
        copies = np.zeros(n_known), np.zeros((n_known, n_outputs))
        return cls(np.zeros(shape, order="F"), np.zeros((n_landmarks, n_outputs)), copies)

    def add(self, other: Sums) -> None:
        """Add the sums over other rows."""
        self.gram += other.gram
        self.cross += other.cross
        self.copies = self.copies[0] + other.copies[0], self.copies[1] + other.copies[1]
        self.n_rows += other.n_rows


def block_sums(
    landmarks: Landmarks,
    rows: Rows,
    targets: Standardised,
    stop: Callable[[], bool] = clock.expired,
    known: KnownRows | None = None,
    ratio: float | None = None,
) -> Sums:
    """Return the sums over one block of rows.

    `targets`: centre, spread and warp of the targets of all rows; `stop`: asked between pieces of
    the block; `known`: rows whose copies are also summed over apart; `ratio`: of the noise to the
    levels of the groups, which the block holds whole, ``None`` where these have none. Raises
    Stopped where ``stop`` says so.
    """
    sums = Sums.zeros(len(landmarks), len(rows.targets))
    values = targets.of_rows(rows).values
    if known is not None:
        sums.copies = _of_copies(rows, values, known)
    alike = rows.weight is None and rows.information is None
    root = None if alike else np.sqrt(rows.precision)
    groups = None
    if ratio is not None and rows.groups is not None:
        groups = GroupSums.zeros(rows.groups, len(landmarks), len(values))
    for piece in row_slices(len(rows), _PIECE):
        if stop():
            raise Stopped
        features = landmarks.features(rows.numeric[piece], rows.codes[piece])
        phi, y = features.astype(np.float64), values.T[piece]
        if groups is not None:
            mass = rows.precision[piece]
            groups.add(piece, mass, phi, mass[:, None] * y)
        if root is not None:
            phi *= root[piece, None]
            y = y * root[piece, None]
        sums.gram = blas.dsyrk(1.0, phi.T, beta=1.0, c=sums.gram, overwrite_c=1, lower=1)
        sums.cross += phi.T @ y
    if groups is not None and ratio is not None:
        lost, right = groups.lost(ratio)
        sums.gram = blas.dsyrk(-1.0, lost.T, beta=1.0, c=sums.gram, overwrite_c=1, lower=1)
        sums.cross -= lost.T @ right
    sums.n_rows = len(rows)
    return sums


def _of_copies(rows: Rows, values: FloatArray, known: KnownRows) -> tuple[FloatArray, FloatArray]:
    """Return Σw and Σwy over the copies of known rows; `values` of shape (n_outputs, n)."""
    places = known.find(rows.numeric, rows.codes)
    seen = np.flatnonzero(places >= 0)
    at, mass, n = places[seen], rows.precision[seen], len(known)
    cross = [np.bincount(at, weights=mass * output[seen], minlength=n) for output in values]
    return np.bincount(at, weights=mass, minlength=n).astype(np.float64), np.column_stack(cross)


def total_sums(
    source: Source,
    landmarks: Landmarks,
    targets: Standardised,
    n_rows: int,
    known: KnownRows | None = None,
    report: Callable[[int], None] | None = None,
    ratio: float | None = None,
) -> Sums:
    """Return the sums over all ``n_rows`` rows; raise if the source has another number.

    `landmarks`, `targets`, `known`, `ratio`: as in `block_sums`; `report`: called with the
    rows done. Raises Stopped when the time is up.
    """
    read = partial(_read_sums, landmarks, targets, known, ratio)
    total, _ = source.fold(read, report=report)
    refuse_other_rows(n_rows, 0 if total is None else total.n_rows)
    assert total is not None
    return total


def _read_sums(
    landmarks: Landmarks,
    targets: Standardised,
    known: KnownRows | None,
    ratio: float | None,
    rows: Rows,
    _: int,
    stop: Callable[[], bool],
) -> Sums:
    return block_sums(landmarks, rows, targets, stop, known, ratio)


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations, whitened so that the kernel of the landmarks is the identity.

    (KₓₘᵀWKₓₘ + ρKₘₘ)β = KₓₘᵀWY is (A + ρI)γ = b with Kₘₘ = LLᵀ, A = L⁻¹KₓₘᵀWKₓₘL⁻ᵀ, β = L⁻ᵀγ.

    `root` of shape (n_landmarks, n_landmarks): L; `inner` of shape (n_landmarks, n_landmarks): A;
    its lower triangle is kept; `right` of shape (n_landmarks, n_outputs): b.
    """

    root: FloatArray
    inner: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, root: FloatArray, sums: Sums) -> NormalEquations:
        """Whiten sums, overwriting their Gram matrix; `root`: Cholesky factor of Kₘₘ."""
        inner, info = lapack.dsygst(sums.gram, root, itype=1, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"whitening the normal equations failed: info {info}")
        return cls(root, inner, blas.dtrsm(1.0, root, sums.cross, lower=1))

    def with_block(self, landmarks: Landmarks, share: RowBlock, sign: float) -> NormalEquations:
        """Return the equations with rows added (``sign=1``) or removed (``sign=-1``)."""
        out = self
        for part in share.parts():
            out = out._with_part(landmarks, part, sign)
        return out

    def _with_part(self, landmarks: Landmarks, share: RowBlock, sign: float) -> NormalEquations:
        inner, right = self.inner.copy(order="F"), self.right.copy(order="F")
        blocks = [share] if share.rest is None else [share, share.rest]
        # of groups: what the equations lose with all rows of the blocks, and with the last alone
        sums: list[GroupSums] = []
        if share.ratio is not None:
            of_blocks = [each.rows.groups for each in blocks if each.rows.groups is not None]
            numbers = np.concatenate(of_blocks)
            sums = [GroupSums.zeros(numbers, *right.shape) for _ in blocks]
        first = 0
        for k, block in enumerate(blocks[: max(1, len(sums))]):
            for piece in row_slices(len(block.mass), _SHARE):
                features = landmarks.features(block.rows.numeric[piece], block.rows.codes[piece])
                z = blas.dtrsm(1.0, self.root, features.T.astype(np.float64), lower=1)
                at = slice(first + piece.start, first + piece.stop)
                for each in sums[: k + 1]:
                    each.add(at, block.mass[piece], z.T, block.cross[piece])
                if block is share:
                    right += sign * (z @ share.cross[piece])
                    z *= np.sqrt(share.mass[piece])
                    inner = blas.dsyrk(sign, z, beta=1.0, c=inner, overwrite_c=1, lower=1)
            first += len(block.mass)
        for each, way in zip(sums, (-sign, sign), strict=False):
            lost, moved = each.lost(share.ratio or 0.0)
            right += way * (lost.T @ moved)
            inner = blas.dsyrk(way, lost.T, beta=1.0, c=inner, overwrite_c=1, lower=1)
        return NormalEquations(self.root, inner, right)

    def first(self, size: int) -> NormalEquations:
        """Return the equations of the first landmarks: leading blocks, as roots are triangular."""
        if size == len(self.root):
            return self
        root, inner = (each[:size, :size].copy(order="F") for each in (self.root, self.inner))
        return NormalEquations(root, inner, self.right[:size].copy(order="F"))

    def factor(self, ridge: float) -> FloatArray:
        """Return the factor of A + ρI; more ridge than rounding hides, in steps of 10."""
        for power in range(_POWERS):
            factor = self._factor(10.0**power * ridge)
            if factor is not None:
                return factor
        raise np.linalg.LinAlgError(
            f"a ridge of {10.0**_POWERS * ridge:.1e} does not make the normal equations positive "
            "definite"
        )

    def _factor(self, ridge: float) -> FloatArray | None:
        shifted = self.inner.copy(order="F")
        shifted.reshape(-1, order="F")[:: len(shifted) + 1] += ridge
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        return None if info else np.asarray(factor)

    def solved(self, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        """Return the ridge, raised by steps of √10 where rounding asks for it, and the solution."""
        found = self.solve(ridge)
        while found is None:
            ridge *= _STEP
            found = self.solve(ridge)
        return ridge, *found

    def solve(self, ridge: float) -> tuple[FloatArray, FloatArray] | None:
        """Return β and the Cholesky factor of A + ρI, ``None`` if it is not positive definite."""
        factor = self._factor(ridge)
        if factor is None:
            return None
        gamma, _ = lapack.dpotrs(factor, self.right, lower=1)
        return blas.dtrsm(1.0, self.root, gamma, lower=1, trans_a=1), factor
