"""Support vector machine duals solved to a certified distance from their optimum.

The stub beside this file lists the public names; each is loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
