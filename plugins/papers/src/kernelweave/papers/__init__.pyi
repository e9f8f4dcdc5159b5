from .plan import Request, tables

__all__ = ["Request", "__version__", "tables"]
__version__: str
