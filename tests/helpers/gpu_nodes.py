"""Machines with GPUs in nodes and in a rack."""

from poolwise.model import Machine, MachineBuilder


def gpu_nodes(gpus=(2, 2), *, cores=8, memory=64, rack_gpus=0, bandwidth=1000) -> Machine:
    """Build shared nodes n0, n1, ... with the given GPUs, GPUs of the rack, and one link per node and for the rack's GPUs."""
    build = MachineBuilder("gpus", ("cores", "memory", "devices", "bandwidth"))
    nodes = [build.node(f"n{k}", shelf=k, cores=cores, memory=memory) for k in range(len(gpus))]
    homes = [node for node, count in zip(nodes, gpus, strict=True) for _ in range(count)] + [-1] * rack_gpus
    for k, home in enumerate(homes):
        gpu = build.device(f"gpu{k}", type="gpu", home=home, shelf=len(nodes) + k, devices=1)
        if home < 0:
            build.attach(gpu, "rack")
    ends = [*nodes, "rack"] if rack_gpus else nodes
    build.vertices(ends)
    for k, end in enumerate(ends):
        build.link(f"link{k}", end, "switch", shelf=len(build.owners), bandwidth=bandwidth)
    return Machine.of(build)
