"""Writing files so that nothing is lost: refused before the work, whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from kernelweave.kernels_core.exceptions import Message

from .errors import CommandError

# what a write fails with on a full disk, a full quota, or beyond the largest file
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_output(
    path: Path, *read: str | Path | None, force: bool, written: Sequence[Path | None] = ()
) -> None:
    """Refuse an output file before any work.

    `read`: the files, among other sources, that the work reads; `written`: those that it writes
    too. Raises CommandError if the folder is missing or not writable, if ``path`` is a folder or
    one of the files, or if it exists and ``force`` is false.
    """
    if path.is_dir():
        raise CommandError(f"cannot write {path}: it is a folder, not a file")
    folder = path.parent
    if not folder.is_dir():
        raise CommandError(f"cannot write {path}: there is no folder {folder}; create it first")
    if _is_special(path):
        return
    if any(each is not None and path.resolve() == each.resolve() for each in written):
        raise CommandError(f"{path} is written twice: give each output a name of its own")
    with suppress(OSError):
        sources = [each for each in read if each and Path(each).exists()]
        if path.exists() and any(map(path.samefile, sources)):
            raise CommandError(f"{path} is read from, and would be lost: choose another name")
    if path.exists() and not force:
        text = "{path} exists: add {force} to overwrite it, or choose another name"
        raise CommandError(Message(text, path=path, force="force=True"))
    # A file is really made: permissions alone do not tell of names that are too long, nor of
    # folders of the system that refuse files.
    handle, name = _temporary(path, path)
    os.close(handle)
    Path(name).unlink()


def _is_special(path: Path) -> bool:
    """Whether the path is a device or a pipe, which is written to and never replaced."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at ``path`` whole when the block ends, or not at all.

    Bytes go to a temporary file in the same folder, reach the disk, and take the name in one step;
    after an exception what was at ``path`` is untouched. Links are followed. Raises CommandError if
    no file can be made in the folder, or the disk is full before the block ends.
    """
    try:
        with path.open("wb") if _is_special(path) else _whole(path) as stream:
            yield stream
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise CommandError(
            f"cannot write {path}: {error.strerror}; free some space and try again (no partial "
            "file was left)"
        ) from error


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    goal = Path(os.path.realpath(path))
    handle, name = _temporary(path, goal)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(_mode(goal))
        Path(name).replace(goal)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _temporary(path: Path, goal: Path) -> tuple[int, str]:
    """Open a file beside the goal, which ``path`` leads to; return its handle and its name."""
    try:
        return tempfile.mkstemp(prefix=f".{goal.name}.", suffix=".part", dir=goal.parent)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def _mode(path: Path) -> int:
    """Return the permissions of the file that is replaced, or what a new file would get."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
