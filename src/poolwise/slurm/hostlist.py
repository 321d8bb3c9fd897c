"""Host lists in Slurm's syntax, such as "n[000-003,7],login1"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_PARTS = re.compile(r",(?![^\[]*\])")
_BRACKET = re.compile(r"(?P<before>[^\[\]]*)\[(?P<ranges>[^\[\]]+)\](?P<after>.*)\Z")
_NUMBER = re.compile(r"(.*?)([0-9]*)", re.DOTALL)
MAX_NAMES = 1_000_000
"""Maximum number of names in one list."""


def expand(text: str) -> list[str]:
    """Return the names in a list, in order; raises ValueError for invalid ranges and more than `MAX_NAMES` names."""
    names: list[str] = []
    for part in _PARTS.split(text):
        names += _expand(part.strip())
        if len(names) > MAX_NAMES:
            raise ValueError(f"'{text}' has more than {MAX_NAMES:,} names")
    return [name for name in names if name]


def compress(names: Iterable[str]) -> str:
    """Return a host list of names that contain no brackets; `expand` restores the names in the same order."""
    runs: list[tuple[str, str, str]] = []  # text before the number, first and last number
    for name in names:
        before, number = _NUMBER.fullmatch(name).groups()  # type: ignore[union-attr] # matches every name
        follows = number and runs and runs[-1][0] == before and len(number) == len(runs[-1][2])
        if follows and int(number) == int(runs[-1][2]) + 1:
            runs[-1] = (before, runs[-1][1], number)
        else:
            runs.append((before, number, number))
    ranges = ((before, low if low == high else f"{low}-{high}") for before, low, high in runs)
    groups = ((before, [text for _, text in parts]) for before, parts in groupby(ranges, key=lambda part: part[0]))
    return ",".join(
        f"{before}{texts[0]}" if len(texts) == 1 and "-" not in texts[0] else f"{before}[{','.join(texts)}]"
        for before, texts in groups
    )


def _expand(part: str) -> list[str]:
    match = _BRACKET.match(part)
    if match is None:
        if "[" in part or "]" in part:
            raise ValueError(f"'{part}' has an unmatched bracket")
        return [part]
    names = []
    for piece in match["ranges"].split(","):
        low, _, high = piece.partition("-")
        high = high or low
        if not (low.isdigit() and high.isdigit()) or int(high) < int(low) or int(high) - int(low) >= MAX_NAMES:
            raise ValueError(f"'{piece}' in '{part}' is not a valid range of numbers")
        names += [f"{match['before']}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    rest = _expand(match["after"])
    return [name + end for name in names for end in rest]
