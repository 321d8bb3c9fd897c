"""What a machine allows: partitions with their limits, qualities of service, and windows kept free. Plain data.

The nodes of a partition stand in `Machine.node_sets` under its name; `model.eligibility` says which jobs may use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from poolwise.arrays import BoolArray
from poolwise.units import NEVER


@dataclass(frozen=True)
class Partition:
    """A partition; partitions may overlap.

    Attributes
    ----------
    name : also the name of its nodes in `Machine.node_sets`
    default : whether it takes the jobs that name no partition
    max_time : ns that a job may request
    max_nodes : nodes that a job may ask for
    tier : jobs of a higher tier are considered before all others, whatever their priorities
    """

    name: str
    default: bool = False
    max_time: int = NEVER
    max_nodes: int = NEVER
    tier: int = 1


@dataclass(frozen=True)
class QualityOfService:
    """Limits on what the jobs of one quality of service (QOS) may have at a time.

    Amounts are of "jobs" at work, of "nodes", or of a resource that jobs ask for, such as "cores".

    Attributes
    ----------
    name : what jobs call it
    default : whether it is that of the jobs that name none
    max_time : ns that a job may request
    per_user, total : (amount's name, most) for the jobs of one user, and for all of its jobs together
    """

    name: str
    default: bool = False
    max_time: int = NEVER
    per_user: tuple[tuple[str, int], ...] = ()
    total: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, eq=False)
class ReservedWindow:
    """An interval that some nodes are kept free for, known beforehand: maintenance, or a reservation.

    Attributes
    ----------
    name : what reports call it
    start, end : ns, from and until when
    owners : (n_owner,) the nodes
    users, accounts : whose jobs may use the nodes all the same; nobody's in maintenance
    """

    name: str
    start: int
    end: int
    owners: BoolArray
    users: frozenset[str] = field(default_factory=frozenset)
    accounts: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        self.owners.setflags(write=False)
        if not 0 <= self.start < self.end:
            raise ValueError(f"window '{self.name}' must end after it starts, and not start before 0")


def default_of(things: Iterable[Partition] | Iterable[QualityOfService]) -> str:
    """Name of the default one, "" where there is none."""
    return next((thing.name for thing in things if thing.default), "")
