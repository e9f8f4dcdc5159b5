"""What the registry holds: named descriptions whose targets are resolved on use."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..checks import COUNT
from ..formula.problem import Needs, Problem

_NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
TASKS = ("classification", "regression")


@dataclass(frozen=True, kw_only=True)
class ComponentSpec:
    """A registered kernel, family, learner or constraint.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, e.g. ``"tessellated"``.
    target : str
        ``"module:attribute"``, imported when the item is used.
    summary : str
        One line for listings.

    Raises
    ------
    ValueError
        If a field has the wrong form.

    Examples
    --------
    >>> from kernelweave.kernels_core import ComponentSpec
    >>> ComponentSpec(name="ordered-dict", target="collections:OrderedDict").load()
    <class 'collections.OrderedDict'>
    """

    name: str
    target: str
    summary: str = ""

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(f"name must be lower-case words joined by '-', got {self.name!r}")
        if not _TARGET.match(self.target):
            raise ValueError(f"target must read 'module:attribute', got {self.target!r}")

    def load(self) -> Any:
        """Import and return the target.

        Raises
        ------
        ImportError
            If the module or the attribute is missing; the message names the item.
        """
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ImportError(f"cannot load {self.name!r} from {self.target!r}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class AlgorithmSpec(ComponentSpec):
    """A registered algorithm.

    Parameters
    ----------
    needs : Needs
        Attributes that it needs of family, learner and set; it solves every problem whose parts
        have them.
    prefers : tuple of str
        Names of parts for who gives none, e.g. the generic estimators: those that come first here
        are tried first.
    tasks : tuple of str
        ``"classification"``, ``"regression"`` or both.
    paper : str
        Where it comes from, e.g. ``"Colbert and Peet 2024, Algorithm 2"``.
    scaling : mapping of str to float
        Declared growth exponents, e.g. ``{"m": 2.3, "n_P": 2.0}``: ``m`` samples, ``q`` kernels,
        ``n_P`` the side of P, ``n_outputs``. ``nox -s bench-gate`` fits each of them.
    max_samples : int, optional
        The most samples it takes; `solve` refuses more before any work.

    Examples
    --------
    >>> from kernelweave.kernels_core import get_algorithm
    >>> get_algorithm("tkl-frank-wolfe").scaling
    {'m': 1.8, 'n_P': 1.1}
    """

    needs: Needs
    tasks: tuple[str, ...]
    prefers: tuple[str, ...] = ()
    paper: str = ""
    scaling: Mapping[str, float] = field(default_factory=dict)
    max_samples: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.needs, Needs):
            raise ValueError(
                "needs must say what the algorithm needs, e.g. Needs(family=('fit_grams',), "
                f"constraint=('project',)), got {self.needs!r}"
            )
        if not self.tasks or any(task not in TASKS for task in self.tasks):
            raise ValueError(f"tasks must be taken from {TASKS}, got {self.tasks!r}")
        COUNT.or_none().check("max_samples", self.max_samples)

    def accepts(self, problem: Problem) -> bool:
        """Tell whether the parts of a problem have what the algorithm needs."""
        return self.needs.refusal(problem) is None


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(ComponentSpec):
    """A named data set; the target is a function without arguments returning a `Bunch`.

    Parameters
    ----------
    task : str
        ``"classification"`` or ``"regression"``.
    """

    task: str


@dataclass(frozen=True, kw_only=True)
class CommandSpec(ComponentSpec):
    """A command of the ``kernelweave`` program: a plain function with typed parameters.

    Parameters
    ----------
    parameters : mapping of str to str
        Parameters of an estimator to those of the function that set them, where the names differ:
        a `kernels_core.exceptions.Message` of the estimator about ``n_draws`` names the option
        ``--draws`` instead.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
