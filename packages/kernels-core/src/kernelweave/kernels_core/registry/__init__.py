"""The process-wide registry: names to implementations, filled from plugins on first use.

They are found and loaded one at a time, so that none can break the host: pluggy's own loader stops
at the first plugin that fails to import and says nothing about duplicate names or a forgotten
marker; this one records each of these and goes on.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import os
import sys
import threading
from typing import Any, cast

from ..exceptions import DuplicateNameError, warn
from .specs import AlgorithmSpec, CommandSpec, ComponentSpec, DatasetSpec
from .store import HooklessPluginError, PluginRecord, Registry

__all__ = [
    "AlgorithmSpec",
    "CommandSpec",
    "ComponentSpec",
    "DatasetSpec",
    "PluginRecord",
    "Registry",
    "accepted_triples",
    "algorithms",
    "commands",
    "components",
    "datasets",
    "get_algorithm",
    "get_component",
    "parts_for",
    "plugins",
    "register_plugin",
]

_lock = threading.RLock()
_state: dict[str, Any] = {}

GROUP = "kernelweave"
BLOCK_VARIABLE = "KERNELWEAVE_BLOCK_PLUGINS"


def _entry_points() -> list[tuple[str, str, importlib.metadata.EntryPoint]]:
    """Return (distribution, version, entry point); our own first, then by name."""
    rows: dict[tuple[str, str], tuple[str, str, importlib.metadata.EntryPoint]] = {}
    for dist in importlib.metadata.distributions():
        points = [point for point in dist.entry_points if point.group == GROUP]
        if points:
            name, version = _name_and_version(dist)
            for point in points:
                rows.setdefault((name, point.name), (name, version, point))
    return sorted(
        rows.values(), key=lambda row: (not row[0].startswith("kernelweave-"), row[0], row[2].name)
    )


def _name_and_version(dist: importlib.metadata.Distribution) -> tuple[str, str]:
    """Return both, or "unknown" for an installation that lost its metadata."""
    try:
        return dist.metadata["Name"] or "unknown", dist.version or "unknown"
    except (FileNotFoundError, KeyError):
        return "unknown", "unknown"


def _load_one(
    registry: Registry, dist: str, version: str, point: importlib.metadata.EntryPoint
) -> PluginRecord:
    try:
        # a plugin that prints while it is imported must not spoil what a pipe reads
        with contextlib.redirect_stdout(sys.stderr):
            plugin = point.load()
        provides = registry.add(plugin, name=f"{dist}:{point.name}", source=dist)
    except DuplicateNameError as error:
        return PluginRecord(point.name, dist, version, "duplicate", str(error))
    except HooklessPluginError as error:
        return PluginRecord(point.name, dist, version, "hookless", str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may raise anything)
        cause = f"{type(error).__name__}: {error}"
        return PluginRecord(point.name, dist, version, "broken", cause)
    return PluginRecord(point.name, dist, version, "loaded", provides=provides)


def load_plugins(registry: Registry) -> list[PluginRecord]:
    """Load every installed plugin into ``registry`` and report on each."""
    # of plugins or of distributions
    blocked = {name.strip() for name in os.environ.get(BLOCK_VARIABLE, "").split(",")}
    records = []
    for dist, version, point in _entry_points():
        if point.name in blocked or dist in blocked:
            cause = f"blocked by {BLOCK_VARIABLE}"
            records.append(PluginRecord(point.name, dist, version, "blocked", cause))
        else:
            records.append(_load_one(registry, dist, version, point))
    return records


def warn_of_failures(records: list[PluginRecord]) -> None:
    """Name every plugin that did not load, in one warning.

    Warns KernelWeaveWarning if there is any.
    """
    bad = [row for row in records if row.status not in ("loaded", "blocked")]
    if bad:
        details = "; ".join(f"{row.name} ({row.distribution}): {row.cause}" for row in bad)
        warn(f"plugins not loaded: {details}")


def registry() -> Registry:
    """Return the registry of this process, loading the plugins once."""
    with _lock:
        if "registry" not in _state:
            new = _state["registry"] = Registry()
            _state["records"] = records = load_plugins(new)
            warn_of_failures(records)
        return cast(Registry, _state["registry"])


def algorithms(*, task: str | None = None) -> dict[str, AlgorithmSpec]:
    """Return the registered algorithms by name.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        Only those that serve this task.

    Returns
    -------
    dict of str to AlgorithmSpec
        Sorted by name; nothing is imported but the plugins' declarations.

    Examples
    --------
    >>> from kernelweave.kernels_core import algorithms
    >>> "tkl-low-rank" in algorithms(task="regression")
    True
    """
    specs = registry().specs("algorithms")
    return {name: spec for name, spec in specs.items() if task is None or task in spec.tasks}


def get_algorithm(name: str) -> AlgorithmSpec:
    """Return one algorithm's spec.

    Parameters
    ----------
    name : str
        A registered name, e.g. ``"tkl-frank-wolfe"``.

    Returns
    -------
    AlgorithmSpec
        Its description.

    Raises
    ------
    UnknownNameError
        If no plugin brings it; close matches are listed.

    Examples
    --------
    >>> from kernelweave.kernels_core import get_algorithm
    >>> get_algorithm("tkl-frank-wolfe").tasks
    ('classification', 'regression')
    """
    return cast(AlgorithmSpec, registry().get("algorithms", name))


def components(kind: str) -> dict[str, ComponentSpec]:
    """Return the registered ``"kernels"``, ``"families"``, ``"learners"`` or ``"constraints"``.

    Parameters
    ----------
    kind : str
        Which registry.

    Returns
    -------
    dict of str to ComponentSpec
        Sorted by name.

    Examples
    --------
    >>> from kernelweave.kernels_core import components
    >>> "rbf" in components("kernels")
    True
    """
    return registry().specs(kind)


def get_component(kind: str, name: str) -> ComponentSpec:
    """Return one component's spec.

    Parameters
    ----------
    kind, name : str
        Which registry and which item.

    Returns
    -------
    ComponentSpec
        Its description.

    Raises
    ------
    UnknownNameError
        If it is not registered.

    Examples
    --------
    >>> from kernelweave.kernels_core import get_component
    >>> get_component("kernels", "rbf").load()
    <class 'kernelweave.kernels_core.kernels.standard.RBF'>
    """
    return registry().get(kind, name)


def parts_for(spec: AlgorithmSpec, kind: str) -> list[str]:
    """Return the installed parts of one kind that have what an algorithm needs.

    The classes registered are imported. Those that it prefers come first, then by name.
    """
    role = {"families": "family", "learners": "learner", "constraints": "constraint"}[kind]
    names = [
        name for name, part in components(kind).items() if not spec.needs.missing(role, part.load())
    ]
    order = {name: i for i, name in enumerate(spec.prefers)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))


def accepted_triples(spec: AlgorithmSpec) -> list[tuple[str, str, str]]:
    """Return the names (family, learner, constraint) of installed parts that go together.

    Parameters
    ----------
    spec : AlgorithmSpec
        Which algorithm.

    Returns
    -------
    list of tuple of str
        Every combination of installed parts that it solves, those it prefers first.

    Examples
    --------
    >>> from kernelweave.kernels_core import accepted_triples, get_algorithm
    >>> accepted_triples(get_algorithm("tkl-frank-wolfe"))[0]
    ('tessellated', 'svc', 'spectahedron')
    """
    kinds = ("families", "learners", "constraints")
    families, learners, constraints = (parts_for(spec, kind) for kind in kinds)
    return list(itertools.product(families, learners, constraints))


def datasets() -> dict[str, DatasetSpec]:
    """Return the registered data sets by name."""
    return registry().specs("datasets")


def commands() -> dict[str, CommandSpec]:
    """Return the registered commands by name."""
    return registry().specs("commands")


def plugins() -> list[PluginRecord]:
    """Return the state of every installed plugin: loaded, broken, duplicate, blocked."""
    registry()
    return list(_state["records"])


def register_plugin(plugin: object, *, name: str | None = None) -> PluginRecord:
    """Register a plugin object or module now, e.g. from a notebook.

    Parameters
    ----------
    plugin : module or object
        Has functions marked with ``hookimpl``.
    name : str, optional
        How it is listed; the object's own name by default.

    Returns
    -------
    PluginRecord
        What it brought.

    Raises
    ------
    DuplicateNameError
        If it registers a name that exists.
    HooklessPluginError
        If it would register nothing.
    """
    label = name or str(getattr(plugin, "__name__", type(plugin).__name__))
    provides = registry().add(plugin, name=label, source=label)
    record = PluginRecord(label, "this session", "", "loaded", provides=provides)
    _state["records"].append(record)
    return record
