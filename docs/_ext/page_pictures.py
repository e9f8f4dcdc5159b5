"""Pictures of pages: what a page's own code saves is what the page shows.

A page that shows ``pictures/NAME.png`` saves ``NAME.png`` in its code. Before the pages are read,
the code of each such page runs, and its pictures go to ``docs/pictures``. A picture that is newer
than its page is kept, as the gallery keeps its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SHOWN = re.compile(r"pictures/([\w-]+\.png)")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def is_older(picture: Path, page: Path) -> bool:
    return not picture.exists() or picture.stat().st_mtime < page.stat().st_mtime


def run_page(page: Path) -> None:
    """Run the code of a page in the current folder, as one module."""
    module = sys.modules["page"] = types.ModuleType("page")
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(None):
            exec(compile(code, str(page), "exec"), vars(module))


def draw(app: Sphinx) -> None:
    os.environ["MPLBACKEND"] = "Agg"
    folder = Path(app.srcdir) / "pictures"
    folder.mkdir(exist_ok=True)
    for page in sorted(Path(app.srcdir).glob("tutorials/*.md")):
        shown = set(SHOWN.findall(page.read_text(encoding="utf-8")))
        if not any(is_older(folder / name, page) for name in shown):
            continue
        with (
            tempfile.TemporaryDirectory() as place,
            contextlib.chdir(place),
            warnings.catch_warnings(),
        ):
            # without any filter scikit-learn warns about each of its parallel calls
            warnings.resetwarnings()
            warnings.simplefilter("default")
            run_page(page)
            for name in shown:
                if not Path(name).exists():
                    raise ExtensionError(f"{page} shows {name} and its code does not save it")
                shutil.copy(name, folder / name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
