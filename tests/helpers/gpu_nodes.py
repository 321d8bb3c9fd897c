"""Machines with GPUs in nodes and in a rack, for tests of several folders."""

import numpy as np

from poolwise.model import Fabric, Kind, Machine


def gpu_nodes(gpus=(2, 2), *, cores=8, memory=64, rack_gpus=0, bandwidth=1000) -> Machine:
    """Shared nodes n0, n1, ... with so many GPUs each, GPUs of the rack, and one link a node (and one for the rack's GPUs)."""
    nodes = len(gpus)
    home = [n for n, count in enumerate(gpus) for _ in range(count)] + [-1] * rack_gpus
    links = nodes + (rack_gpus > 0)
    kind = np.repeat([Kind.NODE, Kind.DEVICE, Kind.LINK], [nodes, len(home), links]).astype(np.int64)
    n = len(kind)
    capacity = np.zeros((n, 4), dtype=np.int64)  # cores, memory, devices, bandwidth
    capacity[:nodes, 0], capacity[:nodes, 1] = cores, memory
    capacity[nodes : nodes + len(home), 2] = 1
    capacity[nodes + len(home) :, 3] = bandwidth
    vertex = np.concatenate([np.arange(nodes), [h if h >= 0 else nodes for h in home], np.full(links, -1)]).astype(np.int64)
    fabric = Fabric(
        vertex,
        np.arange(nodes + len(home), n),
        np.array([[k, links] for k in range(links)]),
        np.zeros(links, dtype=np.int64),
    )
    names = [f"n{k}" for k in range(nodes)] + [f"gpu{k}" for k in range(len(home))] + [f"link{k}" for k in range(links)]
    return Machine(
        name="gpus",
        owners=tuple(names),
        kind=kind,
        type=("node",) * nodes + ("gpu",) * len(home) + ("link",) * links,
        rack=np.zeros(n, dtype=np.int64),
        position=np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1),
        home=np.concatenate([np.full(nodes, -1), home, np.full(links, -1)]).astype(np.int64),
        resources=("cores", "memory", "devices", "bandwidth"),
        capacity=capacity,
        fabric=fabric,
    )
