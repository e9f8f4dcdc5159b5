"""Tables as they are: from columns of any kind to numbers and codes of categories."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
