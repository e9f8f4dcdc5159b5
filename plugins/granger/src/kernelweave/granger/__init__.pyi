from .displays import CausalGraphDisplay
from .fitted_graph import Forecast
from .graph import GrangerGraph
from .linear import LassoVAR, lasso_var
from .page import graph_page, plot_effect, plot_weights
from .series import LaggedSamples, lagged_samples
from .simulation import GraphScores, lorenz96, random_network, score_graph
from .target import Effects

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
    "plot_weights",
    "random_network",
    "score_graph",
]
__version__: str
