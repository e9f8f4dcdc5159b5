"""Draw a version of every dependency from its declared range, so that all of them fit together.

One dependency after the other, in a random order, is held at a random version that the index
offers; where the rest cannot be resolved with it, another is drawn.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from workspace import members, split_local

TRIES = 4


def ranges() -> dict[str, SpecifierSet]:
    """Return the declared range of every run-time dependency that is not of this workspace."""
    found: dict[str, SpecifierSet] = {}
    for member in members().values():
        for line in map(Requirement, split_local(member.requirements())[1]):
            name = canonicalize_name(line.name)
            found[name] = found.get(name, SpecifierSet()) & line.specifier
    return dict(sorted(found.items()))


def offered(python: str, name: str, declared: SpecifierSet) -> list[str]:
    """Return the versions within a range that an index offers an interpreter."""
    command = [python, "-m", "pip", "index", "versions", name]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = re.search(r"Available versions: (.*)", said)
    return list(declared.filter(listed[1].split(", "))) if listed else []


def draw(seed: int, python: str, resolve: Sequence[str]) -> list[str]:
    """Return lines ``name==version`` that the command ``resolve`` takes beside all ranges.

    ``python`` is an interpreter with pip; the lines follow ``seed`` and what the index offers.
    """
    generator = random.Random(seed)
    declared = ranges()
    held = {name: f"{name}{range_}" for name, range_ in declared.items()}
    wheels = [f"--only-binary={name}" for name in declared]
    for name in generator.sample(list(declared), len(declared)):
        versions = offered(python, name, declared[name])
        for version in generator.sample(versions, min(TRIES, len(versions))):
            tried = {**held, name: f"{name}=={version}"}
            done = subprocess.run([*resolve, *wheels, *tried.values()], capture_output=True)
            if done.returncode == 0:
                held = tried
                break
    return list(held.values())
