"""Columns of texts as numbers: what their parts of words have in common."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables.columns import Words

from .encoded import Dimension

if TYPE_CHECKING:
    from skrub import StringEncoder

# as many as skrub's own default: more cost each pass over the pairs
_MOST_COMPONENTS = 30


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column that becomes the strongest components of its texts.

    They are those of TF-IDF weights of parts of words, three and four letters long (latent semantic
    analysis, by skrub's `StringEncoder`). A missing text is at the origin, as one that has nothing
    in common with those of training.
    """

    position: int
    name: str
    encoder: StringEncoder
    n_components: int

    @classmethod
    def fit(cls, position: int, name: str, words: Words) -> TextColumn:
        """Learn the components from training rows, equal texts counted once."""
        import pandas as pd
        from skrub import StringEncoder

        # sorted, so that the order of rows changes nothing
        texts = pd.Series(sorted(words.labels), dtype="str")
        encoder = StringEncoder(min(_MOST_COMPONENTS, len(texts)), random_state=0)
        with warnings.catch_warnings():
            # few short texts: their TF-IDF weights themselves are the numbers
            warnings.filterwarnings("ignore", "The matrix shape is")
            n_components = encoder.fit_transform(texts).shape[1]
        return cls(position, name, encoder, n_components)

    def transform(self, words: Words) -> FloatArray:
        """Return the components of rows, shape (n_rows, n_components)."""
        import pandas as pd

        out = np.zeros((len(words.labels) + 1, self.n_components))
        if words.labels:
            texts = pd.Series(words.labels, dtype="str")
            out[:-1] = self.encoder.transform(texts).to_numpy()
        return np.asarray(out[words.codes])

    @property
    def said(self) -> str:
        """What to say of it."""
        return f"Texts: the {self.n_components} strongest components of what they share."

    def dimensions(self) -> list[Dimension]:
        """Return what its components are."""
        names = [f"{self.name} text {k}" for k in range(1, self.n_components + 1)]
        return [Dimension(name, self.name, "text") for name in names]
