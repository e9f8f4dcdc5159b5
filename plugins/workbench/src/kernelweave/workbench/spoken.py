"""What estimators say of their parameters, told of the options that set them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from kernelweave.kernels_core import CommandSpec

# parameters that are no words of English: they are told wherever they stand, others before a value
_NO_WORDS = frozenset({"k0", "lam", "lams", "tol", "delta", "epsilon", "beta", "dtype"})
# that of learners is no option
_OF_COMMANDS = frozenset({"task"})
_REFUSED = r"(?:set|give|pass|use) {name}=(?:None|False)"
_ON = r"(?<![\w.'\"-]){name}=True"
_GIVEN = r"(?<![\w.'\"-]){name}=(?!=)(?:'([^']*)'|(\w*))"
_NAMED = r"(?<![\w.'\"/-]){name}(?![\w(])"
# advice that only some commands can follow
_WITHOUT_HEADER = ", or read it with header=False"
_IN_THE_FILE = "order=np.arange(len(X))"
# one letter may be the name of a column too
_LETTER = r"(?:(?<=lower )|(?<=raise )|^){name}\b"


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
    >>> from kernelweave.workbench.spoken import as_options
    >>> options = {"tol": "--tol", "n_draws": "--draws", "level": "--level"}
    >>> as_options("not within tol=0.1: raise n_draws, or tol", options)
    'not within --tol=0.1: raise --draws, or --tol'
    >>> as_options("the level is high: set n_draws=None", options)
    'the level is high: leave --draws out'
    >>> as_options("set algorithm='smkl-global'", {"algorithm": "--algorithm"})
    'set --algorithm=smkl-global'
    """
    option = options.get("no_header")
    message = message.replace(_WITHOUT_HEADER, f", or use {option}" if option else "")
    if {"cv", "order"} <= options.keys():
        message = message.replace(_IN_THE_FILE, f"{options['cv']} time")
    for name, option in options.items():
        message = re.sub(_REFUSED.format(name=name), f"leave {option} out", message)
        message = re.sub(_ON.format(name=name), option, message)
        message = re.sub(_GIVEN.format(name=name), rf"{option}=\1\2", message)
        if name in _NO_WORDS or "_" in name or len(name) == 1:
            pattern = _LETTER if len(name) == 1 else _NAMED
            message = re.sub(pattern.format(name=name), option, message)
    return message
