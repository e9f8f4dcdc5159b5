"""The registry itself: items by kind and name, filled by plugins that cannot break it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pluggy

from ..exceptions import DuplicateNameError, UnknownNameError
from . import hookspecs
from .specs import ComponentSpec

_PREFIX = "kernelweave_register_"


@dataclass(frozen=True)
class PluginRecord:
    """The state of one plugin.

    Attributes
    ----------
    name : str
        Entry-point name.
    distribution, version : str
        Where it comes from.
    status : str
        ``"loaded"``, ``"broken"``, ``"duplicate"``, ``"hookless"`` or ``"blocked"``.
    cause : str
        Why it is not loaded; empty when it is.
    provides : dict of str to list of str
        Names registered, by kind.
    """

    name: str
    distribution: str
    version: str
    status: str
    cause: str = ""
    provides: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Entry:
    spec: ComponentSpec
    source: str


class Registry:
    """Items by kind and name, filled through historic hooks.

    A plugin registered at any time is served at once; one that raises leaves nothing behind.
    """

    def __init__(self) -> None:
        self._items: dict[str, dict[str, _Entry]] = {kind: {} for kind in hookspecs.KINDS}
        self._source = "this session"
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        for kind in hookspecs.KINDS:
            hook = getattr(self._manager.hook, _PREFIX + kind)
            hook.call_historic(kwargs={"register": self._registrar(kind)})

    def _registrar(self, kind: str) -> Callable[[ComponentSpec], None]:
        expected = hookspecs.KINDS[kind]

        def register(spec: ComponentSpec) -> None:
            if not isinstance(spec, expected):
                raise TypeError(
                    f"{_PREFIX}{kind} takes {expected.__name__}, got {type(spec).__name__}"
                )
            existing = self._items[kind].get(spec.name)
            if existing is not None:
                raise DuplicateNameError(
                    f"{kind} {spec.name!r} is registered by {existing.source!r} already and again "
                    f"by {self._source!r}: rename one, or block a plugin with "
                    f"KERNELWEAVE_BLOCK_PLUGINS"
                )
            self._items[kind][spec.name] = _Entry(spec, self._source)

        return register

    def add(self, plugin: object, *, name: str, source: str) -> dict[str, list[str]]:
        """Register ``plugin`` and return the names it brought, by kind."""
        before = {kind: dict(items) for kind, items in self._items.items()}
        self._source, previous = source, self._source
        try:
            check_hooks(plugin)
            self._manager.register(plugin, name=name)
        except BaseException:
            self._items = before
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        finally:
            self._source = previous
        return {
            kind: sorted(set(items) - set(before[kind]))
            for kind, items in self._items.items()
            if set(items) - set(before[kind])
        }

    def specs(self, kind: str) -> dict[str, Any]:
        """Return the specs of one kind by name, sorted."""
        return {name: entry.spec for name, entry in sorted(self._items[kind].items())}

    def source(self, kind: str, name: str) -> str:
        """Return the distribution that registered an item."""
        self.get(kind, name)
        return self._items[kind][name].source

    def get(self, kind: str, name: str) -> ComponentSpec:
        """Return one spec.

        Raises UnknownNameError if the name is not registered; the message lists close matches.
        """
        items = self._items[kind]
        if name in items:
            return items[name].spec
        started = [item for item in sorted(items) if item.startswith(str(name))]
        close = started or difflib.get_close_matches(str(name), items, n=3, cutoff=0.5)
        hint = (
            f"did you mean {', '.join(map(repr, close))}?" if close else f"known: {sorted(items)}"
        )
        raise UnknownNameError(f"{name!r} is not among the installed {kind}; {hint}")


class HooklessPluginError(TypeError):
    """A plugin registers nothing: a marker is missing or a hook is misspelt."""


def check_hooks(plugin: object) -> None:
    """Raise unless ``plugin`` implements at least one hook and no unknown one."""
    hooks = {_PREFIX + kind for kind in hookspecs.KINDS}
    marked: set[str] = set()
    unmarked: set[str] = set()
    for attribute in dir(plugin):
        if not attribute.startswith("kernelweave_"):
            continue
        value = getattr(plugin, attribute, None)
        if callable(value):
            has_marker = hasattr(value, f"{hookspecs.PROJECT}_impl")
            (marked if has_marker else unmarked).add(attribute)
    if unmarked:
        raise HooklessPluginError(
            f"{', '.join(sorted(unmarked))} lacks the @hookimpl marker of "
            f"kernelweave.kernels_core, so it would never be called"
        )
    for attribute in sorted(marked - hooks):
        close = difflib.get_close_matches(attribute, hooks, n=1)
        raise HooklessPluginError(
            f"{attribute} is not a hook" + (f"; did you mean {close[0]}?" if close else "")
        )
    if not marked:
        raise HooklessPluginError(
            "it implements no kernelweave_register_… hook, so it registers nothing"
        )
