"""Reasons why jobs wait, as sentences with amounts and the time at which a job first fits."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.live.logs import log_event
from poolwise.live.metrics import LiveMetrics
from poolwise.live.platform import LivePlatform, Pass
from poolwise.loop import Loop
from poolwise.model import Arrival, Changes, Decisions, Machine, Queue, Reason, Snapshot, WaitCause
from poolwise.quantities import SECOND, format_memory

MAX_ENDS = 64  # number of expected run ends at which a waiting job is tried to find when it first fits
INTERVAL = 30.0  # seconds between reports of wait reasons


@dataclass(frozen=True)
class WaitSentence:
    """The reason why a job waits now."""

    reason: Reason  # cause, resource and amounts
    # time (ns) at which the job would start if no other job waited; None if that is not within the horizon or unknown
    fits: int | None
    after: int | None  # row of the job whose expected end makes room, None if there is none
    text: str  # reason and expected time as one sentence


def why_waits(
    dispatcher: Dispatcher, job: int, queue: Queue, snapshot: Snapshot, decisions: Decisions, *, expected: bool = True
) -> WaitSentence | None:
    """Return why a job (row) waits, or None if `decisions`, which explain it (`Changes.explain`), start or reject it.

    Without `expected`, the time at which the job first fits stays unknown. `dispatcher` must be a separate one opened for such
    queries: it is called with hypothetical states.
    """
    if job in decisions.rejected or any(start.job == job for start in decisions.starts):
        return None
    reason = decisions.reason(job, dispatcher)
    fits, after = _first_fit(dispatcher, job, queue, snapshot) if expected and reason.cause is WaitCause.SHORT else (None, None)
    return WaitSentence(reason, fits, after, _sentence(reason, fits, after, job, snapshot))


class WaitReasons:
    """Explains why jobs wait after a pass. The scheduler is queried through a dispatcher of its own."""

    def __init__(self, scheduler: Scheduler, loop: Loop, snapshot: Snapshot, jobs: Iterable[int]) -> None:
        self._aside, self._queue, self._snapshot = loop.aside, loop.considered, snapshot
        self._dispatcher = scheduler.open(snapshot.machine, loop.seed)
        self._decisions = self._dispatcher.schedule(self._queue, snapshot, Changes(explain=frozenset(jobs)))

    def of(self, job: int, *, expected: bool = True) -> WaitSentence | None:
        """Return why a job (row) waits, or None if it could start, or would be rejected, now.

        Without `expected`, the sentence omits the time at which the job first fits, which is costly to compute.
        """
        if (why := self._aside.get(job)) is not None:
            return WaitSentence(Reason(WaitCause.ASIDE, why), None, None, why)
        return why_waits(self._dispatcher, job, self._queue, self._snapshot, self._decisions, expected=expected)


@dataclass
class WaitReporter:
    """Reports to users why jobs wait.

    The first `most` jobs of the queue are reported at intervals, and only if the reason changed. While a new job waits, the
    interval (s) is ten times shorter. With `everyone`, the other jobs get their first reason too, without the time at which
    they first fit. The scheduler is queried through a dispatcher of its own.
    """

    platform: LivePlatform
    scheduler: Scheduler
    metrics: LiveMetrics | None = None
    most: int = 20
    interval: float = INTERVAL
    everyone: bool = False
    _next: float = field(default=0.0, init=False)
    _told: dict[str, str] = field(default_factory=dict, init=False)
    _arrived: bool = field(default=True, init=False)  # whether jobs arrived since the last report

    def observe_pass(self, done: Pass) -> None:
        """Report wait reasons if a report is due."""
        queue, snapshot = done.loop.queue, done.snapshot
        front = queue.jobs[: self.most].tolist()
        self._arrived |= any(isinstance(event, Arrival) for event in done.batch.events)
        new = (self.everyone and self._arrived) or any(snapshot.table.name(job) not in self._told for job in front)
        now = time.monotonic()
        if now < self._next and (not new or now < self._next - 0.9 * self.interval):
            return
        self._next, self._arrived = now + self.interval, False
        names = {job: snapshot.table.name(job) for job in (queue.jobs.tolist() if self.everyone else front)}
        jobs = [job for k, (job, name) in enumerate(names.items()) if k < self.most or name not in self._told]
        try:
            reasons = WaitReasons(self.scheduler, done.loop, snapshot, jobs)
            reasons_of_jobs = ((job, reasons.of(job, expected=k < self.most)) for k, job in enumerate(jobs))
            explained = [(job, why) for job, why in reasons_of_jobs if why is not None]
        except PolicyError as error:
            log_event("wait_reason_missing", logging.ERROR, why=str(error))
            return
        told = {name: self._told[name] for job, name in names.items() if name in self._told and job not in jobs[: self.most]}
        for job, why in explained:
            told[names[job]] = why.text
            if self.metrics is not None:
                self.metrics.short_of(why.reason.resource)
            if self._told.get(names[job]) != why.text:
                self.platform.report_wait(job, why.text)
        self._told = told


def amount(resource: str, number: int, machine: Machine) -> str:
    """Format an amount with the name of its resource; memory and storage carry a unit instead."""
    text = machine.amount_text(resource, number)
    return text if resource in ("memory", "storage") else f"{text} {resource}"


def clock(ns: int, snapshot: Snapshot) -> str:
    """Format an instant of the snapshot as date, local time and UTC offset."""
    return f"{datetime.fromtimestamp((snapshot.table.epoch + ns) / SECOND).astimezone():%Y-%m-%d %H:%M %z}"


def _sentence(reason: Reason, fits: int | None, after: int | None, job: int, snapshot: Snapshot) -> str:
    parts = [reason.text]
    if reason.resource:
        parts[0] += f": {_need(reason, snapshot)}"
    if reason.resource == "memory" and not reason.blocker_needs and (lent := _lent(job, snapshot)):
        parts.append(lent)
    if reason.blocker is not None:
        held = "" if reason.reserved is None else f", expected at {clock(reason.reserved, snapshot)}"
        parts.append(f"job {snapshot.table.name(reason.blocker)} starts first{held}")
    if fits is not None:
        last = "" if after is None else f" after job {snapshot.table.name(after)} ends,"
        parts.append(f"it first fits{last} expected at {clock(fits, snapshot)}")
    if reason.ahead:
        parts.append(f"{reason.ahead:,} {'job is' if reason.ahead == 1 else 'jobs are'} ahead of it")
    return "; ".join(parts)


def _need(reason: Reason, snapshot: Snapshot) -> str:
    """Return the amounts that a job lacks; with a blocker, name the job that needs them."""
    needed, free = (amount(reason.resource, n, snapshot.machine) for n in (reason.needed, reason.free))
    needs = "needs" if reason.blocker is None else "it needs"
    if reason.blocker_needs and reason.blocker is not None:
        needs = f"job {snapshot.table.name(reason.blocker)} needs"
    if reason.nodes > 1:
        return f"{needs} {reason.nodes:,} nodes with {needed} each, {reason.fitting:,} free"
    return f"{needs} {needed}, {free} free"


def _lent(job: int, snapshot: Snapshot) -> str:
    """Describe the free nodes and pool memory of the rack with the most free nodes, and the job's need; "" without pools."""
    machine = snapshot.machine
    if "nodes" not in machine.resources:
        return ""
    layout, request = machine.racks, snapshot.table.job(job)
    nodes = snapshot.free[layout.nodes, layout.node_column]
    best = int(np.argmax(nodes))
    remote = max(0, request.memory - int(layout.local[best]))
    if not layout.pooled or not remote:
        return ""
    pool = int(snapshot.free[layout.pools[best], layout.memory_column])
    whose, free = machine.owners[layout.pools[best]], int(nodes[best])
    return f"{whose} has {format_memory(pool)} for {free} free nodes, but {format_memory(remote)} per node is needed"


def _first_fit(dispatcher: Dispatcher, job: int, queue: Queue, snapshot: Snapshot) -> tuple[int | None, int | None]:
    """Return the time (ns) at which the job would start if no other job waited, and the job whose end makes room."""
    alone = queue.only(np.array([job], dtype=np.int64))
    for end in snapshot.ends()[:MAX_ENDS].tolist():
        decisions = dispatcher.schedule(alone, snapshot.at(end), Changes())
        if decisions.starts:
            over = (run for run in snapshot.runs() if max(run.expected_end, snapshot.now) <= end)
            last = max(over, key=lambda run: (run.expected_end, run.id), default=None)
            return end, None if last is None else last.job
    return None, None
