"""Run the Python blocks of a README in order: ``python readme.py README.md``.

Imports nothing but the standard library, since it runs where one member is installed alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(text: str) -> list[str]:
    """Return the Python blocks of a page."""
    return BLOCK.findall(text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    namespace: dict[str, object] = {"__name__": "__main__"}
    for code in examples(path.read_text(encoding="utf-8")):
        exec(compile(code, str(path), "exec"), namespace)
