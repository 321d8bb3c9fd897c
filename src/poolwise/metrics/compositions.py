"""What must hold of composed devices in every schedule, checked in its record alone.

Source: specs of the NVMe composition, "Infrastructure": one composition belongs to one node, two compositions never have
a device in common, devices come from one place, a fabric is never exceeded.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from poolwise.model import Kind, Schedule


def composition_faults(schedule: Schedule) -> list[str]:
    """Sentences on what a schedule breaks, empty if nothing; it walks through the starts and ends once."""
    machine = schedule.machine
    capacity = machine.capacity.astype(np.int64)
    used = np.zeros_like(capacity)
    holders: dict[int, Counter[tuple[tuple[int, ...], int]]] = {}  # device -> (composition, node) -> runs
    faults: list[str] = []
    nodes, devices_there = (set(machine.of_kind(kind).tolist()) for kind in (Kind.NODE, Kind.DEVICE))
    rows = [schedule.placement_of(run) for run in range(schedule.n_run)]
    events = [(int(schedule.end[k]), 0, k) for k in range(schedule.n_run)]
    events += [(int(schedule.start[k]), 1, k) for k in range(schedule.n_run)]
    for time, starts, run in sorted(events):
        node = next((o for o, _, _ in rows[run] if o in nodes), -1)
        devices = tuple(sorted(devices_there.intersection(o for o, _, _ in rows[run])))
        for owner, resource, amount in rows[run]:
            used[owner, resource] += amount if starts else -amount
            if used[owner, resource] > capacity[owner, resource]:
                faults.append(f"{machine.owners[owner]} gives more {machine.resources[resource]} than it has at {time} ns")
        for device in devices:
            there = holders.setdefault(device, Counter())
            there[devices, node] += 1 if starts else -1
            there += Counter()  # drops what has come to 0
            holders[device] = there
            if len(there) > 1:
                faults.append(f"{machine.owners[device]} is in {len(there)} compositions or at several nodes at {time} ns")
        if starts and devices:
            faults += _place_faults(schedule, devices, node, holders, time)
    if used.any():
        faults.append("something was not given back at the end")
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
        faults.append(f"devices of several places are composed at {time} ns")
    if homes != {-1} and homes != {node}:
        faults.append(f"a device inside a node is attached to another at {time} ns")
    bandwidth = machine.resource("bandwidth")
    for pool in machine.of_kind(Kind.POOL).tolist():
        limit = int(machine.capacity[pool, bandwidth])
        mine = [d for d in holders if holders[d] and machine.home[d] < 0 and machine.rack[d] == machine.rack[pool]]
        if limit and sum(int(machine.capacity[d, bandwidth]) for d in mine) > limit:
            faults.append(f"the fabric {machine.owners[pool]} is exceeded at {time} ns")
    return faults
