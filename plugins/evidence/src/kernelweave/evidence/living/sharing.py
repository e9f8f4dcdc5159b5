"""Sums of rows that can be shared where the rows cannot, their file, and who makes them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.config import one_blas_thread
from kernelweave.kernels_core.exceptions import warn
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .basis import basis_of
from .parts import PartSums, dealt, facts_of, read_rows

# of the file, which another number would be read otherwise
_VERSION = 1
# Rows a landmark, of a part. Of 300 absent rows sums of as many rows as landmarks exclude all, of
# twice as many 45 %, of four times 4 % and of six times 1 % (three numbers and a word a row).
_TOLD = 5
# fields of a part that are one number each
_NUMBERS = {"fold": np.int64, "judged": np.bool_, "n_rows": np.int64}


@dataclass(frozen=True, eq=False)
class SharedSums:
    """Sums of the rows of one place over the landmarks of a model: no row, word or name is in them.

    They are made by ``model.sums(X, y)`` and become a model by `merge`. What they reveal of the
    rows nonetheless is said, and measured, in *Models from places that share no rows*.

    Parameters
    ----------
    kernel : str
        Digest of the kernel, its landmarks and units: only sums over one kernel can be added.
    n_landmarks : int
        How many landmarks the kernel has.
    parts : tuple of PartSums
        The sums, of each fold of rows apart, so that these can be left out together.
    facts : ndarray of bool of shape (7, n_outputs)
        What the targets never leave, yes or no: whether none is negative, for instance.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave.evidence import EvidenceKernelRegressor, merge
    >>> X, y = make_friedman1(1640, noise=0.5, random_state=0)
    >>> model = EvidenceKernelRegressor().fit(X[:40], y[:40])
    >>> places = [model.sums(X[40:840], y[40:840]), model.sums(X[840:], y[840:])]
    >>> places[0]
    SharedSums(800 rows, 40 landmarks)
    >>> merge(places, kernel=model).held_out_score_ > model.held_out_score_
    True
    """

    kernel: str
    n_landmarks: int
    parts: tuple[PartSums, ...]
    facts: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"SharedSums({self.n_rows:,} rows, {self.n_landmarks:,} landmarks)"

    @property
    def n_rows(self) -> int:
        """How many rows were summed."""
        return sum(each.n_rows for each in self.parts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sums to a file, which holds arrays of numbers and nothing else.

        Parameters
        ----------
        path : str or path
            It appears whole or not at all.
        """
        arrays = {
            each.name: np.array([getattr(part, each.name) for part in self.parts])
            for each in fields(PartSums)
            if getattr(self.parts[0], each.name) is not None
        }
        arrays |= {
            "version": np.array(_VERSION),
            "n_landmarks": np.array(self.n_landmarks),
            "kernel": np.frombuffer(bytes.fromhex(self.kernel), dtype=np.uint8),
            "facts": self.facts,
        }
        _write(path, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read sums from a file.

        Parameters
        ----------
        path : str or path
            What `save` wrote.

        Returns
        -------
        SharedSums

        Raises
        ------
        ValueError
            If the file holds something else, or is damaged.
        """
        arrays = _read(path)
        try:
            return cls._of_arrays(arrays)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            text = f"{path} holds no sums of rows, or those of another version"
            raise ValueError(text) from None

    @classmethod
    def _of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the sums of a file's arrays; raises ValueError where these do not fit."""
        m, n_parts = int(arrays["n_landmarks"]), len(arrays["fold"])
        o = arrays["right"].shape[-1]
        shapes: dict[str, tuple[int, ...]] = {
            "inner": (m * (m + 1) // 2,), "right": (m, o), "total": (o,), "squares": (o,),
            "lost": (m * (m + 1) // 2,), "lost_right": (m, o),
        }  # fmt: skip
        given: dict[str, Any] = {}
        for each in fields(PartSums):
            if each.name.startswith("lost") and "lost" not in arrays:
                continue
            array: NDArray[Any] = arrays[each.name].astype(_NUMBERS.get(each.name, np.float64))
            if array.shape != (n_parts, *shapes.get(each.name, ())) or not np.isfinite(array).all():
                raise ValueError(each.name)
            given[each.name] = list(array) if each.name in shapes else array.tolist()
        facts = arrays["facts"].astype(np.bool_)
        is_right = int(arrays["version"]) == _VERSION and facts.shape == (7, o) and n_parts > 0
        if not is_right or min(given["n_rows"]) < 1 or min(given["mass"]) <= 0.0:
            raise ValueError("version")
        given |= {name: [None] * n_parts for name in ("lost", "lost_right") if name not in given}
        columns = [given[each.name] for each in fields(PartSums)]
        parts = tuple(PartSums(*values) for values in zip(*columns, strict=True))
        return cls(arrays["kernel"].tobytes().hex(), m, parts, facts)


class Sharing:
    """Estimators whose kernel other places sum over."""

    def sums(
        self, X: Table, y: object, sample_weight: object = None, *, groups: object = None
    ) -> SharedSums:
        """Return sums over rows that can be shared where the rows cannot, for `merge`.

        The model need not have seen the rows, and stays as it is. It gives the kernel, the
        landmarks (its own; of a model of all pairs its training rows, at most 2,000 of them) and
        the units. The sums are of the products of features, and of features and targets: no row,
        word or name is in them. But of few rows they tell much: see *Models from places that share
        no rows*.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            With the columns of training; categories may be new.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, or labels that the model knows.
        sample_weight : array-like of shape (n_samples,), optional
            In the unit of those that `fit` got.
        groups : str or array-like of shape (n_samples,), optional
            Where `fit` got them; by default the column that it named. Whole groups are in one part.
            A group must not have rows in two places.

        Returns
        -------
        SharedSums
            Has `save` for a file.

        Raises
        ------
        ValueError
            If columns, targets or weights are not as in training, or the model's predictions do not
            follow from sums: of counts, and of targets that are known by half.

        Warns
        -----
        KernelWeaveWarning
            If a part has fewer than five rows a landmark: such sums tell who is in them.
        """
        model: Any = self
        check_is_fitted(model, "kernel_")
        model._settle()
        with one_blas_thread():
            basis = basis_of(model)
            rows, fold = read_rows(model, basis, X, y, sample_weight, groups)
            is_landmark = basis.are_landmarks(rows.numeric, rows.codes)
            parts = dealt(basis, rows, fold, is_landmark)
            _warn_of_few_rows(parts, len(basis))
            return SharedSums(basis.kernel, len(basis), parts, facts_of(basis.units, rows.targets))


def _write(path: str | PathLike[str], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays as an uncompressed npz file, which takes its name when it is whole."""
    goal = Path(os.path.realpath(path))
    part = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(goal)
    finally:
        part.unlink(missing_ok=True)


def _read(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file from elsewhere: nothing in it runs, and it unpacks to its size.

    Raises ValueError where it is no such file or damaged, FileNotFoundError where there is none.
    """
    try:
        with zipfile.ZipFile(path) as file:
            packed = any(each.compress_type != zipfile.ZIP_STORED for each in file.infolist())
            if packed or file.testzip() is not None:
                raise ValueError("members")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (
        zipfile.BadZipFile,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        MemoryError,
    ):
        raise ValueError(f"{path} holds no sums of rows, or is damaged") from None


def _warn_of_few_rows(parts: Sequence[PartSums], n_landmarks: int) -> None:
    """Warn where sums are of so few rows that they tell who is among them."""
    least, needed = min(each.n_rows for each in parts), _TOLD * n_landmarks
    if least < needed:
        warn(
            f"sums of few rows reveal them: the least of {len(parts)} parts has {least} rows for "
            f"{n_landmarks} landmarks, and tells whether a row that somebody knows is among them; "
            f"share sums of {needed} rows a part or more, or a kernel with fewer landmarks"
        )
