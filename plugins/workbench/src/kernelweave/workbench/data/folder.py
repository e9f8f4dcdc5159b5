"""Data sets by name from a folder of files that the user names."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "KERNELWEAVE_DATA"
# the first ending goes before the others of the same name
ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq", ".svm", ".libsvm")


def folder_files() -> dict[str, Path]:
    """Return the tables in the folder that ``KERNELWEAVE_DATA`` names, by file name without ending.

    Returns
    -------
    dict of str to Path
        Empty where the variable is not set or names no folder.

    Examples
    --------
    >>> import os
    >>> _ = os.environ.pop("KERNELWEAVE_DATA", None)
    >>> folder_files()
    {}
    """
    name = os.environ.get(VARIABLE, "")
    folder = Path(name).expanduser()
    if not name or not folder.is_dir():
        return {}
    found: dict[str, Path] = {}
    for ending in ENDINGS:
        for path in sorted(folder.glob(f"*{ending}")):
            found.setdefault(path.name.removesuffix(ending), path)
    return found
