"""Limits of a machine, as plain data: partitions, qualities of service, associations, and windows kept free.

`Machine.node_sets` has the nodes of a partition under its name; `model.eligibility` determines which jobs may use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from poolwise.arrays import BoolArray
from poolwise.quantities import NEVER


@dataclass(frozen=True)
class Partition:
    """A partition. Partitions may overlap.

    Attributes
    ----------
    name : also the name of its nodes in `Machine.node_sets`
    default : whether jobs that name no partition are in it
    max_time : longest time that a job may request, ns
    max_nodes : most nodes that a job may request
    tier : jobs of a higher tier are considered before all others, whatever their priorities
    exclusive : whether shared nodes run no other job while they run one of its jobs (see `model.exclusive`)
    """

    name: str
    default: bool = False
    max_time: int = NEVER
    max_nodes: int = NEVER
    tier: int = 1
    exclusive: bool = False


@dataclass(frozen=True)
class QualityOfService:
    """Limits on the jobs of one quality of service (QOS).

    Each limit applies to the number of running "jobs", to "nodes", or to a resource that jobs request, such as "cores".

    Attributes
    ----------
    name : name that jobs refer to
    default : whether jobs that name no QOS are in it
    max_time : longest time that a job may request, ns
    per_user, total : pairs (name of the amount, limit) for the running jobs of each user, and for all running jobs of the QOS
    """

    name: str
    default: bool = False
    max_time: int = NEVER
    per_user: tuple[tuple[str, int], ...] = ()
    total: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class AssociationLimits:
    """Limits on the jobs of an account, or of a user in an account, as in Slurm's accounting.

    The limits in `total` of an account also count the jobs of the accounts below it. Any other limit of an account applies to a
    job only if no association below it, down to that of the job's user, limits the same amount. Limits of a job's QOS take
    precedence over all of these.

    Attributes
    ----------
    account : account that jobs refer to
    user : user in the account; "" for the account itself
    parent : account above, "" if there is none or if this is a user's association
    max_time : longest time that a job may request, ns
    per_job, per_user, total : pairs (name of the amount, limit) for each job, for the running jobs of each user in each
        account, and for all running jobs
    """

    account: str
    user: str = ""
    parent: str = ""
    max_time: int = NEVER
    per_job: tuple[tuple[str, int], ...] = ()
    per_user: tuple[tuple[str, int], ...] = ()
    total: tuple[tuple[str, int], ...] = ()

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"user '{self.user}' in account '{self.account}'" if self.user else f"account '{self.account}'"


@dataclass(frozen=True, eq=False)
class ReservedWindow:
    """A period, known beforehand, in which some nodes are kept free: maintenance, or a reservation.

    Attributes
    ----------
    name : name in reports
    start, end : ns
    owners : (n_owner,) the nodes
    users, accounts : users and accounts whose jobs may use the nodes nevertheless; none for maintenance
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
            raise ValueError(f"window '{self.name}' must start at 0 or later and end after its start")


def default_of(things: Iterable[Partition] | Iterable[QualityOfService]) -> str:
    """Return the name of the default partition or QOS, "" if there is none."""
    return next((thing.name for thing in things if thing.default), "")
