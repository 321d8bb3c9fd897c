"""Fit of profiles to measured completion times: P^m, piecewise linear, monotone and convex, and the frequency share.

Source: Sefati et al., IRoP, section II-B and Table III. Every such curve is a sum of hinges with nonnegative coefficients, so
the best curve solves a least-squares problem with a few nonnegative unknowns.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.performance.csv_table import number, table_rows
from poolwise.performance.profiles import COLUMNS as PROFILE_COLUMNS
from poolwise.performance.profiles import Profile

COLUMNS = ("workload", "remote", "frequency", "seconds")


@dataclass(frozen=True, eq=False)
class CompletionTimes:
    """Measured completion times of one workload, (k,); repetitions are separate rows.

    `remote` is the fraction of remote memory, and `frequency` is relative to the lowest measured one.
    """

    name: str
    remote: FloatArray
    frequency: FloatArray
    seconds: FloatArray


@dataclass(frozen=True)
class Errors:
    """Squared errors of a fit at its measurements, in squared units of the normalized slowdown: Table III."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, residuals: FloatArray) -> Errors:
        """Compute the least, mean and largest squared residual."""
        squared = residuals**2
        return cls(float(squared.min()), float(squared.mean()), float(squared.max()))


@dataclass(frozen=True)
class Fit:
    """A fitted profile: the curve, with the fraction of time that scales with frequency.

    `errors` are those of P^m, and `extra` is the increase of the mean squared error due to the convexity constraint.
    `frequency` contains the errors of the frequency model; it is None if only one frequency was measured. `points` are the
    measured pairs (fraction, slowdown).
    """

    profile: Profile
    errors: Errors
    extra: float
    frequency: Errors | None
    points: tuple[tuple[float, float], ...]


def fit(measured: CompletionTimes, pieces: int = 3, *, convex: bool = True) -> Fit:
    """Fit P^m with 1 to 3 pieces of equal width up to the largest measured fraction of remote memory.

    P^m is fitted at the lowest frequency with remote memory. If several frequencies were measured, the fraction of the time
    that scales with frequency is fitted too. Each piece needs its own measured fraction, and some measurements must have all
    memory local; raises InputError if there are too few points.
    """
    if pieces not in (1, 2, 3):
        raise InputError(f"{pieces} pieces are not supported", field="pieces", remedy="use 1, 2 or 3")
    away = measured.remote > 0
    base = measured.frequency == measured.frequency[away if away.any() else ~away].min()
    remote, seconds = measured.remote[base], measured.seconds[base]
    shares = np.unique(remote)
    if not len(shares) or shares[0] > 0:
        remedy = "measure remote = 0 at the frequency of the other points"
        raise _refuse(measured, "the measurements lack a run with all memory local", remedy)
    if len(shares) < pieces + 1:
        problem = f"{len(shares)} fractions of remote memory for {pieces} pieces"
        raise _refuse(measured, problem, f"measure {pieces + 1} or more")
    slowdown = seconds / seconds[remote == 0].mean() - 1
    knots = np.linspace(0, float(shares[-1]), pieces + 1)
    for low, high in pairwise(knots.tolist()):
        if not ((shares > low) & (shares <= high + 1e-12)).any():
            problem = f"no fraction of remote memory in ({low:g}, {high:g}]"
            raise _refuse(measured, problem, "measure there, or use fewer pieces")
    curve = _curve(remote, slowdown, knots, convex)
    free = _curve(remote, slowdown, knots, False)
    errors, loose = (Errors.of(np.interp(remote, knots, values) - slowdown) for values in (curve, free))
    share, frequency = _frequency(measured)
    profile = Profile(measured.name, tuple(knots.tolist()), tuple(curve.tolist()), share, "fitted")
    points = tuple(zip(remote.tolist(), slowdown.tolist(), strict=True))
    return Fit(profile, errors, max(0.0, errors.mean - loose.mean), frequency, points)


def _curve(remote: FloatArray, slowdown: FloatArray, knots: FloatArray, convex: bool) -> FloatArray:
    """Return the best nondecreasing (and convex) curve through the origin, as values at the knots, (pieces + 1,)."""
    from scipy.optimize import nnls  # type: ignore[import-untyped]  # no types; imported lazily because it is slow

    def basis(at: FloatArray) -> FloatArray:
        hinges = np.maximum(at[:, None] - knots[None, :-1], 0.0)
        return hinges if convex else np.minimum(hinges, np.diff(knots)[None, :])

    curve: FloatArray = basis(knots) @ nnls(basis(remote), slowdown)[0]
    return curve


def _frequency(measured: CompletionTimes) -> tuple[float, Errors | None]:
    """Return the fraction s of the time that scales with frequency, time = (1 - s) + s / f, fitted with all memory local."""
    local = measured.remote == 0
    frequency, seconds = measured.frequency[local], measured.seconds[local]
    if len(np.unique(frequency)) < 2:
        return 1.0, None
    ratio = seconds / seconds[frequency == frequency.min()].mean()
    gain = 1 / frequency - 1
    share = float(np.clip((gain @ (ratio - 1)) / (gain @ gain), 0, 1))
    return share, Errors.of(1 + share * gain - ratio)


def _refuse(measured: CompletionTimes, message: str, remedy: str) -> InputError:
    return InputError(f"workload '{measured.name}': {message}", field="remote", remedy=remedy)


def read_measurements(file: Path) -> list[CompletionTimes]:
    """Read completion times from a CSV file with columns workload, remote, seconds and optionally frequency, one row per run.

    Raises InputError with file, line and field.
    """
    rows: dict[str, list[tuple[float, float, float]]] = {}
    with file.open(newline="", encoding="utf-8") as text:
        for line, row in table_rows(text, file, COLUMNS, optional=("frequency",)):
            remote, seconds = number(row["remote"], file, line, "remote"), number(row["seconds"], file, line, "seconds")
            frequency = number(row["frequency"], file, line, "frequency") if row.get("frequency") else 1.0
            if not 0 <= remote < 1:
                raise InputError(f"invalid fraction {remote:g}", file=file, line=line, field="remote", remedy="use [0, 1)")
            for field, value in (("seconds", seconds), ("frequency", frequency)):
                if not value > 0:
                    raise InputError(f"{value:g} is not above 0", file=file, line=line, field=field, remedy="correct it")
            rows.setdefault(row["workload"], []).append((remote, frequency, seconds))
    if not rows:
        raise InputError("no measurements", file=file, remedy="write one row per run")
    measurements = []
    for name, values in rows.items():
        remote_, frequency_, seconds_ = np.array(values, dtype=np.float64).T
        measurements.append(CompletionTimes(name, remote_, frequency_ / frequency_.min(), seconds_))
    return measurements


def to_csv(profiles: list[Profile]) -> str:
    """Write profiles in the format that `read_profiles` reads."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(PROFILE_COLUMNS)
    for profile in profiles:
        for knot in zip(profile.remote, profile.slowdown, strict=True):
            numbers = [f"{value:.10g}" for value in (*knot, profile.frequency_share)]
            table.writerow([profile.name, *numbers, profile.source])
    return text.getvalue()
