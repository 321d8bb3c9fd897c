"""Failures of a machine and their repairs, as plain data. The simulation knows them beforehand; a scheduler never does."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.quantities import NEVER


@dataclass(frozen=True)
class Outage:
    """Nodes that are down for some time.

    Attributes
    ----------
    owners : the nodes; if an owner has several whole nodes, all of them are down
    down, up : times of the failure and of the repair, ns
    """

    owners: tuple[int, ...]
    down: int
    up: int


@dataclass(frozen=True)
class Failures:
    """Given and randomly drawn outages, and their effect on jobs.

    Attributes
    ----------
    outages : given outages
    owners : nodes for which outages are drawn, independently for each node
    mtbf, mttr : mean time (ns) from the repair of a node to its next failure, and from a failure to its repair; both are
        exponentially distributed
    until : time (ns) after which nothing fails; by default the last submission
    requeue : whether jobs that lose a node wait again, from the beginning; otherwise they are lost
    """

    outages: tuple[Outage, ...] = ()
    owners: tuple[int, ...] = ()
    mtbf: int = NEVER
    mttr: int = 0
    until: int = NEVER
    requeue: bool = True
