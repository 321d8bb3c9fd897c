"""Keys of waiting jobs: the negative priority, so that the smallest key comes first and ties go to the lower row.

The float64 operations stand in the order in which the caller counts priorities; nothing is factored out or looked up instead.
"""

from __future__ import annotations

from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.state import CUBIC, LINEAR, Order
from poolwise.units import NEVER

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

    The waits times the rates are lines; a is ahead by more than the margin as long as
    (t - s_a) * r_a - (t - s_b) * r_b - margin * ((t - s_a) * |r_a| + (t - s_b) * |r_b|) > 0, which is linear in t, since
    waits are not negative.
    """
    if order.kind != LINEAR and order.kind != CUBIC:
        return NEVER
    rate_a, rate_b = order.rate[a], order.rate[b]
    if rate_a == 0 and rate_b == 0:
        return NEVER  # both are 0 at any time: the row decides
    if order.submit[a] == order.submit[b] and order.pace[a] == order.pace[b] and order.weight[a] == order.weight[b]:
        return NEVER  # the same bits at any time: the row decides
    slow_a, fast_b = rate_a - MARGIN * abs(rate_a), rate_b + MARGIN * abs(rate_b)
    lead = (time - order.submit[a]) * slow_a - (time - order.submit[b]) * fast_b
    if lead <= 0.0:
        return time
    if slow_a >= fast_b:
        return NEVER
    ahead = lead / (fast_b - slow_a) * (1 - 1e-9) - 1.0
    if ahead > 0.99 * (NEVER - time):  # beyond the horizon
        return NEVER
    return time + max(int(ahead), 0)
