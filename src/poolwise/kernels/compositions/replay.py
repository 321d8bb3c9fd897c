"""Event loop: all ends of an instant, its arrivals, then one pass over the waiting jobs in queue order."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.compositions.choose import choose_placement
from poolwise.kernels.compositions.progress import adjust_sharers, end_with, pace_on, set_pace
from poolwise.kernels.compositions.state import DONE, LATE, CompositionState
from poolwise.kernels.jit import entry, step
from poolwise.quantities import HORIZON, NEVER


@entry
def replay_compositions(state: CompositionState) -> int:
    """Run until no event is left (DONE) or the clock is beyond `HORIZON` (LATE)."""
    jobs, runs, now = state.jobs, state.runs, state.now
    while True:
        time = jobs.submit[now.next] if now.next < jobs.submit.size else NEVER
        for k in range(now.running):
            time = min(time, runs.end[runs.active[k]])
        if time == NEVER:
            return DONE
        if time > HORIZON:
            return LATE
        now.time = time
        _end_runs(state)
        while now.next < jobs.submit.size and jobs.submit[now.next] == time:
            _join_queue(jobs.rank[now.next], state)
            now.next += 1
        now.passes += 1
        _start_waiting(state)


@step
def _end_runs(state: CompositionState) -> None:
    """End all runs of this instant, and update the pace of those that shared devices with them."""
    runs, now = state.runs, state.now
    k = 0
    while k < now.running:
        run = runs.active[k]
        if runs.end[run] == now.time:
            now.running -= 1
            runs.active[k] = runs.active[now.running]
            now.reopened = 1
            _release(run, state)
            k = 0  # a run that now goes faster may end at this instant too
        else:
            k += 1


@step
def _release(run: int, state: CompositionState) -> None:
    """Release the cores and devices of a run."""
    runs, compositions, devices = state.runs, state.compositions, state.devices
    shape, lead = state.jobs.shape[runs.job[run]], runs.lead[run]
    state.cores[runs.node[run]] += state.shapes.cores[shape]
    if lead < 0:
        return
    row = runs.offset[run] + 1
    for device in range(lead, compositions.lead.size):
        if compositions.lead[device] == lead:
            compositions.bandwidth_left[device] += runs.amount[row]
            compositions.storage_left[device] += runs.amount[row + 1]
            row += 2
    _remove_sharer(run, lead, state)
    compositions.bandwidth[lead] += state.shapes.bandwidth[shape]
    compositions.storage[lead] += state.shapes.storage[shape]
    state.now.bandwidth -= state.shapes.bandwidth[shape]
    state.now.storage -= state.shapes.storage[shape]
    compositions.sharers[lead] -= 1
    compositions.started[lead] -= 1
    if compositions.sharers[lead] > 0:
        adjust_sharers(lead, state)
        return
    devices.free[devices.place[lead]] += compositions.size[lead]
    for device in range(lead, compositions.lead.size):
        if compositions.lead[device] == lead:
            compositions.lead[device] = -1


@step
def _remove_sharer(run: int, lead: int, state: CompositionState) -> None:
    """Remove a run from the list of its composition's sharers."""
    compositions, runs = state.compositions, state.runs
    if compositions.first[lead] == run:
        compositions.first[lead] = runs.next[run]
        return
    before = compositions.first[lead]
    while runs.next[before] != run:
        before = runs.next[before]
    runs.next[before] = runs.next[run]


@step
def _join_queue(rank: int, state: CompositionState) -> None:
    """Insert an arriving job into the queue by its position in the queue order."""
    queue, k = state.queue, state.now.waiting
    while k > 0 and queue[k - 1] > rank:
        queue[k] = queue[k - 1]
        k -= 1
    queue[k] = rank
    state.now.waiting += 1


@step
def _start_waiting(state: CompositionState) -> None:
    """Start all waiting jobs that fit, in queue order."""
    jobs, runs, now, queue, refused = state.jobs, state.runs, state.now, state.queue, state.refused
    if now.reopened == 1:
        _accept_all(refused)
        now.reopened = 0
    for k in range(now.running):
        runs.seen_end[runs.active[k]] = runs.end[runs.active[k]]
    kept = 0
    for k in range(now.waiting):
        job = jobs.by_rank[queue[k]]
        late = jobs.deadline[job] <= now.time
        if refused[2 * jobs.shape[job] + late] == 1 or not _try_start(job, late, state):
            queue[kept] = queue[k]
            kept += 1
    now.waiting = kept
    _commit_starts(state)


@step
def _try_start(job: int, late: bool, state: CompositionState) -> bool:
    """Start a job if it fits; otherwise mark its class as refused, unless it would fit without its deadline."""
    shapes, refused = state.shapes, state.refused
    shape = state.jobs.shape[job]
    if choose_placement(shape, NEVER if late else state.jobs.deadline[job], late, state):
        _start_run(job, shape, state)
        return True
    if late:
        refused[2 * shape + 1] = 1
        return False
    devices = shapes.bandwidth[shape] > 0 or shapes.storage[shape] > 0
    if not devices or not choose_placement(shape, NEVER, False, state):
        refused[2 * shape] = 1
        refused[2 * shape + 1] = 1
    return False


@step
def _accept_all(refused: IntArray) -> None:
    """Mark all classes as possibly fitting."""
    for k in range(refused.size):
        refused[k] = 0


@step
def _start_run(job: int, shape: int, state: CompositionState) -> None:
    """Allocate the chosen node and devices to a job."""
    runs, devices, shapes, now = state.runs, state.devices, state.shapes, state.now
    run, row = now.started, runs.offset[now.started]
    now.started += 1
    runs.active[now.running] = run
    now.running += 1
    runs.job[run], runs.start[run], runs.node[run], runs.lead[run] = job, now.time, now.node, -1
    state.cores[now.node] -= shapes.cores[shape]
    runs.owner[row], runs.resource[row], runs.amount[row] = (
        devices.node_owner[now.node],
        state.rules.cores_column,
        shapes.cores[shape],
    )
    runs.offset[run + 1] = row + 1
    if shapes.bandwidth[shape] > 0 or shapes.storage[shape] > 0:
        _share_devices(run, shape, state)
        _accept_all(state.refused)  # a new composition, or a changed speed of an old one, may suit other jobs


@step
def _share_devices(run: int, shape: int, state: CompositionState) -> None:
    """Let a new run join the chosen composition, or compose the chosen number of free devices for it."""
    compositions, shapes, runs, now = state.compositions, state.shapes, state.runs, state.now
    lead = now.joined if now.joined >= 0 else _compose(shape, state)
    runs.lead[run] = lead
    _reserve(run, lead, shape, state)
    runs.next[run] = compositions.first[lead]
    compositions.first[lead] = run
    compositions.sharers[lead] += 1
    compositions.bandwidth[lead] -= shapes.bandwidth[shape]
    compositions.storage[lead] -= shapes.storage[shape]
    now.bandwidth += shapes.bandwidth[shape]
    now.storage += shapes.storage[shape]
    size, sharers = compositions.size[lead], compositions.sharers[lead]
    sharer = run
    while sharer >= 0:
        if sharer == run or state.rules.changes == 1:
            runs.seen_end[sharer] = end_with(sharer, size, sharers, state)
        sharer = runs.next[sharer]


@step
def _compose(shape: int, state: CompositionState) -> int:
    """Compose the lowest free devices of the chosen location; return the lead."""
    compositions, devices, now = state.compositions, state.devices, state.now
    lead, missing = -1, now.count
    for device in range(devices.place.size):
        if missing > 0 and devices.place[device] == now.place and compositions.lead[device] < 0:
            lead = device if lead < 0 else lead
            compositions.lead[device] = lead
            missing -= 1
    devices.free[now.place] -= now.count
    compositions.node[lead], compositions.size[lead] = now.node, now.count
    compositions.kind[lead] = state.shapes.kind[shape]
    compositions.sharers[lead], compositions.started[lead], compositions.first[lead] = 0, 0, -1
    compositions.bandwidth[lead] = now.count * devices.bandwidth[now.place]
    compositions.storage[lead] = now.count * devices.storage[now.place]
    return lead


@step
def _reserve(run: int, lead: int, shape: int, state: CompositionState) -> None:
    """Record the amounts that a run reserves on each device, lowest first; a run with a sharing table reserves no bandwidth."""
    compositions, runs, shapes, rules = state.compositions, state.runs, state.shapes, state.rules
    row = runs.offset[run + 1]
    bandwidth = shapes.bandwidth[shape] if shapes.most[shape] == 0 else 0
    storage = shapes.storage[shape]
    for device in range(lead, compositions.lead.size):
        if compositions.lead[device] != lead:
            continue
        wide, large = min(bandwidth, compositions.bandwidth_left[device]), min(storage, compositions.storage_left[device])
        compositions.bandwidth_left[device] -= wide
        compositions.storage_left[device] -= large
        bandwidth, storage = bandwidth - wide, storage - large
        owner = state.devices.owner[device]
        runs.owner[row], runs.resource[row], runs.amount[row] = owner, rules.bandwidth_column, wide
        runs.owner[row + 1], runs.resource[row + 1], runs.amount[row + 1] = owner, rules.storage_column, large
        row += 2
    runs.offset[run + 1] = row


@step
def _commit_starts(state: CompositionState) -> None:
    """Set the pace of the runs started in the pass, in their order, then the pace of all runs that share devices with them."""
    jobs, runs, compositions, now = state.jobs, state.runs, state.compositions, state.now
    for run in range(now.committed, now.started):
        shape, lead = jobs.shape[runs.job[run]], runs.lead[run]
        runs.work[run], runs.since[run], runs.pace[run] = float(state.shapes.requested[shape]), now.time, 0.0
        runs.end[run] = now.time + state.shapes.requested[shape]
        if lead >= 0:
            compositions.started[lead] += 1
            set_pace(run, pace_on(shape, compositions.size[lead], compositions.started[lead], state.shapes), now.time, runs)
    for run in range(now.committed, now.started):
        if runs.lead[run] >= 0:
            adjust_sharers(runs.lead[run], state)
            now.reopened = 1
    now.committed = now.started
