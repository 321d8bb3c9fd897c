"""Jobs with varying memory use on racks with pools, and invariants of their schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poolwise.model import Machine, MemoryUse, Outcome, Schedule, Workload
from poolwise.quantities import SECOND
from tests.helpers.holdings import check_capacity

Steps = Sequence[tuple[int, int]]
"""(seconds of work, MiB on each node)"""


def memory_use(steps: Sequence[Steps]) -> MemoryUse:
    offset = np.cumsum([0, *map(len, steps)])
    work, memory = (np.array([step[k] for job in steps for step in job], dtype=np.int64) for k in (0, 1))
    return MemoryUse(offset.astype(np.int64), work * SECOND, memory)


def using(
    asked: Sequence[int],
    steps: Sequence[Steps],
    seconds: Sequence[int],
    submit: Sequence[int] | None = None,
    nodes: Sequence[int] | None = None,
) -> Workload:
    """Build jobs from requests (MiB per node), memory use and runtimes; submitted in order, on one node each."""
    n = len(asked)
    workload = Workload.of(
        np.array(submit if submit is not None else [0] * n) * SECOND,
        np.array(seconds) * SECOND,
        requests={"nodes": np.array(nodes if nodes is not None else [1] * n), "memory": np.array(asked)},
    )
    return replace(workload, memory_use=memory_use(steps))


def check_memory(schedule: Schedule) -> None:
    """Recompute the held memory from the records, and check that no job progresses with less memory than it uses."""
    machine, rows, workload = schedule.machine, schedule.holdings, schedule.workload
    assert workload.memory_use is not None
    pool = rows.resource == machine.resource("memory")
    local = machine.local_memory
    check_capacity(schedule)
    for run in range(schedule.n_run):
        begin, end, job = int(schedule.start[run]), int(schedule.end[run]), int(schedule.job[run])
        work, memory = workload.memory_use.steps(job)
        seen = [step for step in schedule.memory_steps if step.run == run]
        stalls = [stall for stall in schedule.stalls if stall.run == run]
        assert [step.memory for step in seen] == memory[: len(seen)].tolist() and seen[0].time == begin
        assert all(begin <= stall.begin < stall.end <= end for stall in stalls)
        mine, nodes = rows.run == run, int(workload.nodes[job])
        for low, high in zip(*_stretches(begin, end, seen, stalls, rows.begin[mine]), strict=True):
            used = next(step.memory for step in reversed(seen) if step.time <= low)
            held = int(rows.amount[mine & pool & (rows.begin <= low) & (rows.end > low)].sum())
            stands = any(stall.begin <= low < stall.end for stall in stalls)
            assert stands == (used > local + held / nodes), (run, low, high)
        stood = [sum(min(stall.end, until) - stall.begin for stall in stalls if stall.begin < until) for until in (end,)]
        if schedule.outcome[run] is Outcome.FINISHED:
            assert end - begin - stood[0] == workload.duration[job]  # where remote memory costs no time
        for k, step in enumerate(seen):
            before = sum(min(stall.end, step.time) - stall.begin for stall in stalls if stall.begin < step.time)
            assert step.time - begin - before == work[k]


def _stretches(begin: int, end: int, *events: Sequence[object]) -> tuple[list[int], list[int]]:
    """Return the begins and ends of the intervals of a run between its events."""
    seen, stalls, resized = events
    marks = {begin, end, *(step.time for step in seen), *(int(time) for time in resized)}  # type: ignore[attr-defined, call-overload]
    marks |= {time for stall in stalls for time in (stall.begin, stall.end)}  # type: ignore[attr-defined]
    inside = sorted(time for time in marks if begin <= time <= end)
    return inside[:-1], inside[1:]


def machine_with(pool: int, racks: int = 1, nodes: int = 4, local: int = 10) -> Machine:
    return Machine.of_racks(racks, nodes, local=local, pool=pool)
