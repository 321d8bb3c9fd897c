"""Runtime of a job on the nodes chosen for it: equals `performance.remote_memory`, operation by operation."""

from __future__ import annotations

from poolwise.kernels.common.events import stretch
from poolwise.kernels.common.state import MEAN, PAPER
from poolwise.kernels.jit import step
from poolwise.kernels.shared_nodes.state import MEMORY, KindArrays, NodeArrays, SharedState


@step
def runtime(job: int, state: SharedState) -> int:
    """Return the true runtime (ns) on `nodes.chosen` with `nodes.borrow` from pools."""
    jobs = state.jobs
    if jobs.near.size == 0:
        return int(jobs.work[job])
    slow = _slowdown(jobs.kind[job], jobs.near[job], jobs.far[job], state.rules.spread, state.kinds, state.nodes)
    return stretch(jobs.work[job], slow)


@step
def expected(job: int, state: SharedState) -> int:
    """Return the runtime (ns) that the scheduler expects on these nodes."""
    jobs = state.jobs
    if jobs.near.size == 0:
        return int(jobs.expected_work[job])
    slow = _slowdown(
        jobs.kind[job], jobs.believed_near[job], jobs.believed_far[job], state.rules.believed_spread, state.kinds, state.nodes
    )
    return stretch(jobs.expected_work[job], slow)


@step
def _slowdown(kind: int, near: float, far: float, spread: int, kinds: KindArrays, nodes: NodeArrays) -> float:
    """Return the extra time per unit of work: of the worst part, or the mean of all."""
    parts, memory = kinds.parts[kind], kinds.request[kind, MEMORY]
    whole, worst, any_far, any_borrowed = 0.0, 0.0, False, False
    for part in range(parts):
        any_far = any_far or (nodes.borrow[part] > 0 and nodes.distant[nodes.pool_of[nodes.chosen[part]]])
    for part in range(parts):
        borrow = nodes.borrow[part]
        if borrow > 0:
            is_far = any_far if spread == PAPER else nodes.distant[nodes.pool_of[nodes.chosen[part]]]
            slow = (far if is_far else near) * (borrow / memory)
            whole += slow
            if not any_borrowed or slow > worst:
                worst = slow
            any_borrowed = True
    return whole / parts if spread == MEAN else worst
