"""Times of schedulers that run at intervals."""

from __future__ import annotations

from poolwise.kernels.common.state import IntervalRules
from poolwise.kernels.jit import inlined
from poolwise.units import NEVER


@inlined
def next_multiple(after: int, first: int, step: int) -> int:
    """Return the first instant (ns) after another that is a multiple of `step` away from `first`; NEVER if `step` is 0."""
    return int(((after - first) // step + 1) * step + first if step > 0 else NEVER)


@inlined
def next_pass(time: int, rules: IntervalRules) -> int:
    """Return the time (ns) of the next pass of either scheduler after a time (ns)."""
    return min(next_multiple(time, rules.begun, rules.interval), next_multiple(time, rules.looked, rules.every))


@inlined
def runs_main(time: int, rules: IntervalRules) -> bool:
    """Return whether the main scheduler runs in a pass at a time (ns)."""
    return bool(rules.every == 0 or next_multiple(time - 1, rules.looked, rules.every) == time)


@inlined
def runs_backfill(time: int, rules: IntervalRules) -> bool:
    """Return whether a backfill pass runs at a time (ns)."""
    return bool(next_multiple(time - 1, rules.begun, rules.interval) == time)
