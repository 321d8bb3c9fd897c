"""Which workload gets how much local memory: a pure function of what is known of each.

All use the same share of their tolerance, the smallest share that fits; who would gain nothing by more is left at what it
needs, and the others share what remains in the same way (lexicographic max-min fairness). Limits stay as they are while
everybody is within its tolerance, so that constant load means constant limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from poolwise.live.memory_agent.curve import SlowdownCurve

PAGE = 4096
LEAST_TOLERANCE = 0.02
"""Slowdown that cannot be told from none: who tolerates nothing is held below it."""
WORTH = 1.1
"""Factor by which the worst violation must fall to be worth moves where not all can be within their tolerances."""
_MOST_LEVEL = 1e4
_HALVINGS = 40
_SWAP_KEPT = 0.9
"""Share of the free swap that may be filled."""


@dataclass(frozen=True)
class ObservedWorkload:
    """A workload at an instant.

    Attributes
    ----------
    curve : what is known of its slowdown
    tolerance : slowdown that it accepts
    held : bytes of local memory that it holds
    limit : bytes that it may hold; None where no limit is set
    slowdown : of now
    least_share : share of its memory that always stays local
    most : bytes above which its limit may not go
    gives : whether it gives all that it is believed to be able to within its tolerance, and no more
    tried : whether it may be given less although nothing is known of it
    """

    curve: SlowdownCurve
    tolerance: float
    held: int
    limit: int | None
    slowdown: float
    least_share: float = 0.25
    most: int | None = None
    gives: bool = False
    tried: bool = False

    @property
    def beyond(self) -> float:
        """Share of its tolerance that it uses; above 1 it is violated."""
        return self.slowdown / max(self.tolerance, LEAST_TOLERANCE)

    @property
    def room(self) -> int:
        """Bytes that it could use, a step more than it would hold, so that it may grow a little unhindered."""
        room = self.curve.total + self.curve.step
        return room if self.most is None else min(room, self.most)

    def needed(self, level: float) -> int:
        """Least bytes with which it is believed to use at most that share of its tolerance; all if nothing is known."""
        level = 1.0 if self.gives else level
        if level <= 1 and self.curve.unknown and not self.tried:
            return self.room
        found = self.curve.needed(level * max(self.tolerance, LEAST_TOLERANCE))
        if found >= self.curve.total:
            return self.room
        return min(max(found, int(self.least_share * self.curve.total)), self.room)

    def expected(self, local: int) -> float:
        """Share of its tolerance that it is believed to use with so many bytes; a step that finds out more counts as within."""
        believed = self.curve.at(local) / max(self.tolerance, LEAST_TOLERANCE)
        return min(believed, 1.0) if local >= self.needed(1.0) else believed


def decide_limits(memory: int, swap_free: int, workloads: Sequence[ObservedWorkload]) -> list[int] | None:
    """Limits in bytes whose sum is at most `memory`; None to leave them as they are.

    Parameters
    ----------
    memory
        Bytes of local memory for all of them.
    swap_free
        Bytes of swap that nobody uses.

    Memory moves where a limit is missing or too much is given out; where somebody is beyond its tolerance, and it is believed
    to help it without pushing others beyond theirs, or much more than it harms; and where somebody can have more without
    anybody giving. Moves for which swap is too small are made as far as it reaches, and not at all where that is not enough
    for `memory`.
    """
    now = [one.held if one.limit is None else one.limit for one in workloads]
    must = sum(now) > memory or any(one.limit is None for one in workloads)
    if not must and all(one.beyond <= 1 and limit >= one.room for one, limit in zip(workloads, now, strict=True)):
        return None
    for wanted in _proposals(memory, workloads, now, must):
        limits = _within_swap(swap_free, workloads, now, [limit // PAGE * PAGE for limit in wanted])
        return limits if sum(limits) <= memory and (must or limits != now) else None
    return None


def _proposals(memory: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], must: bool) -> Iterator[list[int]]:
    """Limits that are worth having, the best first."""
    fair = fair_limits(memory, workloads)
    if must or _violation_falls(workloads, fair):
        yield fair
    if any(one.beyond > 1 for one in workloads):
        for tried in (False, True):
            kept = [replace(one, gives=True, tried=tried) if one.beyond <= 1 else one for one in workloads]
            limits = fair_limits(memory, kept)
            if sum(limits) <= memory and _helps_who_is_beyond(kept, now, limits):
                yield limits
    if _costs_nobody(workloads, fair):
        yield fair


def fair_limits(memory: int, workloads: Sequence[ObservedWorkload]) -> list[int]:
    """Bytes for each, as fair as is believed possible; what nobody is believed to need is headroom, the same for all."""
    given: dict[int, int] = {}
    left = list(range(len(workloads)))
    while left:
        free = memory - sum(given.values())
        level = _least_level(free, [workloads[k] for k in left])
        needs = {k: workloads[k].needed(level) for k in left}
        if level >= _MOST_LEVEL:
            total = max(1, sum(needs.values()))
            given |= {k: min(needs[k], need * free // total) for k, need in needs.items()}
            break
        lower = level * (1 - 1e-3)
        spare = free - sum(needs.values())
        stuck = [k for k in left if level == 0 or workloads[k].needed(lower) - needs[k] > spare]
        stuck = stuck or [max(left, key=lambda k: workloads[k].needed(lower) - needs[k])]
        given |= {k: needs[k] for k in stuck}
        left = [k for k in left if k not in given]
    return _with_headroom(memory, workloads, [given[k] for k in range(len(workloads))])


def _least_level(memory: int, workloads: Sequence[ObservedWorkload]) -> float:
    """Smallest share of their tolerances that all can keep to."""

    def fits(level: float) -> bool:
        return sum(one.needed(level) for one in workloads) <= memory

    if fits(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, high * 2
        if high > _MOST_LEVEL:
            return _MOST_LEVEL
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _with_headroom(memory: int, workloads: Sequence[ObservedWorkload], given: Sequence[int]) -> list[int]:
    """Add what is left: what they could use, in proportion, first for those who need not give; then the same for all."""
    found = list(given)
    for gives in (False, True):
        missing = [max(0, one.room - has) if one.gives == gives else 0 for one, has in zip(workloads, found, strict=True)]
        part = min(1.0, max(memory - sum(found), 0) / max(1, sum(missing)))
        found = [has + int(part * more) for has, more in zip(found, missing, strict=True)]
    order = sorted(range(len(workloads)), key=lambda k: _most(workloads[k]))
    free = memory - sum(found)
    for place, k in enumerate(order):
        more = max(0, min(free // (len(order) - place), _most(workloads[k]) - found[k]))
        found[k] += more
        free -= more
    return found


def _most(one: ObservedWorkload) -> int:
    return 2**62 if one.most is None else one.most


def _violation_falls(workloads: Sequence[ObservedWorkload], wanted: Sequence[int]) -> bool:
    """Whether the worst violation is believed to fall enough, or, where it stays, the next."""
    now = sorted((max(1.0, one.beyond) for one in workloads), reverse=True)
    then = sorted((max(1.0, one.expected(limit)) for one, limit in zip(workloads, wanted, strict=True)), reverse=True)
    for before, after in zip(now, then, strict=True):
        if after * WORTH <= before or (after == 1 < before):
            return True
        if after > before * WORTH:
            return False
    return False


def _helps_who_is_beyond(workloads: Sequence[ObservedWorkload], now: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether those beyond their tolerances get more together, the worst of them no less, and nobody else gets beyond."""
    rows = list(zip(workloads, now, wanted, strict=True))
    worst = max(one.beyond for one in workloads)
    if any(one.expected(limit) > (worst if one.beyond > 1 else 1.0) * (1 + 1e-9) for one, _, limit in rows):
        return False
    return sum(limit - before for one, before, limit in rows if one.beyond > 1) >= min(one.curve.step for one in workloads)


def _costs_nobody(workloads: Sequence[ObservedWorkload], wanted: Sequence[int]) -> bool:
    """Whether somebody can have more without anybody giving what it holds."""
    changes = []
    for one, limit in zip(workloads, wanted, strict=True):
        before = min(one.limit or 0, one.room)
        changes.append((min(limit, one.room) - before, one.curve.step))
    return all(change > -PAGE for change, _ in changes) and any(change >= step for change, step in changes)


def _within_swap(swap_free: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Go as far towards what is wanted as swap has room for what must go there."""
    goes = sum(max(0, one.held - limit) for one, limit in zip(workloads, wanted, strict=True))
    part = min(1.0, _SWAP_KEPT * swap_free / max(goes, 1))
    if part == 1:
        return list(wanted)
    return [int(before + part * (after - before)) // PAGE * PAGE for before, after in zip(now, wanted, strict=True)]
