"""Random machines of shared nodes, and jobs for them."""

from __future__ import annotations

import numpy as np

from poolwise.model import Kind, Machine, Workload
from poolwise.quantities import SECOND


def machine(
    nodes: np.ndarray, rack: np.ndarray, *, pools: dict[int, int] | None = None, devices: list[tuple[int, str]] = (), sets=None
) -> Machine:
    """Build nodes with (n_node, 2) cores and MiB in racks (n_node,), pools of MiB by rack (-1: all), devices (node, type)."""
    pools = pools or {}
    n, p, d = len(nodes), len(pools), len(devices)
    capacity = np.zeros((n + p + d, 3), dtype=np.int64)
    capacity[:n, 0], capacity[:n, 1] = nodes[:, 1], nodes[:, 0]
    capacity[n : n + p, 0], capacity[n + p :, 2] = list(pools.values()), 1
    kind = np.repeat([Kind.NODE, Kind.POOL, Kind.DEVICE], [n, p, d]).astype(np.int64)
    racks = np.concatenate([rack, list(pools), [rack[node] for node, _ in devices]]).astype(np.int64)
    members = {name: np.concatenate([inside, np.zeros(p + d, dtype=np.bool_)]) for name, inside in (sets or {}).items()}
    return Machine(
        name="shared",
        owners=(*(f"n{k}" for k in range(n)), *(f"pool{r}" for r in pools), *(f"d{k}" for k in range(d))),
        kind=kind,
        type=(*("node",) * n, *("pool",) * p, *(name for _, name in devices)),
        rack=racks,
        position=np.stack([racks, np.zeros_like(racks)], axis=1),
        home=np.concatenate([np.full(n + p, -1), [node for node, _ in devices]]).astype(np.int64),
        resources=("memory", "cores", "devices"),
        capacity=capacity,
        node_sets=members,
    )


def random_machine(g: np.random.Generator, most: int = 9, *, pools: bool = True, devices: bool = True) -> Machine:
    """Draw nodes of up to two types in up to three racks, with or without pools, devices and node sets."""
    n, racks = int(g.integers(1, most + 1)), int(g.integers(1, 4))
    types = np.array([[4, 100], [8, 60]])[: int(g.integers(1, 3))]
    rack = np.sort(g.integers(0, racks, n)) if g.random() < 0.8 else g.integers(0, racks, n)
    of_rack = {r: int(g.choice([0, 50, 200])) for r in range(racks) if g.random() < 0.7}
    pool_sizes = {**of_rack, **({-1: 150} if g.random() < 0.4 else {})} if pools and g.random() < 0.6 else {}
    inside = [(node, name) for node in range(n) for name, p in (("gpu", 0.5), ("gpu", 0.4), ("fpga", 0.3)) if g.random() < p]
    sets = None
    if g.random() < 0.5:
        sets = {name: g.random(n) < share for name, share in (("long", 0.8), ("short", 0.6), ("fast", 0.7))}
    return machine(
        types[g.integers(0, len(types), n)],
        rack,
        pools=pool_sizes,
        devices=inside if g.random() < 0.5 and devices else [],
        sets=sets,
    )


def random_jobs(g: np.random.Generator, on: Machine, jobs: int) -> Workload:
    """Draw jobs with many ties in every column, some too large for the machine, and requests that may be too short."""
    unit = int(g.choice([1, SECOND // 10, SECOND, 60 * SECOND]))
    span = max(1, int(jobs * 30 * g.choice([0.05, 0.3, 1, 3])))
    duration = g.integers(1, int(g.choice([3, 30, 200])), jobs) * unit
    if g.random() < 0.5:
        duration = duration + g.integers(0, 3, jobs)
    guess = np.maximum(1, (duration * g.choice([0.3, 0.5, 1, 1, 2, 5], jobs)).astype(np.int64))
    requests = {"cores": g.choice([1, 1, 2, 3, 4, 8, 9], jobs, p=[0.3, 0.2, 0.2, 0.1, 0.13, 0.05, 0.02])}
    if g.random() < 0.8:
        requests["nodes"] = np.minimum(g.integers(0, on.n_owner + 2, jobs), g.choice([1, 1, 2, 3, 30], jobs))
    if g.random() < 0.8:
        requests["memory"] = g.choice([0, 0, 10, 25, 60, 61, 90, 130], jobs)
    for name in ("gpu", "fpga"):
        if name in on.type and g.random() < 0.7:
            requests[name] = g.choice([0, 0, 0, 1, 2], jobs)
    attributes = {"u": g.random(jobs)} if g.random() < 0.5 else {}
    if on.node_sets and g.random() < 0.8:
        attributes["partition"] = g.choice(["", "long", "short", "long,short"], jobs)
        attributes["constraint"] = g.choice(["", "", "fast", "fast&long"], jobs)
    return Workload.of(
        g.integers(0, span, jobs) * unit,
        duration,
        requested=None if g.random() < 0.4 else guess,
        requests=requests,
        attributes=attributes,
    )
