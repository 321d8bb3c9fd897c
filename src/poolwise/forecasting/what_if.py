"""Changes to a known state that may change a job's start: smaller requests, other partitions, policies, or larger pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from poolwise.forecasting.known_state import KnownState
from poolwise.interfaces import QueuePolicy
from poolwise.interfaces.user_class import rule_of
from poolwise.model import JobTable, Kind
from poolwise.model.table_columns import Column
from poolwise.policies.order.priorities import FCFS, FM, SJF
from poolwise.quantities import UNKNOWN, format_memory, format_time, to_seconds
from poolwise.schedulers.list import ListScheduler


class RequestChange(NamedTuple):
    """A changed state and a short description of the change ("with 1 node instead of 2")."""

    words: str
    situation: KnownState


def request_changes(situation: KnownState, row: int) -> Iterator[RequestChange]:
    """Yield changes after which a waiting job might start at another time."""
    jobs = situation.jobs
    nodes, memory, requested = int(jobs.nodes[row]), int(jobs.memory[row]), int(jobs.requested[row])
    for fewer in sorted({nodes // 2, 1} - {0, nodes}, reverse=True):
        words = f"with {fewer} node{'s' if fewer > 1 else ''} instead of {nodes}"
        yield RequestChange(words, _with_job(situation, row, requests={"nodes": fewer}))
    if memory > 1:
        words = f"with {format_memory(memory // 2)} on each node instead of {format_memory(memory)}"
        yield RequestChange(words, _with_job(situation, row, requests={"memory": memory // 2}))
    if requested < UNKNOWN:
        for part in (2, 4):
            limits = [format_time(to_seconds(limit)) for limit in (requested // part, requested)]
            yield RequestChange(
                f"with a limit of {' instead of '.join(limits)}", _with_job(situation, row, requested=max(requested // part, 1))
            )
    named = jobs.attributes.get("partition")
    for partition in situation.machine.partitions:
        if named is not None and partition.name not in str(named[row]).split(","):
            yield RequestChange(f"in partition {partition.name}", _with_job(situation, row, partition=partition.name))
    yield from _policies(situation)
    yield from _larger_pools(situation)


def _policies(situation: KnownState) -> Iterator[RequestChange]:
    rule = rule_of(situation.scheduler)
    if rule is None:
        return
    orders: Mapping[str, QueuePolicy] = {"first come, first served": FCFS(), "shortest job first": SJF(), "Fair Memory": FM()}
    for name, order in orders.items():
        if order != rule.order:
            scheduler = ListScheduler(order, rule.backfill, rule.placement)
            yield RequestChange(f"if the queue were served {name}", replace(situation, scheduler=scheduler))


def _larger_pools(situation: KnownState) -> Iterator[RequestChange]:
    machine = situation.machine
    pools = machine.of_kind(Kind.POOL)
    if "memory" in machine.resources and len(pools):
        capacity, column = machine.capacity.copy(), machine.resource("memory")
        capacity[pools, column] += capacity[pools, column] // 2
        if not np.array_equal(capacity, machine.capacity):
            words = "if memory pools were 50 % larger"
            yield RequestChange(words, replace(situation, machine=machine.with_capacity(capacity)))


def _with_job(
    situation: KnownState,
    row: int,
    requests: Mapping[str, int] | None = None,
    requested: int | None = None,
    partition: str | None = None,
) -> KnownState:
    """Return the state with another request for one job."""
    jobs = situation.jobs
    demands = {name: column.copy() for name, column in jobs.requests.items()}
    for name, amount in (requests or {}).items():
        demands.setdefault(name, np.zeros(len(jobs), dtype=np.int64))[row] = amount
    times = jobs.requested.copy()
    if requested is not None:
        times[row] = requested
    attributes: dict[str, Column] = dict(jobs.attributes)
    if partition is not None:
        named = attributes["partition"].astype(object)
        named[row] = partition
        attributes["partition"] = named.astype(np.str_)
    names = [jobs.name(k) for k in range(len(jobs))] if jobs.named else None
    table = JobTable(jobs.id, jobs.submit, times, jobs.tasks, demands, attributes, name=names, epoch=jobs.epoch)
    return replace(situation, jobs=table)
