"""Schedules as Chrome trace events: nodes, devices and pools as tracks, for chrome://tracing or Perfetto.

The export needs only the schedule, of any kind of system. Format: Trace Event Format, JSON object form with complete ("X"),
counter ("C") and metadata ("M") events.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.atomic_write import write_whole
from poolwise.model import Kind, Schedule

TraceEvent = dict[str, Any]
ToMicroseconds = Callable[[int], int]

MAX_NS_END = 2**51
"""Latest end of a schedule (26 days) that keeps nanoseconds: viewers use doubles of microseconds, and drop overlaps."""
_TRACKS = {Kind.NODE: "nodes", Kind.DEVICE: "devices", Kind.POOL: "pools", Kind.LINK: "links"}


def write_timeline(schedule: Schedule, path: Path) -> None:
    """Write the events of a schedule as JSON, atomically."""
    content = {"displayTimeUnit": "ms", "traceEvents": list(trace_events(schedule))}
    write_whole(path, (json.dumps(content, separators=(",", ":")) + "\n").encode())


def trace_events(schedule: Schedule) -> Iterator[TraceEvent]:
    """Yield the events: one process per kind of owner, threads for owners, one slice per run on each owner.

    Runs that overlap on an owner use parallel lanes, the lowest free one, so that every slice is fully visible. Owners with
    shared resources have counters of the amounts in use. Times are microseconds since the beginning of the trace, with
    decimals unless the schedule ends after `MAX_NS_END`. Process and thread numbers start at 1, because viewers treat process
    0 as the idle process.
    """
    kinds = schedule.machine.kind.tolist()
    clock = _clock(schedule)
    for kind in sorted(set(kinds)):
        yield _metadata("process_name", kind + 1, 0, _TRACKS[Kind(kind)])
    thread, holders = 1, np.where(schedule.holdings.amount > 0, schedule.holdings.owner, schedule.machine.n_owner)
    rows = np.argsort(holders, kind="stable")
    bounds = np.searchsorted(holders[rows], np.arange(schedule.machine.n_owner + 1))
    for owner, runs in sorted(_occupants(schedule).items()):
        slices, lanes = _lanes(schedule, runs)
        for lane in range(lanes):
            name = schedule.machine.owners[owner] + (f" +{lane}" if lane else "")
            yield _metadata("thread_name", kinds[owner] + 1, thread + lane, name)
            yield {**_metadata("thread_sort_index", kinds[owner] + 1, thread + lane, ""), "args": {"sort_index": thread + lane}}
        for run, lane in slices:
            yield _slice(schedule, run, owner, thread + lane, clock)
        thread += lanes
        yield from _counters(schedule, owner, rows[bounds[owner] : bounds[owner + 1]], clock)


def _clock(schedule: Schedule) -> ToMicroseconds:
    """Return a function that rounds times (ns) so that doubles of microseconds preserve adjacency."""
    step = 1000 if schedule.n_run and int(schedule.end.max()) > MAX_NS_END else 1
    return lambda time: time // step * step


def _metadata(event: str, process: int, thread: int, name: str) -> TraceEvent:
    return {"ph": "M", "name": event, "pid": process, "tid": thread, "args": {"name": name}}


def _occupants(schedule: Schedule) -> dict[int, list[int]]:
    """Return owner -> its runs by start."""
    runs: dict[int, list[int]] = {}
    for run in sorted(range(schedule.n_run), key=lambda k: (int(schedule.start[k]), k)):
        for owner in dict.fromkeys(owner for owner, _, _ in schedule.placement_of(run)):
            runs.setdefault(owner, []).append(run)
    return runs


def _lanes(schedule: Schedule, runs: list[int]) -> tuple[list[tuple[int, int]], int]:
    """Return (run, lane) in start order, and the number of lanes."""
    busy: list[tuple[int, int]] = []  # (end, lane)
    free: list[int] = []
    lane_of_runs, lanes = [], 0
    for run in runs:
        while busy and busy[0][0] <= schedule.start[run]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, lanes = lanes, lanes + 1
        lane_of_runs.append((run, lane))
        heapq.heappush(busy, (int(schedule.end[run]), lane))
    return lane_of_runs, lanes


def _slice(schedule: Schedule, run: int, owner: int, thread: int, clock: ToMicroseconds) -> TraceEvent:
    job, workload, machine = int(schedule.job[run]), schedule.workload, schedule.machine
    start, end = int(schedule.start[run]), int(schedule.end[run])
    amounts: dict[str, int] = {}
    for holder, resource, amount in schedule.placement_of(run):
        if holder == owner:
            amounts[machine.resources[resource]] = amounts.get(machine.resources[resource], 0) + amount
    kind = workload.attributes.get("kind")
    name = f"job {int(workload.id[job])}"
    return {
        "ph": "X",
        "name": name if kind is None else f"{name} {kind[job]}",
        "cat": str(schedule.outcome[run]),
        "pid": int(machine.kind[owner]) + 1,
        "tid": thread,
        "ts": clock(start) / 1000,
        "dur": (clock(end) - clock(start)) / 1000,
        "args": {"waited_s": (start - int(workload.submit[job])) / 1e9, **amounts},
    }


def _counters(schedule: Schedule, owner: int, held: IntArray, clock: ToMicroseconds) -> Iterator[TraceEvent]:
    """Yield the amount of each resource of an owner in use at each change; `held` are its rows of the holdings."""
    machine, rows = schedule.machine, schedule.holdings
    changes: dict[int, dict[int, int]] = {}
    for row in held.tolist():
        resource, amount = int(rows.resource[row]), int(rows.amount[row])
        for time, sign in ((int(rows.begin[row]), 1), (int(rows.end[row]), -1)):
            change = changes.setdefault(time, {})
            change[resource] = change.get(resource, 0) + sign * amount
    used = dict.fromkeys(sorted({resource for change in changes.values() for resource in change}), 0)
    for time, change in sorted(changes.items()):
        for resource, amount in change.items():
            used[resource] += amount
        values = {machine.resources[resource]: amount for resource, amount in used.items()}
        yield {
            "ph": "C",
            "name": f"{machine.owners[owner]} in use",
            "pid": int(machine.kind[owner]) + 1,
            "ts": clock(time) / 1000,
            "args": values,
        }
