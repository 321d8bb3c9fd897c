"""One pass of list scheduling with a head for each of several partitions, without backfilling or with EASY.

A job is a head if it does not fit on the whole machine after the starts in priority order. Each head has a shadow time of its
own, as if it were the only one. A candidate competes with the heads whose partitions contain a node that it may use. It may
start if, for each of them, it ends by the shadow time or leaves the head room then; both depend only on its kind and length.
A window closes some nodes to a job now, and to a head at its shadow time; which jobs compete does not depend on windows.
A pass considers the admitted jobs only; see `counters`. Sources: `policies.backfill.easy`, `policies.placement.avoid_windows`.
"""

from __future__ import annotations

from math import inf

from poolwise.kernels.common import heap
from poolwise.kernels.common.events import window
from poolwise.kernels.common.state import EASY, NONE
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.blocking import line_up, start_in_order, unblock
from poolwise.kernels.shared_nodes.counters import has_counters, take
from poolwise.kernels.shared_nodes.head_state import HeadArrays
from poolwise.kernels.shared_nodes.room import finds_room, place
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import SharedState, WindowArrays
from poolwise.kernels.shared_nodes.timeline import released_until, update_ready
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import kind_now, shadow_time_with_windows
from poolwise.quantities import NEVER


@step
def heads_pass(state: SharedState, windows: WindowArrays, heads: HeadArrays) -> None:
    """Start jobs in priority order, then backfill behind the heads; begin again once a start bars an admitted job."""
    begins_again = True
    while begins_again and state.now.waiting > 0:
        unblock(heads.blocks)
        waiting = line_up(heads.line, heads.counters, state)
        blocking = start_in_order(NEVER, waiting, heads.line, heads.counters, heads.blocks, heads.ahead, windows, inf, state)
        begins_again = blocking < 0
        if blocking > 0 and heads.backfill != NONE:
            begins_again = _starts_behind(blocking, state, windows, heads)


@inlined
def _starts_behind(blocking: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> bool:
    """Backfill behind the heads among jobs that block others; return whether a start bars an admitted job."""
    size = _candidates(state, windows, heads)
    if size == 0:
        return False
    count = 0
    for k in range(blocking):
        head = heads.blocks.head[k]
        if not finds_room(kind_now(head, state, windows), state):
            _reserve(head, count, state, windows, heads)
            count += 1
    heads.round[0] += 1
    _write_shortest(count, state, windows, heads)
    return _any_starts(size, count, state, windows, heads) and _backfill(size, count, state, windows, heads)


@inlined
def _candidates(state: SharedState, windows: WindowArrays, heads: HeadArrays) -> int:
    """Write the admitted jobs that fit now to `heads.line`; return how many there are. Heads do not fit."""
    size, counts = 0, has_counters(heads.counters)
    for k in range(state.now.waiting):
        job = state.queue.job[k]
        if (not counts or heads.counters.admitted[job]) and finds_room(kind_now(job, state, windows), state):
            heads.line[size] = job
            size += 1
    return size


@inlined
def _reserve(head: int, k: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> None:
    """Find the shadow time of job `head`, the k-th head, and the nodes that hold a part of it by then and are open to it."""
    timeline, nodes, now, kind = state.timeline, state.nodes, state.now, state.jobs.kind[head]
    update_ready(kind, state)
    shadow_time_with_windows(head, state, windows)
    shadow, leaves, holding = now.shadow, nodes.top.shape[0] // 2, 0
    within = state.kinds.eligible[kind + timeline.closed[now.counted]]
    for n in range(nodes.rack.size):
        ready = timeline.ready[leaves + n]  # nodes without an exact time hold a part later than the shadow time
        heads.holds[k, n] = timeline.exact[n] and nodes.open[within, leaves + n] and ready <= shadow and ready < NEVER
        holding += int(heads.holds[k, n])
    heads.kind[k], heads.shadow[k], heads.holding[k] = kind, shadow, holding
    heads.window[k] = window(now)


@inlined
def _write_shortest(count: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> None:
    """For each set of nodes, write how long a job may run if it must end by the shadow times of all competing heads."""
    for of in range(heads.shortest.size):
        heads.shortest[of] = NEVER
        for k in range(count):
            if heads.competes[of, _set_of(heads.kind[k], state, windows)]:
                heads.shortest[of] = min(heads.shortest[of], heads.window[k])


@inlined
def _set_of(kind: int, state: SharedState, windows: WindowArrays) -> int:
    """Return the number of a kind's set of nodes, regardless of the groups closed to it."""
    return int(state.kinds.eligible[kind] >> windows.coming.shape[1])


@inlined
def _any_starts(size: int, count: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> bool:
    """Return whether any candidate may start on the machine as it is now; if not, none starts in this pass."""
    for k in range(size):  # noqa: SIM110  # a loop is what compiles
        if _may_start(heads.line[k], count, state, windows, heads):
            return True
    return False


@inlined
def _backfill(size: int, count: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> bool:
    """Test the candidates by priority, each at its turn; return whether a start bars an admitted job, which ends the pass."""
    line = heads.line
    heap.arrange(line, size, state.order.key)
    while size > 0:
        job = heap.pop(line, size, state.order.key)
        size -= 1
        if _may_start(job, count, state, windows, heads):
            kind = kind_now(job, state, windows)
            place(kind, state)
            _subtract(job, kind, count, state, heads)
            start(job, state)
            leave(job, state)
            heads.round[0] += 1
            if take(job, state, heads.counters):
                return True
    return False


@step
def _may_start(job: int, count: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> bool:
    """Return whether a job fits now and delays no head with which it competes."""
    kind, length = kind_now(job, state, windows), state.jobs.length[job]
    if not finds_room(kind, state):
        return False
    if length <= heads.shortest[_set_of(kind, state, windows)]:
        return True
    return bool(heads.backfill == EASY and length <= _limit(kind, count, state, windows, heads))


@step
def _limit(kind: int, count: int, state: SharedState, windows: WindowArrays, heads: HeadArrays) -> int:
    """Return how long a job of a kind that fits may run without delaying any head; cached per kind until a start."""
    if heads.limit_at[kind] != heads.round[0]:
        of, limit = _set_of(kind, state, windows), NEVER
        place(kind, state)
        for k in range(count):
            head = heads.kind[k]
            if heads.window[k] >= limit or not heads.competes[of, _set_of(head, state, windows)]:
                continue
            if heads.holding[k] - _count_lost(kind, k, state, heads) < state.kinds.parts[head]:
                limit = heads.window[k]
        heads.limit[kind], heads.limit_at[kind] = limit, heads.round[0]
    return int(heads.limit[kind])


@step
def _count_lost(kind: int, k: int, state: SharedState, heads: HeadArrays) -> int:
    """Count the chosen nodes that hold a part of a head at its shadow time, but not together with a part of a kind."""
    lost = 0
    for part in range(state.kinds.parts[kind]):
        lost += int(_is_lost(state.nodes.chosen[part], kind, k, state, heads))
    return lost


@inlined
def _is_lost(n: int, kind: int, k: int, state: SharedState, heads: HeadArrays) -> bool:
    """Return whether a node holds a part of a head at its shadow time, but not together with a part of a kind."""
    kinds, nodes, head = state.kinds, state.nodes, heads.kind[k]
    if not heads.holds[k, n]:
        return False
    for d in range(nodes.top.shape[1]):
        short = kinds.request[head, d] + kinds.request[kind, d] - nodes.top[nodes.top.shape[0] // 2 + n, d]
        if short > 0 and released_until(n, d, heads.shadow[k], kinds, state.timeline, state.now) < short:
            return True
    return False


@inlined
def _subtract(job: int, kind: int, count: int, state: SharedState, heads: HeadArrays) -> None:
    """For each head whose shadow time precedes the end of a starting job, remove the nodes that it loses to the job."""
    for k in range(count):
        if state.jobs.length[job] <= heads.window[k]:
            continue
        for part in range(state.kinds.parts[kind]):
            n = state.nodes.chosen[part]
            if _is_lost(n, kind, k, state, heads):
                heads.holds[k, n] = False
                heads.holding[k] -= 1
