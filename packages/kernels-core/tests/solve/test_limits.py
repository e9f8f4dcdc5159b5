"""Settings and the memory budget."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from kernelweave.kernels_core import MemoryBudgetError, config_context, get_config
from kernelweave.kernels_core.config import effective_threads
from kernelweave.kernels_core.memory import _group_limits, limit_bytes, machine_bytes, require


def test_settings_hold_inside_the_block_only_and_nest() -> None:
    with config_context(memory_limit=1000):
        with config_context(n_threads=1):
            assert get_config().memory_limit == 1000
            assert effective_threads() == 1
        assert get_config().n_threads is None
    assert get_config().memory_limit is None


def test_settings_are_each_threads_own() -> None:
    seen: list[int | None] = []
    with config_context(memory_limit=1000):
        thread = threading.Thread(target=lambda: seen.append(get_config().memory_limit))
        thread.start()
        thread.join()
    assert seen == [None]


@pytest.mark.parametrize("value", [0, -1, 0.5, "1 GiB", True, float("nan"), float("inf")])
def test_senseless_settings_are_named(value: Any) -> None:
    with pytest.raises(ValueError, match="memory_limit"), config_context(memory_limit=value):
        pass
    with pytest.raises(ValueError, match="n_threads"), config_context(n_threads=value):
        pass


def test_bytes_may_be_a_float_and_threads_may_not() -> None:
    with config_context(memory_limit=2.5e9):
        assert get_config().memory_limit == 2_500_000_000
    with pytest.raises(ValueError, match="n_threads"), config_context(n_threads=1.5):
        pass


def test_work_past_the_limit_is_refused_with_figures_and_a_remedy() -> None:
    with config_context(memory_limit=2**20), pytest.raises(MemoryBudgetError) as caught:
        require(2**30, "2 Gram matrices of 8192 samples", alternative="fit fewer samples")
    message = str(caught.value)
    assert "need 1 GiB, more than the memory limit of 1 MiB" in message
    assert "fit fewer samples" in message
    with config_context(memory_limit=2**30):
        require(2**30, "one array", alternative="")


def test_the_default_limit_leaves_room() -> None:
    assert 0 < limit_bytes() < machine_bytes()


@pytest.mark.parametrize(
    ("membership", "files", "limits"),
    [
        ("0::/app/job\n", {"app/memory.max": "4096", "app/job/memory.max": "max"}, [4096]),
        ("0::/outside\n", {"memory.max": "8192"}, [8192]),
        (
            "5:cpu:/job\n4:memory:/job\n",
            {"memory/job/memory.limit_in_bytes": "512", "memory/memory.limit_in_bytes": "1024"},
            [512, 1024],
        ),
        ("3:cpuset:/\n", {"memory.max": "1"}, []),
    ],
    ids=["version 2", "seen from inside", "version 1", "no group of memory"],
)
def test_the_limit_of_a_container_is_read(
    tmp_path: Path, membership: str, files: dict[str, str], limits: list[int]
) -> None:
    (tmp_path / "cgroup").write_text(membership)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert sorted(_group_limits(tmp_path / "cgroup", tmp_path)) == limits
    assert _group_limits(tmp_path / "nothing", tmp_path) == []
