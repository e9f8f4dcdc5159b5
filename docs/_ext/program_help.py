"""``{program-help} fit``: what ``kernelweave fit --help`` prints, from the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def help_text(*arguments: str) -> str:
    settings = {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "kernelweave.workbench", *arguments, "--help"]
    done = subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", env={**os.environ, **settings}
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


class ProgramHelp(Directive):
    optional_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        text = help_text(*self.arguments)
        block = nodes.literal_block(text, text)
        block["language"] = "text"
        return [block]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("program-help", ProgramHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
