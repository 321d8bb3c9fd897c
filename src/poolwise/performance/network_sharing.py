"""Network-sharing model: links shared max-min fairly by runs that fetch data or hold resources elsewhere.

Source: accelerator spec ("max-min fair sharing of links") and flow-placement spec (network load).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, Placement, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.routes import Route, routes
from poolwise.registry import register


@register("models", "network_sharing")
@dataclass(frozen=True)
class NetworkSharing(SimpleModel):
    """Slowdown of a run's slowest flow, demand / share - 1, if all flows share the links by max-min fairness.

    Each pool or device that a task holds elsewhere adds a flow, which crosses every link of the path to it. A task requests
    `bandwidth` (MB/s) at reference speed, split evenly over these flows; links have "bandwidth" (MB/s). While a run fetches,
    its only flows are those of the fetch.

    The share of a flow may change with any flow in the same connected network, since a neighbor that is throttled elsewhere
    leaves more bandwidth. A run with flows therefore depends on all links that it could reach.
    """

    def fetch_slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown of the slowest flow.

        Raises InputError if a link on the path has no bandwidth.
        """
        return _slowdowns(snapshot).get(run.id, 0.0)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown of the slowest flow; 0 for a run without flows, or while it fetches.

        Raises InputError if a link on the path has no bandwidth.
        """
        return 0.0 if run.fetch is not None else _slowdowns(snapshot).get(run.id, 0.0)

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return all links of the connected network, if the placement has any flow."""
        fabric = snapshot.machine.fabric
        flows = routes(placement, snapshot.machine)
        if fabric is None or not flows:
            return ()
        links = {k for route in flows for k in fabric.connected(route.remote)}
        return tuple(sorted(fabric.link_owners(sorted(links))))


_Known = dict[int, tuple[Placement, list[Route]]]


@dataclass(frozen=True, slots=True)
class _Shares:
    """Shares of all runs in one arrangement: a key (arrangement, bytes of link capacities), and routes and slowdowns by run."""

    key: tuple[int, bytes]
    known: _Known
    slowdown: dict[int, float]


_latest: list[_Shares] = []  # at most one: a platform evaluates all runs of one arrangement in a row


def _slowdowns(snapshot: Snapshot) -> dict[int, float]:
    """Return the slowdown of every run with flows, by run number."""
    machine, arrangement = snapshot.machine, snapshot.arrangement
    if machine.fabric is None:
        return {}
    capacity = snapshot.capacity[machine.fabric.link, machine.resource("bandwidth")]
    if arrangement is None:
        return _share(snapshot, capacity, {})[1]
    key = (arrangement, capacity.tobytes())
    if not (_latest and _latest[0].key == key):
        routes_of_runs, slowdown = _share(snapshot, capacity, _latest[0].known if _latest else {})
        _latest[:] = [_Shares(key, routes_of_runs, slowdown)]
    return _latest[0].slowdown


def _share(snapshot: Snapshot, capacity: IntArray, before: _Known) -> tuple[_Known, dict[int, float]]:
    """Share the links of `capacity` (n_link,) MB/s among all runs, reusing the routes in `before`."""
    routes_of_runs: _Known = {}
    runs: list[int] = []
    demand: list[float] = []
    paths: list[tuple[int, ...]] = []
    for run in snapshot.runs():
        if run.fetch is not None:
            flows = [(float(run.fetch.bandwidth), path) for path in run.fetch.routes]
        elif requested := snapshot.table.job(run.job).request("bandwidth"):
            placement, routes_of_run = before.get(run.id, (None, []))
            if placement is not run.placement:
                routes_of_run = routes(run.placement, snapshot.machine)
            routes_of_runs[run.id] = run.placement, routes_of_run
            flows = [
                (requested / sum(other.task == route.task for other in routes_of_run), route.links) for route in routes_of_run
            ]
        else:
            continue
        for wanted, path in flows:
            runs.append(run.id)
            demand.append(wanted)
            paths.append(path)
    flow = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    link = np.array([k for path in paths for k in path], dtype=np.int64)
    share = max_min_shares(np.array(demand), capacity.astype(np.float64), flow, link)
    slowdown: dict[int, float] = {}
    for number, wanted, path, got in zip(runs, demand, paths, share.tolist(), strict=True):
        if not got > 0.0:
            problem = f"run {number} requires a link without bandwidth: {', '.join(_names(snapshot.machine, path, capacity))}"
            raise InputError(problem, field="bandwidth", remedy="give the link bandwidth, or place nothing behind it")
        slowdown[number] = max(slowdown.get(number, 0.0), wanted / got - 1.0)
    return routes_of_runs, slowdown


def _names(machine: Machine, path: tuple[int, ...], capacity: IntArray) -> list[str]:
    assert machine.fabric is not None
    return [machine.owners[int(machine.fabric.link[k])] for k in path if capacity[k] <= 0]


def max_min_shares(demand: FloatArray, capacity: FloatArray, flow: IntArray, link: IntArray) -> FloatArray:
    """Return the rates of max-min fair sharing, (n_flow,): no flow can gain unless a flow with no higher rate loses.

    Progressive filling: the rates of all flows rise together; a flow stops when it has its demand or when a link on its path is
    full. Each round fixes at least one flow. Flow `flow[k]` crosses link `link[k]`, (n_hop,); each pair occurs once. Demands
    and capacities (n_link,) are at least 0, in the same unit. A flow that crosses no link gets its demand. Source: Bertsekas,
    Gallager, Data Networks, section 6.5.2.
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
