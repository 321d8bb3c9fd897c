"""Allocation of local memory to workloads: a pure function of their slowdown curves, tolerances and limits.

All workloads use the same share of their tolerance, the smallest share that fits. Workloads that would not benefit from more
memory get what they need, and the others share the rest by the same rule (lexicographic max-min fairness). Limits do not change
while every workload is within its tolerance, so that constant load means constant limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from poolwise_agents.memory_agent.curve import SlowdownCurve

PAGE = 4096
MIN_TOLERANCE = 0.02  # slowdown that cannot be distinguished from none; smaller tolerances are raised to it
MIN_IMPROVEMENT = 1.1  # factor by which the worst violation must fall to justify moves while some tolerance is violated
_MAX_LEVEL = 1e4
_BISECTION_STEPS = 40
_USABLE_SWAP = 0.9  # share of the free swap that may be filled


@dataclass(frozen=True)
class ObservedWorkload:
    """State of a workload at one instant."""

    curve: SlowdownCurve  # estimated slowdown over local memory
    tolerance: float  # accepted slowdown
    held: int  # local memory in use (bytes)
    limit: int | None  # current limit (bytes), None without one
    slowdown: float  # current slowdown
    least_share: float = 0.25  # share of its memory that always stays local
    max_limit: int | None = None  # largest limit that may be set (bytes), None if unbounded
    donor: bool = False  # whether it gives up all memory that it can spare within its tolerance, and no more
    explored: bool = False  # whether its limit may be lowered although its curve is unknown

    @property
    def tolerance_use(self) -> float:
        """Slowdown as a share of the tolerance; a value above 1 is a violation."""
        return self.slowdown / max(self.tolerance, MIN_TOLERANCE)

    @property
    def usable(self) -> int:
        """Largest useful limit (bytes): its total memory plus one step, so that it can grow a little without a limit."""
        usable = self.curve.total + self.curve.step
        return usable if self.max_limit is None else min(usable, self.max_limit)

    def needed(self, level: float) -> int:
        """Return the estimated bytes that keep its tolerance use at or below `level`; all of them for an unknown curve."""
        level = 1.0 if self.donor else level
        if level <= 1 and self.curve.unknown and not self.explored:
            return self.usable
        found = self.curve.needed(level * max(self.tolerance, MIN_TOLERANCE))
        if found >= self.curve.total:
            return self.usable
        return min(max(found, int(self.least_share * self.curve.total)), self.usable)

    def expected_use(self, local: int) -> float:
        """Return the estimated tolerance use with `local` bytes; an exploratory step counts as within the tolerance."""
        estimate = self.curve.at(local) / max(self.tolerance, MIN_TOLERANCE)
        return min(estimate, 1.0) if local >= self.needed(1.0) else estimate


def decide_limits(memory: int, swap_free: int, workloads: Sequence[ObservedWorkload]) -> list[int] | None:
    """Return new limits (bytes) whose sum is at most `memory`, or None to keep the current ones.

    Limits move in three cases: a limit is missing or the limits exceed `memory`; a workload is beyond its tolerance, and a move
    is expected to help it without pushing others beyond theirs, or to help much more than it harms; a workload can get more
    memory at no cost to others. If the free swap (bytes) is too small for a move, the move is scaled down; if that would exceed
    `memory`, it is dropped.
    """
    now = [one.held if one.limit is None else one.limit for one in workloads]
    must = sum(now) > memory or any(one.limit is None for one in workloads)
    if not must and all(one.tolerance_use <= 1 and limit >= one.usable for one, limit in zip(workloads, now, strict=True)):
        return None
    for proposal in _proposals(memory, workloads, now, must):
        limits = _limited_by_swap(swap_free, workloads, now, [limit // PAGE * PAGE for limit in proposal])
        return limits if sum(limits) <= memory and (must or limits != now) else None
    return None


def _proposals(memory: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], must: bool) -> Iterator[list[int]]:
    """Yield limits that are worth setting, the best first."""
    fair = fair_limits(memory, workloads)
    if must or _reduces_violations(workloads, fair):
        yield fair
    if any(one.tolerance_use > 1 for one in workloads):
        for explored in (False, True):
            donors = [replace(one, donor=True, explored=explored) if one.tolerance_use <= 1 else one for one in workloads]
            limits = fair_limits(memory, donors)
            if sum(limits) <= memory and _helps_violated(donors, now, limits):
                yield limits
    if _is_free_gain(workloads, fair):
        yield fair


def fair_limits(memory: int, workloads: Sequence[ObservedWorkload]) -> list[int]:
    """Return max-min fair limits (bytes); memory that no workload needs becomes headroom, equal for all."""
    given: dict[int, int] = {}
    left = list(range(len(workloads)))
    while left:
        free = memory - sum(given.values())
        level = _min_level(free, [workloads[k] for k in left])
        needs = {k: workloads[k].needed(level) for k in left}
        if level >= _MAX_LEVEL:
            total = max(1, sum(needs.values()))
            given |= {k: min(needs[k], need * free // total) for k, need in needs.items()}
            break
        lower = level * (1 - 1e-3)
        spare = free - sum(needs.values())
        fixed = [k for k in left if level == 0 or workloads[k].needed(lower) - needs[k] > spare]
        fixed = fixed or [max(left, key=lambda k: workloads[k].needed(lower) - needs[k])]
        given |= {k: needs[k] for k in fixed}
        left = [k for k in left if k not in given]
    return _with_headroom(memory, workloads, [given[k] for k in range(len(workloads))])


def _min_level(memory: int, workloads: Sequence[ObservedWorkload]) -> float:
    """Return the smallest common share of the tolerances that fits into memory."""

    def fits(level: float) -> bool:
        return sum(one.needed(level) for one in workloads) <= memory

    if fits(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, high * 2
        if high > _MAX_LEVEL:
            return _MAX_LEVEL
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _with_headroom(memory: int, workloads: Sequence[ObservedWorkload], given: Sequence[int]) -> list[int]:
    """Distribute spare memory: usable memory in proportion, first for workloads that are not donors; then equal headroom."""
    found = list(given)
    for donor in (False, True):
        missing = [max(0, one.usable - has) if one.donor == donor else 0 for one, has in zip(workloads, found, strict=True)]
        part = min(1.0, max(memory - sum(found), 0) / max(1, sum(missing)))
        found = [has + int(part * more) for has, more in zip(found, missing, strict=True)]
    order = sorted(range(len(workloads)), key=lambda k: _max_limit(workloads[k]))
    free = memory - sum(found)
    for place, k in enumerate(order):
        more = max(0, min(free // (len(order) - place), _max_limit(workloads[k]) - found[k]))
        found[k] += more
        free -= more
    return found


def _max_limit(one: ObservedWorkload) -> int:
    return 2**62 if one.max_limit is None else one.max_limit


def _reduces_violations(workloads: Sequence[ObservedWorkload], proposal: Sequence[int]) -> bool:
    """Return whether the worst violation is expected to fall enough, or the next one if the worst is unchanged."""
    now = sorted((max(1.0, one.tolerance_use) for one in workloads), reverse=True)
    then = sorted((max(1.0, one.expected_use(limit)) for one, limit in zip(workloads, proposal, strict=True)), reverse=True)
    for before, after in zip(now, then, strict=True):
        if after * MIN_IMPROVEMENT <= before or (after == 1 < before):
            return True
        if after > before * MIN_IMPROVEMENT:
            return False
    return False


def _helps_violated(workloads: Sequence[ObservedWorkload], now: Sequence[int], proposal: Sequence[int]) -> bool:
    """Return whether violated workloads gain memory in total, the worst violation does not grow, and no other is violated."""
    rows = list(zip(workloads, now, proposal, strict=True))
    worst = max(one.tolerance_use for one in workloads)
    if any(one.expected_use(limit) > (worst if one.tolerance_use > 1 else 1.0) * (1 + 1e-9) for one, _, limit in rows):
        return False
    gain = sum(limit - before for one, before, limit in rows if one.tolerance_use > 1)
    return gain >= min(one.curve.step for one in workloads)


def _is_free_gain(workloads: Sequence[ObservedWorkload], proposal: Sequence[int]) -> bool:
    """Return whether some workload gains usable memory while no other workload gives up memory that it can use."""
    changes = []
    for one, limit in zip(workloads, proposal, strict=True):
        before = min(one.limit or 0, one.usable)
        changes.append((min(limit, one.usable) - before, one.curve.step))
    return all(change > -PAGE for change, _ in changes) and any(change >= step for change, step in changes)


def _limited_by_swap(
    swap_free: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], proposal: Sequence[int]
) -> list[int]:
    """Scale a proposal down if swap cannot hold all memory that must leave."""
    swapped_out = sum(max(0, one.held - limit) for one, limit in zip(workloads, proposal, strict=True))
    part = min(1.0, _USABLE_SWAP * swap_free / max(swapped_out, 1))
    if part == 1:
        return list(proposal)
    return [int(before + part * (after - before)) // PAGE * PAGE for before, after in zip(now, proposal, strict=True)]
