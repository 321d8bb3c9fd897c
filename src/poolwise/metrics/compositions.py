"""Invariants of composed devices, checked against a recorded schedule alone.

Source: specs of the NVMe composition, "Infrastructure": a composition belongs to one node, two compositions never share a
device, the devices of a composition come from one place, and the bandwidth of a fabric is never exceeded.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from poolwise.model import Kind, Schedule


def composition_faults(schedule: Schedule) -> list[str]:
    """Return one sentence per violated invariant, in order of time; the list is empty for a valid schedule."""
    machine = schedule.machine
    capacity = machine.capacity.astype(np.int64)
    used = np.zeros_like(capacity)
    holders: dict[int, Counter[tuple[tuple[int, ...], int]]] = {}  # device -> number of runs per (composition, node)
    faults: list[str] = []
    nodes, all_devices = (set(machine.of_kind(kind).tolist()) for kind in (Kind.NODE, Kind.DEVICE))
    rows = [schedule.placement_of(run) for run in range(schedule.n_run)]
    events = [(int(schedule.end[k]), 0, k) for k in range(schedule.n_run)]
    events += [(int(schedule.start[k]), 1, k) for k in range(schedule.n_run)]
    for time, starts, run in sorted(events):
        node = next((o for o, _, _ in rows[run] if o in nodes), -1)
        devices = tuple(sorted(all_devices.intersection(o for o, _, _ in rows[run])))
        for owner, resource, amount in rows[run]:
            used[owner, resource] += amount if starts else -amount
            if used[owner, resource] > capacity[owner, resource]:
                faults.append(f"{machine.owners[owner]} exceeds its capacity of {machine.resources[resource]} at {time} ns")
        for device in devices:
            held = holders.setdefault(device, Counter())
            held[devices, node] += 1 if starts else -1
            held += Counter()  # drops entries that have reached 0
            holders[device] = held
            if len(held) > 1:
                faults.append(f"{machine.owners[device]} is in {len(held)} compositions or on several nodes at {time} ns")
        if starts and devices:
            faults += _place_faults(schedule, devices, node, holders, time)
    if used.any():
        faults.append("some resources are not released at the end")
    return faults


def _place_faults(
    schedule: Schedule,
    devices: tuple[int, ...],
    node: int,
    holders: dict[int, Counter[tuple[tuple[int, ...], int]]],
    time: int,
) -> list[str]:
    machine, faults = schedule.machine, []
    homes = {int(machine.home[d]) for d in devices}
    places = {(home, int(machine.rack[d]) if home < 0 else -1) for d in devices for home in [int(machine.home[d])]}
    if len(places) > 1:
        faults.append(f"a composition combines devices of several locations at {time} ns")
    if homes != {-1} and homes != {node}:
        faults.append(f"a device inside a node is attached to another node at {time} ns")
    bandwidth = machine.resource("bandwidth")
    for pool in machine.of_kind(Kind.POOL).tolist():
        limit = int(machine.capacity[pool, bandwidth])
        mine = [d for d in holders if holders[d] and machine.home[d] < 0 and machine.rack[d] == machine.rack[pool]]
        if limit and sum(int(machine.capacity[d, bandwidth]) for d in mine) > limit:
            faults.append(f"the bandwidth of fabric {machine.owners[pool]} is exceeded at {time} ns")
    return faults
