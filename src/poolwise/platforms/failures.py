"""Failures and repairs of nodes, drawn or given, as capacity changes of a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from poolwise import random
from poolwise.model import Failures, Machine, Workload
from poolwise.platforms.simulated import Disturbance

STREAM = "failures"
_Span = tuple[int, int]


class FailingMachine(NamedTuple):
    """A machine as schedulers see it, and its future capacity changes."""

    machine: Machine  # without its failures
    disturbances: tuple[Disturbance, ...] = ()  # changes of capacity in order of time
    requeue: bool = True  # whether jobs that lose a node are requeued


def draw_failures(workload: Workload, machine: Machine, seed: int) -> FailingMachine:
    """Return the failures of a machine while a workload runs; random outages depend only on the seed and the node."""
    failures = machine.failures
    if failures is None:
        return FailingMachine(machine)
    changes: list[Disturbance] = []
    last = int(workload.submit.max()) if len(workload) else 0
    for owner in range(machine.n_owner):
        for number in range(_nodes(machine, owner)):
            stated = [(outage.down, outage.up) for outage in failures.outages if owner in outage.owners]
            random_outages = (
                _random_outages(failures, seed, owner, number, min(failures.until, last)) if owner in failures.owners else ()
            )
            for down, up in merged([*stated, *random_outages]):
                changes += _changes(machine, owner, down, -1)
                changes += _changes(machine, owner, up, 1)
    in_order = tuple(sorted(changes, key=lambda change: change.time))
    return FailingMachine(replace(machine, failures=None), in_order, failures.requeue)


def merged(intervals: Iterable[_Span]) -> Iterator[_Span]:
    """Merge intervals that overlap or touch; yield them in order of time."""
    current: _Span | None = None
    for down, up in sorted(intervals):
        if current is not None and down <= current[1]:
            current = current[0], max(current[1], up)
            continue
        if current is not None:
            yield current
        current = down, up
    if current is not None:
        yield current


def _random_outages(failures: Failures, seed: int, owner: int, number: int, until: int) -> Iterator[_Span]:
    """Yield random outages of one node up to a time."""
    time, turn = 0, 0
    counter = (owner << 20) + number
    while True:
        down = time + _exponential(failures.mtbf, float(random.uniform(seed, STREAM, counter, 2 * turn)[0]))
        if down >= until:
            return
        time = down + _exponential(failures.mttr, float(random.uniform(seed, STREAM, counter, 2 * turn + 1)[0]))
        turn += 1
        yield down, time


def _exponential(mean: int, draw: float) -> int:
    """Transform a uniform random number in [0, 1) to an exponential time in ns, at least 1."""
    return max(1, math.ceil(-mean * math.log1p(-draw)))


def _nodes(machine: Machine, owner: int) -> int:
    return int(machine.capacity[owner, machine.resource("nodes")]) if "nodes" in machine.resources else 1


def _changes(machine: Machine, owner: int, time: int, sign: int) -> Iterator[Disturbance]:
    """Yield the capacity changes of a failure (-1) or repair (1): of one whole node, or of a shared node and its devices."""
    if _nodes(machine, owner) and "nodes" in machine.resources:
        yield Disturbance(time, owner, machine.resource("nodes"), sign)
        return
    for part in (owner, *(k for k in range(machine.n_owner) if int(machine.home[k]) == owner)):
        for resource, amount in enumerate(machine.capacity[part].tolist()):
            if amount:
                yield Disturbance(time, part, resource, sign * amount)
