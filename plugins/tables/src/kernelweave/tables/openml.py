"""Data sets of OpenML, through scikit-learn and its cache, with a checksum of our own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from .errors import TableError, one_line
from .table import Table

if TYPE_CHECKING:
    from sklearn.utils import Bunch

PREFIX = "openml:"
CHECKSUMS = "kernelweave-checksums.json"
_SOURCE = re.compile(r"(?P<id>\d+)|(?P<name>[^@\s]+)@(?P<version>\d+)")


def read_openml(source: str) -> Table:
    """Read a data set of OpenML; only the first time from the network.

    scikit-learn keeps what it fetched below `sklearn.datasets.get_data_home()`. The SHA-256 of
    the table is written beside it the first time and compared every time after.

    `source`: ``openml:NAME@VERSION`` or ``openml:ID``. Returns: with the target that OpenML names;
    text columns stay text. Raises TableError if the source names no version, the set is not
    there, it cannot be reached, it has no single target, or it is not what it was the first time.

    Examples
    --------
    >>> from kernelweave.tables.openml import read_openml
    >>> read_openml("openml:iris")
    Traceback (most recent call last):
        ...
    kernelweave.tables.errors.TableError: openml:iris names no version: say ...
    """
    found = _SOURCE.fullmatch(source.removeprefix(PREFIX))
    if found is None:
        raise TableError(
            f"{source} names no version: say openml:NAME@VERSION, e.g. openml:iris@1, or "
            f"openml:ID, so that the data stay the same"
        )
    bunch = _fetch(source, found)
    frame: pd.DataFrame = bunch["frame"].rename(columns=str)
    names = [str(name) for name in bunch["target_names"]]
    if len(names) > 1:
        raise TableError(f"{source} has {len(names)} targets ({', '.join(names[:4])}, ...)")
    target = names[0] if names else None
    _compare(source, str(bunch["details"]["id"]), checksum(frame))
    text = target is not None and isinstance(frame[target].dtype, pd.CategoricalDtype)
    return Table(source, frame, target=target, task="classification" if text else None)


def _fetch(source: str, found: re.Match[str]) -> Bunch:
    from sklearn.datasets import fetch_openml, get_data_home

    which: dict[str, object] = {"data_id": int(found["id"])} if found["id"] else {}
    if not which:
        which = {"name": found["name"], "version": int(found["version"])}
    try:
        with warnings.catch_warnings():
            # each retry would be a warning of its own
            warnings.simplefilter("ignore")
            return fetch_openml(**which, as_frame=True, parser="pandas", n_retries=1, delay=0.5)
    except urllib.error.HTTPError as error:
        raise TableError(f"OpenML has no data set {source}: {one_line(error)}") from error
    except OSError as error:
        raise TableError(
            f"{source} is not in scikit-learn's cache {get_data_home()} and OpenML cannot be "
            f"reached: {one_line(error)}"
        ) from error
    except (ValueError, KeyError) as error:
        raise TableError(f"{source} cannot be read: {one_line(error)}") from error


def checksum(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of a table's names and cells.

    `frame`: any. Hexadecimal; of the CSV with every digit, so it does not depend on types or on
    pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> checksum(pd.DataFrame({"a": [1.5]}))[:8]
    'ca6d7f08'
    """
    text = frame.to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def _compare(source: str, number: str, digest: str) -> None:
    """Record the checksum of a data set, or refuse one that has changed."""
    from sklearn.datasets import get_data_home

    path = Path(get_data_home()) / "openml" / CHECKSUMS
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
    except ValueError as error:
        raise TableError(f"{path} is damaged: delete it ({one_line(error)})") from error
    if known.get(number, digest) != digest:
        raise TableError(
            f"{source} is not what it was: its SHA-256 is {digest[:12]}... and was "
            f"{known[number][:12]}...; if that is meant, remove {number} from {path}"
        )
    if number not in known:
        path.parent.mkdir(parents=True, exist_ok=True)
        # a reader sees the old file or the new one, whole
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(known | {number: digest}, indent=1, sort_keys=True))
        part.replace(path)
