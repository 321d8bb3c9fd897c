"""What breaks on a machine and when it is repaired: known to whoever simulates it, never to a scheduler. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.units import NEVER


@dataclass(frozen=True)
class Outage:
    """Nodes that are down from one instant until another.

    Attributes
    ----------
    owners : of the nodes; of an owner of several whole nodes all are down
    down, up : ns
    """

    owners: tuple[int, ...]
    down: int
    up: int


@dataclass(frozen=True)
class Failures:
    """Outages that are given, others that are drawn, and what becomes of the jobs.

    Attributes
    ----------
    outages : those that are given
    owners : nodes for which outages are drawn, each node for itself
    mtbf, mttr : ns, mean time between the repair of a node and its next failure, and to its repair; both exponential
    until : ns from which on nothing fails; by default the last submission
    requeue : whether jobs that lose a node wait again, from the beginning; else they are lost
    """

    outages: tuple[Outage, ...] = ()
    owners: tuple[int, ...] = ()
    mtbf: int = NEVER
    mttr: int = 0
    until: int = NEVER
    requeue: bool = True
