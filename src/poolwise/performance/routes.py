"""Which links a run uses: from each task's node to what it holds elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import Kind, Machine, Placement

_NODE, _LINK = int(Kind.NODE), int(Kind.LINK)


@dataclass(frozen=True, slots=True)
class Route:
    """Links between a task's node and something it holds elsewhere.

    Attributes
    ----------
    task : number of the task
    remote : owner at the far end
    links : positions in the fabric, not empty
    """

    task: int
    remote: int
    links: tuple[int, ...]


def homes(placement: Placement, machine: Machine) -> dict[int, list[int]]:
    """Where each task computes: the nodes it holds, or all it holds (but links) where that is no node; by task."""
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
    """Routes of a placement: each pool and device that is not on a node's own vertex, from the nearest node of its task.

    Ties between nodes go to the lowest. Nothing where the network is not modelled. Raises InputError if there is no way.
    """
    fabric = machine.fabric
    if fabric is None:
        return []
    found: list[Route] = []
    for task, nodes in homes(placement, machine).items():
        held = {owner for row, owner, _, _ in placement.rows() if row == task and machine.kind[owner] != Kind.LINK}
        for remote in sorted(held - set(nodes)):
            links = min((fabric.path(node, remote) for node in sorted(nodes)), key=len)
            if links:
                found.append(Route(task, remote, links))
    return found
