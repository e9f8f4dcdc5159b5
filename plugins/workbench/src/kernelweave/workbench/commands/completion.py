"""``kernelweave completion``."""

from __future__ import annotations

import sys
from typing import Literal

from ..console import PROGRAM


def completion_command(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands, options and file names in a shell.

    Parameters
    ----------
    shell : str
        Which: bash (source it), zsh (save it as _kernelweave on fpath) or fish (save it below
        ~/.config/fish/completions).
    """
    sys.stdout.write(completion_script(shell))


def completion_script(shell: Literal["bash", "zsh", "fish"]) -> str:
    """Return the completion script of every command that can be loaded, plugins' included.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}
        For which shell.

    Returns
    -------
    str
        Its source.
    """
    from ..app import build_app, command_specs
    from ..errors import CommandError

    specs = command_specs(["completion"])
    whole = set()
    for name, spec in specs.items():
        try:
            build_app({name: spec}, name)
        except CommandError:
            continue
        whole.add(name)
    script: str = build_app(specs, *whole).generate_completion(prog_name=PROGRAM, shell=shell)
    return script.rstrip() + "\n"
