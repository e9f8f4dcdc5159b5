"""What kernels-core itself registers: the standard kernels and the kernel families."""

from __future__ import annotations

from collections.abc import Callable

from .registry.hookspecs import hookimpl
from .registry.specs import ComponentSpec

_KERNELS = {
    "linear": ("Linear", "⟨x, y⟩"),
    "polynomial": ("Polynomial", "(γ⟨x, y⟩ + c)^d"),
    "rbf": ("RBF", "exp(−γ‖x − y‖²)"),
    "laplacian": ("Laplacian", "exp(−γ‖x − y‖₁)"),
    "sigmoid": ("Sigmoid", "tanh(γ⟨x, y⟩ + c); indefinite"),
}
_FAMILIES = {
    "tessellated": ("families:TessellatedFamily", "∫ N(z,x)ᵀ P N(z,y) dz over a box, P ⪰ 0"),
    "polynomial": ("families:PolynomialFamily", "Z_d(x)ᵀ P Z_d(y), P ⪰ 0"),
    "dictionary": ("kernels:KernelDictionary", "Σ βⱼ Kⱼ over named kernels"),
}


@hookimpl
def kernelweave_register_kernels(register: Callable[[ComponentSpec], None]) -> None:
    for name, (attribute, summary) in _KERNELS.items():
        target = f"kernelweave.kernels_core.kernels:{attribute}"
        register(ComponentSpec(name=name, target=target, summary=summary))


@hookimpl
def kernelweave_register_families(register: Callable[[ComponentSpec], None]) -> None:
    for name, (target, summary) in _FAMILIES.items():
        target = f"kernelweave.kernels_core.{target}"
        register(ComponentSpec(name=name, target=target, summary=summary))
