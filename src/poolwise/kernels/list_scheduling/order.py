"""Keys of waiting jobs: the negative priority, so that the smallest key comes first and ties go to the lower row.

The float64 operations stand in the order of `policies.order.priorities`; nothing is factored out or looked up instead.
"""

from __future__ import annotations

from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.state import CUBIC, LINEAR, NEVER, Order

MARGIN = 1e-12
"""Relative lead under which rounding (some 1e-15) might decide: no certificate is given then."""


@step
def key(job: int, time: int, order: Order) -> float:
    """Key of a waiting job at a time; the one stored where it never changes or was given."""
    if order.kind == LINEAR:
        return -float((time - order.submit[job]) / 1_000_000_000 / order.divisor[job])
    if order.kind == CUBIC:
        x = (time - order.submit[job]) / 1_000_000_000 / order.divisor[job]
        return -float(x * x * x * order.weight[job])
    return float(order.key[job])


@step
def comes_before(a: int, b: int, time: int, order: Order) -> bool:
    """Whether job a comes before job b at a time.

    Where the waits over the slownesses differ by more than rounding can hide, two products say it and spare the divisions.
    """
    if order.kind == LINEAR or order.kind == CUBIC:
        lead_a, lead_b = (time - order.submit[a]) * order.slowness[b], (time - order.submit[b]) * order.slowness[a]
        if lead_a > lead_b * (1 + MARGIN):
            return True
        if lead_b > lead_a * (1 + MARGIN):
            return False
    key_a, key_b = key(a, time, order), key(b, time, order)
    return key_a < key_b or (key_a == key_b and a < b)


@step
def lasts(a: int, b: int, time: int, order: Order) -> int:
    """Time (ns) until which job a, which comes before job b now, surely still does.

    The waits divided by the slowness are lines; a is ahead by more than the margin as long as
    (t - s_a) * c_b - (t - s_b) * c_a * (1 + margin) > 0, which is linear in t.
    """
    if order.kind != LINEAR and order.kind != CUBIC:
        return NEVER
    same = order.submit[a] == order.submit[b] and order.divisor[a] == order.divisor[b]
    if same and (order.kind == LINEAR or order.weight[a] == order.weight[b]):
        return NEVER  # the same bits at any time: the row decides
    slow_a, slow_b = order.slowness[a] * (1 + MARGIN), order.slowness[b]
    lead = (time - order.submit[a]) * slow_b - (time - order.submit[b]) * slow_a
    if lead <= 0.0:
        return time
    if slow_b >= slow_a:
        return NEVER
    ahead = lead / (slow_a - slow_b) * (1 - 1e-9) - 1.0
    if ahead > 4e18:
        return NEVER
    return time + max(int(ahead), 0)
