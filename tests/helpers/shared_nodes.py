"""A machine whose nodes are shared, for tests of several folders."""

from poolwise.model import Machine, MachineBuilder


def shared_nodes(**each):
    """Two nodes that jobs share, with these resources."""
    build = MachineBuilder("shared", tuple(each))
    for name in ("n0", "n1"):
        build.node(name, type="n", **each)
    return Machine.of(build)
