"""The schema of a skops archive: numbered in one order, its references counted, its files named.

skops describes an estimator as a tree of objects in JSON. An object that was described before is
a number, ``__id__``, and arrays are files of the archive.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

# The first date that a zip archive can hold, always the same: a model has the same bytes whenever
# it is stored.
EPOCH = (1980, 1, 1, 0, 0, 0)
SCHEMA = "schema.json"
_READ_FIRST = {"key_types": 0, "content": 1}
# How many times more objects a tree may have than are described; models have about 1.2.
_MOST_REPEATS = 100
# what reads a file as something else than an array of NumPy: bytes, which nothing calculates with
_OF_BYTES = frozenset({"BytesNode", "BytearrayNode"})


def canonical(body: bytes) -> bytes:
    """Return a skops archive with its objects and files numbered in the order of its schema.

    Loads as the same object. The schema, half of a small model, is without spaces, and
    describes each object once.
    """
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    # skops names what it stores by where it lay in memory, or by a random word
    names: dict[str, str] = {}
    shorter = _without_repeats(json.loads(members.pop(SCHEMA)), {}, names)
    schema = json.dumps(shorter, separators=(",", ":"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, EPOCH), members[old])
        archive.writestr(zipfile.ZipInfo(SCHEMA, EPOCH), schema)
    return stream.getvalue()


def _without_repeats(node: Any, numbers: dict[int, int], names: dict[str, str]) -> Any:
    """Return a schema in which a repeated object has only its number; skops reads no more.

    `numbers`, `names`: new numbers of objects and names of files, which are added to.
    """
    if isinstance(node, list):
        return [_without_repeats(each, numbers, names) for each in node]
    if not isinstance(node, dict):
        return node
    if not isinstance(node.get("__loader__"), str) or "__id__" not in node:
        return {key: _without_repeats(each, numbers, names) for key, each in node.items()}
    is_repeated = node["__id__"] in numbers
    number = {"__id__": numbers.setdefault(node["__id__"], len(numbers))}
    # skops takes the first number, 0, for none
    if is_repeated and number["__id__"]:
        return number
    if "file" in node:
        ending = node["file"].rpartition(".")[2]
        node["file"] = names.setdefault(node["file"], f"{len(names)}.{ending}")
    # in the order in which skops reads
    keys = sorted(node, key=lambda key: _READ_FIRST.get(key, len(_READ_FIRST)))
    return {key: _without_repeats(node[key], numbers, names) for key in keys} | number


def check_references(schema: object) -> None:
    """Raise ValueError where following every reference would not end, or not soon.

    skops walks the tree of a file with each repeated object again: lists that name the next one
    twice, sixty deep, are 2^60 objects.
    """
    described: dict[Any, list[dict[str, Any]]] = {}
    n_described, todo = 0, [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            n_described += 1
            todo += node.values()
            if "__loader__" in node and node.get("__id__"):
                described.setdefault(node["__id__"], []).append(node)
    counted: dict[Any, int | None] = {}

    def count(node: object) -> int:
        if isinstance(node, list):
            return sum(map(count, node))
        if not isinstance(node, dict):
            return 0
        # skops takes 0 for none
        number = node.get("__id__")
        if not number:
            return 1 + sum(map(count, node.values()))
        if number not in counted:
            counted[number] = None
            parts = (list(each.values()) for each in described.get(number, ()))
            counted[number] = 1 + max(map(count, parts), default=0)
        found = counted[number]
        if found is None:
            raise ValueError("an object holds itself")
        return found

    most = _MOST_REPEATS * n_described
    if count(schema) > most:
        raise ValueError(f"its {n_described} objects name each other more than {most} times")


def files_of(schema: object) -> dict[str, set[str]]:
    """Return the attributes that hold the array of each file, whatever the file's name.

    Raises ValueError where two objects name one file, which would be read for each of them, and
    for a sparse matrix, whose file is an archive of its own.
    """
    files: dict[str, Any] = {}
    names: dict[Any, set[str]] = {}
    todo = [("", schema)]
    while todo:
        name, node = todo.pop()
        if isinstance(node, list):
            todo += [(name, each) for each in node]
        elif isinstance(node, dict):
            number = node.get("__id__")
            # an object without a number is held once
            held = names.setdefault(number, set()) if number else {name}
            held.add(name)
            if isinstance(node.get("file"), str) and node.get("__loader__") not in _OF_BYTES:
                if node.get("__loader__") == "SparseMatrixNode":
                    raise ValueError(f"a sparse matrix in {name!r}")
                if files.setdefault(node["file"], (number, held))[0] != number:
                    raise ValueError(f"two objects name {node['file']}")
            # skops's own words stand between an attribute and its array
            inner = ((name if key in ("content", "attrs") else key, node[key]) for key in node)
            todo += inner
    return {file: held for file, (_, held) in files.items()}
