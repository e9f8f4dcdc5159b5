"""Signs around a number that are no part of it, and words that stand for a number not measured."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Chinese and Japanese keyboards give characters of full width
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0x2212: "-",
    0xFE63: "-",
}
# word processors make an en dash of a minus sign
_DASH = re.compile("^[\u2012\u2013](?=[\\d.,])")
_ABOUT = re.compile(r"^[~≈≃≅∼]\s*(?=[-+\d.,])")
# of footnotes and of significance
_FOOTNOTE = re.compile(r"(?<=[\w%/.)])\s*[*†‡]+$")
# as accounting programs export it; 1990- may be a range without an end
_LAST_MINUS = re.compile(r"^([^-]*\d[.,]\d\d) ?-$")
_BRACKETS = re.compile(r"\(\s*([^-+()\s][^()]*)\)")
_NOTHING = {"-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "…", "*"}
# below the limit of detection or quantification, whatever that is
_UNDETECTED = {
    *("nd", "n.d", "n.d.", "nq", "n.q.", "n.n.", "bdl", "blod", "blq", "bloq", "bql", "lod", "loq"),
    *("notdetected", "nondetect", "non-detect", "belowdetectionlimit", "belowlod", "belowloq"),
    *("<lod", "<loq", "<dl", "<ld", "<lq", "<ql", "<rl", "<mdl", "<mql"),
}


def without_marks(text: str) -> str:
    """Return a cell with the digits and signs of ASCII, without marks that change no number.

    Examples
    --------
    >>> from kernelweave.tables.marks import without_marks
    >>> [without_marks(cell) for cell in ("−3.5", "≈ 5", "5.2*", "＜５")]
    ['-3.5', '5', '5.2', '<5']
    """
    return _LAST_MINUS.sub(r"-\1", _FOOTNOTE.sub("", _ABOUT.sub("", _ascii(text))))


def without_brackets(text: str) -> str:
    """Return a cell with a minus sign in place of brackets, as of accounts: (78) is -78."""
    return _BRACKETS.sub(r"-\1", text) if "(" in text else text


def how_marked(cells: Iterable[str]) -> str:
    """Return a sentence on cells whose marks are left out, or whose brackets are a minus sign."""
    texts = [each.strip() for each in cells]
    marked = next((each for each in texts if without_marks(each) != _ascii(each)), "")
    bracketed = next((each for each in texts if without_brackets(each) != each), "")
    said = [f"{marked!r} is read as {without_marks(marked)}"] if marked else []
    said += [f"brackets, as in {bracketed!r}, are a minus sign"] if bracketed else []
    return "; ".join(said)


def says_nothing(cell: str) -> bool:
    """Whether a cell among numbers says that there is none: a dash, ND, <LOD.

    Examples
    --------
    >>> from kernelweave.tables.marks import says_nothing
    >>> [says_nothing(cell) for cell in ("-", "n.d.", "< LOD", "about 3", "unknown")]
    [True, True, True, False, False]
    """
    short = _ascii("".join(cell.split())).casefold()
    return short in _NOTHING or short in _UNDETECTED


def _ascii(text: str) -> str:
    """Return a cell with digits, signs and letters of full width as those of ASCII."""
    return text if text.isascii() else _DASH.sub("-", text.translate(_TO_ASCII))
