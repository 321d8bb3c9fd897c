"""Lines of Slurm's configuration files: comments, continued lines, files named by `Include`, and pairs of key and value.

Source: slurm.conf(5) and gres.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from poolwise.errors import InputError

_PAIR = re.compile(r"\s*([A-Za-z][\w/]*)\s*=\s*(\"[^\"]*\"|\S*)")


class ConfLine(NamedTuple):
    """A line without its comment, joined with its continuation lines: text, file, and number of the first line."""

    text: str
    file: Path
    number: int


def read_conf_lines(path: Path, remedy: str, above: tuple[Path, ...] = ()) -> Iterator[ConfLine]:
    """Yield the nonempty lines of a file; the lines of included files replace the Include.

    Raises InputError with the file, and the line of an Include, if a file cannot be read; `remedy` is suggested if the first
    file cannot be read. `above` are the files that include this one.
    """
    if path in above:
        raise InputError("the file includes itself", file=path, remedy="remove the Include line")
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=remedy) from None
    at = 0
    while at < len(lines):
        first, text = at + 1, lines[at].partition("#")[0].rstrip()
        while text.endswith("\\") and at + 1 < len(lines):
            at += 1
            text = text[:-1] + lines[at].partition("#")[0].rstrip()
        at += 1
        line = ConfLine(text.strip(), path, first)
        if line.text.lower().startswith("include "):
            yield from read_conf_lines(_included(line), remedy, (*above, path))
        elif line.text:
            yield line


def _included(line: ConfLine) -> Path:
    """Return the file that an Include names; raises InputError with the line if it cannot be read."""
    named = line.text.split(maxsplit=1)[1].strip('"')
    included = (line.file.parent / named).resolve()
    try:
        included.open(encoding="utf-8").close()
    except OSError as error:
        remedy = f"copy the file, and write Include {included.name} with the copy in the folder of {line.file.name}"
        problem = f"the included file '{named}' cannot be read: {error.strerror}"
        raise InputError(problem, file=line.file, line=line.number, field="Include", remedy=remedy) from None
    return included


def keys_of(line: ConfLine, remedy: str) -> dict[str, str]:
    """Return key in lower case -> value of a line, in order; raises InputError with file and line."""
    values, end = dict[str, str](), 0
    while end < len(line.text):
        match = _PAIR.match(line.text, end)
        if match is None:
            problem = f"'{line.text[end:].strip()[:40]}' is not KEY=VALUE"
            raise InputError(problem, file=line.file, line=line.number, remedy=remedy)
        values[match[1].lower()], end = match[2].strip('"'), match.end()
    return values


def written_keys(line: ConfLine) -> dict[str, str]:
    """Return key in lower case -> key as written, for the pairs of a line that `keys_of` accepts."""
    return {match[1].lower(): match[1] for match in _PAIR.finditer(line.text)}
