"""Data sets by name from a folder of files that the user names."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "KERNELWEAVE_DATA"
# the first ending goes before the others of the same name
ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq", ".svm", ".libsvm")


def folder_files() -> dict[str, Path]:
    """Return the tables in the folder that ``KERNELWEAVE_DATA`` names, by file name without ending.

    Empty where the variable is not set or names no folder.
    """
    folder, files = data_folder(), dict[str, Path]()
    for ending in ENDINGS:
        for path in sorted(folder.glob(f"*{ending}")) if folder is not None else ():
            files.setdefault(path.name.removesuffix(ending), path)
    return files


def data_folder() -> Path | None:
    """Return the folder that ``KERNELWEAVE_DATA`` names, which need not exist, or None."""
    name = os.environ.get(VARIABLE, "")
    return Path(name).expanduser() if name else None


def folder_remark() -> str:
    """Return why there are no data sets of a folder, an empty string where there is one."""
    folder = data_folder()
    if folder is None:
        return f"{VARIABLE} is not set: the tables in the folder that it names go by their name too"
    return "" if folder.is_dir() else f"{VARIABLE} names {folder}, which is no folder"
