"""Prometheus metrics of a live run, in base units: seconds and bytes."""

from __future__ import annotations

from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from poolwise.arrays import IntArray
from poolwise.live.platform import LivePlatform, Pass
from poolwise.model import Ended, JobTable, Kind, Outcome, Queue, Snapshot, Start, Started, Wait
from poolwise.quantities import SECOND

MIB = 2**20
WAITS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)  # bucket bounds (s) of job waits
SHORT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)  # bucket bounds (s) of passes, commits and starts


class LiveMetrics:
    """Metrics of a live run, in their own registry."""

    def __init__(self, platform: LivePlatform) -> None:
        self._platform = platform
        self.registry = at = CollectorRegistry()
        gauge, counter, histogram = partial(Gauge, registry=at), partial(Counter, registry=at), partial(Histogram, registry=at)
        self._queue = gauge("poolwise_queue_jobs", "Waiting jobs", ["class"])
        submitted = "Time from submission to the decision to start"
        self._wait = histogram("poolwise_wait_seconds", submitted, ["class"], buckets=WAITS)
        self._decisions = counter("poolwise_decisions", "Committed decisions by kind", ["kind"])
        self._refused = counter("poolwise_refused_starts", "Starts that the cluster refused, at commit or later")
        short = "Decisions to keep a job waiting, by the resource that is short"
        self._refusals = counter("poolwise_refusals", short, ["resource"])
        self._pool = gauge("poolwise_pool_capacity_bytes", "Memory capacity of a pool", ["pool"])
        self._pool_free = gauge("poolwise_pool_free_bytes", "Free memory of a pool", ["pool"])
        self._capacity = gauge("poolwise_capacity", "Capacity of the machine, in base units (memory: MiB)", ["resource"])
        self._free = gauge("poolwise_free", "Free capacity, in base units (memory: MiB)", ["resource"])
        self._stranded = gauge("poolwise_stranded", "Free capacity while jobs wait, in base units", ["resource"])
        self._runs = gauge("poolwise_runs", "Active runs")
        self._pass = histogram("poolwise_pass_seconds", "Duration of a scheduling pass", buckets=SHORT)
        self._commit = histogram("poolwise_commit_seconds", "Duration of the commits of a pass", buckets=SHORT)
        decided = "Time from the decision until all tasks of a job run"
        self._start = histogram("poolwise_start_seconds", decided, buckets=SHORT)
        self._last = gauge("poolwise_last_pass_timestamp_seconds", "Time of the last scheduling pass")
        self.leader = gauge("poolwise_leader", "1 while this process leads, else 0")
        self._decided: dict[int, int] = {}  # run -> ns at which it was decided
        self._classes: dict[str, int] = {}  # class -> its number
        self._class_of = np.zeros(0, dtype=np.int64)  # by row of the table
        self._table: JobTable | None = None

    def observe_pass(self, done: Pass) -> None:
        """Update the metrics from a pass."""
        self._pass.observe(done.seconds)
        if done.outcome.committed:
            self._commit.observe(done.commit_seconds)
        self._last.set((done.snapshot.table.epoch + done.batch.time) / SECOND)
        for decision in done.outcome.committed:
            self._decisions.labels(type(decision).__name__.lower()).inc()
            if isinstance(decision, Start):
                waited = (done.batch.time - int(done.snapshot.table.submit[decision.job])) / SECOND
                self._wait.labels(self._platform.class_of(decision.job)).observe(max(waited, 0.0))
            if isinstance(decision, Wait):
                self.short_of(decision.refusal.resource)
        self._refused.inc(sum(isinstance(decision, Start) for decision, _ in done.outcome.rejected))
        self._starts(done)
        self._look(done)

    def short_of(self, resource: str) -> None:
        """Count a decision to keep a job waiting, by the resource that is short ("" for any other reason)."""
        self._refusals.labels(resource or "none").inc()

    def _starts(self, done: Pass) -> None:
        for event in done.batch.events:
            match event:
                case Started(run, _):
                    if (decided := self._decided.pop(run, None)) is not None:
                        self._start.observe((done.batch.time - decided) / SECOND)
                case Ended(run, _, _, outcome):
                    self._decided.pop(run, None)
                    self._refused.inc(outcome is Outcome.REFUSED)
                case _:
                    pass
        self._decided.update((number, done.batch.time) for _, number in done.outcome.started)

    def _look(self, done: Pass) -> None:
        waiting = self._class_numbers(done.loop.queue)
        for number, name in enumerate(self._classes):
            self._queue.labels(name).set(int(np.count_nonzero(waiting == number)))
        snapshot = done.snapshot
        self._runs.set(snapshot.n_run)
        for column, resource in enumerate(snapshot.machine.resources):
            free = int(snapshot.free[:, column].sum())
            self._capacity.labels(resource).set(int(snapshot.capacity[:, column].sum()))
            self._free.labels(resource).set(free)
            self._stranded.labels(resource).set(free if len(done.loop.queue) else 0)
        self._pools(snapshot)

    def _class_numbers(self, queue: Queue) -> IntArray:
        """Return the class numbers of the waiting jobs, (n_queued,); the platform is asked once per job."""
        if self._table is not queue.table:
            self._class_of, self._table = np.zeros(0, dtype=np.int64), queue.table
        if len(self._class_of) < len(queue.table):
            self._class_of = np.concatenate([self._class_of, np.full(len(queue.table), -1)])
        jobs = queue.jobs
        for job in jobs[self._class_of[jobs] < 0].tolist():
            self._class_of[job] = self._classes.setdefault(self._platform.class_of(job), len(self._classes))
        numbers: IntArray = self._class_of[jobs]
        return numbers

    def _pools(self, snapshot: Snapshot) -> None:
        machine = snapshot.machine
        if "memory" not in machine.resources:
            return
        column = machine.resource("memory")
        for owner in machine.of_kind(Kind.POOL).tolist():
            if machine.capacity[owner, column]:
                self._pool.labels(machine.owners[owner]).set(int(snapshot.capacity[owner, column]) * MIB)
                self._pool_free.labels(machine.owners[owner]).set(int(snapshot.free[owner, column]) * MIB)
