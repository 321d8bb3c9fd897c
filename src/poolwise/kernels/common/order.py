"""Keys of waiting jobs: the negative priority, so that the smallest key comes first and ties go to the lower row.

The float64 operations follow the order in which the policies compute priorities; none is factored out or tabulated.
"""

from __future__ import annotations

from poolwise.kernels.common.state import AFFINE, CUBIC, LINEAR, Order
from poolwise.kernels.jit import inlined, step
from poolwise.quantities import NEVER

MARGIN = 1e-12
"""Relative difference below which rounding errors (about 1e-15) might decide a comparison."""


@step
def key(job: int, time: int, order: Order) -> float:
    """Return the key of a waiting job at a time; the stored one if it is constant or was computed by the policy."""
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
    """Return whether job a comes before job b at a time.

    The products of wait and rate decide if they differ by more than rounding errors, which avoids the divisions.
    """
    if order.kind == LINEAR or order.kind == CUBIC:
        value_a, value_b = (time - order.submit[a]) * order.rate[a], (time - order.submit[b]) * order.rate[b]
        lead = value_a - value_b
        if abs(lead) > MARGIN * (abs(value_a) + abs(value_b)):
            return bool(lead > 0)
    key_a, key_b = key(a, time, order), key(b, time, order)
    return key_a < key_b or (key_a == key_b and a < b)


@step
def precedes_until(a: int, b: int, time: int, order: Order) -> int:
    """Return a time (ns) until which job a, which now precedes job b, certainly still precedes it.

    The product of wait and rate, plus the offset if there is one, is linear in time. Job a leads by more than the margin while
    o_a + (t - s_a) * r_a - o_b - (t - s_b) * r_b - margin * (|o_a| + |o_b| + (t - s_a) * |r_a| + (t - s_b) * |r_b|) > 0, which
    is linear in t, since waits are not negative. The margin of each term is subtracted in proportion to the size of the term,
    regardless of its sign.
    """
    if order.kind != LINEAR and order.kind != CUBIC and order.kind != AFFINE:
        return NEVER
    rate_a, rate_b = order.rate[a], order.rate[b]
    if rate_a == 0 and rate_b == 0:
        return NEVER  # constant priorities: the order does not change
    column = order.offset if order.kind == AFFINE else order.pace
    if order.submit[a] == order.submit[b] and column[a] == column[b] and order.weight[a] == order.weight[b]:
        return NEVER  # the keys have equal bits at any time: the row decides
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


@inlined
def precedes(a: int, b: int, by: int, time: int, order: Order) -> bool:
    """Return whether job a comes before job b at a time; jobs submitted by the time `by` come first, in submit order."""
    return bool(a < b) if order.submit[min(a, b)] <= by else comes_before(a, b, time, order)
