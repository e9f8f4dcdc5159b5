"""The process-wide registry, filled from the installed plugins on first use."""

from __future__ import annotations

import itertools
import threading
from typing import Any, cast

from .loader import load_plugins, warn_of_failures
from .specs import AlgorithmSpec, CommandSpec, ComponentSpec, DatasetSpec
from .store import PluginRecord, Registry

_lock = threading.RLock()
_state: dict[str, Any] = {}


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
    >>> sorted(spec.name for spec in algorithms(task="regression").values()) is not None
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
    """
    return registry().get(kind, name)


def parts_for(spec: AlgorithmSpec, kind: str) -> list[str]:
    """Return the installed parts of one kind that have what an algorithm needs.

    `spec`: whose needs; `kind` in {"families", "learners", "constraints"}: which registry; the
    classes registered there are imported. Those that it prefers first, then by name.
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
    >>> from kernelweave.kernels_core import accepted_triples, algorithms
    >>> [triple for spec in algorithms().values() for triple in accepted_triples(spec)] != []
    True
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
    """Return what became of every installed plugin: loaded, broken, duplicate, blocked."""
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
