"""Kernels, kernel families, the algorithm registry and certified results.

Nothing heavy is imported here: every public name is loaded on first use, and the stub beside
this file is the one list of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
