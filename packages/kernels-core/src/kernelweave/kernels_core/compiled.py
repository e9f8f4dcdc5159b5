"""``njit`` whose cache on disk may be damaged, read-only or out of reach.

By numba itself an index that was cut short raises an ``UnpicklingError`` at the first call, a full
disk an ``OSError``, and without a folder to write to the import fails. Here what cannot be read is
compiled again and replaced, and what cannot be written is kept in memory, with one warning.

A private function, whose name begins with an underscore, is called by compiled functions of its
file alone. It becomes part of them: it gets no wrapper for calls from Python, no machine code of
its own, and is not kept on disk. numba by itself turns it into machine code at once, links its code
into theirs, where it is optimised and turned into machine code again: the first time costs a third
of a first fit and nothing runs what it makes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numba
from numba.core import event as events
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from . import clock
from .exceptions import warn


class _NoEngine:
    """Stands where a library has the engine that runs its machine code."""

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        """Do nothing: what cannot be called needs no Python objects."""


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that waits to be linked into that of a caller and to be optimised there."""

    @property
    def codegen(self) -> type[_NoEngine]:
        """Return what stands for the engine."""
        return _NoEngine

    def _optimize_functions(self, ll_module: Any) -> None:
        # what the passes over functions would set first, and linking asks for
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Leave it to the caller, whose passes see through the call."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, numba's word for a function that Python cannot call."""
        self._ensure_finalized()
        return 0


class PartCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler, its result in a `PartLibrary`."""

    def define_pipelines(self) -> Any:
        """Return numba's passes."""
        state = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, where a damaged file counts as absent and a full disk too."""

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the compiled code on disk, ``None`` where there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - reading bytes that were cut short may raise anything
            # saving reads the index first
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep compiled code on disk where that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            warn_once(f"{self._cache_path} cannot be written ({error.strerror or error})")


class CompileWatch(events.Listener):  # type: ignore[misc]
    """Stops the clock of deadlines while numba compiles, and says so once to a terminal."""

    def __init__(self) -> None:
        self._announced = False

    def on_start(self, event: Any) -> None:
        """Stop the clock."""
        clock.pause()
        is_ours = str(event.data["dispatcher"].py_func.__module__).startswith("kernelweave.")
        if is_ours and not self._announced and sys.stderr is not None and sys.stderr.isatty():
            self._announced = True
            print(  # noqa: T201
                "kernelweave compiles, which takes some seconds once in an environment",
                file=sys.stderr,
            )

    def on_end(self, event: object) -> None:
        """Let it go on."""
        clock.resume()


events.register("numba:compile", CompileWatch())
_PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}
_warned = threading.Event()


def warn_once(cause: str) -> None:
    """Warn that compiled code is not kept, the first time."""
    if _warned.is_set():
        return
    _warned.set()
    warn(
        f"compiled code is not kept for the next process, which starts slower: {cause}; set "
        "NUMBA_CACHE_DIR to a folder that can be written"
    )


def with_room(call: Callable[..., Any], *args: object) -> Any:
    """Call a function whose own calls, some hundred deep, share one piece of Python's stack.

    Python 3.11 and later take frames from pieces of 16 KiB, and give the last one back to the
    system as soon as it is empty. A loop whose calls cross such an end asks for memory each time:
    compiling one function met 1.4 million page faults, 15 of 25 seconds.
    """
    return call(*args)


# a frame that does not fit gets a piece as large as the next power of two, here twice its size
with_room.__code__ = with_room.__code__.replace(co_stacksize=2**14 + 2**8)


def njit(**options: object) -> Callable[[Callable[..., object]], Any]:
    """Return numba's ``njit`` with a cache that survives damage."""
    cache = options.pop("cache", False)

    def decorate(function: Callable[..., object]) -> Any:
        private = function.__name__.startswith("_")
        extra = _PART if private else {"no_cfunc_wrapper": True}
        compiled = numba.njit(**{**extra, **options})(function)
        if private or numba.config.DISABLE_JIT:
            return compiled
        compiled.compile = partial(with_room, compiled.compile)
        if cache:
            compiled._cache = _cache_of(function)
        return compiled

    return decorate


def _cache_of(function: Callable[..., object]) -> Cache | NullCache:
    try:
        return Cache(function)
    except RuntimeError:
        warn_once("neither NUMBA_CACHE_DIR nor __pycache__ nor the user's cache can be written")
        return NullCache()
