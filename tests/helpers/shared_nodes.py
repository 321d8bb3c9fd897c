"""A machine with shared nodes, for tests of several packages."""

from poolwise.model import Machine, MachineBuilder


def shared_nodes(**each):
    """Build two shared nodes with the given resources."""
    build = MachineBuilder("shared", tuple(each))
    for name in ("n0", "n1"):
        build.node(name, type="n", **each)
    return Machine.of(build)
