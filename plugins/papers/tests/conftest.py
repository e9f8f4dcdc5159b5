"""Running commands inside this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from kernelweave.kernels_core import KernelWeaveWarning, plugins
from kernelweave.workbench.app import run as run_command


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    said: str

    @property
    def error(self) -> str:
        """The one line of an error; anything else on the way out is a failure."""
        lines = self.said.splitlines()
        assert self.status == 2, (self.status, self.said)
        assert len(lines) == 1, self.said
        assert lines[0].startswith("kernelweave: error: "), lines
        return lines[0].removeprefix("kernelweave: error: ")


@pytest.fixture(scope="session", autouse=True)
def registry_of_this_environment() -> None:
    """Load the plugins once; what else is installed here, and broken, is not under test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        plugins()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs a command inside this process."""

    def inside(*tokens: object) -> Outcome:
        capsys.readouterr()
        status = run_command([str(token) for token in tokens])
        done = capsys.readouterr()
        lines = done.err.splitlines(keepends=True)
        return Outcome(
            status, done.out, "".join(line for line in lines if "not loaded" not in line)
        )

    return inside
