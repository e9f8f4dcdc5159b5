"""Standard input on the command line: a dash, which the parser takes for an option."""

from __future__ import annotations

STDIN = "stdin:"
_BEFORE_TEXT = ("--out", "--target", "--drop")


def name_dashes(tokens: list[str]) -> list[str]:
    """Return the tokens with a lone dash spelt out, unless it is the value of an option.

    `tokens`: arguments as they were given.

    Examples
    --------
    >>> name_dashes(["fit", "-", "--target", "-"])
    ['fit', 'stdin:', '--target', '-']
    """
    return [
        STDIN if token == "-" and previous not in _BEFORE_TEXT else token
        for previous, token in zip(["", *tokens], tokens, strict=False)
    ]
