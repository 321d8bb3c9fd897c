"""Pending starts: released jobs that Slurm must start on the assigned nodes; if it does not, the start is withdrawn."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError
from poolwise.live.slurm.commands import clear_commands, leader_id
from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import ALLOCATED_STATES
from poolwise.live.slurm.poller import CommittedRun, HetComponents
from poolwise.live.slurm.session import ScontrolSession
from poolwise.model import Ended, Event, Outcome, Placement, Started

BLOCKED_REASONS = ("ReqNodeNotAvail", "Licenses", "Nodes_required", "BadConstraints", "PartitionNodeLimit", "Resources")
"""Prefixes of wait reasons for which a released job will not start soon."""


class PendingStarts(Protocol):
    """The part of a platform that pending starts use.

    Attributes
    ----------
    grace : seconds that Slurm has to start a released job before the start is withdrawn
    refusals : consecutive refused starts after which a job is given back
    released : released jobs that do not run yet, by name
    refused : job -> number of consecutive refused starts
    """

    grace: float
    refusals: int
    layout: SlurmLayout
    session: ScontrolSession
    released: dict[str, PendingStart]
    refused: dict[str, int]

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether a job can be placed."""
        ...

    def tasks_of(self, row: int) -> Sequence[int]:
        """Return all tasks of a job."""
        ...

    def give_back(self, name: str, reason: str) -> int | None:
        """Give a job back to Slurm."""
        ...


@dataclass
class PendingStart(CommittedRun):
    """The start of a released job that does not run yet.

    Attributes
    ----------
    run, row : its run id and job row
    nodes : names of the assigned nodes
    since : time of the release (monotonic s)
    withdrawn : whether the job was held again since
    """

    platform: PendingStarts
    run: int
    row: int
    placement: Placement
    nodes: frozenset[str]
    since: float = field(default_factory=time.monotonic)
    withdrawn: bool = False

    def resolve(self, name: str, gang: HetComponents | None) -> Event | None:
        """Return the outcome of the start if the job runs, was held or is gone; withdraw the start if it is overdue."""
        platform = self.platform
        if gang is None:  # cancelled, or already finished
            del platform.released[name]
            return Ended(self.run, self.row, tuple(platform.tasks_of(self.row)), Outcome.FINISHED)
        if all(job.state in ALLOCATED_STATES for job in gang):
            nodes = {node for job in gang for node in job.allocated}
            if nodes != self.nodes:
                log_event("placement_mismatch", logging.WARNING, job=name, decided=sorted(self.nodes), runs=sorted(nodes))
            del platform.released[name]
            platform.refused.pop(name, None)
            return Started(self.run, self.row)
        if all(job.held for job in gang):
            del platform.released[name]
            return self._refusal(name, gang)
        age = time.monotonic() - self.since
        if age > platform.grace or (age > platform.grace / 4 and gang[0].reason.startswith(BLOCKED_REASONS)):
            self._withdraw(name, gang)
        return None

    def _withdraw(self, name: str, gang: HetComponents) -> None:
        """Hold the job again and clear its assignment; the next poll shows whether Slurm had already started it."""
        log_event("start_withdrawn", logging.WARNING, job=name, why=gang[0].reason)
        self.withdrawn = True
        try:
            self.platform.session.send([f"hold {leader_id(name, gang)}", *clear_commands(name, gang, self.platform.layout)])
        except SlurmTimeoutError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))

    def _refusal(self, name: str, gang: HetComponents) -> Ended:
        """Requeue a job that did not start, or give it back after too many refusals."""
        platform = self.platform
        count = platform.refused[name] = platform.refused.get(name, 0) + 1
        why = "Slurm did not start the job in time" if self.withdrawn else "another user held the job"
        requeue = platform.is_schedulable(gang)
        if count >= platform.refusals:
            requeue = False
            platform.give_back(name, f"Slurm refused {count} starts that Poolwise requested")
        return Ended(self.run, self.row, tuple(platform.tasks_of(self.row)), Outcome.REFUSED, requeue, why)
