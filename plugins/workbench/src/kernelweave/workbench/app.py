"""The command line: which commands there are, and what happens when one fails."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, get_args

import cyclopts
from kernelweave.kernels_core import (
    CommandSpec,
    UnknownNameError,
    UnsupportedProblemError,
    config_context,
)
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.kernels_core.registry import commands as registered_commands
from kernelweave.tables.errors import did_you_mean, one_line

from . import __version__
from .commands import BUILTIN
from .console import PROGRAM, err, name_options, options_of, print_message, warnings_as_lines
from .errors import CommandError

ABOUT = "Fit models to tables and estimate how well they predict new rows."
DEBUG_VARIABLE = "KERNELWEAVE_DEBUG"
# standard input: the parser takes a dash for an option
STDIN = "stdin:"
_BEFORE_TEXT = ("--out", "--target", "--drop")
_QUIET_ABOUT_PLUGINS = ("plugins", "doctor", "completion")
_EXPECTED = (
    CommandError,
    UnknownNameError,
    UnsupportedProblemError,
    cyclopts.CycloptsError,
    ValueError,
    OSError,
)
OWN = {spec.name: spec for spec in BUILTIN}
# commands that the pages name and other distributions bring
_ELSEWHERE = {"granger": "kernelweave-granger", "tables": "kernelweave-papers"}


def run(tokens: Sequence[str]) -> int:
    """Run one command and return the exit status.

    0; 2 after an error, which is one line on standard error; 130 after Ctrl-C.

    Examples
    --------
    >>> from kernelweave.workbench.app import run
    >>> run(["--version"])
    0.2.0
    0
    """
    try:
        with warnings.catch_warnings():
            warnings_as_lines()
            name_options({})
            _dispatch(list(tokens))
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        return _interrupted(stop)
    except BrokenPipeError:
        # what reads our output has closed it: end quietly, as any other filter does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # noqa: BLE001
        return _failed(error)
    return 0


def _dispatch(tokens: list[str]) -> None:
    name = next((token for token in tokens if not token.startswith("-")), None)
    if name in _QUIET_ABOUT_PLUGINS:
        warnings.filterwarnings("ignore", "plugins not loaded")
    # plugins are looked at where a command may be one of theirs
    specs = OWN if name in OWN else command_specs()
    if name in _ELSEWHERE and name not in specs:
        distribution = _ELSEWHERE[name]
        raise CommandError(f"{name} needs {distribution}: pip install {distribution}")
    if name is not None and name not in specs:
        raise CommandError(f"no command {name!r}; {did_you_mean(name, specs, what='commands')}")
    app = build_app(specs, *filter(None, [name]))
    if name is not None:
        name_options(options_of(specs[name]))
    try:
        app(name_dashes(tokens), exit_on_error=False, print_error=False, error_console=err())
    except cyclopts.CoercionError as error:
        if not (error.token and error.argument):
            raise
        option, given = error.token.keyword or error.argument.name, error.token.value
        right = _in_words(error.target_type)
        raise CommandError(f"{option} must be {right}, got {given!r}") from error
    except cyclopts.ValidationError as error:
        # as the rule that an option has says it
        raise error.__cause__ or error from error
    except cyclopts.UnusedCliTokensError as error:
        spare = (error.unused_tokens or [""])[0]
        takes_target = name in specs and "--target" in options_of(specs[name]).values()
        remedy = f"name the column to predict by --target {spare!r}; " if takes_target else ""
        command = f"{PROGRAM} {name}" if name else PROGRAM
        raise CommandError(
            f"{spare!r} is one argument too many: {remedy}see `{command} --help`"
        ) from error


def _converted(kind: Any, tokens: Sequence[cyclopts.Token]) -> object:
    """Return what an option says, numbers as Python reads them: 2.5 is not rounded to 2."""

    def read(of: Any, text: str) -> object:
        if of is float and text.lstrip("+-").isdecimal() and len(text) < sys.float_info.dig:
            # a message repeats 2 as 2
            return int(text)
        return of(text) if of in (int, float) else cyclopts.convert(of, [text])

    return cyclopts.convert(kind, tokens, read)


def _in_words(kind: Any) -> str:
    """Return what values of a type are called, each type of a union and each choice by itself."""
    names = {int: "a whole number", float: "a number", bool: "true or false"}
    parts = [_in_words(part) for part in get_args(kind) if part is not type(None)]
    words = " or ".join(parts) if parts else names.get(kind, str(kind))
    return words.replace(" or ", ", ", words.count(" or ") - 1) if parts else words


def command_specs() -> dict[str, CommandSpec]:
    """Return the commands by name: our own first, which cannot be replaced, then those of plugins.

    A plugin that does not load is named in a warning and costs nothing else.
    """
    return OWN | {name: spec for name, spec in registered_commands().items() if name not in OWN}


def build_app(specs: dict[str, CommandSpec], *wanted: str) -> cyclopts.App:
    """Return the application, with the functions of ``wanted`` loaded and no others.

    Raises CommandError if a function of ``wanted`` cannot be loaded.
    """
    app = cyclopts.App(
        name=PROGRAM,
        help=ABOUT,
        version=__version__,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        default_parameter=cyclopts.Parameter(negative=(), converter=_converted),
    )
    for name, spec in specs.items():
        if name in wanted:
            app.command(_limited(_function(spec)) if name in OWN else _function(spec), name=name)
        else:
            app.command(_stub, name=name, help=spec.summary)
    return app


def name_dashes(tokens: list[str]) -> list[str]:
    """Return the tokens with a lone dash spelt out, unless it is the value of an option.

    Examples
    --------
    >>> name_dashes(["fit", "-", "--target", "-"])
    ['fit', 'stdin:', '--target', '-']
    """
    return [
        STDIN if token == "-" and previous not in _BEFORE_TEXT else token
        for previous, token in zip(["", *tokens], tokens, strict=False)
    ]


def _stub() -> None:
    """Stand for a command that is only listed."""


def _function(spec: CommandSpec) -> Callable[..., object]:
    try:
        function: Callable[..., object] = spec.load()
    except (Exception, SystemExit) as error:
        raise CommandError(f"the command {spec.name!r} is broken: {one_line(error)}") from error
    return function


def _limited(command: Callable[..., object]) -> Callable[..., object]:
    """Return the command, which keeps within its option --memory-limit if it has one."""

    @wraps(command)
    def limited(*given: Any, **options: Any) -> object:
        with config_context(memory_limit=options.get("memory_limit")):
            return command(*given, **options)

    return limited


def _failed(error: Exception) -> int:
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        print_message("error", _out_of_memory(error))
    elif isinstance(error, _EXPECTED):
        print_message("error", error)
    else:
        what = f"{type(error).__name__}: {one_line(error)}"
        print_message("error", f"{what} (this is a bug; {DEBUG_VARIABLE}=1 shows the traceback)")
    return 2


def _out_of_memory(error: MemoryError) -> object:
    """Return a refusal by the memory limit as it is, what the system says with what to do."""
    if isinstance(error, MemoryBudgetError):
        return error
    why = f" ({one_line(error)})" if error.args else ""
    return (
        f"there is not enough memory for this{why}: use fewer rows or columns, or a computer with "
        f"more memory"
    )


def _interrupted(stop: KeyboardInterrupt) -> int:
    print_message("error", f"interrupted; {stop.args[0] if stop.args else 'nothing was written'}")
    return 130
