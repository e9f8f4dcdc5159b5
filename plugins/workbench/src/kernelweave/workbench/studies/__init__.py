"""Questions of our own, answered by paired measurements; run like a paper's table."""

from __future__ import annotations
