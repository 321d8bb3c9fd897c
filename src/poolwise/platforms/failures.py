"""From what breaks on a machine to the changes of capacity that a simulation goes through."""

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
    """A machine as a scheduler may know it, and what will happen to it.

    Attributes
    ----------
    machine : the machine, without its failures
    disturbances : changes of capacity in the order of time
    requeue : whether jobs that lose a node wait again
    """

    machine: Machine
    disturbances: tuple[Disturbance, ...] = ()
    requeue: bool = True


def trouble_of(machine: Machine, workload: Workload, seed: int) -> FailingMachine:
    """What happens to a machine while a workload runs; draws depend on the seed and the node alone."""
    failures = machine.failures
    if failures is None:
        return FailingMachine(machine)
    changes: list[Disturbance] = []
    last = int(workload.submit.max()) if len(workload) else 0
    for owner in range(machine.n_owner):
        for number in range(_nodes(machine, owner)):
            given = [(outage.down, outage.up) for outage in failures.outages if owner in outage.owners]
            drawn = _drawn(failures, seed, owner, number, min(failures.until, last)) if owner in failures.owners else ()
            for down, up in merged([*given, *drawn]):
                changes += _changes(machine, owner, down, -1)
                changes += _changes(machine, owner, up, 1)
    in_time = tuple(sorted(changes, key=lambda change: change.time))
    return FailingMachine(replace(machine, failures=None), in_time, failures.requeue)


def merged(intervals: Iterable[_Span]) -> Iterator[_Span]:
    """Join intervals that overlap or touch; in the order of time."""
    held: _Span | None = None
    for down, up in sorted(intervals):
        if held is not None and down <= held[1]:
            held = held[0], max(held[1], up)
            continue
        if held is not None:
            yield held
        held = down, up
    if held is not None:
        yield held


def _drawn(failures: Failures, seed: int, owner: int, number: int, until: int) -> Iterator[_Span]:
    """Outages of one node up to a time."""
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
    """Ns, at least 1, from a uniform draw in [0, 1)."""
    return max(1, math.ceil(-mean * math.log1p(-draw)))


def _nodes(machine: Machine, owner: int) -> int:
    """Nodes that an owner stands for."""
    return int(machine.capacity[owner, machine.resource("nodes")]) if "nodes" in machine.resources else 1


def _changes(machine: Machine, owner: int, time: int, sign: int) -> Iterator[Disturbance]:
    """What a node's failure (-1) or repair (1) changes: one of the whole nodes, or all of a shared node and its devices."""
    if _nodes(machine, owner) and "nodes" in machine.resources:
        yield Disturbance(time, owner, machine.resource("nodes"), sign)
        return
    for part in (owner, *(k for k in range(machine.n_owner) if int(machine.home[k]) == owner)):
        for resource, amount in enumerate(machine.capacity[part].tolist()):
            if amount:
                yield Disturbance(time, part, resource, sign * amount)
