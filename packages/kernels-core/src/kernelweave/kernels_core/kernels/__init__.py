"""Kernels, dictionaries of kernels, and their Gram matrices or factors on training points.

Names are imported on first use, so importing this package loads numpy at most.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
