"""Compiled code on disk that is damaged, stale or cannot be written."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import pytest
from kernelweave.kernels_core import KernelWeaveWarning, clock, compiled
from numba.core import event as events
from numba.core.caching import IndexDataCacheFile

resource = pytest.importorskip("resource")  # of Unix

SOURCE = """
from kernelweave.kernels_core.compiled import njit

@njit(cache=True, nogil=True)
def half(x):
    return 0.5 * x

@njit(cache=True)
def quarter(x):
    return half(half(x))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "_njit_quarter.py"
    path.write_text(SOURCE)
    # an index is for the source of its time
    os.utime(path, (1e9, 1e9))
    return tmp_path


def load(folder: Path) -> ModuleType:
    """Return the module as a new process would see it."""
    spec = importlib.util.spec_from_file_location("_njit_quarter", folder / "_njit_quarter.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(folder: Path) -> int:
    """Return how many compiled functions came from disk; the answer must be right."""
    module = load(folder)
    assert module.quarter(3.0) == 0.75
    return int(sum(module.quarter.stats.cache_hits.values()))


def test_sound_code_is_found_again(folder: Path) -> None:
    assert hits(folder) == 0
    assert hits(folder) == 1


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("how", ["emptied", "cut", "foreign", "gone"])
def test_damaged_code_is_compiled_again(folder: Path, suffix: str, how: str) -> None:
    hits(folder)
    files = list((folder / "cache").rglob(f"*{suffix}"))
    assert files
    for path in files:
        content = path.read_bytes()
        spoilt = {"emptied": b"", "cut": content[: len(content) // 2], "foreign": b"\x80\x04N."}
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(spoilt[how])
    assert hits(folder) == 0
    assert hits(folder) == 1


def test_a_changed_source_is_compiled_again(folder: Path) -> None:
    hits(folder)
    path = folder / "_njit_quarter.py"
    path.write_text(SOURCE.replace("half(half(x))", "0.25 * x"))
    assert hits(folder) == 0


def test_a_folder_that_fills_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that cannot be written is used all the same, and said once."""
    module = load(folder)
    monkeypatch.setattr(compiled, "_warned", type(compiled._warned)())

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    with pytest.warns(KernelWeaveWarning, match="No space left") as given:
        assert module.quarter(3.0) == 0.75
    assert len(given) == 1


def test_no_folder_at_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numba itself fails at import."""
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder / "_njit_quarter.py" / "no"))
    monkeypatch.setattr(compiled, "_warned", type(compiled._warned)())
    with pytest.warns(KernelWeaveWarning, match="NUMBA_CACHE_DIR") as given:
        module = load(folder)
    assert len(given) == 1
    assert module.quarter(3.0) == 0.75


def test_without_a_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert load(folder).quarter(3.0) == 0.75
    assert "_njit_quarter" not in sys.modules


class SlowMachine(events.Listener):  # type: ignore[misc]
    """A clock on which compiling a function takes a thousand seconds and nothing else any."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def on_start(self, event: Any) -> None:
        self.now += 1000.0

    def on_end(self, event: Any) -> None:
        pass


def test_a_deadline_begins_where_compiling_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowMachine()
    monkeypatch.setattr(clock, "time", slow)
    monkeypatch.setattr(clock, "_still", type(clock._still)())  # its seconds are whole ones
    with events.install_listener("numba:compile", slow), clock.time_limit(500.0):
        assert load(folder).quarter(3.0) == 0.75
        assert slow.now == 2000.0
        assert clock.seconds_left() == 500.0
        slow.now += 499.0
        assert not clock.expired()
        slow.now += 1.0
        assert clock.expired()


@pytest.mark.parametrize("watched", [True, False])
def test_a_terminal_is_told_once_that_code_compiles(
    monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    said, watch = io.StringIO(), compiled.CompileWatch()
    monkeypatch.setattr(said, "isatty", lambda: watched)
    monkeypatch.setattr(sys, "stderr", said)
    for module in ("elsewhere", "kernelweave.x", "kernelweave.y"):
        function = SimpleNamespace(__module__=module)
        event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
        watch.on_start(event)
        watch.on_end(event)
    assert said.getvalue().count("compiles") == int(watched)


def page_faults(depth: int) -> int:
    """Return how often calls from a loop this deep in others ask the system for memory."""
    if depth:
        return page_faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(2000):
        abs_of(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def abs_of(value: float) -> float:
    """Stand for any function that a loop calls."""
    return abs(value)


def test_no_loop_meets_the_end_of_a_piece_of_the_stack() -> None:
    """Without the room one depth of two hundred has a fault for each call."""
    assert max(compiled.with_room(page_faults, depth) for depth in range(200)) < 500


def test_a_compiler_has_this_room() -> None:
    twice = compiled.njit()(lambda x: 2.0 * x)
    assert isinstance(twice.compile, partial)
    assert twice.compile.func is compiled.with_room
    assert twice(2.0) == 4.0
