"""What an algorithm needs of family, learner and set: attributes, stated as data.

Nothing lists pairs that go together, so a third party's family, learner or set works with every
algorithm whose needs it meets, on its first day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .problem import Problem

ROLES = ("family", "learner", "constraint")
_NEED = re.compile(r"^[a-z]\w*(=[\w.-]+)?(\|[a-z]\w*(=[\w.-]+)?)*$")

# what the needs of the algorithms that ship with the project ask for, in words
MEANING: dict[str, dict[str, str]] = {
    "family": {
        "fit_grams": "one Gram matrix for each kernel",
        "fit_grams|fit_factors": "a Gram matrix or a low-rank factor for each kernel",
        "degree=1": "a Gram matrix that is linear in the weights",
        "name=dictionary-power": "products of kernels",
        "prepare": "the Gram and moment matrices of positive matrices",
    },
    "learner": {
        "solve": "a dual solution with proved bounds",
        "at": "an exact solution and its curvature, as squared losses have",
        "noise": "the diagonal that a squared loss adds to the Gram matrix",
        "name=svc|name=svr": "the dual of SVC or SVR: the steps know its box",
        "lam": "the λ of vector-valued least squares",
        "task=classification": "labels as targets",
        "task=regression": "numbers as targets",
    },
    "constraint": {
        "worst": "the largest value of a linear form over the set",
        "total=1.0": "all weights that sum to one",
        "project": "the projection onto the set",
        "penalty_gradient": "the gradient of what the set charges",
        "curvature": "the curvature of what the set charges, 0 for nothing",
        "centers": "an ℓq ball around centers",
        "centers|beta": "an ℓq ball, or a penalty β‖μ‖²",
        "beta": "a penalty β‖μ‖²",
        "maximizer": "the weights where a linear form, less the charge, is largest",
        "k0": "weights that sum to one, at most k₀ of them positive",
        "lam": "a penalty λ‖β‖² on the weights",
        "relaxed": "few positive weights, and the convex penalty that stands for it",
        "prices": "a price for each weight",
        "longest": "how long a multiple of a dual point the prices allow",
        "min_eig": "positive matrices of fixed trace",
        "regulariser": "weights with a regulariser and an output kernel of bounded trace",
        "rho": "an output kernel with a squared Frobenius norm",
    },
}


def has(part: object, need: str) -> bool:
    """Tell whether a part, or its class before it is made, meets one need.

    `part`: a family, learner or set, or its class; `need`: ``"attribute"``, ``"attribute=value"``,
    or several of them joined by ``|``.

    Examples
    --------
    >>> from kernelweave.kernels_core.formula.needs import has
    >>> has(1.5, "imag=0.0"), has(1.5, "hex|oct"), has(1.5, "append")
    (True, True, False)
    """
    return any(_has_one(part, each) for each in need.split("|"))


def _has_one(part: object, need: str) -> bool:
    name, _, value = need.partition("=")
    fields = getattr(part, "__dataclass_fields__", {}) if isinstance(part, type) else {}
    found = getattr(part, name, fields.get(name))
    if found is None or found is False:
        return False
    return not value or str(found) == value


@dataclass(frozen=True)
class Needs:
    """Attributes that an algorithm needs of the three parts of a problem.

    Parameters
    ----------
    family, learner, constraint : tuple of str
        Each ``"attribute"``, ``"attribute=value"``, or alternatives joined by ``|``.

    Raises
    ------
    ValueError
        If one has another form.

    Examples
    --------
    >>> from kernelweave.kernels_core import Needs
    >>> needs = Needs(family=("fit_grams", "degree=1"), constraint=("total=1.0",))
    >>> needs.learner
    ('solve',)
    """

    family: tuple[str, ...] = ()
    learner: tuple[str, ...] = ("solve",)
    constraint: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role in ROLES:
            given = getattr(self, role)
            if not isinstance(given, tuple) or not all(
                isinstance(each, str) and _NEED.match(each) for each in given
            ):
                raise ValueError(
                    f"{role} must be a tuple of 'attribute' or 'attribute=value', got {given!r}"
                )

    def missing(self, role: str, part: object) -> list[str]:
        """Return the needs of one role that a part, or its class, does not meet."""
        return [need for need in getattr(self, role) if not has(part, need)]

    def refusal(self, problem: Problem) -> str | None:
        """Return in words what a problem lacks, or ``None`` where it lacks nothing."""
        for role in ROLES:
            part = getattr(problem, role)
            for need in self.missing(role, part):
                meaning, wanted = MEANING[role].get(need), need.replace("|", " or ")
                said = f" ({meaning})" if meaning else ""
                noun = "set" if role == "constraint" else role
                return f"needs a {noun} with {wanted}{said}, which {part.name!r} has not"
        return None
