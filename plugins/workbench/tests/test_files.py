"""Output appears whole or not at all."""

from __future__ import annotations

import os
import resource
import signal
import stat
from pathlib import Path

import pytest
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.files import check_output, replacing


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("precious")

    def fail_halfway() -> None:
        with replacing(path) as stream:
            stream.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_full_in_the_middle_leaves_no_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("precious")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # no file may grow beyond 1 MB: the same error as of a full disk, in the middle of a write
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
    try:
        with pytest.raises(CommandError, match="out"), replacing(path) as stream:
            stream.write(bytes(2**22))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with replacing(path) as stream:
        stream.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path: Path) -> None:
    fresh, other = tmp_path / "fresh", tmp_path / "other"
    other.touch()
    with replacing(fresh) as stream:
        stream.write(b"")
    assert fresh.stat().st_mode == other.stat().st_mode
    fresh.chmod(0o640)
    with replacing(fresh) as stream:
        stream.write(b"again")
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    goal, link = tmp_path / "goal", tmp_path / "link"
    goal.write_text("old")
    link.symlink_to(goal)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert goal.read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    null = Path(os.devnull)
    check_output(null, force=False)
    with replacing(null) as stream:
        stream.write(b"gone")
    assert not stat.S_ISREG(null.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_device_is_named() -> None:
    path = Path("/dev/full")
    with (
        pytest.raises(CommandError, match="cannot write /dev/full: No space"),
        replacing(path) as to,
    ):
        to.write(b"gone")


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch()
    with pytest.raises(CommandError, match="add force=True"):
        check_output(path, force=False)
    check_output(path, force=True)
    with pytest.raises(CommandError, match="is a folder"):
        check_output(tmp_path, force=True)
    with pytest.raises(CommandError, match="there is no folder"):
        check_output(tmp_path / "no" / "out", force=False)


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "removed meanwhile" / "out"
    with pytest.raises(CommandError, match=r"cannot write .*out: No such file"), replacing(path):
        pytest.fail("the block is not reached")
