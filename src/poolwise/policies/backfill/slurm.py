"""Slurm's main scheduler and its backfill: strict order at each event, reservations for many jobs at intervals.

Source: slurm.conf(5) of Slurm 22.05, "SchedulerParameters"; its scheduling guide; and what a real one does (`tests/live`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import BackfillPolicy, PlacementPolicy
from poolwise.model import Queue, Reason, Rule, Snapshot, Start
from poolwise.policies.backfill.none import start_in_order
from poolwise.policies.backfill.passed_over import PassedOver
from poolwise.policies.backfill.slurm_plan import BackfillPlan
from poolwise.registry import register
from poolwise.slurm.conf import SlurmConf
from poolwise.units import MINUTE, NEVER, SECOND

FOLLOWED: Final = {"bf_interval": 30, "bf_window": 1440, "bf_max_job_test": 500, "bf_resolution": 60}
"""Parameters that decide, and their defaults: s, min, jobs, s."""
HARMLESS: Final = (
    "batch_sched_delay", "bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "default_queue_depth", "defer",
    "max_rpc_cnt", "max_sched_time", "sched_interval", "sched_max_job_start", "sched_min_interval",
)  # fmt: skip
"""Parameters that say how soon Slurm gets round to what it does; here it takes no time."""


@dataclass(frozen=True)
class SlurmTimetable:
    """When Slurm's backfill runs, how far it looks, and how exactly: ns, but for `depth`, jobs that a pass tests."""

    interval: int
    window: int
    depth: int
    resolution: int


@register("backfills", "slurm")
@dataclass(frozen=True)
class SlurmBackfill(BackfillPolicy):
    """Start jobs in priority order until one does not fit; every `bf_interval`, backfill behind it.

    A backfill pass takes the first `bf_max_job_test` jobs by priority. What each is to get is held from its expected start on
    (`BackfillPlan`), if that is within `bf_window`; it starts if that is now. All partitions have all nodes, so that the first
    job that does not fit stops the main scheduler in each of them.

    Parameters
    ----------
    conf
        A `slurm.conf`; its SchedulerParameters decide. Without one Slurm's defaults hold.
    settings
        SchedulerParameters to replace, such as bf_interval.
    begun
        Seconds from time 0 to a backfill pass; others follow and precede it at steps of the interval.
    every
        Seconds between two looks of the main scheduler at the queue: what happens between them it sees together. A real
        Slurm looks once a second and a little; 0 looks at each event.
    looked
        Seconds from time 0 to such a look.
    """

    conf: str | None = None
    settings: Mapping[str, int] = field(default_factory=dict)
    begun: float = 0.0
    every: float = 0.0
    looked: float = 0.0

    def open(self) -> BackfillPolicy:
        """Read slurm.conf."""
        _ = self.timetable
        return self

    @cached_property
    def timetable(self) -> SlurmTimetable:
        """What the parameters say; raises InputError for one that decides and is not followed here."""
        conf = SlurmConf.of({}) if self.conf is None else SlurmConf.read_file(self.conf)
        kind = conf.text("SchedulerType", "sched/backfill")
        if kind != "sched/backfill":
            raise conf.refuse("SchedulerType", f"{kind} does not backfill", 'choose backfill = "none" instead')
        said = conf.pairs("SchedulerParameters")
        if unknown := sorted({*said} - {*FOLLOWED, *HARMLESS}):
            remedy = f"leave it out of a copy of the file; followed: {', '.join(FOLLOWED)}"
            raise conf.refuse("SchedulerParameters", f"{unknown[0]} is not followed here", remedy)
        if unknown := sorted({*self.settings} - {*FOLLOWED}):
            raise InputError(f"'{unknown[0]}' is not followed here", field="settings", remedy=f"known: {', '.join(FOLLOWED)}")
        found = {}
        for name, default in FOLLOWED.items():
            text = str(self.settings.get(name, said.get(name, default)))
            if not text.isdigit() or int(text) == 0:
                message, remedy = f"{name}={text} is not a whole number above 0", "correct it"
                if name in self.settings:
                    raise InputError(message, field="settings", remedy=remedy)
                raise conf.refuse("SchedulerParameters", message, remedy)
            found[name] = int(text)
        return SlurmTimetable(
            found["bf_interval"] * SECOND,
            found["bf_window"] * MINUTE,
            found["bf_max_job_test"],
            found["bf_resolution"] * SECOND,
        )

    def wake_at(self, now: int) -> int:
        """The next look of the main scheduler, or the next backfill pass."""
        return min(self.next_backfill(now), self.next_look(now))

    def next_look(self, now: int) -> int:
        """The first look (ns) after a time, `NEVER` where the main scheduler looks at each event."""
        return _after(now, self.looked, int(self.every * SECOND)) if self.every else NEVER

    def next_backfill(self, now: int) -> int:
        """The first backfill pass (ns) after a time."""
        return _after(now, self.begun, self.timetable.interval)

    def looks(self, now: int) -> bool:
        """Whether the main scheduler looks at the queue at a time (ns)."""
        return self.next_look(now - 1) in (now, NEVER)

    def backfills(self, now: int) -> bool:
        """Whether a time (ns) is that of a backfill pass."""
        return self.next_backfill(now - 1) == now

    def _main(
        self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy
    ) -> tuple[list[Start], bool, Snapshot]:
        """What the main scheduler starts, whether it leaves anyone waiting, and the state after it."""
        if not self.looks(snapshot.now):
            return [], True, snapshot
        starts, head, state = start_in_order(queue, priority, snapshot, placement)
        return starts, head >= 0, state

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose the starts: those of the main scheduler, then those of the backfill if this is its time."""
        starts, waits, state = self._main(queue, priority, snapshot, placement)
        if not waits or not self.backfills(snapshot.now):
            return starts
        plan = self.plan(state)
        for job in self._tested(queue, priority, starts).tolist():
            found = plan.plan_job(queue.job(job), placement)
            if found is not None and found.start <= plan.now:
                starts.append(Start(job, queue.tasks(job), found.placement))
        return starts

    def _tested(self, queue: Queue, priority: FloatArray, starts: Sequence[Start]) -> IntArray:
        """(k,) rows that a backfill pass tests: the first by priority of those that the main scheduler left."""
        ranked = queue.jobs[np.argsort(-priority, kind="stable")]
        return ranked[~np.isin(ranked, [start.job for start in starts])][: self.timetable.depth]

    def plan(self, state: Snapshot) -> BackfillPlan:
        """Begin a backfill pass."""
        return BackfillPlan(state, self.timetable.window, self.timetable.resolution)

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Say what a job lacks; or that backfill is yet to come; or whose reservation it would run into."""
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        if (short := passed.short()) is not None:
            return short
        if not passed.ahead:
            raise passed.contradiction()
        main, _, state = self._main(queue, priority, snapshot, placement)
        if not self.backfills(snapshot.now):
            text = (
                f"it fits, but the head of the queue does not, and the next backfill pass is in {_left(self, snapshot.now)} s"
            )
            return Reason.of(Rule.ROUND, text, passed.lack(passed.ahead[0], state), blocker=passed.ahead[0])
        tested = self._tested(queue, priority, main)
        if job not in tested:
            text = f"it fits, but a backfill pass tests no more than {self.timetable.depth} jobs (bf_max_job_test)"
            return Reason.of(Rule.ROUND, text, blocker=passed.ahead[0])
        blocker, reserved, plan = passed.ahead[0], None, self.plan(state)
        for row in tested[: int(np.flatnonzero(tested == job)[0])].tolist():
            found = plan.plan_job(queue.job(row), placement)
            if not plan.starts_now(queue.job(job), placement):
                blocker, reserved = row, None if found is None else found.start
                break
        text = "it fits, but would run into the reservation of a job of higher priority"
        return Reason.of(Rule.RESERVATION, text, blocker=blocker, reserved=reserved)


def _after(now: int, first_s: float, step: int) -> int:
    """The first instant (ns) after `now` that is a number of steps from an instant given in seconds."""
    first = int(first_s * SECOND)
    return ((now - first) // step + 1) * step + first


def _left(backfill: SlurmBackfill, now: int) -> str:
    return f"{(backfill.next_backfill(now) - now) / SECOND:g}"
