"""Guards on the text of the repository: nothing of one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from workspace import checked_in

MACHINE = re.compile(r"(?:^|[^A-Za-z0-9_.])/(?:home|root|work|tmp|opt|Users)/[A-Za-z]")
LOCKS = {"uv.lock", "poetry.lock", "package-lock.json"}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that git tracks or would add."""
    try:
        return checked_in()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout to know which files belong to it")


def text_problems(path: Path) -> list[str]:
    """Return the lines of a text file that name a folder of one machine."""
    if path.name in LOCKS:
        return [f"{path.name} is a lock file: the project pins nothing"]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [
        f"{path.name}:{number}: {line.strip()[:100]}"
        for number, line in enumerate(lines, 1)
        if path.suffix != ".svg" and MACHINE.search(line)
    ]


def test_no_folder_of_a_machine_is_named(tracked: list[Path]) -> None:
    assert [line for path in tracked for line in text_problems(path)] == []


@pytest.mark.parametrize("folder", ["home", "tmp"])
def test_a_planted_folder_is_caught(tmp_path: Path, folder: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(f'a/tmp/x and data/work/x are relative\nopen("/{folder}/me/x")\n')
    assert [problem.partition(": ")[0] for problem in text_problems(path)] == ["page.md:2"]


def test_planted_lock_file_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "uv.lock"
    path.touch()
    assert len(text_problems(path)) == 1
