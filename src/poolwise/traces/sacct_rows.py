"""Rows of `sacct --parsable2` as they are in the file, and what their cells say.

Source: manual page of sacct (Slurm 18.08 to 24.05), fields State, ReqMem, MaxRSS, NTasks, Elapsed, Timelimit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber, wholes
from poolwise.traces.text_files import read_text
from poolwise.traces.unreadable_rows import UnreadableRows

REQUIRED: tuple[tuple[str, ...], ...] = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("State",),
    ("NNodes", "AllocNodes"),
    ("AllocCPUS", "NCPUS"),
    ("ElapsedRaw", "Elapsed", "End"),
)
"""Columns that a reading needs, one of each; End goes with Start."""

ASKED = (
    "JobIDRaw", "Submit", "Start", "State", "NNodes", "AllocCPUS", "ElapsedRaw", "TimelimitRaw", "ReqMem", "MaxRSS", "NTasks",
)  # fmt: skip
"""Columns that a reading makes use of; those that need no deriving."""

UNKNOWN = frozenset({"", "Unknown", "None", "N/A", "INVALID"})
"""What sacct writes where there is no time."""

_FIELDS = "--format=" + ",".join(ASKED)
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTPE]?)([nc]?)(\??)")
_SIZES = {"": 2.0**-20, "K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "E": 2.0**40}  # MiB
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KM]?)")
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^=,]*)?=([0-9]{1,9})(?=,|$)")
_LENGTH = re.compile(r"(?:([0-9]{1,5})-)?(?:([0-9]{1,3}):)?([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,3})?")

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SacctRows:
    """Some rows of an export.

    Attributes
    ----------
    path : where it was read
    names : columns
    lines : (n_row,) line of the file, from 1
    cells : n_row rows of one text a column
    whole : lines of all the rows of which these are a part; errors tell which of those are bad
    """

    path: Path
    names: tuple[str, ...]
    lines: IntArray
    cells: Sequence[Sequence[str]]
    whole: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.cells)

    def words(self, name: str) -> list[str]:
        """(n_row,) texts of a column."""
        column = self.names.index(name)
        return [row[column] for row in self.cells]

    def with_words(self, name: str, words: Sequence[str]) -> SacctRows:
        """Return the same rows with one more column, (n_row,) texts."""
        cells = [[*row, word] for row, word in zip(self.cells, words, strict=True)]
        return replace(self, names=(*self.names, name), cells=cells)

    def filter_rows(self, keep: BoolArray) -> SacctRows:
        """Those rows for which (n_row,) `keep` is true."""
        return replace(self, lines=self.lines[keep], cells=[row for row, kept in zip(self.cells, keep, strict=True) if kept])

    def at(self, chosen: Sequence[int]) -> SacctRows:
        """Those rows, in that order."""
        rows = np.array(chosen, dtype=np.int64)
        return replace(self, lines=self.lines[rows], cells=[self.cells[row] for row in chosen])

    def fail(self, bad: BoolArray, name: str | None, problem: str, remedy: str) -> NoReturn:
        """Raise UnreadableRows for the (n_row,) bad rows; the place is that of the first."""
        line = int(self.lines[np.argmax(bad)])
        rows = np.isin(self.whole, self.lines[bad])
        raise UnreadableRows.of(rows, problem, file=self.path, line=line, field=name, remedy=remedy)

    def refuse(self, bad: BoolArray, name: str, problem: str, remedy: str) -> None:
        """Raise UnreadableRows for the (n_row,) bad rows, if there are any; `problem` may name {value} of the first."""
        if bad.any():
            row = int(np.argmax(bad))
            self.fail(bad, name, problem.replace("{value}", self.words(name)[row]), remedy)

    def read(self, name: str, reader: Callable[[list[str]], T], remedy: str) -> T:
        """Turn a column into numbers; a NotANumber that the reader raises becomes UnreadableRows."""
        words = self.words(name)
        try:
            return reader(words)
        except NotANumber as error:
            bad = np.array([not _is_read(word, reader) for word in words], dtype=np.bool_)
            self.fail(bad, name, error.problem, remedy)

    def wholes(self, name: str) -> IntArray:
        """(n_row,) whole numbers."""
        return self.read(name, wholes, "write a whole number; export it with --parsable2")


def _is_read(word: str, reader: Callable[[list[str]], object]) -> bool:
    try:
        reader([word])
    except NotANumber:
        return False
    return True


def read_export(path: Path) -> SacctRows:
    """Read an export, plain or gzip, with or without "|" at the end of lines; several may follow each other in one file.

    Rows may have more or fewer cells than the header (`check_width`). Raises InputError for a file that is no export.
    """
    names: tuple[str, ...] = ()
    first, ends = "", False
    lines: list[int] = []
    cells: list[list[str]] = []
    for number, raw in enumerate(read_text(path).split("\n"), start=1):
        line = raw.removesuffix("\r")
        if not line.strip() or (names and line == first):
            continue
        if not names:
            first, ends, names = line, line.endswith("|"), header(line)
            _check_header(path, number, names)
            continue
        cells.append([word.strip() for word in (line.removesuffix("|") if ends else line).split("|")])
        lines.append(number)
    if not cells:
        raise InputError("the export holds no jobs", file=path, remedy=f"export with sacct --parsable2 {_FIELDS}")
    return SacctRows(path, names, np.array(lines, dtype=np.int64), cells)


def check_width(rows: SacctRows) -> None:
    """Raise UnreadableRows for rows that have more or fewer cells than the header."""
    bad = np.array([len(cells) != len(rows.names) for cells in rows.cells], dtype=np.bool_)
    if bad.any():
        problem = f"the row has {len(rows.cells[int(np.argmax(bad))])} fields, the header {len(rows.names)}"
        remedy = "export whole rows with --parsable2, without fields whose text may hold '|' (JobName, Comment)"
        rows.fail(bad, None, problem, remedy)


def header(line: str) -> tuple[str, ...]:
    """Columns that a first line names, without the empty one that --parsable adds."""
    return tuple(name.strip() for name in line.removesuffix("|").split("|"))


def _check_header(path: Path, line: int, names: tuple[str, ...]) -> None:
    missing = ["/".join(choices) for choices in REQUIRED if not {*choices} & {*names}]
    if not {"ElapsedRaw", "Elapsed"} & {*names} and "Start" not in names and "End" in names:
        missing.append("Start")
    if missing:
        problem = f"the export lacks {', '.join(missing)}; its header is {'|'.join(names)[:200]}"
        remedy = f"export with sacct --parsable2 {_FIELDS}"
        raise InputError(problem, file=path, line=line, field=missing[0].partition("/")[0], remedy=remedy)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("the column appears twice", file=path, line=line, field=twice, remedy="export it once")


# Cells


def counts(words: Sequence[str]) -> IntArray:
    """(n_word,) numbers of nodes or tasks, which sacct may write with K = 1024; raises NotANumber."""
    found = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _COUNT.fullmatch(word)
        value = float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2]] if match else 0.5
        if not value.is_integer():
            raise NotANumber(position, f"'{word[:40]}' is not a number of nodes, tasks or CPUs")
        found[position] = int(value)
    return found


def lengths(words: Sequence[str]) -> IntArray:
    """(n_word,) seconds of times such as 1-02:03:04, 02:03:04 and 03:04; raises NotANumber."""
    found = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _LENGTH.fullmatch(word)
        if match is None:
            raise NotANumber(position, f"'{word[:40]}' is not a length of time such as 1-02:03:04")
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        found[position] = 86400 * days + 3600 * hours + 60 * minutes + seconds
    return found


def gpus(words: Sequence[str]) -> IntArray:
    """(n_word,) GPUs in AllocTRES, such as 4 in "cpu=32,gres/gpu:a100=4,gres/gpu=4"; types count where they stand alone."""
    found = np.zeros(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        amounts = [(bool(kind), int(count)) for kind, count in _GPUS.findall(word)]
        in_all = [count for typed, count in amounts if not typed]
        found[position] = in_all[0] if in_all else sum(count for _, count in amounts)
    return found


def used_mib(words: Sequence[str]) -> FloatArray:
    """(n_word,) MiB in MaxRSS, 0 where there is none; a number without a unit counts bytes. Raises NotANumber."""
    return _memory(words, lambda match: not match[3])[0]


def requested_mib(words: Sequence[str]) -> tuple[FloatArray, NDArray[np.str_]]:
    """Read ReqMem; raises NotANumber for text, and for numbers without a unit, which may be bytes or MB.

    Returns
    -------
    mebibytes
        (n_word,) MiB; 0 where it is empty, 0 (all of a node's), or "?" marks a number that sacct could not write.
    per
        (n_word,) "n" per node, "c" per CPU, "" of the whole job, as Slurm 21.08 and later write it.
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
