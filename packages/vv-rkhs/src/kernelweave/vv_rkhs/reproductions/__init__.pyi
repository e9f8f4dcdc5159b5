from .scaling import accuracy_figure, objective_figure
from .stocks import stocks_table

__all__ = ["accuracy_figure", "objective_figure", "stocks_table"]
