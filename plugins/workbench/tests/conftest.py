"""Running commands, inside this process and outside, and planting other people's plugins."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernelweave.kernels_core import KernelWeaveWarning, plugins
from kernelweave.workbench.app import run as run_command

# what quick models of these tests are told, which one test looks at
QUICK = "warning: --max-iter of"


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Standard error, whatever other plugins of this environment may be broken."""
        lines = self.err.splitlines(keepends=True)
        return "".join(line for line in lines if "not loaded" not in line and QUICK not in line)

    @property
    def error(self) -> str:
        """The one line of an error; anything else on the way out is a failure."""
        lines = self.said.splitlines()
        assert self.status == 2, (self.status, self.err)
        assert len(lines) == 1, self.err
        assert lines[0].startswith("kernelweave: error: "), lines
        assert "Traceback" not in self.err
        return lines[0].removeprefix("kernelweave: error: ")


Run = Callable[..., Outcome]


@pytest.fixture(scope="session", autouse=True)
def registry_of_this_environment() -> None:
    """Load the plugins once; what else is installed here, and broken, is not under test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        plugins()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command inside this process."""

    def inside(*tokens: object) -> Outcome:
        capsys.readouterr()
        status = run_command([str(token) for token in tokens])
        said = capsys.readouterr()
        return Outcome(status, said.out, said.err)

    return inside


@pytest.fixture
def shell(tmp_path: Path) -> Run:
    """Return a function that runs the program in a process of its own, in an empty folder."""

    def outside(*tokens: object, stdin: bytes = b"", **variables: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "kernelweave.workbench", *map(str, tokens)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **variables},
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return outside


@pytest.fixture
def plant(tmp_path: Path) -> Callable[..., str]:
    """Return a function that installs a plugin beside the others; it returns PYTHONPATH."""
    site = tmp_path / "site"
    site.mkdir()

    def install(name: str, code: str, *, target: str | None = None) -> str:
        module = name.replace("-", "_")
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-3.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.2\n")
        (info / "entry_points.txt").write_text(f"[kernelweave]\n{name} = {target or module}\n")
        return os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    return install
