"""Slurm's main scheduler and backfill scheduler: strict priority order at events, reservations at backfill intervals.

The main scheduler tries each job by priority. The first job of a partition that does not fit blocks the nodes of the partition
for all jobs behind it, including jobs of other partitions that share the nodes.

With `default_queue_depth`, a pass of the main scheduler considers only the first jobs by priority, blocked ones included; every
`sched_interval` seconds, it considers all jobs. Like slurmctld, a pass considers one job more than the parameter states:
slurmctld compares its counter before it counts the job (job_scheduler.c). slurmctld counts a job of several partitions once per
partition; Poolwise counts it once.

Source: slurm.conf(5) of Slurm 22.05, "SchedulerParameters"; its scheduling guide (sched_config.html); and observed behavior
(`tests/live`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import BackfillPolicy, SchedulingPass
from poolwise.model import JobTable, Kind, Machine, Refusal, Snapshot, Start, WaitCause
from poolwise.model.eligibility import has_tiers
from poolwise.model.rules import BackfillRule, PassTimes
from poolwise.policies.backfill.none import owners_of, start_in_order
from poolwise.policies.backfill.slurm_plan import BackfillPlan
from poolwise.quantities import MINUTE, NEVER, SECOND
from poolwise.registry import InputFile, register
from poolwise.slurm.conf import SlurmConf

LINEAR: Final = "select/linear"
"""SelectType with which a backfill pass tries a job after each end of a run."""
SELECT_TYPES: Final = (LINEAR, "select/cons_tres", "select/cons_res")
SUPPORTED: Final = {"bf_interval": 30, "bf_window": 1440, "bf_max_job_test": 500, "bf_resolution": 60}
"""Supported parameters, with defaults in s, min, jobs and s, respectively."""
PER_GROUP: Final[Mapping[str, tuple[str, ...]]] = {
    "bf_max_job_user": ("user",), "bf_max_job_part": ("partition",), "bf_max_job_assoc": ("user", "account"),
}  # fmt: skip
"""Supported limits on the jobs of a group that a backfill pass tests -> the job attributes that define groups; 0: no limit."""
LEAST_PRIORITY: Final = "bf_min_prio_reserve"
"""Supported lowest priority of jobs for which resources are reserved; 0 for any."""
RESERVED_JOBS: Final = "bf_job_part_count_reserve"
"""Supported number of jobs of each partition for which a backfill pass reserves resources; 0 for any number."""
BUSY_NODES: Final = "bf_busy_nodes"
"""Supported preference for nodes in use, a parameter without value; 0 or 1 in `settings`."""
DEPTH: Final = "default_queue_depth"
"""Supported limit on the jobs that a pass of the main scheduler considers."""
FULL_PASS: Final = "sched_interval"
"""Parameter for the seconds between two passes of the main scheduler without the limit `DEPTH`; -1 for none."""
FULL_PASS_S: Final = 60
"""Slurm's default of `sched_interval`."""
IGNORED: Final = (
    "batch_sched_delay", "bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "defer", "max_rpc_cnt",
    "max_sched_time", "sched_max_job_start", "sched_min_interval",
)  # fmt: skip
"""Accepted parameters without effect: they limit Slurm's own processing time, which is zero in a simulation."""


@dataclass(frozen=True)
class BackfillParameters:
    """Interval, window and resolution of Slurm's backfill in ns, and its depth, the number of jobs that a pass tests.

    `limits` are the limits of `PER_GROUP` that are set, as pairs of parameter and number of jobs. `considered` is the number of
    jobs that a pass of the main scheduler considers, None for all, and `full_pass` the ns between two passes that consider all,
    0 for none. Resources are reserved only for jobs of at least `least_priority`, and only for the first `reserved_jobs` of
    each partition, 0 for all; with `busy_nodes`, on nodes in use. A pass groups the ends of runs if `groups_ends`.
    """

    interval: int
    window: int
    depth: int
    resolution: int
    limits: tuple[tuple[str, int], ...] = ()
    considered: int | None = None
    full_pass: int = 0
    least_priority: int = 0
    reserved_jobs: int = 0
    busy_nodes: bool = False
    groups_ends: bool = True


@register("backfills", "slurm")
@dataclass(frozen=True)
class SlurmBackfill(BackfillPolicy):
    """Start jobs in priority order until a job of their partition does not fit; every `bf_interval`, backfill the others.

    A backfill pass tests the first `bf_max_job_test` jobs by priority. It reserves each job's expected placement from its
    expected start (`BackfillPlan`), if that lies within `bf_window`, and starts the job if it can start now. Without
    partitions, the first job that does not fit stops the main scheduler. A pass skips jobs beyond `bf_max_job_user` of a user,
    beyond `bf_max_job_part` of a partition, and beyond `bf_max_job_assoc` of a user in an account.

    With `bf_min_prio_reserve`, a job of lower priority has no reservation, and does not block others in the main scheduler.
    With `bf_job_part_count_reserve`, a backfill pass reserves resources for that many jobs of each partition. With
    `bf_busy_nodes`, it reserves nodes in use rather than idle ones; this requires shared nodes.

    With preemption, both schedulers stop runs for a job that does not fit on the free nodes. The backfill does so before it
    looks for a later start, on nodes that are not reserved.

    By default, the main scheduler considers all jobs in each pass. Slurm's default for `default_queue_depth` is 100. If
    slurm.conf or `settings` contain this parameter, a pass considers one job more than it states, as in slurmctld, and all jobs
    every `sched_interval` seconds (60 by default), counted from `looked`.

    Parameters
    ----------
    conf
        A `slurm.conf` with SchedulerParameters. Without one, Slurm's defaults apply.
    settings
        Values that override SchedulerParameters, such as bf_interval.
    begun
        Time of one backfill pass, in seconds from time 0. The others precede and follow it at multiples of the interval.
    every
        Seconds between two passes of the main scheduler, which considers all events in between together. Slurm itself takes a
        little more than one second; 0 runs a pass at each event. Unlike in Slurm, passes also run without an event in between.
    looked
        Time of one pass of the main scheduler, in seconds from time 0.
    select_type
        Slurm's SelectType; that of `conf` by default. With "select/linear", a backfill pass tries a job after each end of a
        run; with other plugins, it does so after groups of ends.
    """

    conf: InputFile | None = None
    settings: Mapping[str, int] = field(default_factory=dict)
    begun: float = 0.0
    every: float = 0.0
    looked: float = 0.0
    select_type: str = field(default="", kw_only=True)

    chooses_preemptors: ClassVar[bool] = True

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for `bf_busy_nodes` on a machine with exclusive nodes, of which only the number is modeled."""
        if _has_counted_nodes(machine) and self.parameters.busy_nodes:
            problem = f"{BUSY_NODES} is not supported on whole nodes, which are only counted"
            raise InputError(
                problem, field="settings", remedy=f'remove {BUSY_NODES}, or set allocation = "shared" for all nodes'
            )

    def open(self) -> BackfillPolicy:
        """Read slurm.conf and return the policy of one run."""
        _ = self.parameters
        return self

    @cached_property
    def parameters(self) -> BackfillParameters:
        """Parameters of the backfill; raises InputError for a parameter that is not supported."""
        conf = SlurmConf.of({}) if self.conf is None else SlurmConf.read_file(self.conf)
        kind = conf.text("SchedulerType", "sched/backfill")
        if kind != "sched/backfill":
            raise conf.refuse("SchedulerType", f"{kind} does not backfill", 'use backfill = "none" instead')
        configured = conf.pairs("SchedulerParameters")
        supported = (*SUPPORTED, *PER_GROUP, LEAST_PRIORITY, RESERVED_JOBS, BUSY_NODES, DEPTH, FULL_PASS)
        if unknown := sorted({*configured} - {*supported, *IGNORED}):
            remedy = f"remove it from a copy of the file; supported: {', '.join(supported)}"
            raise conf.refuse("SchedulerParameters", f"{unknown[0]} is not supported", remedy)
        if unknown := sorted({*self.settings} - {*supported}):
            raise UnknownNameError.of("setting", unknown[0], supported, field="settings")
        if self.select_type and self.select_type not in SELECT_TYPES:
            raise UnknownNameError.of("SelectType", self.select_type, SELECT_TYPES, field="select_type")
        configured |= {BUSY_NODES: "1"} if BUSY_NODES in configured else {}
        settings = {**configured, **self.settings}
        defaults = {**SUPPORTED, **dict.fromkeys((*PER_GROUP, LEAST_PRIORITY, RESERVED_JOBS, BUSY_NODES), 0)}
        if DEPTH in settings:
            defaults |= {DEPTH: 0, FULL_PASS: FULL_PASS_S}
        values = {}
        for name, default in defaults.items():
            text, least = str(settings.get(name, default)), int(name in SUPPORTED or name == FULL_PASS)
            if name == FULL_PASS and text == "-1":
                text, least = "0", 0
            if not text.isdigit() or int(text) < least:
                message = f"{name}={text} is not a whole number{' above 0' if least else ''}"
                remedy = f"use a whole number of at least {least}"
                if name in self.settings:
                    raise InputError(message, field="settings", remedy=remedy)
                raise conf.refuse("SchedulerParameters", message, remedy)
            values[name] = int(text)
        return BackfillParameters(
            values["bf_interval"] * SECOND,
            values["bf_window"] * MINUTE,
            values["bf_max_job_test"],
            values["bf_resolution"] * SECOND,
            tuple((name, values[name]) for name in PER_GROUP if values[name]),
            values[DEPTH] + 1 if DEPTH in values else None,
            values.get(FULL_PASS, 0) * SECOND,
            values[LEAST_PRIORITY],
            values[RESERVED_JOBS],
            bool(values[BUSY_NODES]),
            (self.select_type or conf.text("SelectType")) != LINEAR,
        )

    def rule(self) -> BackfillRule:
        """Return the rule: times and limits of the passes."""
        limits = self.parameters
        times = PassTimes(
            int(self.begun * SECOND),
            limits.interval,
            int(self.looked * SECOND),
            int(self.every * SECOND),
            limits.depth,
            limits.window,
            limits.resolution,
            NEVER if limits.considered is None else limits.considered,
            limits.full_pass,
            limits.busy_nodes,
            tuple((PER_GROUP[name], most) for name, most in limits.limits),
            float(limits.least_priority) or -np.inf,
            limits.reserved_jobs,
            limits.groups_ends,
        )
        return BackfillRule("tested", times=times)

    def next_wakeup(self, now: int) -> int:
        """Return the time (ns) of the next pass of either scheduler."""
        full = NEVER if self.every else _after(now, self.looked, self.parameters.full_pass)
        return min(self.next_backfill(now), self.next_main_pass(now), full)

    def next_main_pass(self, now: int) -> int:
        """Return the time (ns) of the main scheduler's next pass; `NEVER` if it runs at each event."""
        return _after(now, self.looked, int(self.every * SECOND))

    def next_backfill(self, now: int) -> int:
        """Return the time (ns) of the next backfill pass after `now` (ns)."""
        return _after(now, self.begun, self.parameters.interval)

    def runs_main(self, now: int) -> bool:
        """Return whether the main scheduler runs at a time (ns)."""
        return self.next_main_pass(now - 1) in (now, NEVER)

    def considered(self, now: int) -> int | None:
        """Return the number of jobs that a pass of the main scheduler at a time (ns) considers; None for all.

        The first pass at or after each multiple of `sched_interval` considers all jobs.
        """
        since = now - int(self.every * SECOND) if self.every else now - 1
        full = _after(since, self.looked, self.parameters.full_pass) <= now
        return None if full else self.parameters.considered

    def backfills(self, now: int) -> bool:
        """Return whether a backfill pass runs at a time (ns)."""
        return self.next_backfill(now - 1) == now

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts of the main scheduler, then those of the backfill if a backfill pass is due."""
        now = cycle.snapshot.now
        starts, state = list[Start](), cycle.snapshot
        if self.runs_main(now):
            least = self._least_priority(cycle)
            starts, _, state = start_in_order(
                cycle,
                blocks_pools=False,
                most=self.considered(now),
                least_priority=least,
                heads_fit_empty=not _has_counted_nodes(cycle.snapshot.machine),
            )
        if len(starts) == len(cycle.queue):
            return starts
        tested = np.zeros(0, dtype=np.int64)
        if self.backfills(now):
            ranked = cycle.ranked()
            tested = self._tested(ranked[~np.isin(ranked, [start.job for start in starts])], cycle)
            plan = self.plan(state)
            if plan.weighs_gpus(cycle.placement):
                for row in self._submitted(cycle):
                    plan.submit(cycle.queue.table.job(row))
            self._backfill(cycle, tested, starts, plan)
        self._record_rounds(cycle, tested.tolist(), starts)
        return starts

    def _backfill(self, cycle: SchedulingPass, tested: IntArray, starts: list[Start], plan: BackfillPlan) -> None:
        """Add the starts of a backfill pass, which tests some rows in the order of their priorities.

        Reservations last for a pass. So it ends once none of the remaining jobs can start, unless their waits are explained.
        """
        queue, placement, unblocked, limits = cycle.queue, cycle.placement, cycle.to_explain(starts), self.parameters
        may_start = plan.may_start(tested, placement)
        reservable = frozenset(queue.jobs[cycle.priority >= self._least_priority(cycle)].tolist())
        partition, reserved = queue.table.attributes.get("partition"), Counter[str]()
        for at, job in enumerate(tested.tolist()):
            if not (cycle.explain or cycle.preempt is not None or may_start[at:].any()):
                return
            if job in cycle.explain:
                cycle.place(job, cycle.snapshot.with_starts(starts))  # a shortage at its turn replaces an overlap
            if cycle.preempt is not None:
                preempting = cycle.place(job, plan.present(queue.job(job)))
                if job in cycle.stops and not isinstance(preempting, Refusal):
                    starts.append(Start(job, queue.tasks(job), preempting))
                    return  # the scheduler calls `select` again, without the stopped runs
            of = "" if partition is None else str(partition[job])
            reserves = job in reservable and not 0 < limits.reserved_jobs <= reserved[of]
            expected = plan.plan_job(queue.job(job), placement, reserve=reserves)
            reserved[of] += reserves and expected is not None and expected.start > plan.now
            if expected is not None and expected.start <= plan.now:
                starts.append(Start(job, queue.tasks(job), expected.placement))
                may_start = plan.may_start(tested, placement)
            unblocked = [other for other in unblocked if other != job]
            for other in [other for other in unblocked if not plan.starts_now(queue.job(other), placement)]:
                unblocked.remove(other)
                text = "it fits, but would overlap the reservation of a job of higher priority"
                begins = None if expected is None else expected.start
                cycle.record(other, WaitCause.RESERVATION, text, blocker=job, reserved=begins)

    def _tested(self, ranked: IntArray, cycle: SchedulingPass) -> IntArray:
        """Return the rows of the waiting jobs that a backfill pass tests, in the order of their priorities."""
        columns = cycle.queue.table.attributes
        for name, most in self.parameters.limits:
            if not all(attribute in columns for attribute in PER_GROUP[name]):
                continue
            group = np.zeros(len(ranked), dtype=np.int64)
            for attribute in PER_GROUP[name]:
                each, of = np.unique(columns[attribute][ranked], return_inverse=True)
                group = group * len(each) + of
            first = np.argsort(group, kind="stable")
            before = np.arange(len(ranked)) - np.searchsorted(group[first], group[first])
            ranked = np.delete(ranked, first[before >= most])
        return ranked[: self.parameters.depth]

    def _submitted(self, cycle: SchedulingPass) -> list[int]:
        """Return the rows of the jobs submitted since the last pass of the main scheduler, earliest first."""
        now, submit, rows = cycle.snapshot.now, cycle.queue.table.submit, list[int]()
        if self.next_main_pass(now) == NEVER:
            return rows
        arrived = np.flatnonzero(submit <= now)
        for row in reversed(arrived[np.argsort(submit[arrived], kind="stable")].tolist()):
            if self.next_main_pass(int(submit[row]) - 1) <= now:
                break
            rows.insert(0, row)
        return rows

    def _least_priority(self, cycle: SchedulingPass) -> float:
        """Return the least priority of jobs that block others; raise InputError if priorities are ranks."""
        least = self.parameters.least_priority
        if least and (has_tiers(cycle.snapshot.machine) or cycle.preempt is not None):
            problem = f"{LEAST_PRIORITY} is not supported with partitions of different tiers or with preemption"
            raise InputError(problem, field="settings", remedy=f"set {LEAST_PRIORITY} to 0")
        return least or -np.inf

    def plan(self, snapshot: Snapshot) -> BackfillPlan:
        """Begin a backfill pass."""
        limits = self.parameters
        return BackfillPlan(
            snapshot, limits.window, limits.resolution, busy_nodes=limits.busy_nodes, groups_ends=limits.groups_ends
        )

    def _record_rounds(self, cycle: SchedulingPass, tested: list[int], starts: Sequence[Start]) -> None:
        """Record that jobs wait, although they fit, because no scheduler tests them now."""
        left = set(cycle.to_explain(starts)).difference(tested)
        if not left:
            return
        now, state, started = cycle.snapshot.now, cycle.snapshot.with_starts(starts), {start.job for start in starts}
        ranked = cycle.ranked().tolist()
        waiting, most = [job for job in ranked if job not in started], self.considered(now) if self.runs_main(now) else None
        beyond = set() if most is None else set(ranked[most:])
        for job in left:
            if isinstance(cycle.place(job, state), Refusal):
                continue
            if job in beyond and not tested:
                text = f"it fits, but the main scheduler considers only the first {most} jobs ({DEPTH})"
                cycle.record(job, WaitCause.ROUND, f"{text}; the next pass is in {(self.next_wakeup(now) - now) / SECOND:g} s")
                continue
            mine = owners_of(job, cycle) & (cycle.snapshot.machine.kind == Kind.NODE)
            head = next(other for other in waiting if other == job or (mine & owners_of(other, cycle, partition=True)).any())
            if tested:
                limits = [f"{self.parameters.depth} jobs (bf_max_job_test)"]
                limits += [f"{most} of a {' and '.join(PER_GROUP[name])} ({name})" for name, most in self.parameters.limits]
                text, lack = f"it fits, but a backfill pass tests only {' and '.join(limits)}", None
            elif job == head:
                text, lack = f"it fits, but the schedulers run next in {(self.next_wakeup(now) - now) / SECOND:g} s", None
            else:
                wait = f"{(self.next_backfill(now) - now) / SECOND:g}"
                text = f"it fits, but the head job does not, and the next backfill pass is in {wait} s"
                lack = cycle.placement.place(cycle.queue.job(head), state)
            short = lack if isinstance(lack, Refusal) else None
            cycle.record(
                job, WaitCause.ROUND, text, short, blocker=None if job == head else head, blocker_needs=short is not None
            )


def _after(now: int, first_s: float, step: int) -> int:
    """Return the first instant (ns) after `now` at a multiple of `step` (ns) from `first_s` (s); `NEVER` if `step` is 0."""
    if not step:
        return NEVER
    first = int(first_s * SECOND)
    return ((now - first) // step + 1) * step + first


def _has_counted_nodes(machine: Machine) -> bool:
    """Return whether a machine has exclusive nodes, of which only the number is modeled."""
    return "nodes" in machine.resources and bool(machine.capacity[:, machine.resource("nodes")].any())
