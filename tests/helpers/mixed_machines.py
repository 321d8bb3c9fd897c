"""Random machines whose whole nodes differ, with partitions, features and GPUs, and jobs for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Kind, Machine, Partition, Workload
from poolwise.model.machine_builder import MachineBuilder
from poolwise.quantities import NEVER, SECOND
from tests.helpers.random_studies import UNITS, workload

LOCAL = (0, 50, 64, 200)


def mixed_machine(g: np.random.Generator, limited: bool = True) -> Machine:
    """Up to four racks with up to three groups of nodes each and pools in some of them, in partitions or not."""
    build, racks = MachineBuilder("mixed", ("nodes", "memory")), int(g.integers(1, 5))
    gpus, alike = g.random() < 0.4, g.random() < 0.15
    for rack in range(racks):
        for group in range(1 if alike else int(g.integers(1, 4))):
            per_node = {"memory": 64 if alike else int(g.choice(LOCAL)), "cores": 1}
            if gpus:
                per_node["gpu"] = int(g.choice([0, 2, 4]))
            build.add(
                f"rack{rack}.nodes{group}", Kind.NODE, "node", {"nodes": int(g.integers(1, 7))}, rack=rack, per_node=per_node
            )
        if g.random() < 0.7:
            build.pool(f"rack{rack}.pool", rack=rack, memory=int(g.choice([0, 200, 1000])))
    on = Machine.of(build)
    if g.random() < 0.4:
        return on
    sets = {
        name: (g.random(on.n_owner) < share) & (on.kind == Kind.NODE) for name, share in (("p", 0.8), ("q", 0.6), ("f", 0.7))
    }
    sets["p"][on.racks.nodes[0]] = sets["q"][on.racks.nodes[-1]] = True
    limits = {"max_time": int(g.choice([NEVER, 60 * SECOND])), "max_nodes": int(g.choice([NEVER, 4]))} if limited else {}
    partitions = (Partition("p", default=True, **limits), Partition("q")) if g.random() < 0.7 else ()
    return replace(on, node_sets=sets, partitions=partitions)


def mixed_study(g: np.random.Generator, jobs: int, limits: bool = True) -> tuple[Machine, Workload]:
    """Draw a machine, and jobs that name partitions, features and GPUs, or do not."""
    on = mixed_machine(g, limits)
    load = workload(g, on, jobs, UNITS)
    requests, attributes = dict(load.requests), dict(load.attributes)
    if g.random() < 0.6:
        requests["gpu"] = g.choice([0, 0, 1, 2, 3], jobs)
    if on.node_sets:
        attributes["partition"] = g.choice(["", "p", "q", "p,q"], jobs)
        attributes["constraint"] = g.choice(["", "", "f"], jobs)
    return on, replace(load, requests=requests, attributes=attributes)
