"""The data sets of the study: where they are, and which had a say in the model."""

from __future__ import annotations

from typing import NamedTuple

from ..data import Samples, load
from ..measuring import CLASSES
from ..plan import Request
from .generators import N_ROWS, make

_NUMBERS = "regression"


class SetSource(NamedTuple):
    """Where a set is: a file of the data folder, scikit-learn's loader, or a formula.

    ``had_a_say`` is whether somebody looked at its results while the evidence model was made.
    """

    where: str
    task: str
    n_rows: int
    n_columns: int
    n_classes: int
    had_a_say: bool


def _file(name: str, n_rows: int, n_columns: int, task: str = CLASSES) -> SetSource:
    return SetSource(f"{name}.csv", task, n_rows, n_columns, 2 if task == CLASSES else 0, True)


def _packed(name: str, n_rows: int, n_columns: int, task: str = CLASSES) -> SetSource:
    return _file(name, n_rows, n_columns, task)._replace(where=f"{name}.csv.gz")


def _shipped(name: str, n_rows: int, n_columns: int, n_classes: int) -> SetSource:
    task = CLASSES if n_classes else _NUMBERS
    return SetSource(f"load_{name}", task, n_rows, n_columns, n_classes, True)


def _formula(name: str, n_columns: int, n_classes: int = 0, say: bool = False) -> SetSource:
    task = CLASSES if n_classes else _NUMBERS
    return SetSource(f"make {name}", task, N_ROWS, n_columns, n_classes, say)


# scikit-learn's breast cancer set is "WDBC"
SETS: dict[str, SetSource] = {
    "iris, one class": _file("iris", 150, 4),
    "wine, one class": _file("wine", 178, 13),
    "WDBC": _file("breastcancer_wdbc", 569, 30),
    "ionosphere": _file("ionosphere", 351, 34),
    "spambase": _packed("spambase", 4601, 57),
    "banknote": _file("banknote", 1372, 4),
    "heart (Cleveland)": _file("heart_cleveland", 303, 13),
    "haberman": _file("haberman", 306, 3),
    "mammographic": _file("mammographic", 961, 5),
    "parkinsons": _file("parkinsons", 195, 22),
    "liver": _file("liver_bupa", 345, 6),
    "breast cancer": _file("breastcancer_wisconsin_original", 683, 9),
    "heart (Statlog)": _file("heart_statlog", 270, 13),
    "pima": _file("pima", 768, 8),
    "hill valley": _packed("hill_valley_without_noise", 1212, 100),
    "hill valley, noisy": _packed("hill_valley_with_noise", 1212, 100),
    "shill bidding": _packed("shill_bidding", 6321, 9),
    "abalone, grown": _file("abalone", 4177, 8),
    "transfusion": _file("transfusion", 748, 4),
    "German credit": _file("german_numeric", 1000, 24),
    "fourclass": _file("fourclass", 862, 2),
    "sonar": _file("sonar", 208, 60),
    "Ljubljana": _file("breastcancer_ljubljana", 277, 9),
    "abalone, rings": _file("abalone_rings", 4177, 8, _NUMBERS),
    "gas turbine": _packed("gas_turbine", 36733, 11, _NUMBERS),
    "airfoil": _file("airfoil", 1503, 5, _NUMBERS),
    "CCPP": _file("ccpp", 9568, 4, _NUMBERS),
    "California": _packed("california_housing", 20640, 8, _NUMBERS),
    "space": _file("space_ga", 3107, 6, _NUMBERS),
    "Boston housing": _file("boston_housing", 506, 13, _NUMBERS),
    "Grand Canyon": _file("grand_canyon_750", 750, 2, _NUMBERS),
    "iris": _shipped("iris", 150, 4, 3),
    "wine": _shipped("wine", 178, 13, 3),
    "digits": _shipped("digits", 1797, 64, 10),
    "diabetes": _shipped("diabetes", 442, 10, 0),
    "Friedman 1": _formula("Friedman 1", 10, say=True),
    "Friedman 2": _formula("Friedman 2", 4),
    "Friedman 3": _formula("Friedman 3", 4, say=True),
    "Gu and Wahba": _formula("Gu and Wahba", 4),
    "Welch": _formula("Welch", 20),
    "borehole": _formula("borehole", 8),
    "circuit": _formula("circuit", 6),
    "piston": _formula("piston", 7),
    "wing weight": _formula("wing weight", 10),
    "robot arm": _formula("robot arm", 8, say=True),
    "twonorm": _formula("twonorm", 20, 2, say=True),
    "threenorm": _formula("threenorm", 20, 2, say=True),
    "ringnorm": _formula("ringnorm", 20, 2, say=True),
    "waveform": _formula("waveform", 21, 3, say=True),
}


def address(source: SetSource, request: Request) -> str:
    """Return what `samples` takes: the path of a file, else the name as it is."""
    is_file = ".csv" in source.where
    return request.data_file(source.where) if is_file else source.where


def samples(where: str) -> Samples:
    """Return the features and targets of an address."""
    if where.startswith("make "):
        return make(where.removeprefix("make "))
    if not where.startswith("load_"):
        return load(where)
    from sklearn import datasets

    found = getattr(datasets, where)(return_X_y=True)
    return found[0], found[1]
