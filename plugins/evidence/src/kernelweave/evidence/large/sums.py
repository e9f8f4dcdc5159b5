"""Normal equations of landmark features, summed over blocks of rows, and their solution."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Pending
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import blas, lapack

from ..rows import Rows, Standardised
from ..steps import Stopped
from .features import Landmarks
from .posterior import PosteriorOfSums

# rows multiplied at once: a Ctrl-C is heard between two such pieces
_PIECE = 512
_HEAR = 0.05
# of the largest eigenvalue of Kₘₘ: squaring hides in rounding what lies far below it
_JITTER = 1e-7


@dataclass
class Sums:
    """KₓₘᵀWKₓₘ, of which the lower triangle is kept, and KₓₘᵀWY.

    `gram` of shape (n_landmarks, n_landmarks); `cross` of shape (n_landmarks, n_outputs); `n_rows`:
    rows summed over; `n_read`: rows looked at, those left out among them.
    """

    gram: FloatArray
    cross: FloatArray
    n_rows: int = 0
    n_read: int = 0

    @classmethod
    def nothing(cls, n_landmarks: int, n_outputs: int) -> Sums:
        """Return the sums over no rows."""
        shape = (n_landmarks, n_landmarks)
        return cls(np.zeros(shape, order="F"), np.zeros((n_landmarks, n_outputs)))

    def add(self, other: Sums) -> None:
        """Add the sums over other rows."""
        self.gram += other.gram
        self.cross += other.cross
        self.n_rows += other.n_rows
        self.n_read += other.n_read


def block_sums(
    landmarks: Landmarks,
    rows: Rows,
    targets: Standardised,
    stop: Callable[[], bool] = clock.expired,
) -> Sums:
    """Return the sums over one block of rows.

    `targets`: centre, spread and warp of the targets of all rows; `stop`: asked between pieces of
    the block. Raises Stopped where ``stop`` says so.
    """
    sums = Sums.nothing(len(landmarks), len(rows.targets))
    values = targets.of_rows(rows).values
    root = None if rows.weight is None else np.sqrt(rows.weight)
    for start in range(0, len(rows), _PIECE):
        if stop():
            raise Stopped
        piece = slice(start, start + _PIECE)
        own = landmarks.features(rows.numeric[piece], rows.codes[piece])
        phi, y = own.astype(np.float64), values.T[piece]
        if root is not None:
            phi *= root[piece, None]
            y = y * root[piece, None]
        sums.gram = blas.dsyrk(1.0, phi.T, beta=1.0, c=sums.gram, overwrite_c=1, lower=1)
        sums.cross += phi.T @ y
    sums.n_rows = sums.n_read = len(rows)
    return sums


def total_sums(
    landmarks: Landmarks,
    blocks: Iterable[tuple[Rows, int]],
    targets: Standardised,
    *,
    n_jobs: int | None = None,
    tell: Callable[[int], None] | None = None,
) -> Sums:
    """Return the sums over all blocks, added in their order whatever the number of threads.

    `landmarks`, `targets`: as in `block_sums`; `blocks`: rows to sum over, and how many were read
    for them; `n_jobs`: threads; `tell`: called with the rows read. Raises Stopped where time is up.
    """
    total = Sums.nothing(len(landmarks), len(targets.centre))
    halt = threading.Event()
    threads = effective_n_jobs(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        jobs = (
            pool.submit(_read_sums, landmarks, rows, n_read, targets, halt.is_set)
            for rows, n_read in blocks
        )
        try:
            for part in _in_order(jobs, threads + 1):
                total.add(part)
                if tell is not None:
                    tell(total.n_read)
        finally:
            halt.set()
    return total


def _read_sums(
    landmarks: Landmarks,
    rows: Rows,
    n_read: int,
    targets: Standardised,
    stop: Callable[[], bool],
) -> Sums:
    return replace(block_sums(landmarks, rows, targets, stop), n_read=n_read)


def _in_order(jobs: Iterator[Future[Sums]], ahead: int) -> Iterator[Sums]:
    """Yield results in the order of their jobs, a few of which run meanwhile."""
    waiting: deque[Future[Sums]] = deque()
    for job in jobs:
        waiting.append(job)
        if len(waiting) >= ahead:
            yield _result(waiting.popleft())
    while waiting:
        yield _result(waiting.popleft())


def _result(job: Future[Sums]) -> Sums:
    while True:
        if clock.expired():
            raise Stopped
        try:
            return job.result(timeout=_HEAR)
        except Pending:
            if job.done():
                raise


@dataclass(frozen=True)
class Normal:
    """The normal equations in coordinates where the landmarks' kernel is the identity.

    (KₓₘᵀWKₓₘ + ρKₘₘ)β = KₓₘᵀWY is (A + ρI)γ = b with Kₘₘ = LLᵀ, A = L⁻¹KₓₘᵀWKₓₘL⁻ᵀ, β = L⁻ᵀγ.

    `root` of shape (n_landmarks, n_landmarks): L; `inner` of shape (n_landmarks, n_landmarks): A;
    its lower triangle is kept; `right` of shape (n_landmarks, n_outputs): b.
    """

    root: FloatArray
    inner: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, sums: Sums, jitter: float = _JITTER) -> Normal:
        """Whiten sums, whose Gram matrix is lost.

        `gram` of shape (n_landmarks, n_landmarks): Kₘₘ; `jitter`: share of its largest eigenvalue,
        roughly, that is added to its diagonal.
        """
        root = _root(gram, jitter)
        inner, info = lapack.dsygst(sums.gram, root, itype=1, lower=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"whitening the normal equations failed: info {info}")
        return cls(root, inner, blas.dtrsm(1.0, root, sums.cross, lower=1))

    def solve(self, ridge: float) -> tuple[FloatArray, PosteriorOfSums] | None:
        """Return β and the posterior; ``None`` where A + ρI has no Cholesky factor."""
        shifted = self.inner.copy(order="F")
        shifted.reshape(-1, order="F")[:: len(shifted) + 1] += ridge
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if info:
            return None
        gamma, _ = lapack.dpotrs(factor, self.right, lower=1)
        dual = blas.dtrsm(1.0, self.root, gamma, lower=1, trans_a=1)
        return dual, PosteriorOfSums(ridge, self.root, factor)


def _root(gram: FloatArray, jitter: float) -> FloatArray:
    """Return the Cholesky factor of a Gram matrix and a little more on its diagonal."""
    shifted = np.array(gram, order="F")
    added = jitter * float(np.abs(gram).sum(axis=0).mean())
    shifted.reshape(-1, order="F")[:: len(gram) + 1] += added
    factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(f"the kernel of the landmarks plus {added:.1e} has no factor")
    return np.asarray(factor)
