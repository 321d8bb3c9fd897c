"""Slurm as a platform: read again and again, with a loop that is told what has happened between readings."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError, ask
from poolwise.live.slurm.parsing import SAID, read_cluster
from poolwise.live.slurm.poller import SlurmPoller
from poolwise.model import (
    CommitResult,
    EventBatch,
    Plan,
    Snapshot,
    Wake,
)
from poolwise.units import SECOND

QUIET = 30 * SECOND
"""Where nothing happens there is a pass so many ns after the last, by which users are told how their jobs stand."""


class SlurmPlatform(SlurmPoller):
    """A partition of a Slurm cluster; use one of the modes."""

    @abstractmethod
    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan."""

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield what happened between readings; first the arrival of all that waits."""
        yield EventBatch(self.now, (*self._first, Wake()))
        told = self.now
        while not self._stopped.is_set():
            self._sleep()
            if self._stopped.is_set():
                return
            try:
                self.reading = read_cluster(self.settings.partition)
                self.look_around()
                events = self._compare()
            except SlurmTimeoutError as error:
                log_event("silent", logging.WARNING, why=str(error))
                continue
            woken = self._wake_at is not None and self.now >= self._wake_at
            if woken or self.now >= told + QUIET:
                self._wake_at = None if woken else self._wake_at
                events = (*events, Wake())
            if events:
                told = self.now
                yield EventBatch(self.now, events)

    def snapshot(self) -> Snapshot:
        """Show the state as it was last read, with what has been committed since."""
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
        """Return the partition: it has one class."""
        return self.settings.partition

    def report_wait(self, job: int, why: str) -> None:
        """Write behind the user's comment why the job waits (`squeue -o %k`)."""
        name = self.table.name(job)
        gang = self.reading.gangs.get(name)
        if gang is None:
            return
        text = f"{gang[0].comment}{SAID}{why}" if why else gang[0].comment
        try:
            ask("scontrol", "update", f"JobId={name}", f"Comment={text.strip()}")
        except SlurmTimeoutError as error:
            log_event("untold", logging.WARNING, job=name, why=str(error))

    def wake_at(self, time: int | None) -> None:
        """Ask for a pass at a time (ns), if there is none before; None takes that back."""
        self._wake_at = time

    def _sleep(self) -> None:
        """Wait for the next reading, or less if the plan wants to be woken."""
        wait = self.settings.interval
        if self._wake_at is not None:
            wait = min(wait, max((self._wake_at - self.now) / SECOND, 0.01))
        self._stopped.wait(wait)
