"""Times of schedulers that run at intervals, and of the plans of their backfill passes."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.state import IntervalRules, Now
from poolwise.kernels.jit import inlined, step
from poolwise.quantities import HORIZON, NEVER, SECOND

PRECISION = 30 * SECOND
"""First period in which ends of runs are grouped."""


@inlined
def next_multiple(after: int, first: int, step: int) -> int:
    """Return the first instant (ns) after `after` that is a multiple of `step` away from `first`; NEVER if `step` is 0."""
    return int(((after - first) // step + 1) * step + first if step > 0 else NEVER)


@inlined
def next_pass(time: int, rules: IntervalRules) -> int:
    """Return the time (ns) of the next pass of either scheduler after a time (ns)."""
    full = next_multiple(time, rules.looked, rules.full_pass) if rules.every == 0 else NEVER
    return min(next_multiple(time, rules.begun, rules.interval), next_multiple(time, rules.looked, rules.every), full)


@inlined
def runs_main(time: int, rules: IntervalRules) -> bool:
    """Return whether the main scheduler runs in a pass at a time (ns)."""
    return bool(rules.every == 0 or next_multiple(time - 1, rules.looked, rules.every) == time)


@inlined
def considered(time: int, rules: IntervalRules) -> int:
    """Return the number of jobs that a pass of the main scheduler at a time (ns) considers."""
    since = time - max(rules.every, 1)
    return int(NEVER if next_multiple(since, rules.looked, rules.full_pass) <= time else rules.considered)


@inlined
def runs_backfill(time: int, rules: IntervalRules) -> bool:
    """Return whether a backfill pass runs at a time (ns)."""
    return bool(next_multiple(time - 1, rules.begun, rules.interval) == time)


@inlined
def second(now: Now) -> int:
    """Return now (ns), rounded down to a whole second."""
    return int(now.time // SECOND * SECOND)


@inlined
def limit_end(begin: int, limit: int) -> int:
    """Return the end (ns) of a time limit."""
    return int(begin + min(limit, HORIZON - begin))


@inlined
def add_times(a: int, b: int) -> int:
    """Return the sum of two times (ns), at most NEVER."""
    return int(a + b if a <= NEVER - b else NEVER)


@step
def count_by(time: int, times: IntArray, count: int) -> int:
    """Return how many of the first `count` ascending times (ns) are at most a given time."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def last_begun(time: int, begins: IntArray, count: int) -> int:
    """Return the last of `count` segments that begins by a time (ns), at least the first one."""
    return max(count_by(time, begins, count) - 1, 0)
