"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import ComponentSpec, hookimpl

_LEARNERS = {
    "svc": ("SVC", "support vector classification, hinge loss"),
    "svr": ("SVR", "support vector regression, ε-insensitive loss"),
}


@hookimpl
def kernelweave_register_learners(register: Callable[[ComponentSpec], None]) -> None:
    for name, (attribute, summary) in _LEARNERS.items():
        target = f"kernelweave.qp_smo.learners:{attribute}"
        register(ComponentSpec(name=name, target=target, summary=summary))
