"""The two streams: results go to standard output, everything said beside them to the other."""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, cast

from kernelweave.kernels_core import CommandSpec
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

PROGRAM = "kernelweave"
_options: ContextVar[Mapping[str, str]] = ContextVar("options", default=MappingProxyType({}))
# in a message `task` is a learner's, not the option --task
_OF_COMMANDS = frozenset({"task"})


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
    """Print a heading and, indented, names with what belongs to them."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value) if isinstance(value, str) else value)
    screen.print(Text(title, style="bold"))
    screen.print(table, "")


def name_options(options: Mapping[str, str]) -> None:
    """Have whatever is said name these options in place of parameters, see `options_of`."""
    _options.set(options)


@contextmanager
def naming_options_of(name: str) -> Iterator[None]:
    """Have whatever is said in the block name the options of one of our commands."""
    from .commands import BUILTIN

    options = options_of(next(spec for spec in BUILTIN if spec.name == name))
    target = {key: text for key, text in _options.get().items() if key == "y"}
    token = _options.set(options | target)
    try:
        yield
    finally:
        _options.reset(token)


def name_target(column: str) -> None:
    """Have whatever is said name the target by its column."""
    _options.set({**_options.get(), "y": f"the target {column!r}"})


def options_of(spec: CommandSpec) -> dict[str, str]:
    """Return the fields of a `Message` as a command says them: the option of each parameter.

    Such as ``{"max_time": "--max-time"}``; names that the command gives to parameters of estimators
    are among the keys, and advice that only some commands can follow.
    """
    parameters = inspect.signature(spec.load()).parameters.values()
    options = {
        each.name: f"--{each.name.replace('_', '-')}"
        for each in parameters
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name not in _OF_COMMANDS
    }
    options |= {name: options[key] for name, key in spec.parameters.items()}
    header = f", or use {options['no_header']}" if "no_header" in options else ""
    lines = {"by_the_lines": f"{options['cv']} time"} if {"cv", "order"} <= options.keys() else {}
    if "numeric" in options:
        lines["as_number"] = f"name it by {options['numeric']}"
        lines["as_date"] = f"name it by {options['date']}"
    absent = dict.fromkeys(("or_batches", "none_or"), "")
    return options | lines | absent | {"or_no_header": header, "held_out_": "the table above"}


def message_text(message: object) -> str:
    """Return what an error, a warning or a text says, on one line, of options for parameters."""
    content = message.args[0] if isinstance(message, BaseException) and message.args else message
    text = content.naming(_options.get()) if isinstance(content, Message) else str(message)
    empty = type(message).__name__ if isinstance(message, BaseException) else ""
    return " ".join(text.split()) or empty


def print_message(kind: str, message: object) -> None:
    """Write one line to standard error: an ``"error"``, a ``"warning"`` or a ``"note"``."""
    sys.stderr.write(f"{PROGRAM}: {kind}: {printable(message_text(message))}\n")
    sys.stderr.flush()


def warnings_as_lines() -> None:
    """Show every warning as one line, once, and none that speaks to programmers only."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            print_message("warning", message)

    warnings.showwarning = show
    warnings.resetwarnings()
    warnings.simplefilter("default")
    for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)


def emit_json(value: object) -> None:
    """Write a value to standard output as strict JSON: what is not finite becomes null."""
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
