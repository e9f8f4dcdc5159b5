"""How numba compiles a private function: as a part of its callers, which alone become machine code.

numba optimises each compiled function and turns it into machine code at once, also one that only
compiled functions call, and links its code into theirs, where it is optimised and turned into
machine code again. The first time costs a third of a first fit and nothing runs what it makes.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


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
