"""``kernelweave completion``."""

from __future__ import annotations

import re
import sys
from typing import Literal

from ..console import PROGRAM

# What the generated scripts leave out. zsh: a file on fpath must call the function that it defines,
# and one that is sourced must register it; a table may be a name or a file, and files can be
# offered, in bash too. fish: the first word is a command, not a file.
_ENDINGS = {
    "bash": f"\ncomplete -o default -F _{PROGRAM} {PROGRAM}\n",
    "zsh": f"""
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _cyclopts_{PROGRAM} "$@"
else
  compdef _cyclopts_{PROGRAM} {PROGRAM}
fi
""",
    "fish": f"\ncomplete -c {PROGRAM} -n __fish_use_subcommand -f\n",
}
# '1:message' of an argument without a rule for its values
_NO_ACTION = re.compile(r"^( +'\d:(?:\\:|[^:'])*)(' \\)$", re.MULTILINE)


def completion_command(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a completion script for a shell.

    Parameters
    ----------
    shell : str
        Name of the shell: bash (source the script), zsh (save it as _kernelweave on fpath, or
        source it after compinit) or fish (save it as ~/.config/fish/completions/kernelweave.fish).
    """
    sys.stdout.write(completion_script(shell))


def completion_script(shell: Literal["bash", "zsh", "fish"]) -> str:
    """Return the completion script of every command that loads, plugins' included."""
    from ..app import build_app, command_specs
    from ..errors import CommandError

    specs = command_specs()
    whole = set()
    for name, spec in specs.items():
        try:
            build_app({name: spec}, name)
        except CommandError:
            continue
        whole.add(name)
    script: str = build_app(specs, *whole).generate_completion(prog_name=PROGRAM, shell=shell)
    if shell == "zsh":
        script = _NO_ACTION.sub(r"\1:_files\2", script)
    return script.rstrip() + "\n" + _ENDINGS[shell]
