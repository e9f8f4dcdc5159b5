"""The tables of the sparse multiple kernel learning paper, ours beside the printed ones.

Each function takes a `kernelweave.kernels_core.reproduction.Request` and returns a `Plan`; the
``kernelweave tables`` command runs it under the names ``smkl-2`` to ``smkl-10`` and
``smkl-optima``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
