"""Intermediate states of a run: current runs and waiting jobs at an instant, and the expected rest of the schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines import simulate
from poolwise.engines.simulate import Engine
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.model import Initial, InitialRun, Placement, Schedule, Workload

Run = tuple[int, int, int, tuple[tuple[int, int, int], ...]]


def placement_of(schedule: Schedule, run: int) -> Placement:
    return Placement.of([(0, *row) for row in schedule.placement_of(run)])


def only(workload: Workload, keep: BoolArray) -> Workload:
    """Select rows of a workload by a mask, (n_job,)."""
    columns = {name: getattr(workload, name)[keep] for name in ("id", "submit", "duration", "requested", "tasks")}
    return replace(
        workload,
        **columns,
        requests={name: column[keep] for name, column in workload.requests.items()},
        attributes={name: column[keep] for name, column in workload.attributes.items()},
    )


def cut(schedule: Schedule, time: int) -> tuple[Workload, Initial]:
    """Return the jobs that are not over before an instant, and those of them that run at it."""
    workload = schedule.workload
    over = np.zeros(len(workload), dtype=np.bool_)
    over[schedule.job[schedule.end < time]] = True
    over[[row for row in schedule.rejected if workload.submit[row] < time]] = True
    row = np.cumsum(~over) - 1
    runs = np.flatnonzero((schedule.start < time) & (schedule.end >= time)).tolist()
    started = [InitialRun(int(row[schedule.job[k]]), int(schedule.start[k]), placement_of(schedule, k)) for k in runs]
    return only(workload, ~over), Initial(time, started)


def rest(schedule: Schedule, time: int) -> list[Run]:
    """Return the runs that end at an instant or later, as (job id, start, end, placement), in start order."""
    return [
        (
            int(schedule.workload.id[schedule.job[k]]),
            int(schedule.start[k]),
            int(schedule.end[k]),
            tuple(schedule.placement_of(k)),
        )
        for k in np.flatnonzero(schedule.end >= time).tolist()
    ]


def instants(schedule: Schedule, count: int, g: np.random.Generator) -> list[int]:
    """Draw some of the instants at which an event happens."""
    changes: IntArray = np.unique(np.concatenate([schedule.end, schedule.workload.submit]))
    return sorted(g.choice(changes, min(count, len(changes)), replace=False).tolist())


def check_every_engine(
    schedule: Schedule,
    time: int,
    scheduler: Scheduler,
    model: PerformanceModel,
    estimate: PerformanceModel | None,
    engines: tuple[Engine, ...],
) -> None:
    """Check that every engine produces the same rest from an intermediate state, and the same waiting and rejected jobs."""
    left, initial = cut(schedule, time)
    ids = schedule.workload.id
    for engine in engines:
        again = simulate(
            left, schedule.machine, scheduler, model=model, estimate=estimate, engine=engine, initial=initial
        ).schedule
        assert rest(again, time) == rest(schedule, time), (engine, time)
        assert [left.id[row] for row in again.waiting] == [ids[row] for row in schedule.waiting]
        turned_away = {ids[row]: why for row, why in schedule.rejected.items() if schedule.workload.submit[row] >= time}
        assert {left.id[row]: why for row, why in again.rejected.items()} == turned_away
        assert again.n_run == len(rest(again, time))
