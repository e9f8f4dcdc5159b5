"""The names of models on the command line, apart from what loads them."""

from __future__ import annotations

from typing import Literal

ModelName = Literal[
    "evidence", "tkl", "sparse", "ridge", "gmkl", "average", "cka", "easy", "pwmk", "simple"
]
# chosen by --algorithm alone
GENERIC = "generic"
