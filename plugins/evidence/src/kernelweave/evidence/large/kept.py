"""What a model of landmarks keeps so that rows come and go while its kernel stays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import copy_groups
from numpy.typing import NDArray

from .held_out import HeldFolds
from .holdouts import AtRandom, BySplits, InOrder, WithoutCopies

if TYPE_CHECKING:
    from ..rows import Rows
    from .holdouts import Holdout
    from .survey import Survey

# of the numbers that keys are
_KEYS = 2.0**64
# a row's key says whether it judges, in which fold, and whether it tells how noise varies
_JUDGES, _FOLD, _TELLS = 0, 1, 2


@dataclass(frozen=True)
class JoinRule:
    """Which of the rows that come judge, beside those that the fit held out.

    - `share`: of all rows that judged at the fit; as large a share of new rows, or of new groups,
      does
    - `n_folds`: that judge
    - `starts`: moments at which the blocks of all folds begin; empty without an order
    - `by_groups`: whether whole groups are held out
    - `apart`: whether copies of rows held out are left out beside their folds
    - `divides_copies`: whether rows recur, so that folds divide copies
    - `none`: whether new rows never judge: a splitter said which do
    - `telling`: share of rows that judge that tells how noise varies
    """

    share: float
    n_folds: int
    starts: tuple[float, ...] = ()
    by_groups: bool = False
    apart: bool = False
    divides_copies: bool = False
    none: bool = False
    telling: float = 1.0

    @classmethod
    def of(
        cls, rule: Holdout, sample: Rows, share: float, n_folds: int, telling: float
    ) -> JoinRule:
        """Return how new rows follow a way to hold rows out."""
        bare = rule.rule if isinstance(rule, WithoutCopies) else rule
        in_order, none = isinstance(bare, InOrder), isinstance(bare, BySplits)
        starts = tuple(bare.cuts.tolist()) if isinstance(bare, InOrder) else ()
        by_groups = not (in_order or none or isinstance(bare, AtRandom))
        return cls(
            share, n_folds, starts, by_groups, isinstance(rule, WithoutCopies),
            isinstance(bare, AtRandom) and sample.recurring, none, telling,
        )  # fmt: skip

    def keys(self, rows: Rows, of_groups: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
        """Return a number for each row that its content tells, and nothing else.

        `of_groups` of shape (n,): that of the row's group, where whole groups are held out.
        """
        if self.by_groups and of_groups is not None:
            return np.asarray(of_groups, dtype=np.uint64)
        return content_keys(rows, with_targets=self.divides_copies)

    def joined(self, keys: NDArray[np.uint64]) -> Index:
        """Return the folds that rows of these keys judge in, −1 of none."""
        folds = 1 + (_mixed(keys, _FOLD) * self.n_folds).astype(np.intp)
        return np.where(_mixed(keys, _JUDGES) < self.share, folds, -1)

    def tells(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which rows tell how noise varies, if they judge."""
        return np.asarray(_mixed(keys, _TELLS) < self.telling)


def _mixed(keys: NDArray[np.uint64], what: int) -> FloatArray:
    """Return numbers from 0 to 1 that keys tell; others for another use."""
    with np.errstate(over="ignore"):
        z = keys + np.uint64(0x9E3779B97F4A7C15) * np.uint64(what + 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    return np.asarray(np.minimum(z / _KEYS, np.nextafter(1.0, 0.0)))


def content_keys(rows: Rows, *, with_targets: bool = False) -> NDArray[np.uint64]:
    """Return a number for each row that depends on its columns, and its targets if asked."""
    parts = _contents(rows, with_targets=with_targets)
    return np.array([key_of(each) for each in parts], dtype=np.uint64)


def key_of(content: bytes) -> int:
    """Return the number of some content, from 0 to 2⁶⁴ − 1.

    Examples
    --------
    >>> from kernelweave.evidence.large.kept import key_of
    >>> key_of(b"patient 17") == key_of(b"patient 17") != key_of(b"patient 18")
    True
    """
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _contents(rows: Rows, *, with_targets: bool) -> list[bytes]:
    # adding 0.0 turns -0.0 into 0.0
    parts = [rows.numeric + 0.0, rows.codes.astype(np.float64)]
    parts += [rows.targets.T + 0.0] if with_targets else []
    table = np.ascontiguousarray(np.hstack(parts))
    return [row.tobytes() for row in table]


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Beside a predictor of landmarks: rows held out, and how others join them.

    - `rule`: how others join
    - `held`: of tables in memory all rows, in their order, else those that judge and what is left
      out with them; fold 0 chose
    - `copies`: mass and cross of the known rows of `held`, where their copies are not all kept
    - `is_whole`: whether `held` has all rows
    - `telling` of shape (n_held,): which of them tell how noise varies
    - `n_rows`: all rows; `mass`: their weight
    - `least`, `most` of shape (n_outputs,): range of all targets
    - `n_early`: landmarks that are of no row held out: they come first
    - `landmark_at` of shape (n_landmarks,): which row each landmark is; empty without all rows
    - `places` of shape (n_kept,): which of the rows the predictor keeps; empty without all rows
    - `is_exact`: whether each row was whitened before it was summed, not the sums of a fit
    - `owner` of shape (n_given,): the place of each of the user's rows among all, −1 of weight 0;
      empty without all rows
    """

    rule: JoinRule
    held: HeldFolds
    copies: tuple[FloatArray, FloatArray] | None
    is_whole: bool
    telling: NDArray[np.bool_]
    n_rows: int
    mass: float
    least: FloatArray
    most: FloatArray
    n_early: int
    landmark_at: Index
    places: Index
    is_exact: bool = False
    owner: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def rows(self) -> Rows:
        """All rows where they are kept, else those held out."""
        return self.held.rows

    @classmethod
    def whole(
        cls, rule: JoinRule, rows: Rows, fold: Index, out: NDArray[np.bool_],
        telling: NDArray[np.bool_], n_early: int, landmark_at: Index,
    ) -> KeptRows:  # fmt: skip
        """Return what is kept with all rows; `fold`, `out`, `telling`: of all."""
        everything = np.arange(len(rows))
        held = HeldFolds(rows, everything, fold, out, None, everything)
        return cls(
            rule, held, None, True, telling, len(rows), float(rows.mass.sum()),
            rows.targets.min(axis=1), rows.targets.max(axis=1), n_early, landmark_at,
            everything[:0],
        )  # fmt: skip

    @classmethod
    def of_judging(
        cls, rule: JoinRule, held: HeldFolds, copies: tuple[FloatArray, FloatArray] | None,
        telling: NDArray[np.bool_], seen: Survey, n_early: int,
    ) -> KeptRows:  # fmt: skip
        """Return what is kept with the rows that judge, and what is left out with them.

        `held`: these and those that chose, which are learned from; `telling`: which of them tell.
        """
        used = np.flatnonzero(held.without[1:].any(axis=0))
        fold, out = held.fold[used], held.without[:, used].copy()
        out[0] = False
        held = replace(
            held, rows=held.rows.take(used), places=held.places[used],
            fold=np.where(fold == 0, -1, fold), without=out,
            copy_of=np.arange(len(used)) if held.known_rows is None else held.copy_of[used],
        )  # fmt: skip
        return cls(
            rule, held, copies, False, telling[used], seen.n_rows, seen.mass, seen.least, seen.most,
            n_early, used[:0], used[:0],
        )  # fmt: skip

    def folds_of(
        self, rows: Rows, keys: NDArray[np.uint64]
    ) -> tuple[Index, NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the folds of other rows, what these are predicted without, and which tell noise.

        A row that is kept here has its fold. Another has that of its moment, of its group or of its
        copies, or that of its key.

        `keys` of shape (n,). Returns shapes (n,), (n_folds, n), (n,).
        """
        known = places_in(self.rows, rows)
        seen, new = known >= 0, known < 0
        rule = self.rule if self.is_whole else self._of_others(known)
        fold, telling = np.full(len(rows), -1), self.rule.tells(keys)
        fold[seen], telling[seen] = self.held.fold[known[seen]], self.telling[known[seen]]
        if self.rule.starts:
            assert rows.times is not None
            fold = np.searchsorted(self.rule.starts, rows.times, side="right") - 1
        elif not self.rule.none:
            fold[new] = self._of_new(rows, rule.joined(keys), keys, fold, seen)[new]
        out = fold == np.arange(len(self.held.without))[:, None]
        if self.rule.starts:
            out = fold >= np.arange(len(self.held.without))[:, None]
        if self.rule.none:
            out[:, seen] = self.held.without[:, known[seen]]
        return fold, self._with_copies(rows, fold, out), telling

    def _of_others(self, known: Index) -> JoinRule:
        """Return a rule by which others bring rows that judge to their share of all.

        Which others the model has had is not known. `known` of shape (n,): −1 of these.
        """
        n, n_judging = len(known), int(np.sum(self.held.fold[known[known >= 0]] > 0))
        share = (self.rule.share * n - n_judging) / max(1, int(np.sum(known < 0)))
        return replace(self.rule, share=max(0.0, share))

    def _of_new(
        self, rows: Rows, of_new: Index, keys: NDArray[np.uint64], fold: Index,
        seen: NDArray[np.bool_],
    ) -> Index:  # fmt: skip
        """Return the folds of rows as if new: of their group or copies, else those by their keys.

        `of_new` of shape (n,): by their keys.
        """
        together = _together(rows, self.rule)
        if together is None:
            return of_new
        # of rows that are one, the least key says it for all, unless one of them is known
        by = np.lexsort((keys, together))
        first = by[np.unique(together[by], return_index=True)[1]]
        out = of_new[first]
        out[together[seen]] = fold[seen]
        return np.asarray(out[together])

    def _with_copies(self, rows: Rows, fold: Index, out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return what folds are predicted without, copies of their rows included."""
        if not self.rule.apart:
            return out
        bare = rows.without_names()
        copies = copy_groups(bare.numbers, bare.codes)
        return np.array([own | np.isin(copies, copies[fold == k]) for k, own in enumerate(out)])


def _together(rows: Rows, rule: JoinRule) -> Index | None:
    """Return numbers from 0 that rows share that are held out together; ``None`` if none are."""
    if rule.by_groups:
        return _numbers_of(rows)
    return None if rule.divides_copies else copy_groups(rows.numbers, rows.codes)


def _numbers_of(rows: Rows) -> Index:
    assert rows.groups is not None
    return np.asarray(np.unique(rows.groups, return_inverse=True)[1].ravel())


def places_in(known: Rows, rows: Rows) -> Index:
    """Return where rows with their targets stand among known ones, −1 of none.

    Of equal ones each has its own place, as long as there is one.
    """
    places: dict[bytes, list[int]] = {}
    contents = _contents(known, with_targets=True)
    for k in range(len(contents) - 1, -1, -1):
        places.setdefault(contents[k], []).append(k)
    out = np.full(len(rows), -1, dtype=np.intp)
    for k, each in enumerate(_contents(rows, with_targets=True)):
        left = places.get(each)
        if left:
            out[k] = left.pop()
    return out


def equal_places(known: Rows, asked: Index, rows: Rows) -> Index:
    """Return where rows of a known table stand in another, their targets aside; −1 of none.

    `asked` of shape (n_asked,): of the known rows.
    """
    first: dict[bytes, int] = {}
    for k, each in enumerate(_contents(rows, with_targets=False)):
        first.setdefault(each, k)
    contents = _contents(known.take(asked), with_targets=False)
    return np.array([first.get(each, -1) for each in contents], dtype=np.intp)
