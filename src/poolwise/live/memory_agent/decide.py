"""Which workload gets how much local memory: a pure function of what is known of each.

All use the same share of their tolerance, the smallest share that fits; who would gain nothing by more is left at what it
needs, and the others share what remains in the same way (lexicographic max-min fairness). Limits stay as they are while
everybody is within its tolerance, so that constant load means constant limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    curve: SlowdownCurve
    tolerance: float
    held: int
    limit: int | None
    slowdown: float
    least_share: float = 0.25
    most: int | None = None

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
        """Least bytes with which it is believed to use at most that share of its tolerance."""
        found = self.curve.needed(level * max(self.tolerance, LEAST_TOLERANCE))
        if found >= self.curve.total:
            return self.room
        return min(max(found, int(self.least_share * self.curve.total)), self.room)

    def expected(self, local: int) -> float:
        """Share of its tolerance that it is believed to use with so many bytes."""
        return self.curve.at(local) / max(self.tolerance, LEAST_TOLERANCE)


def decide_limits(memory: int, swap_free: int, workloads: Sequence[ObservedWorkload]) -> list[int] | None:
    """Limits in bytes whose sum is at most `memory`; None to leave them as they are.

    Parameters
    ----------
    memory
        Bytes of local memory for all of them.
    swap_free
        Bytes of swap that nobody uses.

    Memory moves where a limit is missing or too much is given out, where somebody is beyond its tolerance and the move is
    believed to help, and where somebody can have more without anybody giving. Moves for which swap is too small are made as
    far as it reaches.
    """
    if not workloads:
        return None
    wanted = [limit // PAGE * PAGE for limit in fair_limits(memory, workloads)]
    now = [one.held if one.limit is None else one.limit for one in workloads]
    if any(one.limit is None for one in workloads) or sum(now) > memory:
        return wanted
    if not (_violation_falls(workloads, wanted) or _costs_nobody(workloads, wanted)):
        return None
    return _within_swap(swap_free, workloads, now, wanted)


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
    """Add what is left: first what they could use, in proportion, then the same for all who may have more."""
    missing = [max(0, one.room - has) for one, has in zip(workloads, given, strict=True)]
    free = memory - sum(given)
    part = min(1.0, max(free, 0) / max(1, sum(missing)))
    found = [has + int(part * more) for has, more in zip(given, missing, strict=True)]
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


def _costs_nobody(workloads: Sequence[ObservedWorkload], wanted: Sequence[int]) -> bool:
    """Whether somebody can have more without anybody giving what it holds."""
    changes = []
    for one, limit in zip(workloads, wanted, strict=True):
        before = min(one.limit or 0, one.room)
        changes.append((min(limit, one.room) - before, one.curve.step))
    return all(change > -step for change, step in changes) and any(change >= step for change, step in changes)


def _within_swap(
    swap_free: int, workloads: Sequence[ObservedWorkload], now: Sequence[int], wanted: Sequence[int]
) -> list[int] | None:
    """Go as far towards what is wanted as swap has room for what must go there."""
    goes = sum(max(0, one.held - limit) for one, limit in zip(workloads, wanted, strict=True))
    room = int(_SWAP_KEPT * swap_free)
    if goes <= room:
        return list(wanted)
    if not room:
        return None
    part = room / goes
    return [int(before + part * (after - before)) // PAGE * PAGE for before, after in zip(now, wanted, strict=True)]
