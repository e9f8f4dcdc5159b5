"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import ComponentSpec, hookimpl

_LEARNERS = {
    "svc": ("learners:SVC", "support vector classification, hinge loss"),
    "svr": ("learners:SVR", "support vector regression, ε-insensitive loss"),
    "ridge": ("squared_losses:Ridge", "kernel ridge regression, squared loss"),
    "squared-hinge-svc": ("squared_losses:SquaredHingeSVC", "classification, squared hinge loss"),
    "quantile-svr": ("learners:QuantileSVR", "quantile regression, pinball loss"),
}


@hookimpl
def kernelweave_register_learners(register: Callable[[ComponentSpec], None]) -> None:
    for name, (target, summary) in _LEARNERS.items():
        target = f"kernelweave.qp_smo.{target}"
        register(ComponentSpec(name=name, target=target, summary=summary))
