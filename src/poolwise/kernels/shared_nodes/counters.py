"""Consumable counters: a job uses amounts of some counters while it runs, and is admitted to a pass if they are free.

The admitted jobs of a pass only change once a start bars another of them: the pass then begins again without the barred ones.
Without counters, every job is admitted.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.state import CounterArrays, SharedState


@inlined
def has_counters(counters: CounterArrays) -> bool:
    """Return whether there are any counters."""
    return bool(counters.capacity.size > 0)


@inlined
def admits(job: int, counters: CounterArrays) -> bool:
    """Return whether the amounts that a job uses are free."""
    for k in range(counters.first[job], counters.first[job + 1]):
        counter = counters.counter[k]
        if counters.amount[k] > counters.capacity[counter] - counters.use[counter]:
            return False
    return True


@step
def admit_jobs(state: SharedState, counters: CounterArrays) -> None:
    """Write which waiting jobs are admitted, and the largest amounts that the admitted jobs use."""
    for counter in range(counters.largest.size):
        counters.largest[counter] = 0
    for k in range(state.now.waiting):
        job = state.queue.job[k]
        counters.admitted[job] = admits(job, counters)
        if counters.admitted[job]:
            for demand in range(counters.first[job], counters.first[job + 1]):
                counter = counters.counter[demand]
                counters.largest[counter] = max(counters.largest[counter], counters.amount[demand])


@inlined
def use(job: int, counters: CounterArrays) -> None:
    """Add the amounts of a job that has started to the amounts in use."""
    for k in range(counters.first[job], counters.first[job + 1]):
        counters.use[counters.counter[k]] += counters.amount[k]


@step
def take(job: int, state: SharedState, counters: CounterArrays) -> bool:
    """Add a started job's amounts to those in use, as `use` does; return whether this bars a waiting job that was admitted."""
    use(job, counters)
    may_bar = False
    for k in range(counters.first[job], counters.first[job + 1]):
        counter = counters.counter[k]
        may_bar = may_bar or counters.largest[counter] > counters.capacity[counter] - counters.use[counter]
    if may_bar:
        for k in range(state.now.waiting):
            other = state.queue.job[k]
            if counters.admitted[other] and not admits(other, counters):
                return True
    return False


@step
def give_back(job: int, counters: CounterArrays) -> None:
    """Return the amounts of a job whose run ends."""
    for k in range(counters.first[job], counters.first[job + 1]):
        counters.use[counters.counter[k]] -= counters.amount[k]
