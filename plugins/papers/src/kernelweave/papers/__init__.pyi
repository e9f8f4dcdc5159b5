from .plan import Request as Request
from .plan import tables as tables

__version__: str
