"""Completion scripts: what a shell offers after a word that was begun."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelweave.workbench.commands import BUILTIN
from kernelweave.workbench.commands.completion import completion_script

BASH = shutil.which("bash")
CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.mark.parametrize("shell", CHECKS)
def test_every_command_and_its_options_are_in_the_script(run: Callable, shell: str) -> None:
    done = run("completion", shell)
    assert done.status == 0
    assert done.err == ""
    assert all(re.search(rf"\b{spec.name}\b", done.out) for spec in BUILTIN)
    for option in ("algorithm", "encode", "max-time", "json", "matrix"):
        assert re.search(rf"(--|-l '?){option}", done.out), option


@pytest.mark.parametrize("shell", CHECKS)
def test_the_shell_itself_finds_no_fault(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} on this machine")
    path = tmp_path / "script"
    path.write_text(completion_script(shell))
    done = subprocess.run([program, CHECKS[shell][1], str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["re"], ["report"]),
        (["fit", "--al"], ["--algorithm"]),
        (["fit", "--task", ""], ["auto", "classification", "regression"]),
        (["list", "--ma"], ["--matrix"]),
    ],
)
def test_bash_offers_what_fits(words: list[str], offered: list[str], tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(completion_script("bash"))
    quoted = " ".join(f"'{word}'" for word in ["kernelweave", *words])
    code = (
        f"source {path}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _kernelweave; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([str(BASH), "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == offered


def test_an_unknown_shell_is_one_line(run: Callable) -> None:
    assert "fish" in run("completion", "tcsh").error
