"""A scheduler and its dispatcher, which turns the queue and a snapshot into a plan."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from poolwise.interfaces.backfill import BackfillPolicy
from poolwise.interfaces.order import QueuePolicy
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.interfaces.user_class import speaks_for
from poolwise.model import Changes, JobTable, Machine, Plan, Queue, Reason, Rule, Snapshot


class Scheduler(Protocol):
    """A scheduling algorithm and its settings; holds no state of a run."""

    @property
    def knows_restrictions(self) -> bool:
        """Whether it keeps what a machine says about partitions, features, QOS and windows (`Machine.restricted`)."""
        return False

    @property
    def resizes(self) -> bool:
        """Whether it may change what running jobs hold."""
        return False

    @property
    def remembers(self) -> str:
        """What a dispatcher keeps that no queue and snapshot show, such as reservations that are promises.

        Empty means nothing: a dispatcher may then be thrown away and opened anew at any pass without changing a decision.
        """
        return ""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run on a machine; raises InputError for one that the algorithm cannot work on.

        No job is known yet. Where owners join or leave, the machine is another one, and a dispatcher is opened anew.
        """
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what a study can know beforehand, such as jobs that ask for what the machine does not have."""
        return

    def rule(self) -> ListRule | None:
        """Say which list scheduling this is, so that fast engines can do it; None if it is something else (`rule_of`)."""
        return None


class ListRule(NamedTuple):
    """What a fast engine has to know of a scheduler that is list scheduling.

    Attributes
    ----------
    order, backfill, placement : what it is put together from
    warm_up : so many first jobs run first come, first served without backfilling, until the last of them has started
    """

    order: QueuePolicy
    backfill: BackfillPolicy
    placement: PlacementPolicy
    warm_up: int = 0


class Dispatcher(Protocol):
    """One run of a scheduler.

    It may hold only caches that can be rebuilt from the queue and a snapshot (`Scheduler.remembers` declares exceptions):
    one that has run for a week and one freshly opened decide alike, whatever `changes` either is given.
    """

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Decide what to do now. Neither the queue nor the snapshot is changed.

        A job that can never run is rejected; a plan that does nothing but reject is followed by another pass, unless
        nothing else has happened than the arrival of what it rejects. While the machine may still grow
        (`Snapshot.may_grow`), such a job waits, and holds up nobody.
        """
        ...

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Say what held back a job that waits, as facts: what was short, who stood in the way, until when.

        `plan` is what this scheduler decided of this queue and snapshot, and does not start all of the job's tasks. A resource
        that is named, added to the machine in the amount that was short, starts the job, or what is short next is named. By
        default the plan's own `Wait` is quoted. Ask by `reason_of`: a `why` speaks for the `schedule` that it stands beside.
        """
        said = plan.waits.get(job)
        if said is not None:
            return Reason.of(Rule.SHORT if said.resource else Rule.UNSAID, said.reason, said)
        return Reason(Rule.UNSAID, f"{type(self).__name__.removesuffix('Dispatcher')} gives no reason")


def reason_of(dispatcher: Dispatcher, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
    """Ask a dispatcher why a job waits (`Dispatcher.why`).

    A class that decides in another way than the one which its `why` is from gives no reason but its `Wait`.
    """
    ask = type(dispatcher).why if speaks_for(type(dispatcher), "schedule") else Dispatcher.why
    return ask(dispatcher, job, queue, snapshot, plan)
