"""Columns of categories: which are kept apart, which are merged, and the codes of new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.tables.columns import Codes, Words, are_codes

RARE = "(rare)"
MISSING = "(missing)"
# in place of the text of a category whose rows were all forgotten
GONE = "(forgotten)"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column.

    - `labels`: texts in alphabetical order, then the merged rare ones, then missing values
    - `frequencies` of shape (n_categories,): share of the training rows that has each
    - `lookup`: code of each text of the training rows
    - `missing`: code of a missing value; ``n_categories`` where training had none
    - `n_rare`: how many texts are merged into the rare category
    - `recurring`: share of the rows in a category of its own that another row has too
    - `n_known`: how many there were when the kernel was learned, the others came later; −1: all
    - `width`: length of all texts where they are codes of one length, 0 where they are not; −1: as
      those of `lookup` are
    """

    labels: tuple[str, ...]
    frequencies: FloatArray
    lookup: dict[str, int]
    missing: int
    n_rare: int
    recurring: float
    n_known: int = -1
    width: int = -1

    @property
    def rare(self) -> int:
        """Code of the rare ones; ``n_categories`` where none are merged."""
        n_categories = len(self.labels)
        return n_categories - 1 - (self.missing < n_categories) if self.n_rare else n_categories

    @classmethod
    def fit(
        cls,
        words: Words,
        *,
        max_categories: int,
        min_frequency: float,
        weight: FloatArray | None = None,
    ) -> Categories:
        """Learn the categories from training rows.

        - `words`: the column
        - `max_categories`: texts beyond the most frequent ones are merged
        - `min_frequency`: how often a text must occur, or in which share of the rows, not to be
          merged
        - `weight` of shape (n_rows,): 2 counts a row twice
        """
        w = np.ones(len(words)) if weight is None else weight
        mass: FloatArray = np.bincount(
            words.codes + 1, weights=w, minlength=len(words.labels) + 1
        ).astype(np.float64)
        n_missing, counts = mass[0], mass[1:]
        least = min_frequency * mass.sum() if isinstance(min_frequency, float) else min_frequency
        kept, rare = _split(words.labels, counts, least, max_categories - 1)
        labels = [words.labels[i] for i in kept]
        shares = [counts[i] for i in kept]
        lookup = {label: code for code, label in enumerate(labels)}
        if rare:
            lookup |= {words.labels[i]: len(labels) for i in rare}
            labels, shares = [*labels, RARE], [*shares, counts[rare].sum()]
        if n_missing > 0.0:
            labels, shares = [*labels, MISSING], [*shares, n_missing]
        missing = len(labels) - (n_missing > 0.0)
        rows = np.bincount(words.codes + 1, minlength=len(words.labels) + 1)[1:]
        several = [counts[i] for i in kept if max(rows[i], counts[i]) > 1.0]
        frequencies, recurring = np.array(shares) / mass.sum(), float(sum(several) / mass.sum())
        return cls(tuple(labels), frequencies, lookup, int(missing), len(rare), recurring)

    def transform(self, words: Words) -> Codes:
        """Return the codes of rows; a new text is a rare one.

        Its code is the number of categories where training had no rare ones. Where training had
        booleans, 1 and TRUE are True. Where it had codes of one length, such as 01067, 1067 is that
        one.
        """
        labels = self._as_known(words.labels)
        codes = [self.lookup.get(label, self.rare) for label in labels]
        return np.array([*codes, self.missing], dtype=np.int64)[words.codes]

    def _as_known(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return texts as training wrote them."""
        known = [word for word, code in self.lookup.items() if code < self._n_known]
        truths = {_TRUTHS.get(word.casefold()): word for word in known} if len(known) == 2 else {}
        if truths.keys() == {True, False}:
            labels = tuple(truths.get(_TRUTHS.get(each.casefold()), each) for each in labels)
        if width := self._width:
            # numbers have lost the zeros that lead
            labels = tuple(each.zfill(width) if each.isdigit() else each for each in labels)
        return labels

    @property
    def _width(self) -> int:
        if self.width >= 0:
            return self.width
        lengths = set(map(len, self.lookup))
        return lengths.pop() if len(lengths) == 1 and are_codes(self.lookup) else 0

    @property
    def _n_known(self) -> int:
        return len(self.labels) if self.n_known < 0 else self.n_known

    @property
    def _later(self) -> tuple[str, ...]:
        """The texts that came after the kernel was learned."""
        n = self._n_known
        return tuple(each for k, each in enumerate(self.labels[n:], n) if k != self.missing)

    def gaining(self, words: Words) -> Categories:
        """Return the categories with those of more rows, which get codes behind the others.

        Where training merged rare ones, a new text is one of these. Texts that came after the
        kernel was learned are in alphabetical order, and missing values last.
        """
        new: set[str] = set()
        if not self.n_rare:
            pairs = zip(self._as_known(words.labels), words.counts.tolist(), strict=True)
            new = {label for label, count in pairs if count and label not in self.lookup}
        has_missing = self.missing < len(self.labels) or bool(words.missing.any())
        if not new and has_missing == (self.missing < len(self.labels)):
            return self
        base = self.labels[: self._n_known]
        return self._laid_out(base, {*self._later, *new}, has_missing=has_missing)

    def keeping(self, shares: FloatArray) -> Categories:
        """Return the categories without the texts that no row has any more.

        Those that the kernel was learned with keep their codes, without a name. Of the rare ones
        none is named: a text that is not known is one.

        `shares` of shape (n_categories,): of the rows in each.
        """
        n, has_missing = self._n_known, self.missing < len(self.labels)
        base = tuple(
            GONE if not share and self.lookup.get(label) == k else label
            for k, (label, share) in enumerate(zip(self.labels[:n], shares.tolist(), strict=False))
        )
        later = {label for label in self._later if shares[self.lookup[label]]}
        if self.missing >= n:
            has_missing = has_missing and bool(shares[self.missing])
        out = self._laid_out(base, later, has_missing=has_missing)
        places = out.codes_of(self)
        frequencies = np.zeros(len(out.labels))
        kept = np.flatnonzero(places[:-1] >= 0)
        frequencies[places[kept]] = shares[kept]
        return replace(out, frequencies=frequencies)

    def _laid_out(self, base: tuple[str, ...], later: set[str], *, has_missing: bool) -> Categories:
        """Return categories of the kernel, later ones, and missing values if they are late."""
        texts = (*base, *sorted(later))
        late_missing = has_missing and self.missing >= len(base)
        labels = (*texts, MISSING) if late_missing else texts
        # a table may have the words that stand for none
        lookup = {each: k for k, each in enumerate(base) if self.lookup.get(each) == k}
        lookup |= {each: k for k, each in enumerate(texts) if k >= len(base)}
        missing = self.missing if self.missing < len(base) else len(texts)
        frequencies = np.zeros(len(labels))
        frequencies[: len(base)] = self.frequencies[: len(base)]
        return replace(
            self, labels=labels, frequencies=frequencies, lookup=lookup, missing=missing,
            n_known=len(base), width=self._width,
        )  # fmt: skip

    def codes_of(self, others: Categories) -> Index:
        """Return what each code of others becomes here, −1 of none, shape (n_others + 1,).

        `others`: those of the same kernel at another time.
        """
        n = self._n_known
        later = [
            (self.missing if self.missing < len(self.labels) else -1)
            if k == others.missing
            else self.lookup.get(label, -1)
            for k, label in enumerate(others.labels[n:], n)
        ]
        return np.array([*range(n), *later, len(self.labels)], dtype=np.int64)


def _split(
    labels: tuple[str, ...], counts: FloatArray, least: float, most: int
) -> tuple[list[int], list[int]]:
    """Return the texts that are kept apart in alphabetical order, and the rare ones."""
    seen = [int(i) for i in np.flatnonzero(counts > 0.0)]
    ranked = sorted(seen, key=lambda i: (-counts[i], labels[i]))
    frequent = [i for i in ranked if counts[i] >= least]
    # max_categories counts the merged one only where there is one
    if len(frequent) < len(ranked) or len(frequent) > most + 1:
        frequent = frequent[:most]
    rare = sorted(set(ranked) - set(frequent))
    if len(rare) == 1:
        frequent, rare = [*frequent, *rare], []
    return sorted(frequent, key=lambda i: labels[i]), rare
