"""Queue of waiting jobs, and a tree over it if only one job blocks others; computed keys rebuild the tree in each pass."""

from __future__ import annotations

from poolwise.kernels.common.events import dequeue, enqueue
from poolwise.kernels.common.state import CALLBACK, CONSERVATIVE
from poolwise.kernels.common.tournament import clear, insert, remove
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.state import SharedState


@inlined
def keeps_tree(state: SharedState) -> bool:
    """Return whether the tree holds the queue between passes."""
    return bool(state.order.kind != CALLBACK and uses_tree(state))


@inlined
def uses_tree(state: SharedState) -> bool:
    """Return whether passes search a tree of the waiting jobs."""
    return bool(state.rules.backfill < CONSERVATIVE)  # NONE, EASY or EASY_NO_EXTRA with one head


@inlined
def join(job: int, state: SharedState) -> None:
    """Add a job to the queue."""
    now = state.now
    enqueue(job, state.queue, now)
    if keeps_tree(state) and not now.warm:
        insert(job, now.time, state.order, state.tree)


@inlined
def leave(job: int, state: SharedState) -> None:
    """Remove a job from the queue."""
    now = state.now
    if uses_tree(state):
        remove(job, now.time, state.order, state.tree)
    dequeue(job, state.queue, now)


@step
def rebuild_tree(state: SharedState) -> None:
    """Rebuild the tree of all waiting jobs."""
    tree, now = state.tree, state.now
    clear(tree)
    for k in range(now.waiting):
        insert(state.queue.job[k], now.time, state.order, tree)
    now.settled = 0
