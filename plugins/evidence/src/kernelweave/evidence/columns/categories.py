"""Columns of categories: which are kept apart, which are merged, and the codes of new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables.columns import Codes, Words, are_codes

RARE = "(rare)"
MISSING = "(missing)"
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
    """

    labels: tuple[str, ...]
    frequencies: FloatArray
    lookup: dict[str, int]
    missing: int
    n_rare: int
    recurring: float

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
        lookup, labels = self.lookup, words.labels
        truths = (
            {_TRUTHS.get(label.casefold()): label for label in lookup} if len(lookup) == 2 else {}
        )
        if truths.keys() == {True, False}:
            labels = tuple(truths.get(_TRUTHS.get(each.casefold()), each) for each in labels)
        lengths = set(map(len, lookup))
        if len(lengths) == 1 and are_codes(lookup):
            # numbers have lost the zeros that lead
            labels = tuple(each.zfill(*lengths) if each.isdigit() else each for each in labels)
        codes = [lookup.get(label, self.rare) for label in labels]
        return np.array([*codes, self.missing], dtype=np.int64)[words.codes]


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
