"""What the members of this workspace are, read from their own pyproject files.

The noxfile and the guards in ``tests/`` share this file, so a new folder under ``packages/`` or
``plugins/`` gets its environment, its wheel and its guards without a line being written.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_ASKS = re.compile(r"\b(importorskip|find_spec)\(")
URLS = re.compile(r"\n\[project\.urls\]\n(?:[^\[\n].*\n)*")


@dataclass(frozen=True)
class Member:
    """One distribution of the workspace: a folder with a pyproject file."""

    folder: Path
    pyproject: dict[str, Any] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The folder's name, which is also the id of its test session."""
        return self.folder.name

    @property
    def project(self) -> dict[str, Any]:
        """The ``[project]`` table."""
        return dict(self.pyproject["project"])

    @property
    def distribution(self) -> str:
        """The name to install."""
        return canonicalize_name(self.project["name"])

    @property
    def is_plugin(self) -> bool:
        """Whether the member lives under ``plugins/``."""
        return self.folder.parent.name == "plugins"

    @cached_property
    def import_name(self) -> str:
        """The dotted name to import: ``kernelweave.<name>``, or flat for the template."""
        spaced = self.name.replace("-", "_")
        flat = self.folder / "src" / f"kernelweave_{spaced}"
        return flat.name if flat.is_dir() else f"kernelweave.{spaced}"

    @property
    def source(self) -> Path:
        """The folder of the importable package."""
        return self.folder.joinpath("src", *self.import_name.split("."))

    def files(self) -> list[Path]:
        """Return the Python files of the importable package."""
        return sorted(self.source.rglob("*.py"))

    def requirements(self, *, extras: bool = False) -> list[Requirement]:
        """Return the declared runtime requirements, with those of every extra on request."""
        lines = list(self.project.get("dependencies", []))
        if extras:
            for group in self.project.get("optional-dependencies", {}).values():
                lines += group
        return [Requirement(line) for line in lines]

    def module(self, path: Path) -> str:
        """Return the dotted module name of one of :meth:`files`."""
        parts = path.relative_to(self.folder / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def members(root: Path = ROOT) -> dict[str, Member]:
    """Return every member by the name of its folder, packages before plugins."""
    found = sorted(root.glob("packages/*/pyproject.toml"))
    found += sorted(root.glob("plugins/*/pyproject.toml"))
    return {path.parent.name: Member(path.parent, load_toml(path)) for path in found}


def split_local(
    requirements: Iterable[Requirement | str], root: Path = ROOT
) -> tuple[list[Member], list[str]]:
    """Split requirements into members of this workspace and the rest, as strings."""
    local = {member.distribution: member for member in members(root).values()}
    inside, outside = [], []
    for item in requirements:
        requirement = Requirement(str(item))
        name = canonicalize_name(requirement.name)
        if name in local:
            inside.append(local[name])
        else:
            outside.append(str(requirement))
    return inside, outside


def closure(start: Iterable[Member], root: Path = ROOT) -> list[Member]:
    """Return the members that ``start`` needs at run time, ``start`` included."""
    needed: dict[str, Member] = {}
    queue = list(start)
    while queue:
        member = queue.pop()
        if member.distribution not in needed:
            needed[member.distribution] = member
            queue += split_local(member.requirements(), root)[0]
    return [needed[name] for name in sorted(needed)]


def shared_tests(root: Path = ROOT) -> list[str]:
    """Return ``tests`` and the test files of members that ask what else is installed.

    A member alone skips part of such a file: where a sibling or an optional library is absent.
    """
    files = (path for each in members(root).values() for path in each.folder.rglob("test_*.py"))
    asking = (path for path in files if _ASKS.search(path.read_text(encoding="utf-8")))
    return ["tests", *sorted(path.relative_to(root).as_posix() for path in asking)]


def njit_hash(root: Path = ROOT) -> str:
    """Return a digest of every compiled source file, to key the cache of compiled code by."""
    digest = hashlib.sha256()
    for path in sorted(root.glob("p*/*/src/**/_njit_*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def project_urls(root: Path = ROOT) -> dict[str, str]:
    """Return where the project lives, from the one place that says so: the root's pyproject."""
    return dict(load_toml(root / "pyproject.toml")["tool"]["kernelweave"]["urls"])


def write_urls(root: Path = ROOT) -> None:
    """Write the addresses into the metadata of every member."""
    lines = "".join(f'{name} = "{url}"\n' for name, url in project_urls(root).items())
    for member in members(root).values():
        path = member.folder / "pyproject.toml"
        text = URLS.sub("", path.read_text(encoding="utf-8")).rstrip("\n") + "\n"
        table = f"\n[project.urls]\n{lines}" if lines else ""
        path.write_text(text + table, encoding="utf-8")


def checked_in(root: Path = ROOT) -> list[Path]:
    """Return the files that git tracks or would add; raises where ``root`` is no checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    paths = (root / name for name in sorted(set(listing.stdout.split("\0"))) if name)
    return [path for path in paths if path.is_file()]
