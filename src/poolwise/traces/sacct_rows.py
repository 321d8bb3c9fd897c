"""Rows of `sacct --parsable2` as they are in the file: jobs, and the steps that they ran.

Source: manual page of sacct (Slurm 18.08 to 24.05), fields JobIDRaw, State, ReqMem, MaxRSS, NTasks, TimelimitRaw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber, wholes
from poolwise.traces.text import read_text

REQUIRED = (
    "JobIDRaw", "Submit", "Start", "State", "NNodes", "AllocCPUS", "ElapsedRaw", "TimelimitRaw", "ReqMem", "MaxRSS", "NTasks",
)  # fmt: skip
"""Columns that a reading needs."""

UNKNOWN = frozenset({"", "Unknown", "None", "N/A", "INVALID"})
"""What sacct writes where there is no time."""

_FIELDS = "--format=" + ",".join(REQUIRED)
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTPE]?)([nc]?)(\??)")
_SIZES = {"": 2.0**-20, "K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "E": 2.0**40}  # MiB
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KM]?)")
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^=,]*)?=([0-9]{1,9})(?=,|$)")

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
    """

    path: Path
    names: tuple[str, ...]
    lines: IntArray
    cells: Sequence[Sequence[str]]

    def __len__(self) -> int:
        return len(self.cells)

    def words(self, name: str) -> list[str]:
        """(n_row,) texts of a column."""
        column = self.names.index(name)
        return [row[column] for row in self.cells]

    def take(self, keep: BoolArray) -> SacctRows:
        """Those rows for which (n_row,) `keep` is true."""
        return SacctRows(
            self.path, self.names, self.lines[keep], [row for row, kept in zip(self.cells, keep, strict=True) if kept]
        )

    def fail(self, row: int, name: str, problem: str, remedy: str) -> NoReturn:
        """Raise InputError for a cell."""
        raise InputError(problem, file=self.path, line=int(self.lines[row]), field=name, remedy=remedy)

    def refuse(self, bad: BoolArray, name: str, problem: str, remedy: str) -> None:
        """Raise InputError for the first of the (n_row,) bad rows, if there is one; `problem` may name {value}."""
        if bad.any():
            row = int(np.argmax(bad))
            self.fail(row, name, problem.format(value=self.words(name)[row]), remedy)

    def read(self, name: str, reader: Callable[[list[str]], T], remedy: str) -> T:
        """Turn a column into numbers; a NotANumber that the reader raises becomes an InputError."""
        try:
            return reader(self.words(name))
        except NotANumber as error:
            self.fail(error.position, name, error.problem, remedy)

    def wholes(self, name: str) -> IntArray:
        """(n_row,) whole numbers."""
        return self.read(name, wholes, "write a whole number; export it with --parsable2")


def read_rows(path: Path) -> tuple[SacctRows, SacctRows, dict[str, int]]:
    """Read an export, plain or gzip, with or without "|" at the end of lines; several may follow each other in one file.

    Returns
    -------
    jobs, steps
        Rows whose JobIDRaw is a whole number, and those where a step follows it: "17.batch", "17.0".
    excluded
        Reason -> rows that were left out: those that stand twice word for word, as in exports that overlap, and steps
        without their job.

    Raises InputError with the file, the line and the name of the field.
    """
    names, lines, cells = _take_apart(path)
    number = names.index("JobIDRaw")
    seen: dict[str, int] = {}
    jobs: list[int] = []
    steps: list[int] = []
    rows = SacctRows(path, names, np.array(lines, dtype=np.int64), cells)
    for row, words in enumerate(cells):
        name = words[number]
        head, dot, _ = name.partition(".")
        if not head.isdecimal() or not head.isascii() or len(head) > 18:
            rows.fail(row, "JobIDRaw", f"'{name}' is not the number of a job or of its step", "export JobIDRaw, not JobID")
        first = seen.setdefault(name, row)
        if first == row:
            (steps if dot else jobs).append(row)
        elif cells[first] != words:
            problem = f"job {name} is already in line {lines[first]}, with other values"
            rows.fail(row, "JobIDRaw", problem, "export one cluster, without --duplicates, all months at one time")
    again = len(cells) - len(jobs) - len(steps)
    known = {cells[row][number] for row in jobs}
    owned = [row for row in steps if cells[row][number].partition(".")[0] in known]
    excluded = {"the same row again": again, "step whose job the export lacks": len(steps) - len(owned)}
    if not jobs:
        raise InputError("the export holds no jobs", file=path, remedy="check --starttime, and that you may see --allusers")
    return _at(rows, jobs), _at(rows, owned), {reason: count for reason, count in excluded.items() if count}


def _at(rows: SacctRows, chosen: list[int]) -> SacctRows:
    return SacctRows(rows.path, rows.names, rows.lines[np.array(chosen, dtype=np.int64)], [rows.cells[row] for row in chosen])


def header(line: str) -> tuple[str, ...]:
    """Columns that a first line names, without the empty one that --parsable adds."""
    return tuple(name.strip() for name in line.removesuffix("|").split("|"))


def _take_apart(path: Path) -> tuple[tuple[str, ...], list[int], list[list[str]]]:
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
        words = [word.strip() for word in (line.removesuffix("|") if ends else line).split("|")]
        if len(words) != len(names):
            problem = f"the row has {len(words)} fields, the header {len(names)}"
            remedy = "export whole rows with --parsable2, without fields whose text may hold '|' (JobName, Comment)"
            raise InputError(problem, file=path, line=number, remedy=remedy)
        lines.append(number)
        cells.append(words)
    if not cells:
        raise InputError("the export holds no jobs", file=path, remedy=f"export with sacct --parsable2 {_FIELDS}")
    return names, lines, cells


def _check_header(path: Path, line: int, names: tuple[str, ...]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        problem = f"the export lacks {', '.join(missing)}; its header is {'|'.join(names)[:200]}"
        remedy = f"export with sacct --parsable2 {_FIELDS}"
        raise InputError(problem, file=path, line=line, field=missing[0], remedy=remedy)
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
