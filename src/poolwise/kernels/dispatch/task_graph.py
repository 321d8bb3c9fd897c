"""Event loop of task graphs: a row joins its queue once it is submitted and all rows that it waits for have finished.

It is a kernel of its own, so that workloads of independent tasks do not pay for it. Rows that become ready at one instant join
in the order of their ids, and the oldest head is the one that joined first.
"""

from __future__ import annotations

from poolwise.kernels.dispatch.ends import lowest, pop, push
from poolwise.kernels.dispatch.idle import mark
from poolwise.kernels.dispatch.replay import choose, join, start_task
from poolwise.kernels.dispatch.state import DONE, LATE, DispatchState, Ends, GraphArrays, IdleArrays
from poolwise.kernels.jit import entry, step
from poolwise.quantities import HORIZON, NEVER

READY, JOINED = range(2)
"""Positions in `GraphArrays.counts`."""


@entry
def replay_graph(state: DispatchState, graph: GraphArrays) -> int:
    """Run until no event is left (DONE) or the clock is beyond `HORIZON` (LATE)."""
    jobs, ends, now = state.jobs, state.ends, state.now
    while True:
        arrival = jobs.submit[now.next] if now.next < jobs.submit.size else NEVER
        row = lowest(ends)
        time = min(arrival, ends.soonest[row])
        if time == NEVER:
            return DONE
        if time > HORIZON:
            return LATE
        now.time = time
        ended = ends.soonest[row] == time
        if ended:
            _end(pop(ends, row), time, state.idle, ends, graph)
        while now.next < jobs.submit.size and jobs.submit[now.next] == time:
            _release(now.next, graph)
            now.next += 1
        if not ended and graph.counts[READY] == 0:
            continue  # no row that is submitted now is ready
        while graph.counts[READY] > 0:
            job = graph.row[_pop_ready(graph)]
            graph.turn[job] = graph.counts[JOINED]
            graph.counts[JOINED] += 1
            join(job, jobs, state.lanes)
        now.passes += 1
        _pass(state, graph)


@step
def _end(unit: int, time: int, idle: IdleArrays, ends: Ends, graph: GraphArrays) -> None:
    """Release the units of a slot whose tasks end now, and successors of finished rows; other ends move to lower rows."""
    while unit >= 0:
        follower = ends.next[unit]
        if ends.end[unit] == time:
            mark(idle, unit, 1)
            job = graph.job[unit]
            graph.left[job] -= 1
            if graph.left[job] == 0:
                for k in range(graph.offset[job], graph.offset[job + 1]):
                    _release(graph.successor[k], graph)
        else:
            push(ends, unit, ends.end[unit])
        unit = follower


@step
def _release(job: int, graph: GraphArrays) -> None:
    """Decrement the number of rows that a row waits for; add it to the heap of ready rows once none is left."""
    graph.missing[job] -= 1
    if graph.missing[job] > 0:
        return
    ready, rank = graph.ready, graph.rank[job]
    k = graph.counts[READY]
    graph.counts[READY] += 1
    while k > 0 and ready[(k - 1) >> 1] > rank:
        ready[k] = ready[(k - 1) >> 1]
        k = (k - 1) >> 1
    ready[k] = rank


@step
def _pop_ready(graph: GraphArrays) -> int:
    """Remove the least position from the heap of ready rows and return it."""
    ready, size = graph.ready, graph.counts[READY] - 1
    graph.counts[READY] = size
    least, last = ready[0], ready[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and ready[child + 1] < ready[child]:
            child += 1
        if ready[child] >= last:
            break
        ready[k] = ready[child]
        k = child
    ready[k] = last
    return int(least)


@step
def _pass(state: DispatchState, graph: GraphArrays) -> None:
    """Start tasks of the head that joined first and has not failed in this pass, until none is left or no unit is idle."""
    lanes, now = state.lanes, state.now
    while state.idle.total[0] > 0:
        job, lane = -1, -1
        for k in range(lanes.head.size):
            head = lanes.head[k]
            if head >= 0 and lanes.closed[k] != now.passes and (job < 0 or graph.turn[head] < graph.turn[job]):
                job, lane = head, k
        if job < 0:
            return
        unit = choose(job, state)
        if unit < 0:
            lanes.closed[lane] = now.passes
            continue
        start_task(job, unit, state)
        graph.job[unit] = job
        lanes.served[job] += 1
        if lanes.served[job] == state.jobs.tasks[job]:
            lanes.head[lane] = lanes.next[job]
