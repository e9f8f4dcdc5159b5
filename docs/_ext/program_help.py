"""``{program-help} fit``: what ``kernelweave fit --help`` prints, from the program itself."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, ClassVar
from unittest import mock

from docutils import nodes
from docutils.parsers.rst import Directive
from kernelweave.workbench.app import run

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SETTINGS = {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}


def help_text(*arguments: str) -> str:
    with mock.patch.dict(os.environ, SETTINGS), contextlib.redirect_stdout(io.StringIO()) as said:
        status = run([*arguments, "--help"])
    if status != 0:
        raise RuntimeError(f"kernelweave {' '.join(arguments)} --help ended with {status}")
    return "\n".join(line.rstrip() for line in said.getvalue().strip().splitlines())


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
