"""Parsing of the dates and times in logs to seconds or nanoseconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.quantities import SECOND
from poolwise.traces.numbers import NotANumber

REPEATED = "ambiguous local time at the end of daylight saving time, read as the earlier one"
"""Reason under which formats count the ambiguous times of `seconds`."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(?:Z|[-+][0-9]{2}:?[0-9]{2})?")
_COUNT = re.compile(r"[0-9]{1,11}")
_ZERO, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_LAST = 2**62


def zone(name: str) -> tzinfo:
    """Return the time zone with a name such as "Europe/Berlin"; raise InputError for an unknown one."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        remedy = 'use "UTC" or a name in the time zone database, such as "Europe/Berlin"'
        raise InputError(f"unknown time zone '{name}'", field="timezone", remedy=remedy) from error


def seconds(words: Sequence[str], local: tzinfo) -> tuple[IntArray, int]:
    """Parse times: "2026-03-01T12:00:00" (or a space instead of the T), with or without an offset, or seconds since 1970.

    `local` is the time zone of times without an offset. Returns (n_word,) seconds since 1970 in UTC, and how many times are
    ambiguous because they fall into the hour that the clock repeats when summer time ends; these count as the first occurrence.
    Raises NotANumber for anything else, and for times that the zone's clock skips when summer time begins.
    """
    times, repeated = instants(words, local)
    return times // SECOND, repeated


def instants(words: Sequence[str], local: tzinfo, form: str = "") -> tuple[IntArray, int]:
    """Parse times as `seconds` does, or in a format of `datetime.strptime` such as "%d.%m.%Y %H:%M", to ns since 1970.

    Raises NotANumber as `seconds` does, and for times that exceed 64 bits of nanoseconds.
    """
    values = np.empty(len(words), dtype=np.int64)
    repeated = 0
    for position, word in enumerate(words):
        try:
            ns, twice = _parse_format(word, local, form) if form else _parse(word, local)
            if abs(ns) >= _LAST:
                raise ValueError("it is too far from 1970")
            values[position] = ns
        except (ValueError, OverflowError) as error:
            raise NotANumber(position, f"'{word[:40]}' is not a time: {error}") from error
        repeated += twice
    return values, repeated


def _parse(word: str, local: tzinfo) -> tuple[int, bool]:
    """Return ns since 1970, and whether the clock of the zone showed this time twice."""
    if _COUNT.fullmatch(word):
        return int(word) * SECOND, False
    match = _TIME.fullmatch(word)
    if match is None:
        raise ValueError("expected year-month-dayThour:minute:second")
    fraction = match[1] or ""
    ns, twice = _since_epoch(datetime.fromisoformat(word.replace(fraction, "", 1)), local)
    return ns + int(fraction[1:].ljust(9, "0") or 0), twice


def _parse_format(word: str, local: tzinfo, form: str) -> tuple[int, bool]:
    return _since_epoch(datetime.strptime(word, form), local)


def _since_epoch(time: datetime, local: tzinfo) -> tuple[int, bool]:
    if time.tzinfo is not None:
        return (time - _ZERO) // _US * 1000, False
    time = time.replace(tzinfo=local)
    twice = local is not UTC and _is_repeated(time)
    return (time - _ZERO) // _US * 1000, twice


def _is_repeated(time: datetime) -> bool:
    """Return whether the clock repeats this time; raise ValueError if the clock skips it."""
    first, second = time.utcoffset(), time.replace(fold=1).utcoffset()
    if first is not None and second is not None and first < second:
        raise ValueError(f"the clock of {time.tzinfo} skips it")
    return first != second
