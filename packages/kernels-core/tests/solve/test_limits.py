"""Settings and the memory budget."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kernelweave.kernels_core import MemoryBudgetError, config_context, get_config
from kernelweave.kernels_core.config import effective_threads
from kernelweave.kernels_core.memory import available_bytes, limit_bytes, require


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
    assert "need 1.00 GiB" in message
    assert "fit fewer samples" in message
    with config_context(memory_limit=2**30):
        require(2**30, "one array", alternative="")


def test_the_default_limit_leaves_room() -> None:
    assert 0 < limit_bytes() < available_bytes()
