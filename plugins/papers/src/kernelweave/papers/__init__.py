"""The papers' tables and figures, recomputed and compared with the printed ones.

The stub beside this file lists the public names; each is loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
