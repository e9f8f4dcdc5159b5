from .drosophila import error_figure, graph_figure, output_figure
from .known_graphs import known_graphs_table

__all__ = ["error_figure", "graph_figure", "known_graphs_table", "output_figure"]
