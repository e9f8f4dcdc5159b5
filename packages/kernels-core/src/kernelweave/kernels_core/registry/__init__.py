"""Names to implementations: specs, hooks, the plugin loader and the registry."""

from .specs import AlgorithmSpec, CommandSpec, ComponentSpec, DatasetSpec
from .store import PluginRecord, Registry
from .views import (
    accepted_triples,
    algorithms,
    commands,
    components,
    datasets,
    get_algorithm,
    get_component,
    parts_for,
    plugins,
    register_plugin,
)

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
