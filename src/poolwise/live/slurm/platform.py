"""Slurm platform: polls the cluster and yields the differences between polls as events."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError, run_client
from poolwise.live.slurm.parsing import NOTE_SEPARATOR, read_cluster
from poolwise.live.slurm.poller import SlurmPoller
from poolwise.model import (
    CommitResult,
    EventBatch,
    Plan,
    Snapshot,
    Wake,
)
from poolwise.units import SECOND

IDLE_PASS_INTERVAL = 30 * SECOND
"""Time (ns) after which a pass runs even without events, so that users get current wait reasons."""


class SlurmPlatform(SlurmPoller):
    """A partition of a Slurm cluster; base class of the modes."""

    @abstractmethod
    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan."""

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield the events between polls; the first batch contains the arrivals of all waiting jobs."""
        yield EventBatch(self.now, (*self._initial_events, Wake()))
        last_pass = self.now
        while not self._stopped.is_set():
            self._sleep()
            if self._stopped.is_set():
                return
            try:
                self.listing = read_cluster(self.settings.partition)
                self.after_poll()
                events = self._compare()
            except SlurmTimeoutError as error:
                log_event("controller_unreachable", logging.WARNING, why=str(error))
                continue
            woken = self._wake_at is not None and self.now >= self._wake_at
            if woken or self.now >= last_pass + IDLE_PASS_INTERVAL:
                self._wake_at = None if woken else self._wake_at
                events = (*events, Wake())
            if events:
                last_pass = self.now
                yield EventBatch(self.now, events)

    def snapshot(self) -> Snapshot:
        """Return the state of the last poll, including runs committed since."""
        return Snapshot(
            self.now,
            self.layout.machine,
            self.table,
            self._capacity,
            self._free,
            self._runs,
            self.estimate,
            may_grow=bool((self._capacity < self.layout.machine.capacity).any()),
            freed_at=self._freed_at,
        )

    # LivePlatform

    def stop(self) -> None:
        """End `events`."""
        self._stopped.set()

    def class_of(self, job: int) -> str:
        """Return the partition, which is the only class of jobs."""
        return self.settings.partition

    def report_wait(self, job: int, why: str) -> None:
        """Append the reason for which the job waits to the user's comment (`squeue -o %k`)."""
        name = self.table.name(job)
        gang = self.listing.gangs.get(name)
        if gang is None:
            return
        text = f"{gang[0].comment}{NOTE_SEPARATOR}{why}" if why else gang[0].comment
        try:
            run_client("scontrol", "update", f"JobId={name}", f"Comment={text.strip()}")
        except SlurmTimeoutError as error:
            log_event("wait_reason_write_failed", logging.WARNING, job=name, why=str(error))

    def wake_at(self, time: int | None) -> None:
        """Request a pass at a time (ns) at the latest; None cancels the request."""
        self._wake_at = time

    def _sleep(self) -> None:
        """Wait for the next poll, or less if a pass is requested earlier."""
        wait = self.settings.interval
        if self._wake_at is not None:
            wait = min(wait, max((self._wake_at - self.now) / SECOND, 0.01))
        self._stopped.wait(wait)
