from .displays import ConvergenceDisplay as ConvergenceDisplay
from .displays import KernelWeightsDisplay as KernelWeightsDisplay
from .models import Header as Header
from .models import Model as Model
from .models import load_model as load_model
from .models import save_model as save_model

__version__: str
