"""Rows of a `sacct --parsable2` export, and parsers of their cells.

Source: manual page of sacct (Slurm 18.08 to 24.05), fields State, ReqMem, MaxRSS, NTasks, Elapsed, Timelimit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model.licenses import LICENSE
from poolwise.traces.numbers import NotANumber, wholes
from poolwise.traces.text_files import read_text
from poolwise.traces.unreadable_rows import NumberedRows, unreadable

REQUIRED: tuple[tuple[str, ...], ...] = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("State",),
    ("NNodes", "AllocNodes"),
    ("AllocCPUS", "NCPUS"),
    ("ElapsedRaw", "Elapsed", "End"),
)
"""Required columns, one of each group; End also requires Start."""

USED_COLUMNS = (
    "JobIDRaw", "JobID", "User", "Account", "QOS", "Partition", "Constraints", "Submit", "Start", "State", "NNodes",
    "AllocCPUS", "ReqCPUS", "ElapsedRaw", "TimelimitRaw", "ReqMem", "MaxRSS", "NTasks", "AllocTRES",
)  # fmt: skip
"""Columns to export so that the format need not derive any, and receives all partitions, constraints and GPUs."""

_FREE_TEXT = ("JobName", "Comment", "AdminComment", "SubmitLine", "WorkDir")
"""Columns whose text may contain "|"."""

DELIMITERS = ("|", ";", "\t", ",")
"""Recognized delimiters: first that of --parsable2, then others that are common in tables or set by --delimiter."""

UNKNOWN = frozenset({"", "Unknown", "None", "N/A", "INVALID"})
"""Values that sacct writes for an unknown time."""

_FORMAT_OPTION = "--format=" + ",".join(USED_COLUMNS)
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTPE]?)([nc]?)(\??)")
_SIZES = {"": 2.0**-20, "K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "E": 2.0**40}  # MiB
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KM]?)")
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^=,]*)?=([0-9]{1,9})(?=,|$)")
_LICENSES = re.compile(r"(?:^|,)license/([^=,]+)=([0-9]{1,9})(?=,|$)")
_LENGTH = re.compile(r"(?:([0-9]{1,5})-)?(?:([0-9]{1,3}):)?([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,3})?")

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SacctRows(NumberedRows):
    """Rows of an export, all of them or a part: column names, and n_row rows of cells with one text per column."""

    names: tuple[str, ...]
    cells: Sequence[Sequence[str]]

    def words(self, name: str) -> list[str]:
        """Return the texts in a column, (n_row,)."""
        column = self.names.index(name)
        return [row[column] for row in self.cells]

    def with_words(self, name: str, words: Sequence[str]) -> SacctRows:
        """Return the rows with an additional column of (n_row,) texts."""
        cells = [[*row, word] for row, word in zip(self.cells, words, strict=True)]
        return replace(self, names=(*self.names, name), cells=cells)

    def filter_rows(self, keep: BoolArray) -> SacctRows:
        """Return the rows for which (n_row,) `keep` is true."""
        return replace(self, line=self.line[keep], cells=list(compress(self.cells, keep)))

    def select_rows(self, indices: Sequence[int]) -> SacctRows:
        """Return the rows with these indices, in that order."""
        rows = np.array(indices, dtype=np.int64)
        return replace(self, line=self.line[rows], cells=[self.cells[row] for row in indices])

    def refuse(self, bad: BoolArray, name: str, problem: str, remedy: str) -> None:
        """Raise UnreadableRows if any of the (n_row,) rows is bad; "{value}" in `problem` becomes the first bad value."""
        if bad.any():
            row = int(np.argmax(bad))
            self.fail(bad, name, problem.replace("{value}", self.words(name)[row]), remedy)

    def read(self, name: str, reader: Callable[[list[str]], T], remedy: str) -> T:
        """Convert a column to numbers; raise UnreadableRows if the reader raises NotANumber."""
        words = self.words(name)
        try:
            return reader(words)
        except NotANumber as error:
            self.fail(unreadable(words, reader), name, error.problem, remedy)

    def wholes(self, name: str) -> IntArray:
        """Return the whole numbers in a column, (n_row,)."""
        return self.read(name, wholes, "write a whole number; export it with --parsable2")


def read_export(path: Path) -> SacctRows:
    """Read an export, plain or gzip, with or without a delimiter at line ends; a file may contain several exports in sequence.

    The alternatives of a constraint are joined again; other rows may have more or fewer cells than the header (see
    `check_width`). Raises InputError if the file is not an export.
    """
    names: tuple[str, ...] = ()
    first, delimiter, ends, at = "", "|", False, -1
    lines: list[int] = []
    cells: list[list[str]] = []
    for number, raw in enumerate(read_text(path).split("\n"), start=1):
        line = raw.removesuffix("\r")
        if not line.strip() or (names and line == first):
            continue
        if not names:
            first, delimiter = line, delimiter_of(line) or "|"
            ends, names = line.endswith(delimiter), _header(line, delimiter)
            _check_header(path, number, names)
            at = names.index("Constraints") if "Constraints" in names and not {*_FREE_TEXT} & {*names} else -1
            continue
        words = _split(line.removesuffix(delimiter) if ends else line, delimiter)
        if delimiter == "|" and at >= 0 and (more := len(words) - len(names)) > 0:  # "thin|fat" is one constraint
            words[at : at + more + 1] = ["|".join(words[at : at + more + 1])]
        cells.append(words)
        lines.append(number)
    if not cells:
        raise InputError("the export contains no jobs", file=path, remedy=f"export with sacct --parsable2 {_FORMAT_OPTION}")
    return SacctRows(path, np.array(lines, dtype=np.int64), names, cells)


def check_width(rows: SacctRows) -> None:
    """Raise UnreadableRows for rows with more or fewer cells than the header."""
    bad = np.array([len(cells) != len(rows.names) for cells in rows.cells], dtype=np.bool_)
    if bad.any():
        problem = f"the row has {len(rows.cells[int(np.argmax(bad))])} fields, the header {len(rows.names)}"
        remedy = "export complete rows with --parsable2, without --delimiter and texts with '|' (JobName, Comment)"
        rows.fail(bad, None, problem, remedy)


def delimiter_of(line: str) -> str | None:
    """Return the delimiter of a header of sacct; None for other lines. A header without "|" must have all required columns."""
    for delimiter in DELIMITERS:
        names = {*_header(line, delimiter)}
        required = ((REQUIRED[0], ("State",)) if delimiter == "|" else REQUIRED) if delimiter in line else ()
        if required and all(names.intersection(choices) for choices in required):
            return delimiter
    return None


def _header(line: str, delimiter: str) -> tuple[str, ...]:
    """Return the column names in a header line, without the empty one that --parsable adds."""
    return tuple(_split(line.removesuffix(delimiter), delimiter))


def _split(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line. Only other programs quote cells; they do not write "|"."""
    words = line.split(delimiter)
    if delimiter != "|" and '"' in line:
        with suppress(csv.Error):  # a line of a binary file, or a damaged row, which then has too few or too many cells
            words = next(csv.reader([line], delimiter=delimiter))
    return [word.strip() for word in words]


def _check_header(path: Path, line: int, names: tuple[str, ...]) -> None:
    missing = ["/".join(choices) for choices in REQUIRED if not {*choices} & {*names}]
    if not {"ElapsedRaw", "Elapsed"} & {*names} and "Start" not in names and "End" in names:
        missing.append("Start")
    if missing:
        problem = f"the export lacks {', '.join(missing)}; its header is {'|'.join(names)[:200]}"
        remedy = f"export with sacct --parsable2 {_FORMAT_OPTION}"
        raise InputError(problem, file=path, line=line, field=missing[0].partition("/")[0], remedy=remedy)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("the column appears twice", file=path, line=line, field=twice, remedy="export it once")


# Cells


def counts(words: Sequence[str]) -> IntArray:
    """Parse numbers of nodes or tasks, (n_word,), which sacct may abbreviate with K = 1024; raise NotANumber."""
    values = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _COUNT.fullmatch(word)
        value = float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2]] if match else 0.5
        if not value.is_integer():
            raise NotANumber(position, f"'{word[:40]}' is not a number of nodes, tasks or CPUs")
        values[position] = int(value)
    return values


def lengths(words: Sequence[str]) -> IntArray:
    """Parse durations, (n_word,), such as 1-02:03:04, 02:03:04 and 03:04, to seconds; raise NotANumber."""
    values = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _LENGTH.fullmatch(word)
        if match is None:
            raise NotANumber(position, f"'{word[:40]}' is not a duration such as 1-02:03:04")
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        values[position] = 86400 * days + 3600 * hours + 60 * minutes + seconds
    return values


def gpus(words: Sequence[str]) -> IntArray:
    """Return the number of GPUs in each AllocTRES, (n,): 4 for "cpu=32,gres/gpu:a100=4,gres/gpu=4".

    Without a total, it is the sum over the types.
    """
    values = np.zeros(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        amounts = [(bool(kind), int(count)) for kind, count in _GPUS.findall(word)]
        totals = [count for typed, count in amounts if not typed]
        values[position] = totals[0] if totals else sum(count for _, count in amounts)
    return values


def licenses(words: Sequence[str]) -> dict[str, IntArray]:
    """Return name -> (n_word,) licenses in AllocTRES, such as 2 of "cpu=32,license/matlab=2", by name."""
    counts: dict[str, IntArray] = {}
    for position, word in enumerate(words):
        for name, count in _LICENSES.findall(word) if LICENSE in word else ():
            counts.setdefault(name, np.zeros(len(words), dtype=np.int64))[position] = int(count)
    return dict(sorted(counts.items()))


def used_mib(words: Sequence[str]) -> FloatArray:
    """Parse values of MaxRSS, (n_word,), to MiB, 0 if empty; a number without a unit is in bytes. Raise NotANumber."""
    return _memory(words, lambda match: not match[3])[0]


def requested_mib(words: Sequence[str]) -> tuple[FloatArray, NDArray[np.str_]]:
    """Parse ReqMem to MiB; raise NotANumber for text, and for numbers without a unit, which may be bytes or MB.

    An amount is 0 if the cell is empty, 0 (all memory of a node), or marked "?" as a number that sacct could not write. The
    amount is per node ("n"), per CPU ("c"), or for the whole job (""), as in Slurm 21.08 and later.
    """
    return _memory(words, lambda match: bool(match[2]) or float(match[1]) == 0)


def _memory(words: Sequence[str], allowed: Callable[[re.Match[str]], bool]) -> tuple[FloatArray, NDArray[np.str_]]:
    mebibytes = np.zeros(len(words), dtype=np.float64)
    per = np.full(len(words), "", dtype="<U1")
    for position, word in enumerate(words):
        if not word:
            continue
        match = _MEMORY.fullmatch(word)
        if match is None or not (match[4] or allowed(match)):
            raise NotANumber(position, f"'{word[:40]}' is not an amount of memory such as 2048K or 4G")
        if not match[4]:
            mebibytes[position], per[position] = float(match[1]) * _SIZES[match[2]], match[3]
    return mebibytes, per
