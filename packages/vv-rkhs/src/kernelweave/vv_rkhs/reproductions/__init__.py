"""Tables and figures of the matrix-valued kernel learning paper, ours beside the printed ones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
