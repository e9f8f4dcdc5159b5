from .displays import CausalGraphDisplay
from .effects import Effects
from .forecasting import Forecast
from .graph import GrangerGraph
from .linear import LassoVAR, lasso_var
from .matrices import plot_effect, plot_output_kernel, plot_weights
from .page import graph_page
from .scores import GraphScores, score_graph
from .series import LaggedSamples, lagged_samples
from .simulation import lorenz96, random_network

__all__ = [
    "CausalGraphDisplay",
    "Effects",
    "Forecast",
    "GrangerGraph",
    "GraphScores",
    "LaggedSamples",
    "LassoVAR",
    "__version__",
    "graph_page",
    "lagged_samples",
    "lasso_var",
    "lorenz96",
    "plot_effect",
    "plot_output_kernel",
    "plot_weights",
    "random_network",
    "score_graph",
]
__version__: str
