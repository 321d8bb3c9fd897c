"""How one workload slows down as its memory moves out of the node: P^m, piecewise linear, and how it follows frequency.

Source: Sefati et al., IRoP, equations (2) and (3).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from poolwise import catalog
from poolwise.arrays import FloatArray
from poolwise.errors import InputError, UnknownNameError

TOLERANCE = 1e-9
"""Share of a slowdown that is taken for rounding, of reading and fitting: it makes no curve concave."""


@dataclass(frozen=True)
class Profile:
    """A workload's slowdown over the share of its memory that is remote, linear between knots.

    Parameters
    ----------
    name
        What files and tables call it.
    remote
        (k + 1,) shares of remote memory at the knots, from 0, ascending, below 1; the last is as far as was measured.
    slowdown
        (k + 1,) completion time over that with all memory local, minus 1; the first is 0.
    frequency_share
        Part of the time that stretches as the frequency falls; 1 is equation (3), phi / F.
    source
        Where the numbers come from.

    Raises InputError for knots that make no curve.
    """

    name: str
    remote: tuple[float, ...]
    slowdown: tuple[float, ...]
    frequency_share: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        if len(self.remote) != len(self.slowdown) or len(self.remote) < 2:
            raise self._refuse("remote", "needs as many slowdowns as shares, at least two")
        if self.remote[0] != 0 or self.slowdown[0] != 0:
            raise self._refuse("remote", "must begin at no remote memory and no slowdown")
        steps = np.diff(self.remote)
        if not np.isfinite([*self.remote, *self.slowdown]).all() or (steps <= 0).any() or self.remote[-1] >= 1:
            raise self._refuse("remote", "shares must ascend from 0 and stay below 1")
        if min(self.slowdown) <= -1:
            raise self._refuse("slowdown", "a run cannot take no time")
        if not 0 <= self.frequency_share <= 1:
            raise self._refuse("frequency_share", "must lie in [0, 1]")

    def _refuse(self, field: str, message: str) -> InputError:
        return InputError(f"profile '{self.name}': {message}", field=field, remedy="correct the profile")

    @cached_property
    def slopes(self) -> FloatArray:
        """(k,) a_1 .. a_k of equation (2)."""
        return np.diff(self.slowdown) / np.diff(self.remote)

    @property
    def is_monotone(self) -> bool:
        """Whether more remote memory never helps."""
        return bool((self.slopes >= -self._rounding).all())

    @property
    def is_convex(self) -> bool:
        """Whether each further share costs at least as much as the one before, as far as rounded numbers say so."""
        return bool((np.diff(self.slopes) >= -self._rounding).all())

    @property
    def _rounding(self) -> float:
        """By how much a slope may be off where slowdowns are written with ten digits, as `profile fit` writes them."""
        return float(TOLERANCE * max(1.0, np.abs(self.slowdown).max()) / np.diff(self.remote).min())

    def at(self, remote: ArrayLike) -> FloatArray:
        """Slowdown P^m at shares of remote memory, (...,); beyond the last knot the last slope goes on."""
        share = np.asarray(remote, dtype=np.float64)
        beyond = np.maximum(share - self.remote[-1], 0.0)
        inside: FloatArray = np.interp(share, self.remote, self.slowdown)
        total: FloatArray = inside + beyond * self.slopes[-1]
        return total

    def largest_remote(self, slowdown: ArrayLike) -> FloatArray:
        """Largest measured share whose slowdown is at most the given one, (...,); NaN below 0.

        The inverse of equation (6) for a monotone curve.
        """
        wanted = np.asarray(slowdown, dtype=np.float64)
        found = np.zeros_like(wanted)
        for k, slope in enumerate(self.slopes.tolist()):
            low, high = self.remote[k], self.remote[k + 1]
            with np.errstate(over="ignore"):  # on a slope next to nothing every share is within reach
                reach = low + (wanted - self.slowdown[k]) / slope if slope > 0 else np.full_like(wanted, high)
            found = np.where(wanted >= self.slowdown[k], np.minimum(reach, high), found)
        return np.where(wanted < 0, np.nan, found)

    def pace(self, requested: ArrayLike, given: ArrayLike) -> FloatArray:
        """Completion time at frequency `given` over that at `requested`: equation (3) where the share is 1."""
        ratio = np.asarray(requested, dtype=np.float64) / np.asarray(given, dtype=np.float64)
        return (1 - self.frequency_share) + self.frequency_share * ratio


def read_profiles(file: Path) -> dict[str, Profile]:
    """Read profiles from a CSV file with the columns workload, remote, slowdown, frequency_share, source: one row per knot.

    Raises InputError naming file, line and field.
    """
    knots: dict[str, list[tuple[float, float]]] = {}
    about: dict[str, tuple[float, str]] = {}
    with file.open(newline="", encoding="utf-8") as text:
        rows = csv.DictReader(text)
        columns = ("workload", "remote", "slowdown", "frequency_share", "source")
        for name in columns:
            if name not in (rows.fieldnames or ()):
                raise InputError(f"no column '{name}'", file=file, line=1, field=name, remedy=f"columns: {', '.join(columns)}")
        for row in rows:
            numbers = [number(row[name], file, rows.line_num, name) for name in columns[1:4]]
            knots.setdefault(row["workload"], []).append((numbers[0], numbers[1]))
            about[row["workload"]] = (numbers[2], row["source"] or "")
    found = {}
    for name, points in knots.items():
        remote, slowdown = zip(*points, strict=True)
        try:
            found[name] = Profile(name, remote, slowdown, *about[name])
        except InputError as error:
            raise InputError(error.message, file=file, field=error.field, remedy=error.remedy) from None
    return found


def number(text: str | None, file: Path, line: int, field: str) -> float:
    """Read a cell; raises InputError for text that is no number."""
    try:
        return float(text or "")
    except ValueError:
        raise InputError(f"'{text or ''}' is not a number", file=file, line=line, field=field, remedy="correct it") from None


@lru_cache(maxsize=1)
def shipped_profiles() -> dict[str, Profile]:
    """Profiles that come with Poolwise, by name."""
    found: dict[str, Profile] = {}
    for file in sorted((catalog.FOLDER / "memory_profiles").glob("*.csv")):
        found |= read_profiles(file)
    return found


def find_profile(name: str, own: Sequence[Profile] = ()) -> Profile:
    """Look up a profile among one's own and the shipped ones; raises UnknownNameError."""
    known = shipped_profiles() | {profile.name: profile for profile in own}
    if name not in known:
        raise UnknownNameError.of("profile", name, known, field="profile")
    return known[name]
