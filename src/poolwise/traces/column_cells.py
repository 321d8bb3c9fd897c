"""JobCells of a table that a map points to, as numbers in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.traces import time_of_day
from poolwise.traces.column_map import ColumnMap, MappedColumn, size_of
from poolwise.traces.memory import LARGEST
from poolwise.traces.numbers import NotANumber, are_whole, reals, wholes
from poolwise.traces.table_columns import Source
from poolwise.traces.unreadable_rows import UnreadableRows
from poolwise.units import DAY, HOUR, MINUTE, SECOND, UNITS

LONGEST = 2**31 * SECOND
"""Ns: submit + runtime stay below 2**63."""

_MANY = 1e30  # beyond any amount of memory, and not so large that products overflow

_UNKNOWN = frozenset({"", "-1", "-1.0", "nan", "none", "null", "na", "n/a", "unknown", "invalid", "nat"})
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_CLOCK = re.compile(r"(?:([0-9]{1,5})(?:-| days?,? ))?([0-9]{1,6}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]{1,3})")
_SLURM = {"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}
_CORRECT = "correct or remove the row, or leave it out by not being strict"

T = TypeVar("T")


class Times(NamedTuple):
    """(n_row,) ns, and whether they are known; 0 where they are not."""

    ns: IntArray
    known: BoolArray


@dataclass
class JobCells:
    """Columns of a table by the field that a map says they hold.

    Attributes
    ----------
    source : the table
    places : field -> column and unit
    local : zone of dates that do not tell theirs
    in_seconds : fields whose unit nothing tells, so that they were taken as seconds
    repeated : times in the hour that a clock repeats
    """

    source: Source
    places: ColumnMap
    local: tzinfo
    in_seconds: list[str] = field(default_factory=list)
    repeated: int = 0

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def instants(self, name: str) -> Times:
        """Points in time, ns since a zero that all of one table share."""
        unit = self.places[name].unit
        words, known = self._words(name)
        form = unit if "%" in unit else ""
        counted = not form and unit != "date" and all(_NUMBER.fullmatch(word) for word in words)
        if counted or (unit and not form and unit != "date"):
            ns = self._read(name, known, words, self._ticks(name, unit), "give a number, or map the column with :date")
        else:
            remedy = "write it such as 2026-03-01T12:00:00, or map the column with its form: submit=COLUMN:%d.%m.%Y %H:%M"
            ns = self._read(name, known, words, lambda some: self._dates(some, form), remedy)
        found = _spread(ns, known)
        if known.any():
            far = known & (np.abs(found - np.sort(ns)[len(ns) // 2]) > LONGEST // 2)
            self.refuse(far, name, "is more than 34 years from the middle of the log")
        return Times(found, known)

    def lengths(self, name: str) -> Times:
        """Lengths of time, ns; not negative."""
        unit = self.places[name].unit
        words, known = self._words(name)
        clocks = unit == "clock" or (not unit and any(":" in word for word in words))
        remedy = "give a number, or hours, minutes and seconds such as 1-02:03:04"
        ns = self._read(name, known, words, _clocks if clocks else self._ticks(name, unit), remedy)
        found = _spread(ns, known)
        self.refuse(found < 0, name, "is negative")
        self.refuse(found > LONGEST, name, "is longer than 68 years")
        return Times(found, known)

    def counts(self, name: str, most: int) -> IntArray:
        """Whole numbers up to `most`, 0 where unknown; 8.0 is one."""
        words, known = self._words(name)
        values = _spread(self._read(name, known, words, reals, "give a whole number"), known)
        self.refuse((values < 0) | (values > most) | (values != np.floor(values)), name, f"is no whole number from 0 to {most}")
        return values.astype(np.int64)

    def references(self, name: str) -> IntArray:
        """Numbers of other jobs, -1 where there is none."""
        words, known = self._words(name)
        found = np.full(len(known), -1, dtype=np.int64)
        found[known] = self._read(name, known, words, wholes, "give the number of a job, or nothing")
        return found

    def memory(self, name: str) -> FloatArray:
        """MiB, 0 where unknown."""
        unit = self.places[name].unit
        words, known = self._words(name)
        size = size_of(unit, "memory") if unit else 0.0
        mebibytes = _spread(self._read(name, known, words, lambda some: _amounts(some, size), _WITH_UNIT), known)
        self.refuse((mebibytes < 0) | (mebibytes > LARGEST), name, "is not between 0 and 2**31 MiB")
        return mebibytes

    def wholes(self, name: str) -> IntArray | None:
        """Whole numbers; None where a cell is not one."""
        words = self.texts(name).tolist()
        try:
            return wholes(words)
        except NotANumber:
            return None

    def texts(self, name: str) -> NDArray[np.str_]:
        """Text without spaces around it."""
        return np.char.strip(self.source.texts(self.places[name].column))

    def numbers_or_texts(self, name: str) -> NDArray[np.generic]:
        """Numbers where all cells are numbers or empty (NaN), else text."""
        words = self.texts(name).tolist()
        given = [word for word in words if word]
        if given and all(_NUMBER.fullmatch(word) for word in given):
            try:
                if len(given) == len(words) and are_whole(words):
                    return wholes(words)
                values = np.full(len(words), np.nan, dtype=np.float64)
                values[[bool(word) for word in words]] = reals(given)
                return values
            except NotANumber:
                pass
        return np.array(words, dtype=np.str_)

    def refuse(self, bad: BoolArray, name: str, problem: str) -> None:
        """Raise UnreadableRows for the (n_row,) bad rows, if there are any; the message is the first value and `problem`."""
        if bad.any():
            row = int(np.argmax(bad))
            self._fail(bad, name, f"'{self.texts(name)[row]}' {problem}", _CORRECT)

    def _fail(self, bad: BoolArray, name: str, problem: str, remedy: str) -> NoReturn:
        row, column = int(np.argmax(bad)), self.places[name].column
        line = self.source.line(row)
        said = problem if line is not None else f"{self.source.place(row)}: {problem}"
        raise UnreadableRows.of(bad, said, file=self.source.path, line=line, field=column, remedy=remedy)

    def _words(self, name: str) -> tuple[list[str], BoolArray]:
        """JobCells that are known, and (n_row,) which those are."""
        words = self.texts(name).tolist()
        known = np.array([word.lower() not in _UNKNOWN for word in words], dtype=np.bool_)
        return [word for word, told in zip(words, known.tolist(), strict=True) if told], known

    def _read(self, name: str, known: BoolArray, words: list[str], reader: Callable[[list[str]], T], remedy: str) -> T:
        """Turn words into numbers; those that the reader refuses become UnreadableRows."""
        try:
            return reader(words)
        except NotANumber as error:
            bad = np.zeros(len(known), dtype=np.bool_)
            bad[known] = [not _is_read(word, reader) for word in words]
            self._fail(bad, name, error.problem, remedy)

    def _ticks(self, name: str, unit: str) -> Callable[[Sequence[str]], IntArray]:
        if not unit and name not in self.in_seconds:
            self.in_seconds.append(name)
        size = round(size_of(unit or "s", "time"))
        return lambda words: _scaled(words, size)

    def _dates(self, words: Sequence[str], form: str) -> IntArray:
        found, repeated = time_of_day.instants(words, self.local, form)
        self.repeated = max(self.repeated, repeated)
        return found


def tells_unit(source: Source, place: MappedColumn) -> bool:
    """Whether a map or the cells of a column of memory tell in what they count."""
    words = [word.strip() for word in source.texts(place.column).tolist()]
    return bool(place.unit) or not any(_NUMBER.fullmatch(word) for word in words if word.lower() not in _UNKNOWN)


_WITH_UNIT = "give a number and its unit, or map the column with its unit: memory=COLUMN:GB"


N = TypeVar("N", IntArray, FloatArray)


def _spread(values: N, known: BoolArray) -> N:
    """(n_row,) the values where they are known, 0 elsewhere."""
    found = np.zeros_like(values, shape=len(known))
    found[known] = values
    return found


def _is_read(word: str, reader: Callable[[list[str]], object]) -> bool:
    try:
        reader([word])
    except NotANumber:
        return False
    return True


def _scaled(words: Sequence[str], size: int) -> IntArray:
    """(n_word,) ns of numbers of ticks; whole ones exactly, others to the nearest. Raises NotANumber from 2**62 on."""
    values = reals(words)
    for position in np.flatnonzero(np.abs(values) >= 2.0**62 / size).tolist():
        raise NotANumber(position, f"'{words[position][:40]}' is too large for a time")
    if are_whole(words):
        return wholes(words) * size
    whole = np.floor(values)
    return whole.astype(np.int64) * size + np.rint((values - whole) * size).astype(np.int64)


def _clocks(words: Sequence[str]) -> IntArray:
    """(n_word,) ns of lengths such as 02:03:04, 1-02:03:04 and "1 day 02:03:04", and of numbers of seconds."""
    found = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _CLOCK.fullmatch(word)
        if match is None:
            found[position] = _second(word, position)
            continue
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
        fraction = int((match[5] or "").ljust(9, "0") or 0)
        found[position] = days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction
    return found


def _second(word: str, position: int) -> int:
    try:
        return int(_scaled([word], SECOND)[0])
    except NotANumber as error:
        raise NotANumber(position, f"'{word[:40]}' is not a length of time such as 1-02:03:04") from error


def _amounts(words: Sequence[str], size: float) -> FloatArray:
    """(n_word,) MiB of numbers of a size, or of amounts with units of their own; Slurm's K, M, G and T are binary."""
    if size:
        try:
            return np.clip(reals(words), -_MANY, _MANY) * size
        except NotANumber:
            pass
    found = np.empty(len(words), dtype=np.float64)
    for position, word in enumerate(words):
        match = _AMOUNT.fullmatch(word)
        unit = _SLURM.get(match[2], match[2]) if match else ""
        if match and unit in UNITS["memory"]:
            found[position] = float(match[1]) * UNITS["memory"][unit]
        elif size and _NUMBER.fullmatch(word):
            found[position] = float(np.clip(reals([word])[0], -_MANY, _MANY)) * size
        else:
            raise NotANumber(position, f"'{word[:40]}' is not an amount of memory with its unit")
    return found
