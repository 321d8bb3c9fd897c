"""Starts on their way: the job was released, and Slurm has to start it where it was decided, or it is withdrawn."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError
from poolwise.live.slurm.commands import cleared, leader
from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import AT_WORK
from poolwise.live.slurm.poller import GANG, CommittedRun
from poolwise.live.slurm.session import ScontrolSession
from poolwise.model import Ended, Event, Outcome, Placement, Started

HOPELESS = ("ReqNodeNotAvail", "Licenses", "Nodes_required", "BadConstraints", "PartitionNodeLimit", "Resources")
"""How the reasons begin for which a released job will not start at once."""


class PendingStarts(Protocol):
    """The platform that releases jobs.

    Attributes
    ----------
    grace : seconds that Slurm may take to start a released job before it is withdrawn
    refusals : starts of a job that may be refused one after the other before it is given back
    released : jobs that were released and are not at work yet, by name
    refused : job -> starts that were refused one after the other
    """

    grace: float
    refusals: int
    layout: SlurmLayout
    session: ScontrolSession
    released: dict[str, PendingStart]
    refused: dict[str, int]

    def waits(self, gang: GANG) -> bool:
        """Whether a job can be placed."""
        ...

    def tasks_of(self, row: int) -> Sequence[int]:
        """All tasks of a job."""
        ...

    def give_back(self, name: str, reason: str) -> int | None:
        """Leave a job to Slurm."""
        ...


@dataclass
class PendingStart(CommittedRun):
    """A start on its way: the job was released.

    Attributes
    ----------
    run, row : its numbers
    nodes : names of the nodes that were decided
    since : monotonic s of its release
    withdrawn : whether it was held again since
    """

    platform: PendingStarts
    run: int
    row: int
    placement: Placement
    nodes: frozenset[str]
    since: float = field(default_factory=time.monotonic)
    withdrawn: bool = False

    def settle(self, name: str, gang: GANG | None) -> Event | None:
        """Look at the job: at work, still pending, held by somebody, or gone."""
        at = self.platform
        if gang is None:  # it was cancelled, or has run already
            del at.released[name]
            return Ended(self.run, self.row, tuple(at.tasks_of(self.row)), Outcome.FINISHED)
        if all(job.state in AT_WORK for job in gang):
            nodes = {node for job in gang for node in job.allocated}
            if nodes != self.nodes:
                log_event("elsewhere", logging.WARNING, job=name, decided=sorted(self.nodes), runs=sorted(nodes))
            del at.released[name]
            at.refused.pop(name, None)
            return Started(self.run, self.row)
        if all(job.held for job in gang):
            del at.released[name]
            return self._refusal(name, gang)
        age = time.monotonic() - self.since
        if age > at.grace or (age > at.grace / 4 and gang[0].reason.startswith(HOPELESS)):
            self._withdraw(name, gang)
        return None

    def _withdraw(self, name: str, gang: GANG) -> None:
        """Hold a job again and take back what it was given; whether that came in time is read next."""
        log_event("withdrawn", logging.WARNING, job=name, why=gang[0].reason)
        self.withdrawn = True
        try:
            self.platform.session.send([f"hold {leader(name, gang)}", *cleared(name, gang, self.platform.layout)])
        except SlurmTimeoutError as error:
            log_event("silent", logging.WARNING, why=str(error))

    def _refusal(self, name: str, gang: GANG) -> Ended:
        """Let a job that did not start wait again, or give it back if that came too often."""
        at = self.platform
        count = at.refused[name] = at.refused.get(name, 0) + 1
        why = "Slurm did not start it in time" if self.withdrawn else "somebody held it"
        again = at.waits(gang)
        if count >= at.refusals:
            again = False
            at.give_back(name, f"Slurm refused {count} starts that Poolwise had decided")
        return Ended(self.run, self.row, tuple(at.tasks_of(self.row)), Outcome.REFUSED, again, why)
