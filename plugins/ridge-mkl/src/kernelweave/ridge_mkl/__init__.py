"""Kernel learning for ridge regression and the squared-hinge support vector machine.

The problem is min over μ of yᵀ(K_μ + λI)⁻¹y + r(μ), with K_μ a linear or a polynomial combination
of kernels and μ in an ℓq ball or penalised by β‖μ‖². The stub beside this file lists the public
names; each is loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
