"""Times of day as logs write them, as seconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber

REPEATED = "time in the hour that the clock repeats in autumn, taken as the first of the two"
"""Reason under which formats count what `seconds` could not tell."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[-+][0-9]{2}:?[0-9]{2})?")
_COUNT = re.compile(r"[0-9]{1,11}")
_ZERO, _SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)


def zone(name: str) -> tzinfo:
    """Time zone by its name, such as "Europe/Berlin"; raises InputError for one that is not known here."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        remedy = 'give "UTC" or a name of the time zone database, such as "Europe/Berlin"'
        raise InputError(f"unknown time zone '{name}'", field="timezone", remedy=remedy) from error


def seconds(words: Sequence[str], local: tzinfo) -> tuple[IntArray, int]:
    """Read times: "2026-03-01T12:00:00" (or a space for the T), with an offset or without, or seconds since 1970.

    Parameters
    ----------
    words
        The times; those without an offset are of the zone `local`.

    Returns
    -------
    seconds
        (n_word,) int64, since 1970 in UTC.
    repeated
        How many fell into the hour that a clock repeats when summer ends; they are taken as the first.

    Raises NotANumber for anything else, and for times that the zone's clock leaves out when summer begins.
    """
    found = np.empty(len(words), dtype=np.int64)
    repeated = 0
    for position, word in enumerate(words):
        try:
            found[position], twice = _read(word, local)
        except (ValueError, OverflowError) as error:
            raise NotANumber(position, f"'{word[:40]}' is not a time: {error}") from error
        repeated += twice
    return found, repeated


def _read(word: str, local: tzinfo) -> tuple[int, bool]:
    """Seconds since 1970, and whether the clock of the zone showed this time twice."""
    if _COUNT.fullmatch(word):
        return int(word), False
    if _TIME.fullmatch(word) is None:
        raise ValueError("expected year-month-dayThour:minute:second")
    time = datetime.fromisoformat(word)
    if time.tzinfo is not None:
        return (time - _ZERO) // _SECOND, False
    time = time.replace(tzinfo=local)
    twice = local is not UTC and _is_repeated(time)
    return (time - _ZERO) // _SECOND, twice


def _is_repeated(time: datetime) -> bool:
    """Whether a clock is put back over this time; raises ValueError where it is put forward over it."""
    first, second = time.utcoffset(), time.replace(fold=1).utcoffset()
    if first is not None and second is not None and first < second:
        raise ValueError(f"the clock of {time.tzinfo} never showed it")
    return first != second
