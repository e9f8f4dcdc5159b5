"""The conformance kit: checks that a third party runs on its own algorithm, kernel, estimator.

Each check raises AssertionError with what was expected and what was seen.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
