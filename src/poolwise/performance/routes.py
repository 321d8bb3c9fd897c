"""Routes of a run over the network, from each task's node to the resources that it holds elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import Kind, Machine, Placement

_NODE, _LINK = int(Kind.NODE), int(Kind.LINK)


@dataclass(frozen=True, slots=True)
class Route:
    """Links (positions in the fabric, not empty) from a task's node to an owner elsewhere, `remote`, that the task holds."""

    task: int
    remote: int
    links: tuple[int, ...]


def homes(placement: Placement, machine: Machine) -> dict[int, list[int]]:
    """Return the owners on which each task computes: its nodes or, if it has none, all owners that it holds except links."""
    held: dict[int, list[int]] = {}
    nodes: dict[int, list[int]] = {}
    columns = placement.task.tolist(), placement.owner.tolist(), machine.kind[placement.owner].tolist()
    for task, owner, kind in zip(*columns, strict=True):
        mine = held.setdefault(task, [])
        if kind != _LINK and owner not in mine:
            mine.append(owner)
            if kind == _NODE:
                nodes.setdefault(task, []).append(owner)
    return {task: nodes.get(task) or mine for task, mine in held.items()}


def routes(placement: Placement, machine: Machine) -> list[Route]:
    """Return the routes of a placement to each pool and device at another vertex, from the nearest node of its task.

    Ties between nodes go to the lowest. There are no routes if the network is not modeled. Raises InputError if a resource
    is unreachable.
    """
    fabric = machine.fabric
    if fabric is None:
        return []
    remote_routes: list[Route] = []
    for task, nodes in homes(placement, machine).items():
        held = {owner for row, owner, _, _ in placement.rows() if row == task and machine.kind[owner] != Kind.LINK}
        for remote in sorted(held - set(nodes)):
            links = min((fabric.path(node, remote) for node in sorted(nodes)), key=len)
            if links:
                remote_routes.append(Route(task, remote, links))
    return remote_routes
