"""Names to implementations: specs, hooks, the plugin loader and the registry."""

from .specs import AlgorithmSpec, CommandSpec, ComponentSpec, DatasetSpec
from .store import PluginRecord, Registry
from .views import (
    algorithms,
    commands,
    components,
    datasets,
    get_algorithm,
    get_component,
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
    "algorithms",
    "commands",
    "components",
    "datasets",
    "get_algorithm",
    "get_component",
    "plugins",
    "register_plugin",
]
