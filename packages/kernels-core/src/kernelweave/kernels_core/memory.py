"""The memory budget: refuse work that cannot fit before it starts.

The budget is fixed for a machine: what happens to be free decides nothing, so that the same data
give the same answer beside other programs and alone.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from .config import get_config
from .exceptions import MemoryBudgetError, Message, warn

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# Of the memory of the machine: the rest is for the interpreter, the data and everybody else.
_SHARE = 0.8
_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def size_text(nbytes: float) -> str:
    """Return a size for people, in the unit that leaves three digits.

    Examples
    --------
    >>> from kernelweave.kernels_core.memory import size_text
    >>> size_text(800), size_text(2**29), size_text(5 * 2**40)
    ('800 bytes', '512 MiB', '5 TiB')
    """
    size, unit = float(nbytes), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1024.0, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


@functools.cache
def machine_bytes() -> int:
    """Return the memory of the machine, or of the control group (container) that holds us."""
    physical = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min([physical, *_group_limits(_MEMBERSHIP, _CGROUPS)])


def _group_limits(membership: Path, root: Path) -> list[int]:
    """Return the limits of our control groups and of those around them, versions 1 and 2.

    A line of ``membership`` is ``hierarchy:controllers:path``; version 2 names no controller.
    Inside a container the path may be that of the machine outside: then only the root exists.
    """
    if not membership.is_file():
        return []
    sizes = []
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = Path(path.lstrip("/"))
        for group in (inner, *inner.parents):
            limit = base / group / name
            # "max" is version 2's word for none
            text = limit.read_text().strip() if limit.is_file() else ""
            sizes += [int(text)] if text.isdigit() else []
    return sizes


def limit_bytes() -> int:
    """Return the limit in force: the user's, else four fifths of the memory of the machine."""
    limit = get_config().memory_limit
    return int(_SHARE * machine_bytes()) if limit is None else limit


def require(nbytes: int, what: str, *, alternative: str) -> None:
    """Raise MemoryBudgetError before the work when ``nbytes`` exceed the limit in force.

    `what`: what needs them, for the message, e.g. ``"2 Gram matrices of 30000 samples"``;
    `alternative`: what the user can do instead, the template of a `Message` without a full stop, or
    one itself.
    """
    limit = limit_bytes()
    if nbytes > limit:
        raise MemoryBudgetError(
            Message(
                "{what} need {needed}, more than the memory limit of {limit}: {alternative}",
                what=what,
                needed=size_text(nbytes),
                limit=size_text(limit),
                alternative=alternative
                if isinstance(alternative, Message)
                else Message(alternative),
            )
        )


def permits(nbytes: int, what: str) -> bool:
    """Return whether the limit in force lets a second method have ``nbytes``; warn where not.

    For optional work, without which the answer is still proved, with a wider gap; a warning says
    when the limit forbids it.
    """
    limit = limit_bytes()
    if nbytes <= limit:
        return True
    warn(
        Message(
            "{what} need {needed}, more than the memory limit of {limit}: the solve goes on "
            "without them, and its gap may stay wider; raise {memory_limit}",
            what=what,
            needed=size_text(nbytes),
            limit=size_text(limit),
        )
    )
    return False
