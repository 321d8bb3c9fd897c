"""Memory profiles: slowdown P^m as a piecewise linear function of the remote share, and its dependence on frequency.

Source: Sefati et al., IRoP, equations (2) and (3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from poolwise import catalog
from poolwise.arrays import FloatArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.performance.csv_table import number, table_rows

COLUMNS = ("workload", "remote", "slowdown", "frequency_share", "source")
TOLERANCE = 1e-9
"""Fraction of a slowdown that counts as a rounding error of reading and fitting, and does not make a curve concave."""


@dataclass(frozen=True)
class Profile:
    """Slowdown of a workload as a function of the fraction of its memory that is remote, linear between knots.

    Parameters
    ----------
    name
        Name in files and tables.
    remote
        (k + 1,) fractions of remote memory at the knots, ascending from 0, below 1; the last is the largest measured one.
    slowdown
        (k + 1,) completion times relative to that with all memory local, minus 1; the first is 0.
    frequency_share
        Fraction of the time that is inversely proportional to the frequency; 1 is equation (3), phi / F.
    source
        Source of the numbers.

    Raises InputError for invalid knots.
    """

    name: str
    remote: tuple[float, ...]
    slowdown: tuple[float, ...]
    frequency_share: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        if len(self.remote) != len(self.slowdown) or len(self.remote) < 2:
            raise self._refuse("remote", "must have as many fractions as slowdowns, at least two")
        if self.remote[0] != 0 or self.slowdown[0] != 0:
            raise self._refuse("remote", "must start at no remote memory and no slowdown")
        steps = np.diff(self.remote)
        if not np.isfinite([*self.remote, *self.slowdown]).all() or (steps <= 0).any() or self.remote[-1] >= 1:
            raise self._refuse("remote", "fractions must ascend from 0 and stay below 1")
        if min(self.slowdown) <= -1:
            raise self._refuse("slowdown", "slowdowns must be above -1")
        if not 0 <= self.frequency_share <= 1:
            raise self._refuse("frequency_share", "must be in [0, 1]")

    def _refuse(self, field: str, message: str) -> InputError:
        return InputError(f"profile '{self.name}': {message}", field=field, remedy="correct the profile")

    @cached_property
    def slopes(self) -> FloatArray:
        """Slopes a_1 .. a_k of equation (2), (k,)."""
        return np.diff(self.slowdown) / np.diff(self.remote)

    @property
    def is_monotone(self) -> bool:
        """True if more remote memory never helps."""
        return bool((self.slopes >= -self._rounding).all())

    @property
    def is_convex(self) -> bool:
        """True if the slopes do not decrease, up to rounding."""
        return bool((np.diff(self.slopes) >= -self._rounding).all())

    @property
    def _rounding(self) -> float:
        """Error of a slope if slowdowns are written with ten digits, as `profile fit` does."""
        return float(TOLERANCE * max(1.0, np.abs(self.slowdown).max()) / np.diff(self.remote).min())

    def at(self, remote: ArrayLike) -> FloatArray:
        """Return the slowdown P^m at fractions of remote memory, (...,), extrapolated with the last slope."""
        share = np.asarray(remote, dtype=np.float64)
        beyond = np.maximum(share - self.remote[-1], 0.0)
        inside: FloatArray = np.interp(share, self.remote, self.slowdown)
        total: FloatArray = inside + beyond * self.slopes[-1]
        return total

    def largest_remote(self, slowdown: ArrayLike) -> FloatArray:
        """Return the largest measured fraction whose slowdown is at most the given one, (...,); NaN for negative slowdowns.

        It inverts equation (6) for a monotone curve.
        """
        wanted = np.asarray(slowdown, dtype=np.float64)
        values = np.zeros_like(wanted)
        for k, slope in enumerate(self.slopes.tolist()):
            low, high = self.remote[k], self.remote[k + 1]
            with np.errstate(over="ignore"):  # on a nearly flat slope every fraction is reachable
                reach = low + (wanted - self.slowdown[k]) / slope if slope > 0 else np.full_like(wanted, high)
            values = np.where(wanted >= self.slowdown[k], np.minimum(reach, high), values)
        return np.where(wanted < 0, np.nan, values)

    def pace(self, requested: ArrayLike, given: ArrayLike) -> FloatArray:
        """Return the completion time at frequency `given` relative to that at `requested`: equation (3) if the share is 1."""
        ratio = np.asarray(requested, dtype=np.float64) / np.asarray(given, dtype=np.float64)
        return (1 - self.frequency_share) + self.frequency_share * ratio


def read_profiles(file: Path) -> dict[str, Profile]:
    """Read profiles from a CSV file with columns workload, remote, slowdown, frequency_share, source: one row per knot.

    Raises InputError with file, line and field.
    """
    knots: dict[str, list[tuple[float, float]]] = {}
    about: dict[str, tuple[float, str]] = {}
    with file.open(newline="", encoding="utf-8") as text:
        for line, row in table_rows(text, file, COLUMNS):
            numbers = [number(row[name], file, line, name) for name in COLUMNS[1:4]]
            knots.setdefault(row["workload"], []).append((numbers[0], numbers[1]))
            about[row["workload"]] = (numbers[2], row["source"] or "")
    profiles = {}
    for name, points in knots.items():
        remote, slowdown = zip(*points, strict=True)
        try:
            profiles[name] = Profile(name, remote, slowdown, *about[name])
        except InputError as error:
            raise InputError(error.message, file=file, field=error.field, remedy=error.remedy) from None
    return profiles


@lru_cache(maxsize=1)
def shipped_profiles() -> dict[str, Profile]:
    """Return the profiles shipped with Poolwise, by name."""
    profiles: dict[str, Profile] = {}
    for file in sorted((catalog.FOLDER / "memory_profiles").glob("*.csv")):
        profiles |= read_profiles(file)
    return profiles


def find_profile(name: str, own: Sequence[Profile] = ()) -> Profile:
    """Return a profile by name, among `own` ones and the shipped ones. Raises UnknownNameError."""
    profiles = shipped_profiles() | {profile.name: profile for profile in own}
    if name not in profiles:
        raise UnknownNameError.of("profile", name, profiles, field="profile")
    return profiles[name]
