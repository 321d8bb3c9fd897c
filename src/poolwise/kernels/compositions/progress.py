"""Expected ends of runs on compositions, with the float64 operations of the reference engine in their order."""

from __future__ import annotations

import math

from poolwise.kernels.compositions.state import CompositionState, NeedArrays, SharingRuns
from poolwise.kernels.jit import step


@step
def slowed(work: float, slowdown: float) -> int:
    """Return the ns that some ns of reference work take at a slowdown, as `quantities.with_slowdown` does."""
    if slowdown != 0.0:
        return math.ceil(work) + math.ceil(work * slowdown)
    return math.ceil(work)


@step
def time_on(shape: int, size: int, sharers: int, shapes: NeedArrays) -> int:
    """Return the total time (ns) of a workload of a shape on a composition of `size` devices with a number of sharers."""
    if shapes.most[shape] == 0:
        return int(shapes.requested[shape])
    return slowed(float(shapes.requested[shape]), shapes.slowdown[shape, size, sharers])


@step
def pace_on(shape: int, size: int, sharers: int, shapes: NeedArrays) -> float:
    """Return the slowdown of a shape on a composition, 0 without a table."""
    return 0.0 if shapes.most[shape] == 0 else float(shapes.slowdown[shape, size, sharers])


@step
def end_with(run: int, size: int, sharers: int, state: CompositionState) -> int:
    """Return the end (ns) that a pass expects for a run if the number of sharers stays constant from now on."""
    runs, now = state.runs, state.now
    shape = state.jobs.shape[runs.job[run]]
    left = float(state.shapes.requested[shape])
    if run < now.committed:
        if state.rules.changes == 0:
            return int(runs.end[run])
        done = (left - runs.work[run]) + max(now.time - runs.since[run], 0) / (1.0 + runs.pace[run])
        left = max(left - done, 0.0)
    return now.time + slowed(left, pace_on(shape, size, sharers, state.shapes))


@step
def set_pace(run: int, pace: float, time: int, runs: SharingRuns) -> None:
    """Change the pace of a run from now on; a run that ends at this instant keeps its end."""
    if runs.end[run] == time or pace == runs.pace[run]:
        return
    runs.work[run] = max(runs.work[run] - max(time - runs.since[run], 0) / (1.0 + runs.pace[run]), 0.0)
    runs.since[run] = max(runs.since[run], time)
    runs.pace[run] = pace
    runs.end[run] = runs.since[run] + slowed(runs.work[run], pace)


@step
def adjust_sharers(lead: int, state: CompositionState) -> None:
    """Update the pace of all runs on a composition, unless runs keep the speed at which they started."""
    if state.rules.changes == 0:
        return
    compositions, runs = state.compositions, state.runs
    run = compositions.first[lead]
    while run >= 0:
        shape = state.jobs.shape[runs.job[run]]
        pace = pace_on(shape, compositions.size[lead], compositions.sharers[lead], state.shapes)
        set_pace(run, pace, state.now.time, runs)
        run = runs.next[run]


@step
def is_safe(lead: int, state: CompositionState) -> bool:
    """Return whether every sharer on track to meet its deadline still would with one more sharer from now on."""
    if state.rules.changes == 0:
        return True
    compositions, runs = state.compositions, state.runs
    size, sharers = compositions.size[lead], compositions.sharers[lead]
    run = compositions.first[lead]
    while run >= 0:
        deadline = state.jobs.deadline[runs.job[run]]
        if (
            state.shapes.most[state.jobs.shape[runs.job[run]]] > 0
            and runs.seen_end[run] <= deadline
            and deadline < end_with(run, size, sharers + 1, state)
        ):
            state.now.reopened = 1  # it becomes safe as its sharers progress
            return False
        run = runs.next[run]
    return True
