"""Does a message name only what its reader can give?

Estimators share solvers and kernels, and with them messages. One that says "raise max_time" sends
the user of an estimator without ``max_time`` to look for what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

# parameters that are no words of English: they count wherever they stand
_NO_WORDS = frozenset({"C", "k0", "lam", "lams", "tol", "cv", "psd", "rho", "tau", "mu"})
# how we and scikit-learn speak of the data that were given
_SEEN = frozenset({"shape", "n_samples", "n_features", "n_splits"})
# a call such as KernelDictionary(..., psd="clip") has parameters of its own
_CALL = re.compile(r"[A-Za-z_.]+\([^()]*\)")
_GIVEN = re.compile(r"(?<![\w.'\"-])([A-Za-z_]\w*)=(?!=)|`+([a-z_]\w*)`+")
_WORD = re.compile(r"(?<![\w.'\"-])[A-Za-z]\w*(?![\w(])")


def absent(message: str, known: Collection[str], everywhere: Collection[str]) -> list[str]:
    """Return the parameters that a message names and its reader does not have.

    `known`: what the reader can give; `everywhere`: what those of any estimator can. A word counts
    where it is given a value, as in ``tol=1e-3``, where it stands between backticks, and where it
    is a parameter somewhere and no word of English.
    """
    named = _named(_CALL.sub(" ", message), everywhere)
    return sorted({name for name in named if name not in known and name not in _SEEN})


def _named(text: str, everywhere: Collection[str]) -> Iterator[str]:
    for given, quoted in _GIVEN.findall(text):
        yield given or quoted
    for word in _WORD.findall(text):
        if word in everywhere and (word in _NO_WORDS or "_" in word):
            yield word
