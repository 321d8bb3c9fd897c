"""Keys of waiting jobs: the negative priority, so that the smallest key comes first and ties go to the lower row.

The float64 operations stand in the order in which the caller counts priorities; nothing is factored out or looked up instead.
"""

from __future__ import annotations

import math

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.state import (
    AFFINE,
    BACKLOG,
    CUBIC,
    FRONT,
    LINEAR,
    TIME,
    Order,
    Rules,
)
from poolwise.units import HORIZON, NEVER

MARGIN = 1e-12
"""Lead, as a part of the sizes that are compared, under which rounding (some 1e-15 of them) might decide."""


@step
def key(job: int, time: int, order: Order) -> float:
    """Key of a waiting job at a time; the one stored where it never changes or was given."""
    if order.kind == LINEAR:
        return -float((time - order.submit[job]) / 1_000_000_000 / order.pace[job] * order.weight[job])
    if order.kind == CUBIC:
        x = (time - order.submit[job]) / 1_000_000_000 / order.pace[job]
        return -float(x * x * x * order.weight[job])
    if order.kind == AFFINE:
        return -float(order.offset[job] + (time - order.submit[job]) / 1_000_000_000 * order.weight[job])
    return float(order.key[job])


@step
def comes_before(a: int, b: int, time: int, order: Order) -> bool:
    """Whether job a comes before job b at a time.

    Where the waits times the rates differ by more than rounding can hide, they say it and spare the divisions.
    """
    if order.kind == LINEAR or order.kind == CUBIC:
        value_a, value_b = (time - order.submit[a]) * order.rate[a], (time - order.submit[b]) * order.rate[b]
        lead = value_a - value_b
        if abs(lead) > MARGIN * (abs(value_a) + abs(value_b)):
            return bool(lead > 0)
    key_a, key_b = key(a, time, order), key(b, time, order)
    return key_a < key_b or (key_a == key_b and a < b)


@step
def lasts(a: int, b: int, time: int, order: Order) -> int:
    """Time (ns) until which job a, which comes before job b now, surely still does.

    The waits times the rates are lines, from the offsets on where there are some; a is ahead by more than the margin as long
    as o_a + (t - s_a) * r_a - o_b - (t - s_b) * r_b - margin * (|o_a| + |o_b| + (t - s_a) * |r_a| + (t - s_b) * |r_b|) > 0,
    which is linear in t, since waits are not negative. The margin is taken off each part by its size, whatever its sign.
    """
    if order.kind != LINEAR and order.kind != CUBIC and order.kind != AFFINE:
        return NEVER
    rate_a, rate_b = order.rate[a], order.rate[b]
    if rate_a == 0 and rate_b == 0:
        return NEVER  # neither ever changes: who is first now stays it
    column = order.offset if order.kind == AFFINE else order.pace
    if order.submit[a] == order.submit[b] and column[a] == column[b] and order.weight[a] == order.weight[b]:
        return NEVER  # the same bits at any time: the row decides
    slow_a, fast_b = rate_a - MARGIN * abs(rate_a), rate_b + MARGIN * abs(rate_b)
    lead = (time - order.submit[a]) * slow_a - (time - order.submit[b]) * fast_b
    if order.kind == AFFINE:
        offset_a, offset_b = order.offset[a], order.offset[b]
        lead += (offset_a - MARGIN * abs(offset_a)) - (offset_b + MARGIN * abs(offset_b))
    if lead <= 0.0:
        return time
    if slow_a >= fast_b:
        return NEVER
    ahead = lead / (fast_b - slow_a) * (1 - 1e-9) - 1.0
    if ahead > 0.99 * (NEVER - time):  # beyond the horizon
        return NEVER
    return time + max(int(ahead), 0)


@step
def front(rules: Rules, now: IntArray) -> int:
    """Time (ns) by which jobs were submitted that have waited for longer than the cap: `interfaces.capped.cap`."""
    age = int(min(rules.backlogs * (now[BACKLOG] / rules.nodes) * 1_000_000_000, float(HORIZON)))
    return int(now[TIME] - min(rules.patience + age, HORIZON))


@inlined
def key_in_front(job: int, order: Order, now: IntArray) -> float:
    """Key of a waiting job now; the least of all where it has waited for longer than the cap."""
    return -math.inf if order.submit[job] <= now[FRONT] else key(job, now[TIME], order)


@inlined
def precedes(a: int, b: int, by: int, time: int, order: Order) -> bool:
    """Whether job a comes before job b at a time; those that were submitted by a time `by` are in front, in that order."""
    return bool(a < b) if order.submit[min(a, b)] <= by else comes_before(a, b, time, order)
