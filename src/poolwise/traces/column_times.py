"""When the jobs of a table were submitted, how long they ran and how long they asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.traces import time_of_day
from poolwise.traces.column_cells import LONGEST, JobCells, Times
from poolwise.units import SECOND

_NEAR = 0.01
"""Share by which a duration may differ from the time between start and end."""


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Times of the jobs of a table, (n_row,) each.

    Attributes
    ----------
    submit : ns since any zero
    duration : ns, 0 where unknown
    requested : ns, at least the duration
    attributes : "wait_s", what the log recorded of waits, NaN where unknown; empty where it tells of none
    odd : reason -> rows of which a reader is told
    said : sentences of which a reader is told
    differ : whether the duration is another than the time between start and end
    """

    submit: Times
    duration: Times
    requested: IntArray
    attributes: dict[str, FloatArray]
    odd: dict[str, BoolArray]
    said: tuple[str, ...]
    differ: BoolArray

    def repaired(self, keep: BoolArray) -> dict[str, int]:
        """Reason -> rows among those for which (n_row,) `keep` is true."""
        counts = {reason: int((rows & keep).sum()) for reason, rows in self.odd.items()}
        return {reason: count for reason, count in counts.items() if count}

    def notes(self, keep: BoolArray) -> tuple[str, ...]:
        """Sentences on the rows for which (n_row,) `keep` is true."""
        count = int((self.differ & keep).sum())
        if not count:
            return self.said
        return (*self.said, f"the duration of {count:,} jobs is not the time between their start and end: check the units")


def read_times(cells: JobCells) -> JobTimes:
    """Read the times of all rows; raises UnreadableRows."""
    instants = {name: cells.instants(name) for name in ("submit", "start", "end") if name in cells}
    lengths = {name: cells.lengths(name) for name in ("wait", "duration", "requested") if name in cells}
    said: list[str] = []
    if cells.in_seconds:
        said.append(f"numbers without a unit were taken as seconds: {', '.join(cells.in_seconds)}")
    submit = instants.get("submit")
    if submit is None:
        submit = _before(instants["start"], lengths.get("wait"))
        if "wait" not in lengths:
            said.append("the table has no submit times: jobs are submitted when they started in the log")
    ran = _between(instants["start"], instants["end"]) if {"start", "end"} <= {*instants} else None
    duration = lengths.get("duration", ran)
    assert duration is not None  # the map has one of both
    if ran is not None and "duration" not in lengths:
        cells.refuse(ran.ns > LONGEST, "end", "is more than 68 years after the start")
    odd: dict[str, BoolArray] = {}
    requested = lengths.get("requested")
    if requested is None:
        requested = Times(np.zeros_like(duration.ns), np.zeros_like(duration.known))
    odd["requested time unknown, taken as the runtime"] = ~requested.known
    odd["requested time below the runtime, taken as the runtime"] = requested.known & (requested.ns < duration.ns)
    waits = _waits(submit, instants.get("start") if "submit" in instants else None, lengths.get("wait"))
    attributes = {}
    if waits is not None:
        early = waits < 0
        odd["start before the submission, the wait in the log left out"] = early
        attributes["wait_s"] = np.where(early, np.nan, waits)
    if cells.repeated:
        said.append(f"{cells.repeated:,} times: {time_of_day.REPEATED}")
    differ = np.zeros_like(duration.known)
    if ran is not None and "duration" in lengths:
        apart = np.abs(ran.ns - duration.ns)
        differ = ran.known & duration.known & (apart > np.maximum(_NEAR * np.abs(ran.ns), 60 * SECOND))
    return JobTimes(submit, duration, np.maximum(requested.ns, duration.ns), attributes, odd, tuple(said), differ)


def _before(start: Times, wait: Times | None) -> Times:
    return start if wait is None else Times(np.where(wait.known, start.ns - wait.ns, 0), start.known & wait.known)


def _between(start: Times, end: Times) -> Times:
    known = start.known & end.known
    return Times(np.where(known, end.ns - start.ns, 0), known)


def _waits(submit: Times, start: Times | None, wait: Times | None) -> FloatArray | None:
    """(n_row,) seconds that the log says jobs waited, NaN where it does not; None where it never does."""
    found = wait if wait is not None else None if start is None else _between(submit, start)
    return None if found is None else np.where(found.known, found.ns / SECOND, np.nan)
