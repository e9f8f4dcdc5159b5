from .encoded import Dimension as Dimension
from .encoded import Encoded as Encoded
from .encoder import ColumnEncoder as ColumnEncoder
