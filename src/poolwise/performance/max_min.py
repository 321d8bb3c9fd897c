"""Max-min fair shares of links, on arrays."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray, IntArray


def max_min_shares(demand: FloatArray, capacity: FloatArray, flow: IntArray, link: IntArray) -> FloatArray:
    """Share links max-min fairly: no flow can gain without a loss for a flow that has no more.

    Progressive filling: the rates of all flows rise together; a flow stops when it has its demand or when a link on its path
    is full. Each round fixes at least one flow.

    Parameters
    ----------
    demand
        (n_flow,) the most a flow can use, > 0.
    capacity
        (n_link,) of each link, >= 0, in the unit of the demands.
    flow, link
        (n_hop,) flow `flow[k]` crosses link `link[k]`; each pair once. A flow that crosses no link gets its demand.

    Returns
    -------
    (n_flow,) rates.

    Source: Bertsekas, Gallager, Data Networks, section 6.5.2.
    """
    rate = np.zeros(len(demand))
    active = np.ones(len(demand), dtype=np.bool_)
    while active.any():
        moving = active[flow]
        used = np.bincount(link, weights=np.where(moving, 0.0, rate[flow]), minlength=len(capacity))
        crossing = np.bincount(link[moving], minlength=len(capacity))
        level = np.full(len(capacity), np.inf)  # rate at which each link is full if all its flows rise together
        np.divide(np.maximum(capacity - used, 0.0), crossing, out=level, where=crossing > 0)
        reach = np.full(len(demand), np.inf)  # rate at which the tightest link of each flow is full
        np.minimum.at(reach, flow, level[link])
        limit = np.minimum(reach, demand)
        fixed = active & (limit <= limit[active].min())
        rate[fixed] = limit[fixed]
        active &= ~fixed
    return rate
