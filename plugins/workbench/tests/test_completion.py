"""Completion scripts: what a shell offers after a word that was begun."""

from __future__ import annotations

import os
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
    for option in ("algorithm", "drop", "max-time", "json", "matrix"):
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


# presses tab for real and writes what is offered instead of showing it
ZSH = r"""
fpath=($FOLDER $fpath); autoload -Uz compinit; compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >> $FOLDER/offered
}
offer() { _main_complete; exit }
zle -C offer complete-word offer; bindkey '^I' offer
"""


def offered_by_bash(words: list[str], folder: Path) -> list[str]:
    (folder / "script").write_text(completion_script("bash"))
    quoted = " ".join(f"'{word}'" for word in ["kernelweave", *words])
    code = (
        f"source ./script; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _kernelweave; "
        'printf "%s\n" "${COMPREPLY[@]}"; complete -p kernelweave'
    )
    done = subprocess.run(
        [str(BASH), "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    *offered, rule = done.stdout.splitlines()
    # readline offers files where the function offers nothing, but not in a shell like this one
    assert rule == "complete -o default -F _kernelweave kernelweave"
    return [each.strip() for each in offered if each] or [path.name for path in folder.glob("t.*")]


def offered_by_fish(words: list[str], folder: Path) -> list[str]:
    (folder / "script").write_text(completion_script("fish"))
    code = f"source ./script; complete -C 'kernelweave {' '.join(words)}'"
    command = [str(shutil.which("fish")), "--no-config", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def offered_by_zsh(words: list[str], folder: Path) -> list[str]:
    import pty

    (folder / "_kernelweave").write_text(completion_script("zsh"))
    (folder / ".zshrc").write_text(ZSH)
    ours, theirs = pty.openpty()
    places = {"FOLDER": str(folder), "ZDOTDIR": str(folder), "TERM": "xterm"}
    terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "cwd": folder}
    command = [str(shutil.which("zsh")), "-o", "no_global_rcs", "-i"]
    with subprocess.Popen(command, env=os.environ | places, **terminal) as started:
        os.write(ours, f"kernelweave {' '.join(words)}\t".encode())
        started.wait()
    os.close(ours)
    os.close(theirs)
    found = folder / "offered"
    return found.read_text().split() if found.exists() else []


OFFERED = {"bash": offered_by_bash, "zsh": offered_by_zsh, "fish": offered_by_fish}


@pytest.mark.parametrize("shell", OFFERED)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["re"], ["report"]),
        (["fit", "--al"], ["--algorithm"]),
        (["fit", "--task", ""], ["auto", "classification", "regression"]),
        (["list", "--ma"], ["--matrix"]),
        (["fit", "t."], ["t.csv"]),
    ],
)
def test_a_shell_offers_what_fits(
    shell: str, words: list[str], offered: list[str], tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    (tmp_path / "t.csv").touch()
    assert sorted(OFFERED[shell](words, tmp_path)) == offered


def test_zsh_takes_the_script_sourced_too(tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh on this machine")
    (tmp_path / "script").write_text(completion_script("zsh"))
    code = "autoload -Uz compinit; compinit -u -D; source ./script; print $_comps[kernelweave]"
    command = [str(shutil.which("zsh")), "-f", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == ("_cyclopts_kernelweave\n", "")


def test_an_unknown_shell_is_one_line(run: Callable) -> None:
    assert "fish" in run("completion", "tcsh").error
