"""Submit times, runtimes and requested times of the jobs of a mapped table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.quantities import SECOND, UNKNOWN, format_count
from poolwise.traces import time_of_day
from poolwise.traces.column_cells import LONGEST, JobCells, Times
from poolwise.traces.selection import occurring

_NEAR = 0.01
"""Relative difference allowed between a duration and the time from start to end."""


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Times of the jobs of a table, (n_row,) each, in ns.

    Submit times count from an arbitrary zero, and unknown durations are 0. `requested` times are at least the duration;
    `recorded` are the requested times in the log, `units.UNKNOWN` if missing. `attributes` has "wait_s", the recorded waits
    (NaN where unknown), if the table has any. `repairs` maps each reason to the rows whose values are replaced for it;
    `mismatched` rows have a duration that differs from the time between start and end.
    """

    submit: Times
    duration: Times
    requested: IntArray
    recorded: IntArray
    attributes: dict[str, FloatArray]
    repairs: dict[str, BoolArray]
    messages: tuple[str, ...]
    mismatched: BoolArray

    def repaired(self, keep: BoolArray) -> dict[str, int]:
        """Count the repaired rows by reason, among those for which (n_row,) `keep` is true."""
        return occurring({reason: int((rows & keep).sum()) for reason, rows in self.repairs.items()})

    def notes(self, keep: BoolArray) -> tuple[str, ...]:
        """Return the messages about the rows for which (n_row,) `keep` is true."""
        count = int((self.mismatched & keep).sum())
        if not count:
            return self.messages
        return (
            *self.messages,
            f"the duration of {format_count(count, 'job')} is not the time between their start and end: check the units",
        )


def read_times(cells: JobCells) -> JobTimes:
    """Read the times of all rows; raise UnreadableRows."""
    instants = {name: cells.instants(name) for name in ("submit", "start", "end") if name in cells}
    lengths = {name: cells.lengths(name) for name in ("wait", "duration", "requested") if name in cells}
    messages: list[str] = []
    if cells.in_seconds:
        messages.append(f"numbers without a unit were read as seconds: {', '.join(cells.in_seconds)}")
    submit = instants.get("submit")
    if submit is None:
        submit = _submit_from_start(instants["start"], lengths.get("wait"))
        if "wait" not in lengths:
            messages.append("the table has no submit times: jobs are submitted when they started in the log")
    ran = _elapsed(instants["start"], instants["end"]) if {"start", "end"} <= {*instants} else None
    duration = lengths.get("duration", ran)
    assert duration is not None  # the map has at least one of them
    if ran is not None and "duration" not in lengths:
        cells.refuse(ran.ns > LONGEST, "end", "is more than 68 years after the start")
    repairs: dict[str, BoolArray] = {}
    requested = lengths.get("requested")
    if requested is None:
        requested = Times(np.zeros_like(duration.ns), np.zeros_like(duration.known))
    repairs["requested time unknown, set to the runtime"] = ~requested.known
    repairs["requested time below the runtime, set to the runtime"] = requested.known & (requested.ns < duration.ns)
    waits = _waits(submit, instants.get("start") if "submit" in instants else None, lengths.get("wait"))
    attributes = {}
    if waits is not None:
        early = waits < 0
        repairs["start before the submission, wait unknown"] = early
        attributes["wait_s"] = np.where(early, np.nan, waits)
    if cells.repeated:
        messages.append(f"{cells.repeated:,} times: {time_of_day.REPEATED}")
    mismatched = np.zeros_like(duration.known)
    if ran is not None and "duration" in lengths:
        difference = np.abs(ran.ns - duration.ns)
        mismatched = ran.known & duration.known & (difference > np.maximum(_NEAR * np.abs(ran.ns), 60 * SECOND))
    recorded = np.where(requested.known, requested.ns, UNKNOWN)
    planned = np.maximum(requested.ns, duration.ns)
    return JobTimes(submit, duration, planned, recorded, attributes, repairs, tuple(messages), mismatched)


def _submit_from_start(start: Times, wait: Times | None) -> Times:
    return start if wait is None else Times(np.where(wait.known, start.ns - wait.ns, 0), start.known & wait.known)


def _elapsed(start: Times, end: Times) -> Times:
    known = start.known & end.known
    return Times(np.where(known, end.ns - start.ns, 0), known)


def _waits(submit: Times, start: Times | None, wait: Times | None) -> FloatArray | None:
    """Return the recorded waits in s, (n_row,), NaN where unknown; None if the table records none."""
    waits = wait if wait is not None else None if start is None else _elapsed(submit, start)
    return None if waits is None else np.where(waits.known, waits.ns / SECOND, np.nan)
