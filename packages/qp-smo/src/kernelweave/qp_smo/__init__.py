"""Support vector machine duals solved to a certified distance from their optimum."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learners import SVC, SVR, LearnerSolution
    from .solution import DualSolution, SolveStatus
    from .squared_hinge import solve_squared_hinge_svc
    from .svm import solve_svc, solve_svr

_HOME = {
    "DualSolution": "solution",
    "LearnerSolution": "learners",
    "SVC": "learners",
    "SVR": "learners",
    "SolveStatus": "solution",
    "solve_squared_hinge_svc": "squared_hinge",
    "solve_svc": "svm",
    "solve_svr": "svm",
}

__all__ = [
    "SVC",
    "SVR",
    "DualSolution",
    "LearnerSolution",
    "SolveStatus",
    "solve_squared_hinge_svc",
    "solve_svc",
    "solve_svr",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
