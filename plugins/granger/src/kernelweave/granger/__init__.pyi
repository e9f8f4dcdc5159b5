from .displays import CausalGraphDisplay as CausalGraphDisplay
from .forecasts import Forecast as Forecast
from .graph import GrangerGraph as GrangerGraph
from .linear import LassoVAR as LassoVAR
from .linear import lasso_var as lasso_var
from .page import graph_page as graph_page
from .page import plot_effect as plot_effect
from .page import plot_weights as plot_weights
from .series import LaggedSamples as LaggedSamples
from .series import lagged_samples as lagged_samples
from .simulation import GraphScores as GraphScores
from .simulation import lorenz96 as lorenz96
from .simulation import random_network as random_network
from .simulation import score_graph as score_graph
from .target import Effects as Effects

__version__: str
