"""Models that live: they take new rows, lose rows and are merged, and their files say so."""

from __future__ import annotations

from .doors import forgotten, merged, refitted, updated
from .given import GivenRows, read_given, require_evidence, require_living

__all__ = [
    "GivenRows",
    "forgotten",
    "merged",
    "read_given",
    "refitted",
    "require_evidence",
    "require_living",
    "updated",
]
