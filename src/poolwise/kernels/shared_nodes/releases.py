"""Runs by expected end during a backfill pass, and the number of ends after which a node can hold a part of a job."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import second
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.segments import is_reserved
from poolwise.kernels.shared_nodes.state import SharedState, WindowArrays
from poolwise.quantities import NEVER, OVERDUE, SECOND

INSERTED = 32
"""Maximum number of new runs to insert; with more, all runs are sorted."""


@step
def sort_releases(state: SharedState, intervals: SharedIntervals) -> None:
    """Sort the current runs by expected end, ties by job."""
    releases, runs, parts = intervals.releases, state.runs, state.parts
    _list_runs(state, intervals)
    for n in range(releases.parts.size):
        releases.parts[n] = 0
    releases.sorts[0] += 1
    for k in range(intervals.status.runs):
        run = releases.run[k]
        first, kind = parts.first[run], state.jobs.kind[runs.job[run]]
        releases.node[k] = parts.node[first] if parts.first[run + 1] == first + 1 else -1
        for part in range(first, parts.first[run + 1]):
            n = parts.node[part]
            releases.part[n, releases.parts[n]] = k
            _note_kind(n, kind, intervals)
            releases.parts[n] += 1
    for n in range(releases.parts.size):
        if releases.parts[n] < releases.kind_on.shape[1]:
            _note_kind(n, -1, intervals)


@step
def _list_runs(state: SharedState, intervals: SharedIntervals) -> None:
    """Write the current runs to `releases.run` in order, and their ends to `releases.end`.

    The order changes little from pass to pass, so runs that have started since are inserted, unless there are many. Meanwhile,
    `releases.due` is negative for runs that are listed already.
    """
    releases, runs, status, now, count = intervals.releases, state.runs, intervals.status, state.now, 0
    soon = second(now) + OVERDUE
    for k in range(status.runs):
        releases.due[releases.run[k]] = 0
    for k in range(now.running):
        run = runs.ending[k]
        releases.due[run] = max(runs.expected[run] // SECOND * SECOND, soon)
    for k in range(status.runs):
        run = releases.run[k]
        if releases.due[run] > 0:
            releases.run[count] = run
            releases.due[run] = -releases.due[run]
            count += 1
    many = now.running - count > INSERTED
    for k in range(now.running):
        run = runs.ending[k]
        if many:
            releases.run[k] = run
        elif releases.due[run] > 0:
            releases.run[count] = run
            count += 1
        releases.due[run] = abs(releases.due[run])
    if many:
        heap.sort(releases.run, now.running, releases.due)
    status.runs = now.running
    for k in range(status.runs):
        run, at = releases.run[k], k
        while at > 0 and _precedes(run, releases.run[at - 1], releases.due, runs.job):
            releases.run[at] = releases.run[at - 1]
            at -= 1
        releases.run[at] = run
    for k in range(status.runs):
        releases.end[k] = releases.due[releases.run[k]]


@inlined
def _precedes(run: int, other: int, due: IntArray, job: IntArray) -> bool:
    """Return whether a run ends before another one, ties by job."""
    return bool(due[run] < due[other] or (due[run] == due[other] and job[run] < job[other]))


@inlined
def _note_kind(n: int, kind: int, intervals: SharedIntervals) -> None:
    """Write the kind of the next run by expected end on a node, -1 behind the last; note whether it has changed."""
    releases = intervals.releases
    if releases.kind_on[n, releases.parts[n]] != kind:
        releases.kind_on[n, releases.parts[n]] = kind
        releases.changed_at[n] = releases.sorts[0]


@step
def next_touching(k: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the first run, from the k-th on, with a part on a node that is not reserved; the number of runs if none."""
    while k < intervals.status.runs and not _touches(k, state, intervals):
        k += 1
    return k


@inlined
def last_touching(state: SharedState, intervals: SharedIntervals) -> int:
    """Return the last run that has a part on a node that is not reserved, given that there is one."""
    k = intervals.status.runs - 1
    while not _touches(k, state, intervals):
        k -= 1
    return int(k)


@inlined
def _touches(k: int, state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether the k-th run by end has a part on a node that is not reserved."""
    run, parts, held, n = intervals.releases.run[k], state.parts, intervals.trial.held, intervals.releases.node[k]
    if n >= 0:
        return not is_reserved(n, held)
    for part in range(parts.first[run], parts.first[run + 1]):  # noqa: SIM110  # a loop is what compiles
        if not is_reserved(parts.node[part], held):
            return True
    return False


@step
def write_ends(kind: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Record in `trial.fits_after`, `trial.able` and `trial.ready` when each node can hold a part of a kind."""
    trial, releases, status = intervals.trial, intervals.releases, intervals.status
    row = _row_of(kind, state, windows, intervals)
    status.able = 0
    for n in range(trial.fits_after.size):
        needed = trial.needed[row, n]
        trial.fits_after[n] = needed
        if needed < NEVER:
            trial.able[status.able], trial.ready[status.able] = n, -1
            if needed > 0:
                last = releases.part[n, needed - 1]
                trial.fits_after[n], trial.ready[status.able] = last + 1, releases.end[last]
            status.able += 1


@step
def _row_of(kind: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> int:
    """Return the row of `trial.needed` for a kind; recompute it for nodes whose runs have changed kinds since."""
    trial, nodes, kinds = intervals.trial, state.nodes, state.kinds
    changed_at, sorts = intervals.releases.changed_at, intervals.releases.sorts[0]
    row, leaves = (kind >> windows.coming.shape[1]) % trial.kind.size, nodes.top.shape[0] // 2
    since = trial.at[row] if trial.kind[row] == kind else -1
    trial.kind[row], trial.at[row] = kind, sorts
    for n in range(changed_at.size if since < sorts else 0):
        if changed_at[n] > since:
            trial.needed[row, n] = NEVER
            if nodes.open[kinds.eligible[kind], leaves + n]:
                trial.needed[row, n] = _count_needed(n, kind, state, intervals)
    return int(row)


@inlined
def _count_needed(n: int, kind: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the number of parts on a node that have to end before it can hold a part of a kind, NEVER if it never can."""
    releases, request, leaf = intervals.releases, state.kinds.request, state.nodes.top.shape[0] // 2 + n
    needed = 0  # for all amounts
    for d in range(request.shape[1]):
        free, k = state.nodes.top[leaf, d], 0
        while free < request[kind, d]:
            if k == releases.parts[n]:
                return NEVER
            free += request[releases.kind_on[n, k], d]
            k += 1
        needed = max(needed, k)
    return int(needed)
