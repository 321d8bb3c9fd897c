"""Allocation of local memory to workloads: a pure function of their slowdown curves, tolerances and limits.

All workloads use the same share of their tolerance, the smallest for which the limits fit into memory. Workloads that would not
benefit from more memory get what they need, and the others share the rest by the same rule (lexicographic max-min fairness).
Limits do not change while every workload is within its tolerance, so that constant load means constant limits.
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
        """Largest useful limit (bytes): the workload's total memory plus one step, so that it can grow a little unhindered."""
        usable = self.curve.total + self.curve.step
        return usable if self.max_limit is None else min(usable, self.max_limit)

    def needed(self, level: float) -> int:
        """Return the estimated bytes that keep the tolerance use at or below `level`; all bytes for an unknown curve."""
        level = 1.0 if self.donor else level
        if level <= 1 and self.curve.unknown and not self.explored:
            return self.usable
        estimated = self.curve.needed(level * max(self.tolerance, MIN_TOLERANCE))
        if estimated >= self.curve.total:
            return self.usable
        return min(max(estimated, int(self.least_share * self.curve.total)), self.usable)

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
    now = [workload.held if workload.limit is None else workload.limit for workload in workloads]
    must = sum(now) > memory or any(workload.limit is None for workload in workloads)
    if not must and all(
        workload.tolerance_use <= 1 and limit >= workload.usable for workload, limit in zip(workloads, now, strict=True)
    ):
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
    if any(workload.tolerance_use > 1 for workload in workloads):
        for explored in (False, True):
            donors = [
                replace(workload, donor=True, explored=explored) if workload.tolerance_use <= 1 else workload
                for workload in workloads
            ]
            limits = fair_limits(memory, donors)
            if sum(limits) <= memory and _helps_violated(donors, now, limits):
                yield limits
    if _is_free_gain(workloads, fair):
        yield fair


def fair_limits(memory: int, workloads: Sequence[ObservedWorkload]) -> list[int]:
    """Return max-min fair limits (bytes); memory that no workload needs becomes headroom, equal for all."""
    limits: dict[int, int] = {}
    left = list(range(len(workloads)))
    while left:
        free = memory - sum(limits.values())
        level = _min_level(free, [workloads[k] for k in left])
        needs = {k: workloads[k].needed(level) for k in left}
        if level >= _MAX_LEVEL:
            total = max(1, sum(needs.values()))
            limits |= {k: min(needs[k], need * free // total) for k, need in needs.items()}
            break
        lower = level * (1 - 1e-3)
        spare = free - sum(needs.values())
        fixed = [k for k in left if level == 0 or workloads[k].needed(lower) - needs[k] > spare]
        fixed = fixed or [max(left, key=lambda k: workloads[k].needed(lower) - needs[k])]
        limits |= {k: needs[k] for k in fixed}
        left = [k for k in left if k not in limits]
    return _with_headroom(memory, workloads, [limits[k] for k in range(len(workloads))])


def _min_level(memory: int, workloads: Sequence[ObservedWorkload]) -> float:
    """Return the smallest common share of the tolerances for which the limits fit into memory."""

    def fits(level: float) -> bool:
        return sum(workload.needed(level) for workload in workloads) <= memory

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


def _with_headroom(memory: int, workloads: Sequence[ObservedWorkload], fair: Sequence[int]) -> list[int]:
    """Distribute spare memory in proportion to usable memory, first to workloads that are not donors; then equally."""
    limits = list(fair)
    for donor in (False, True):
        missing = [
            max(0, workload.usable - has) if workload.donor == donor else 0
            for workload, has in zip(workloads, limits, strict=True)
        ]
        part = min(1.0, max(memory - sum(limits), 0) / max(1, sum(missing)))
        limits = [has + int(part * more) for has, more in zip(limits, missing, strict=True)]
    order = sorted(range(len(workloads)), key=lambda k: _max_limit(workloads[k]))
    free = memory - sum(limits)
    for place, k in enumerate(order):
        more = max(0, min(free // (len(order) - place), _max_limit(workloads[k]) - limits[k]))
        limits[k] += more
        free -= more
    return limits


def _max_limit(workload: ObservedWorkload) -> int:
    return 2**62 if workload.max_limit is None else workload.max_limit


def _reduces_violations(workloads: Sequence[ObservedWorkload], proposal: Sequence[int]) -> bool:
    """Return whether the worst violation is expected to fall enough, or the next worst if the worst is unchanged."""
    now = sorted((max(1.0, workload.tolerance_use) for workload in workloads), reverse=True)
    then = sorted(
        (max(1.0, workload.expected_use(limit)) for workload, limit in zip(workloads, proposal, strict=True)), reverse=True
    )
    for before, after in zip(now, then, strict=True):
        if after * MIN_IMPROVEMENT <= before or (after == 1 < before):
            return True
        if after > before * MIN_IMPROVEMENT:
            return False
    return False


def _helps_violated(workloads: Sequence[ObservedWorkload], now: Sequence[int], proposal: Sequence[int]) -> bool:
    """Return whether violated workloads gain memory in total, while the worst violation does not grow and none is added."""
    rows = list(zip(workloads, now, proposal, strict=True))
    worst = max(workload.tolerance_use for workload in workloads)
    if any(
        workload.expected_use(limit) > (worst if workload.tolerance_use > 1 else 1.0) * (1 + 1e-9)
        for workload, _, limit in rows
    ):
        return False
    gain = sum(limit - before for workload, before, limit in rows if workload.tolerance_use > 1)
    return gain >= min(workload.curve.step for workload in workloads)


def _is_free_gain(workloads: Sequence[ObservedWorkload], proposal: Sequence[int]) -> bool:
    """Return whether some workload gains usable memory while no other workload gives up memory that it can use."""
    changes = []
    for workload, limit in zip(workloads, proposal, strict=True):
        before = min(workload.limit or 0, workload.usable)
        changes.append((min(limit, workload.usable) - before, workload.curve.step))
    return all(change > -PAGE for change, _ in changes) and any(change >= step for change, step in changes)


def _limited_by_swap(
    swap_free: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], proposal: Sequence[int]
) -> list[int]:
    """Scale a proposal down if swap cannot hold all memory that must leave."""
    swapped_out = sum(max(0, workload.held - limit) for workload, limit in zip(workloads, proposal, strict=True))
    part = min(1.0, _USABLE_SWAP * swap_free / max(swapped_out, 1))
    if part == 1:
        return list(proposal)
    return [int(before + part * (after - before)) // PAGE * PAGE for before, after in zip(now, proposal, strict=True)]
