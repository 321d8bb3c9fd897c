"""Cells of a mapped table, converted to numbers in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.quantities import DAY, HOUR, MINUTE, SECOND, UNITS
from poolwise.traces import time_of_day
from poolwise.traces.column_map import ColumnMap, MappedColumn, size_of
from poolwise.traces.memory import LARGEST
from poolwise.traces.numbers import NotANumber, are_whole, reals, wholes
from poolwise.traces.table_columns import Source
from poolwise.traces.unreadable_rows import UnreadableRows, unreadable

LONGEST = 2**31 * SECOND
"""Longest accepted time span, ns; submit time + runtime then stay below 2**63."""

_MEMORY_CAP = 1e30  # exceeds any amount of memory, yet products with it do not overflow

_UNKNOWN = frozenset({"", "-1", "-1.0", "nan", "none", "null", "na", "n/a", "unknown", "invalid", "nat"})
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_DURATION = re.compile(r"(?:([0-9]{1,5})(?:-| days?,? ))?([0-9]{1,6}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]{1,3})")
_SLURM = {"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}
_WITH_COMMA = re.compile(r"[-+]?[0-9][0-9.,]{0,30},[0-9]{1,30}|[0-9],[0-9]{1,30}")
_POINT = "write numbers with a decimal point and without thousands separators, such as 1234.5"
_CORRECT = "correct or remove the row, or read without strict to skip it"

T = TypeVar("T")


class Times(NamedTuple):
    """Times of rows in ns, (n_row,), and a mask of the known ones; unknown times are 0."""

    ns: IntArray
    known: BoolArray


@dataclass
class JobCells:
    """Columns of a table, addressed by the field that a map assigns to them.

    `local` is the time zone of dates without an offset; `in_seconds` collects the time fields without a unit, read as seconds,
    and `repeated` counts the ambiguous times in the hour that a clock repeats when summer time ends. `dated` states whether any
    column has dates.
    """

    source: Source
    column_map: ColumnMap
    local: tzinfo
    in_seconds: list[str] = field(default_factory=list)
    repeated: int = 0
    dated: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.column_map

    def instants(self, name: str) -> Times:
        """Return points in time, ns since an origin shared by the whole table."""
        unit = self.column_map[name].unit
        words, known = self._words(name)
        form = unit if "%" in unit else ""
        counted = not form and unit != "date" and all(_NUMBER.fullmatch(word) for word in words)
        if counted or (unit and not form and unit != "date"):
            ns = self._read(name, known, words, self._ticks(name, unit), "give a number, or map the column with :date")
        else:
            remedy = "write a time such as 2026-03-01T12:00:00, or map the column with its format: submit=COLUMN:%d.%m.%Y %H:%M"
            ns = self._read(name, known, words, lambda dates: self._dates(dates, form), remedy)
            self.dated = True
        filled = _fill_known(ns, known)
        if known.any():
            far = known & (np.abs(filled - np.sort(ns)[len(ns) // 2]) > LONGEST // 2)
            self.refuse(far, name, "is more than 34 years from the middle of the log")
        return Times(filled, known)

    def lengths(self, name: str) -> Times:
        """Return durations in ns, none of them negative."""
        unit = self.column_map[name].unit
        words, known = self._words(name)
        formatted = unit == "clock" or (not unit and any(":" in word for word in words))
        remedy = "give a number, or days, hours, minutes and seconds such as 1-02:03:04"
        ns = self._read(name, known, words, _parse_durations if formatted else self._ticks(name, unit), remedy)
        filled = _fill_known(ns, known)
        self.refuse(filled < 0, name, "is negative")
        self.refuse(filled > LONGEST, name, "is longer than 68 years")
        return Times(filled, known)

    def counts(self, name: str, most: int) -> IntArray:
        """Return whole numbers up to `most`, 0 where unknown; accept whole values written as fractions, such as 8.0."""
        words, known = self._words(name)
        values = _fill_known(self._read(name, known, words, reals, "give a whole number"), known)
        bad = (values < 0) | (values > most) | (values != np.floor(values))
        self.refuse(bad, name, f"is not a whole number from 0 to {most}")
        return values.astype(np.int64)

    def references(self, name: str) -> IntArray:
        """Return the ids of other jobs, -1 where a cell is empty."""
        words, known = self._words(name)
        values = np.full(len(known), -1, dtype=np.int64)
        values[known] = self._read(name, known, words, wholes, "give the id of a job, or leave the cell empty")
        return values

    def memory(self, name: str) -> FloatArray:
        """Return amounts in MiB, 0 where unknown."""
        unit = self.column_map[name].unit
        words, known = self._words(name)
        size = size_of(unit, "memory") if unit else 0.0
        mebibytes = _fill_known(self._read(name, known, words, lambda amounts: _parse_memory(amounts, size), _WITH_UNIT), known)
        self.refuse((mebibytes < 0) | (mebibytes > LARGEST), name, "is not between 0 and 2**31 MiB")
        return mebibytes

    def wholes(self, name: str) -> IntArray | None:
        """Return whole numbers, or None if any cell is not a whole number."""
        words = self.texts(name).tolist()
        try:
            return wholes(words)
        except NotANumber:
            return None

    def texts(self, name: str) -> NDArray[np.str_]:
        """Return text without surrounding spaces."""
        return np.char.strip(self.source.texts(self.column_map[name].column))

    def numbers_or_texts(self, name: str) -> NDArray[np.generic]:
        """Return numbers if every cell is a number or empty (NaN), else text."""
        words = self.texts(name).tolist()
        filled = [word for word in words if word]
        if filled and all(_NUMBER.fullmatch(word) for word in filled):
            try:
                if len(filled) == len(words) and are_whole(words):
                    return wholes(words)
                values = np.full(len(words), np.nan, dtype=np.float64)
                values[[bool(word) for word in words]] = reals(filled)
                return values
            except NotANumber:
                pass
        return np.array(words, dtype=np.str_)

    def refuse(self, bad: BoolArray, name: str, problem: str) -> None:
        """Raise UnreadableRows if any of the (n_row,) rows is bad; the message states the first bad value and `problem`."""
        if bad.any():
            row = int(np.argmax(bad))
            self._fail(bad, name, f"'{self.texts(name)[row]}' {problem}", _CORRECT)

    def _fail(self, bad: BoolArray, name: str, problem: str, remedy: str) -> NoReturn:
        row, column = int(np.argmax(bad)), self.column_map[name].column
        line = self.source.line(row)
        message = problem if line is not None else f"{self.source.location(row)}: {problem}"
        raise UnreadableRows.of(bad, message, file=self.source.path, line=line, field=column, remedy=remedy)

    def _words(self, name: str) -> tuple[list[str], BoolArray]:
        """Return the texts of the known cells, and an (n_row,) mask of them."""
        words = self.texts(name).tolist()
        known = np.array([word.lower() not in _UNKNOWN for word in words], dtype=np.bool_)
        return [word for word, is_known in zip(words, known.tolist(), strict=True) if is_known], known

    def _read(self, name: str, is_known: BoolArray, words: list[str], reader: Callable[[list[str]], T], remedy: str) -> T:
        """Convert texts to numbers; raise UnreadableRows for those that the reader rejects."""
        try:
            return reader(words)
        except NotANumber as error:
            bad = np.zeros(len(is_known), dtype=np.bool_)
            bad[is_known] = unreadable(words, reader)
            if _WITH_COMMA.fullmatch(words[error.position]):
                self._fail(bad, name, f"'{words[error.position]}' has a comma", _POINT)
            self._fail(bad, name, error.problem, remedy)

    def _ticks(self, name: str, unit: str) -> Callable[[Sequence[str]], IntArray]:
        if not unit and name not in self.in_seconds:
            self.in_seconds.append(name)
        size = round(size_of(unit or "s", "time"))
        return lambda words: _ticks_to_ns(words, size)

    def _dates(self, words: Sequence[str], form: str) -> IntArray:
        dates, repeated = time_of_day.instants(words, self.local, form)
        self.repeated = max(self.repeated, repeated)
        return dates


def has_unit(source: Source, mapped: MappedColumn) -> bool:
    """Return whether the map or every known cell of a memory column states a unit."""
    words = [word.strip() for word in source.texts(mapped.column).tolist()]
    return bool(mapped.unit) or not any(_NUMBER.fullmatch(word) for word in words if word.lower() not in _UNKNOWN)


_WITH_UNIT = "give a number and its unit, or map the column with its unit: memory=COLUMN:GB"


N = TypeVar("N", IntArray, FloatArray)


def _fill_known(values: N, is_known: BoolArray) -> N:
    """Return the values at the known rows and 0 elsewhere, (n_row,)."""
    result = np.zeros_like(values, shape=len(is_known))
    result[is_known] = values
    return result


def _ticks_to_ns(words: Sequence[str], size: int) -> IntArray:
    """Convert tick counts, (n_word,), to ns, exactly if all are whole, else to the nearest ns; raise NotANumber from 2**62."""
    values = reals(words)
    for position in np.flatnonzero(np.abs(values) >= 2.0**62 / size).tolist():
        raise NotANumber(position, f"'{words[position][:40]}' is too large for a time")
    if are_whole(words):
        return wholes(words) * size
    whole = np.floor(values)
    return whole.astype(np.int64) * size + np.rint((values - whole) * size).astype(np.int64)


def _parse_durations(words: Sequence[str]) -> IntArray:
    """Read durations in ns, (n_word,), such as 02:03:04, 1-02:03:04, "1 day 02:03:04", or a number of seconds."""
    values = np.empty(len(words), dtype=np.int64)
    for position, word in enumerate(words):
        match = _DURATION.fullmatch(word)
        if match is None:
            values[position] = _parse_seconds(word, position)
            continue
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
        fraction = int((match[5] or "").ljust(9, "0") or 0)
        values[position] = days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction
    return values


def _parse_seconds(word: str, position: int) -> int:
    try:
        return int(_ticks_to_ns([word], SECOND)[0])
    except NotANumber as error:
        raise NotANumber(position, f"'{word[:40]}' is not a duration such as 1-02:03:04") from error


def _parse_memory(words: Sequence[str], size: float) -> FloatArray:
    """Read MiB, (n_word,), from numbers in units of `size` or amounts with their own unit; Slurm's K, M, G, T are binary."""
    if size:
        try:
            return np.clip(reals(words), -_MEMORY_CAP, _MEMORY_CAP) * size
        except NotANumber:
            pass
    values = np.empty(len(words), dtype=np.float64)
    for position, word in enumerate(words):
        match = _AMOUNT.fullmatch(word)
        unit = _SLURM.get(match[2], match[2]) if match else ""
        if match and unit in UNITS["memory"]:
            values[position] = float(match[1]) * UNITS["memory"][unit]
        elif size and _NUMBER.fullmatch(word):
            values[position] = float(np.clip(reals([word])[0], -_MEMORY_CAP, _MEMORY_CAP)) * size
        else:
            raise NotANumber(position, f"'{word[:40]}' is not an amount of memory with a unit")
    return values
