"""The same estimator, the same bytes: addresses of memory and the date taken out of an archive."""

from __future__ import annotations

import io
import json
import re
import zipfile

_SCHEMA = "schema.json"
# The first date that a zip archive can hold, always the same: a model has the same bytes whenever
# it is stored.
_EPOCH = (1980, 1, 1, 0, 0, 0)
# skops names what it stores by where it lay in memory, or by a random word
_NUMBER = re.compile(r'("__id__": )(\d+)')
_FILE = re.compile(r'"([0-9a-f-]+)\.(\w+)"')


def canonical(body: bytes) -> bytes:
    """Return a skops archive with its objects and files numbered in the order of its schema.

    `body`: as ``skops.io.dumps`` returns it. Loads as the same object; the schema, half of a small
    model, is without blanks.
    """
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = members.pop(_SCHEMA).decode()
    numbers: dict[str, int] = {}
    schema = _NUMBER.sub(lambda at: f"{at[1]}{numbers.setdefault(at[2], len(numbers))}", schema)
    names: dict[str, str] = {}
    for found in _FILE.finditer(schema):
        old = f"{found[1]}.{found[2]}"
        if old in members:
            names.setdefault(old, f"{len(names)}.{found[2]}")
    schema = _FILE.sub(lambda at: f'"{names.get(f"{at[1]}.{at[2]}", f"{at[1]}.{at[2]}")}"', schema)
    schema = json.dumps(json.loads(schema), separators=(",", ":"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, _EPOCH), members[old])
        archive.writestr(zipfile.ZipInfo(_SCHEMA, _EPOCH), schema)
    return stream.getvalue()
