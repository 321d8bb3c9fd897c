"""Line numbers of tables and keys in TOML text, for errors; `tomllib` does not provide them."""

from __future__ import annotations

import re
from collections.abc import Mapping

Path = tuple[str | int, ...]

_BARE = r"[A-Za-z0-9_-]+"
_KEY = rf'(?:{_BARE}|"(?:[^"\\]|\\.)*"|\'[^\']*\')'
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_ENTRY = re.compile(rf"\s*({_DOTTED})\s*=")
_PARTS = re.compile(_KEY)


def lines(text: str) -> dict[Path, int]:
    """Return the line (from 1) of every table and key of valid TOML text.

    A path consists of keys and positions in arrays of tables: ("pool", 0, "memory"). Items inside an inline table or an
    array have the line of its key.
    """
    numbers: dict[Path, int] = {}
    here: Path = ()
    count: dict[Path, int] = {}
    inside = _Value()
    for number, line in enumerate(text.splitlines(), 1):
        if inside.open:
            inside.read(line)
            continue
        if table := _TABLE.match(line):
            here = _resolve(_split(table[2]), count)
            if table[1] == "[[":
                count[here] = count.get(here, 0) + 1
                numbers.setdefault(here, number)
                here = (*here, count[here] - 1)
            numbers.setdefault(here, number)
        elif entry := _ENTRY.match(line):
            path = here
            for part in _split(entry[1]):
                path = (*path, part)
                numbers.setdefault(path, number)
            inside.read(line[entry.end() :])
    return numbers


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a path, or of the innermost table or key around it that has a line."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def _split(dotted: str) -> list[str]:
    return [part[1:-1] if part[0] in "\"'" else part for part in _PARTS.findall(dotted)]


def _resolve(parts: list[str], count: dict[Path, int]) -> Path:
    """Return the path of a table header; all parts but the last refer to the latest entry of an array of tables."""
    path: Path = ()
    for k, part in enumerate(parts):
        path = (*path, part)
        if k < len(parts) - 1 and path in count:
            path = (*path, count[path] - 1)
    return path


class _Value:
    """Scanner for values that span several lines; tracks open brackets and strings."""

    def __init__(self) -> None:
        self.depth, self.quote = 0, ""

    @property
    def open(self) -> bool:
        return bool(self.depth or self.quote)

    def read(self, line: str) -> None:
        at = 0
        while at < len(line):
            char = line[at]
            if self.quote:
                if char == "\\" and self.quote[0] == '"':
                    at += 1
                elif line.startswith(self.quote, at):
                    at += len(self.quote) - 1
                    self.quote = ""
            elif char in "\"'":
                self.quote = char * 3 if line.startswith(char * 3, at) else char
                at += len(self.quote) - 1
            elif char == "#":
                break
            else:
                self.depth += (char in "[{") - (char in "]}")
            at += 1
        if len(self.quote) == 1:
            self.quote = ""  # a single-line string ends with its line
