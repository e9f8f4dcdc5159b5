"""What a fit says of the columns that its predictions rise or fall with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MonotoneFinding:
    """Columns that predictions are monotone in by construction, and what it did to the score.

    - `signs`: columns, each with 1 where predictions rise with it, or −1 where they fall
    - `score_before`, `error_before`: of rows held out as the predictor without them predicts these
    - `score`, `error`: of the same rows, rearranged

    Examples
    --------
    >>> from kernelweave.evidence.monotone.finding import MonotoneFinding
    >>> found = MonotoneFinding((("dose", 1), ("age", -1)), 0.71, 0.02, 0.72, 0.02)
    >>> str(found).partition(" by ")[0]
    "predictions rise with 'dose' and fall with 'age'"
    """

    signs: tuple[tuple[str, int], ...]
    score_before: float
    error_before: float
    score: float
    error: float

    def __str__(self) -> str:
        ways = [
            f"{verb} with {_listed([repr(name) for name, own in self.signs if own == sign])}"
            for sign, verb in ((1, "rise"), (-1, "fall"))
            if any(own == sign for _, own in self.signs)
        ]
        return (
            f"predictions {' and '.join(ways)} by construction, which took the held-out score "
            f"from {self.score_before:z.4f} to {self.score:z.4f}"
        )


def _listed(names: list[str]) -> str:
    """Return names for a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
