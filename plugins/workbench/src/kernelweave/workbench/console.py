"""The two streams: results go to standard output, everything said beside them to the other."""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, cast

from kernelweave.kernels_core import CommandSpec
from kernelweave.tables.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

PROGRAM = "kernelweave"
_options: ContextVar[Mapping[str, str]] = ContextVar("options", default=MappingProxyType({}))


# parameters that are no words of English: they are told wherever they stand, others before a value
_NO_WORDS = frozenset({"k0", "lam", "lams", "tol", "delta", "epsilon", "beta", "dtype"})
# that of learners is no option
_OF_COMMANDS = frozenset({"task"})
# a parameter, alone or with its value, and what advises it
_SPOKEN = (
    r"(?P<verb>\b(?:set|give|pass|use) )?(?<![\w.'\"/-])(?P<name>{names})"
    r"(?:=(?!=)(?:'(?P<text>[^']*)'|(?P<word>\w*))|(?![\w(=]))"
)
# advice that only some commands can follow
_WITHOUT_HEADER = ", or read it with header=False"
_IN_THE_FILE = "order=np.arange(len(X))"


def out() -> Console:
    """Return a console on standard output."""
    return _console(sys.stdout)


def err() -> Console:
    """Return a console on standard error."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    class Plain(Console):
        """A console on which no cell of a table speaks to the terminal."""

        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for part in super().render(*args, **kwargs):
                yield part if part.control else part._replace(text=printable(part.text))

    # of a table's padding a terminal shows nothing, and a file is spared it
    file = stream if stream.isatty() else cast("TextIO", _Trimmed(stream))
    return Plain(file=file, highlight=False, emoji=False, markup=False)


class _Trimmed:
    """A stream whose lines end without blanks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(re.sub(" +$", "", text, flags=re.MULTILINE))

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def print_section(screen: Console, title: str, rows: Iterable[tuple[str, str | Text]]) -> None:
    """Print a heading and, indented, names with what belongs to them.

    `screen`: where; `title`: the heading; `rows`: a name, and a string or rich text.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value) if isinstance(value, str) else value)
    screen.print(Text(title, style="bold"))
    screen.print(table, "")


def speak_of(options: Mapping[str, str]) -> None:
    """Have whatever is said name these options in place of parameters, see `as_options`."""
    _options.set(options)


def options_of(spec: CommandSpec) -> dict[str, str]:
    """Return the option of each parameter that a command sets.

    `spec`: a command. Returns e.g. ``{"max_time": "--max-time"}``; names that the command gives to
    parameters of estimators are among the keys.
    """
    known = inspect.signature(spec.load()).parameters.values()
    options = {
        each.name: f"--{each.name.replace('_', '-')}"
        for each in known
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name not in _OF_COMMANDS
    }
    return options | {name: options[own] for name, own in spec.parameters.items()}


def as_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message to who writes Python as one to who writes commands.

    `message`: a warning or an error; `options`: see `options_of`.

    Examples
    --------
    >>> from kernelweave.workbench.console import as_options
    >>> options = {"tol": "--tol", "n_draws": "--draws", "level": "--level"}
    >>> as_options("not within tol=0.1: raise n_draws, or tol", options)
    'not within --tol=0.1: raise --draws, or --tol'
    >>> as_options("the level is high: set n_draws=None", options)
    'the level is high: leave --draws out'
    >>> as_options("set algorithm='smkl-global'", {"algorithm": "--algorithm"})
    'set --algorithm=smkl-global'
    >>> as_options("fit with groups='patient no'", {"groups": "--groups"})
    "fit with --groups='patient no'"
    """
    option = options.get("no_header")
    message = message.replace(_WITHOUT_HEADER, f", or use {option}" if option else "")
    if {"cv", "order"} <= options.keys():
        message = message.replace(_IN_THE_FILE, f"{options['cv']} time")
    if not options:
        return message

    def spell(at: re.Match[str]) -> str:
        name, verb, option = at["name"], at["verb"] or "", options[at["name"]]
        value = at["word"] if at["text"] is None else at["text"]
        if value is None:
            # one letter may be the name of a column too
            letter = at.start() == 0 or message[: at.start()].endswith(("lower ", "raise "))
            known = letter if len(name) == 1 else name in _NO_WORDS or "_" in name
            return verb + option if known else at[0]
        if verb and value in ("None", "False"):
            return f"leave {option} out"
        return f"{verb}{option}" if value == "True" else f"{verb}{option}={quote(value)}"

    names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
    return re.sub(_SPOKEN.format(names=names), spell, message)


def spoken(message: str) -> str:
    """Return a message on one line that names options in place of parameters."""
    return as_options(" ".join(message.split()), _options.get())


def say(kind: str, message: str) -> None:
    """Write one line to standard error.

    `kind`: ``"error"``, ``"warning"`` or ``"note"``; `message`: one sentence; line breaks become
    blanks.
    """
    sys.stderr.write(f"{PROGRAM}: {kind}: {printable(spoken(message))}\n")
    sys.stderr.flush()


def warnings_as_lines() -> None:
    """Show every warning as one line, once, and none that speaks to programmers only."""
    said: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            say("warning", str(message))

    warnings.showwarning = show
    warnings.resetwarnings()
    warnings.simplefilter("default")
    for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)


def emit_json(value: object) -> None:
    """Write a value to standard output as strict JSON: what is not finite becomes null.

    `value`: dictionaries, lists, numbers, strings, NumPy scalars.
    """
    sys.stdout.write(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))
    sys.stdout.write("\n")


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
