"""Invariants of composed devices, checked against a recorded schedule alone.

Source: specs of the NVMe composition, "Infrastructure": a composition belongs to one node, two compositions never share a
device, the devices of a composition come from one place, and the bandwidth of a fabric is never exceeded.
"""

from __future__ import annotations

from poolwise.model import Kind, Schedule

Holders = dict[int, dict[tuple[tuple[int, ...], int], int]]
"""Device -> (devices, node) of a composition -> number of its runs, without zeros."""


def composition_faults(schedule: Schedule) -> list[str]:
    """Return one sentence per violated invariant, in order of time; the list is empty for a valid schedule."""
    machine = schedule.machine
    capacity: list[list[int]] = machine.capacity.tolist()
    used = [[0] * len(amounts) for amounts in capacity]
    holders: Holders = {}
    faults: list[str] = []
    nodes, all_devices = (set(machine.of_kind(kind).tolist()) for kind in (Kind.NODE, Kind.DEVICE))
    fabrics = _fabrics(schedule)
    columns = (schedule.owner.tolist(), schedule.resource.tolist(), schedule.amount.tolist())
    rows, offset = list(zip(*columns, strict=True)), schedule.offset.tolist()
    placements = [rows[offset[k] : offset[k + 1]] for k in range(schedule.n_run)]
    events = [(end, 0, k) for k, end in enumerate(schedule.end.tolist())]
    events += [(start, 1, k) for k, start in enumerate(schedule.start.tolist())]
    for time, starts, run in sorted(events):
        node = next((o for o, _, _ in placements[run] if o in nodes), -1)
        devices = tuple(sorted(all_devices.intersection([o for o, _, _ in placements[run]])))
        for owner, resource, amount in placements[run]:
            used[owner][resource] += amount if starts else -amount
            if used[owner][resource] > capacity[owner][resource]:
                faults.append(f"{machine.owners[owner]} exceeds its capacity of {machine.resources[resource]} at {time} ns")
        for device in devices:
            held = holders.setdefault(device, {})
            count = held.pop((devices, node), 0) + (1 if starts else -1)
            if count > 0:
                held[devices, node] = count
            if len(held) > 1:
                faults.append(f"{machine.owners[device]} is in {len(held)} compositions or on several nodes at {time} ns")
        if starts and devices:
            faults += _place_faults(schedule, devices, node, time)
            faults += _fabric_faults(schedule, fabrics, holders, time)
    if any(any(amounts) for amounts in used):
        faults.append("some resources are not released at the end")
    return faults


def _place_faults(schedule: Schedule, devices: tuple[int, ...], node: int, time: int) -> list[str]:
    machine, faults = schedule.machine, []
    homes = {int(machine.home[d]) for d in devices}
    places = {(home, int(machine.rack[d]) if home < 0 else -1) for d in devices for home in [int(machine.home[d])]}
    if len(places) > 1:
        faults.append(f"a composition combines devices of several locations at {time} ns")
    if homes != {-1} and homes != {node}:
        faults.append(f"a device inside a node is attached to another node at {time} ns")
    return faults


def _fabrics(schedule: Schedule) -> list[tuple[int, int]]:
    """Return (pool, MB/s) of each pool that limits bandwidth."""
    machine = schedule.machine
    if "bandwidth" not in machine.resources:
        return []
    limits = machine.capacity[:, machine.resource("bandwidth")]
    return [(pool, int(limits[pool])) for pool in machine.of_kind(Kind.POOL).tolist() if limits[pool]]


def _fabric_faults(schedule: Schedule, fabrics: list[tuple[int, int]], holders: Holders, time: int) -> list[str]:
    machine, faults = schedule.machine, []
    for pool, limit in fabrics:
        mine = [d for d in holders if holders[d] and machine.home[d] < 0 and machine.rack[d] == machine.rack[pool]]
        if sum(int(machine.capacity[d, machine.resource("bandwidth")]) for d in mine) > limit:
            faults.append(f"the bandwidth of fabric {machine.owners[pool]} is exceeded at {time} ns")
    return faults
