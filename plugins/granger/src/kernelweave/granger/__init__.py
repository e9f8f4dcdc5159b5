"""Nonlinear Granger causality: which series help to predict which others.

Each node's next value is a sum of functions of the histories of all nodes; the weights of their
kernels are learned, and an edge is the weight that a history gets. The stub beside this file lists
the public names; each is loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
