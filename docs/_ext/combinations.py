"""``{combinations}``: what is installed of families, learners and sets, and what goes together.

Everything is read from the registry. Why the rest is not served stands here, one reason for each
combination: a combination that is neither served nor explained stops the build.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from kernelweave.kernels_core import accepted_triples, algorithms, components
from kernelweave.kernels_core.formula.problem import NEED_MEANINGS, ROLES

if TYPE_CHECKING:
    from sphinx.application import Sphinx

KINDS = ("families", "learners", "constraints")
Triple = tuple[str, str, str]

_SUMS, _PRODUCTS = {"dictionary"}, {"dictionary-power"}
_MATRICES = {"tessellated", "polynomial"}
_LABELS = {"svc", "squared-hinge-svc"}
_NUMBERS = {"svr", "quantile-svr", "ridge", "vector-least-squares"}
_MANY = {"vector-least-squares"}
_OUTPUTS = {"separable-kernels", "frobenius-output-kernels"}
_LABEL_RULES = {"easymkl-weights", "proportional-weights"}
_RULES = {"alignment-weights", "average-weights"}


class Reason(NamedTuple):
    """Why combinations of these names are not served."""

    families: set[str]
    learners: set[str]
    sets: set[str]
    makes_sense: bool
    sentence: str


def reasons() -> list[Reason]:
    """Return the reasons, of which each unserved combination has exactly one."""
    learners, sets = _LABELS | _NUMBERS, set(components("constraints"))
    weights = sets - {"spectahedron"}
    return [
        Reason(
            _MATRICES, learners, weights, False,
            "the family has one positive matrix as its parameter, the set holds weights",
        ),
        Reason(
            _SUMS | _PRODUCTS, learners, {"spectahedron"}, False,
            "the set holds positive matrices, the family has weights as its parameters; on "
            "weights the trace is their sum: take `simplex`",
        ),
        Reason(
            _SUMS | _PRODUCTS, learners - _MANY, _OUTPUTS, False,
            "an output kernel couples the outputs of a squared loss; the learner has one output, "
            "or outputs that share nothing but the kernel",
        ),
        Reason(
            _SUMS, _NUMBERS, _LABEL_RULES, False,
            "the rule looks at margins or accuracies of classes, the targets are numbers",
        ),
        Reason(
            _PRODUCTS, learners, _RULES | _LABEL_RULES, False,
            "the rule weighs the kernels of a sum and says nothing of products",
        ),
        Reason(
            _PRODUCTS, learners, {"elastic-net-weights"}, False,
            "the set is of the norms of the parts of a function in a sum of kernels; a product "
            "has no such parts",
        ),
        Reason(
            _PRODUCTS, learners, {"sparse-simplex"}, True,
            "the cuts of the search rest on a Gram matrix that is linear in the weights; of "
            "products they prove nothing",
        ),
        Reason(
            _PRODUCTS, learners, {"template-simplex"}, True,
            "the template has no projection; take `simplex`, the same set with one",
        ),
        Reason(
            _SUMS, {"svc", "svr", "quantile-svr"}, {"priced-orthant"}, True,
            "the steps of the evidence ask for a squared loss",
        ),
        Reason(
            _PRODUCTS, learners, {"priced-orthant"}, True,
            "the prices are a trace of each kernel of a sum",
        ),
        Reason(
            _PRODUCTS, _MANY, _OUTPUTS, True,
            "joint learning of weights and output kernel is written for sums",
        ),
        Reason(
            _MATRICES, learners - {"svc", "svr"}, {"spectahedron"}, True,
            "the solvers over positive matrices know the duals of SVC and SVR only",
        ),
    ]  # fmt: skip


def installed() -> list[Triple]:
    """Return all combinations of registered names."""
    return list(itertools.product(*(sorted(components(kind)) for kind in KINDS)))


def served() -> dict[Triple, list[str]]:
    """Return the names of the algorithms of each combination that has any."""
    found: dict[Triple, list[str]] = {}
    for spec in algorithms().values():
        for triple in accepted_triples(spec):
            found.setdefault(triple, []).append(spec.name)
    return found


def explained(triple: Triple) -> int:
    """Return the index of the reason of an unserved combination.

    Raises
    ------
    ValueError
        If it has none, or more than one.
    """
    family, learner, constraint = triple
    found = [
        index
        for index, each in enumerate(reasons())
        if family in each.families and learner in each.learners and constraint in each.sets
    ]
    if len(found) != 1:
        raise ValueError(f"{triple} is not served and has {len(found)} reasons in combinations.py")
    return found[0]


def page() -> str:
    """Return the count, one table per family, the reasons and what each algorithm needs."""
    have, every = served(), installed()
    sizes = " × ".join(f"{len(components(kind))} {name}" for kind, name in zip(
        KINDS, ("families", "learners", "sets"), strict=True
    ))  # fmt: skip
    why = {triple: explained(triple) for triple in every if triple not in have}
    no_sense = sum(not reasons()[index].makes_sense for index in why.values())
    parts = [
        f"Of {sizes} = {len(every)} combinations {len(have)} are served; {no_sense} make no "
        f"sense, {len(why) - no_sense} do and are not served.\n"
    ]
    parts += [*_families(have, why), _reasons(), _algorithms(), _needs()]
    return "\n".join(parts)


def _families(have: dict[Triple, list[str]], why: dict[Triple, int]) -> list[str]:
    """Return a table per family; families that agree share one."""
    learners, sets = sorted(components("learners")), sorted(components("constraints"))

    def entry(triple: Triple) -> str:
        return str(len(have[triple])) if triple in have else f"({_letter(why[triple])})"

    tables: dict[str, list[str]] = {}
    for family in sorted(components("families")):
        rows = [[f"`{each}`", *(entry((family, a, each)) for a in learners)] for each in sets]
        table = _table(["set", *(f"`{name}`" for name in learners)], rows)
        tables.setdefault(table, []).append(f"`{family}`")
    return [f"**{', '.join(names)}**\n\n{table}" for table, names in tables.items()]


def _reasons() -> str:
    def sentence(index: int, each: Reason) -> str:
        verdict = "makes sense, not served" if each.makes_sense else "makes no sense"
        return f"| ({_letter(index)}) | {verdict} | {each.sentence} |"

    rows = "\n".join(sentence(index, each) for index, each in enumerate(reasons()))
    return f"**Why not**\n\n| | | |\n| --- | --- | --- |\n{rows}\n"


def _algorithms() -> str:
    rows = [
        [f"`{name}`", *(_joined(getattr(spec.needs, role)) for role in ROLES)]
        for name, spec in sorted(algorithms().items())
    ]
    return "**What each algorithm needs**\n\n" + _table(
        ["algorithm", "of the family", "of the learner", "of the set"], rows
    )


def _needs() -> str:
    rows = [
        ["set" if role == "constraint" else role, _joined([need]), NEED_MEANINGS[role][need]]
        for role in ROLES
        for need in sorted({n for spec in algorithms().values() for n in getattr(spec.needs, role)})
        if need in NEED_MEANINGS[role]
    ]
    return "**What that means**\n\n" + _table(["of the", "need", "that is"], rows)


def _joined(needs: Iterable[str]) -> str:
    return ", ".join(" or ".join(f"`{part}`" for part in need.split("|")) for need in needs)


def _letter(index: int) -> str:
    return chr(ord("a") + index)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Combinations(Directive):
    def run(self) -> list[nodes.Node]:
        node = nodes.container()
        lines = StringList(page().splitlines(), source=self.state.document.current_source)
        self.state.nested_parse(lines, self.content_offset, node)
        return list(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("combinations", Combinations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
