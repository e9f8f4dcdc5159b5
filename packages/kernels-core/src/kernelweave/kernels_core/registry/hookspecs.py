"""The hooks through which packages and plugins register what they bring."""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from .specs import AlgorithmSpec, CommandSpec, ComponentSpec, DatasetSpec

PROJECT = "kernelweave"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(historic=True)
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    """Call ``register(spec)`` once per algorithm."""


@hookspec(historic=True)
def kernelweave_register_kernels(register: Callable[[ComponentSpec], None]) -> None:
    """Call ``register(spec)`` once per kernel class; the target is a `Kernel` subclass."""


@hookspec(historic=True)
def kernelweave_register_families(register: Callable[[ComponentSpec], None]) -> None:
    """Call ``register(spec)`` once per kernel family; the target is its class."""


@hookspec(historic=True)
def kernelweave_register_learners(register: Callable[[ComponentSpec], None]) -> None:
    """Call ``register(spec)`` once per learner; the target is its class."""


@hookspec(historic=True)
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    """Call ``register(spec)`` once per constraint set; the target is its class."""


@hookspec(historic=True)
def kernelweave_register_datasets(register: Callable[[DatasetSpec], None]) -> None:
    """Call ``register(spec)`` once per named data set; the target is a loader."""


@hookspec(historic=True)
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    """Call ``register(spec)`` once per command; the target is a plain typed function."""


KINDS = {
    "algorithms": AlgorithmSpec,
    "kernels": ComponentSpec,
    "families": ComponentSpec,
    "learners": ComponentSpec,
    "constraints": ComponentSpec,
    "datasets": DatasetSpec,
    "commands": CommandSpec,
}
