"""Machine limits: partition limits per job, limits of qualities of service (QOS) and associations, and licenses.

Source: the partition limits MaxTime and MaxNodes of Slurm; see `use_limits` for the others. Licenses without `bf_licenses`:
src/slurmctld/licenses.c (`license_job_test`), src/slurmctld/job_scheduler.c and src/plugins/sched/backfill/backfill.c of Slurm
22.05.8, whose schedulers skip a job that lacks licenses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import AdmissionPolicy, SchedulingPass
from poolwise.model import JobTable, Machine, Refusal, Run, Snapshot, WaitCause
from poolwise.model.eligibility import NO_PARTITION, exceeded_limits, taking_partitions, time_limits
from poolwise.model.licenses import LicenseUse, exceeded_licenses, license_requests
from poolwise.policies.admission.use_limits import UseLimit, UseLimits, amounts, counted, limits_running_jobs
from poolwise.quantities import UNKNOWN, format_time, to_seconds
from poolwise.registry import register


@register("admissions", "machine_limits")
@dataclass(frozen=True)
class MachineLimits(AdmissionPolicy):
    """Reject jobs that exceed the limits of all their partitions, of their QOS or association, or on licenses.

    Hold jobs back while their QOS or association is full, or their licenses are in use. Each job is checked against the runs at
    the time it is considered, so a pass never exceeds these limits. A job held back is skipped and blocks no other job.
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for unknown partitions, QOS and licenses, and if limits require users or accounts that jobs lack."""
        license_requests(machine, jobs)
        if machine.partitions:
            taking_partitions(machine, jobs, slice(0, len(jobs)))
        if machine.qos or machine.associations:
            limits = UseLimits(machine, jobs)
            for kind in range(len(limits.kinds.value)):
                limits.concurrent(kind)

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """Return the limit that the job would exceed even if it ran alone, or None."""
        table, machine = snapshot.table, snapshot.machine
        if why := exceeded_limits(machine, table, job):
            return Refusal(why)
        if lacking := exceeded_licenses(machine, table, job):
            return lacking
        if not (machine.qos or machine.associations):
            return None
        limits, requested = UseLimits(machine, table), int(time_limits(table, slice(job, job + 1))[0])
        kind = int(limits.kinds.of[job])
        for owner, longest, others in limits.per_job(kind):
            if longest < requested < UNKNOWN:
                return Refusal(f"{owner} allows at most {format_time(to_seconds(longest))} per job")
            for name, most in others:
                if (needed := int(amounts(table, job, name, table.tasks[job], 1))) > most:
                    return Refusal(f"{owner} allows at most {counted(most, name)} per job", name, needed, most)
        for limit in limits.concurrent(kind):
            if (needed := int(amounts(table, job, limit.name, table.tasks[job], 1))) > limit.most:
                return Refusal(limit.text, limit.name, needed, limit.most)
        return None

    def admits(self, cycle: SchedulingPass) -> BoolArray | None:
        """Return a mask of the waiting jobs with room in their QOS and free licenses, (n_queued,); None without such limits."""
        queue, machine, runs = cycle.queue, cycle.snapshot.machine, cycle.snapshot.runs
        limited = limits_running_jobs(machine)
        licenses = LicenseUse(machine, queue.table, runs()) if machine.licenses else None
        if not limited and not (licenses and licenses.requests):
            return None
        usage, admitted = _CurrentUse(machine, queue.table, runs() if limited else ()), np.ones(len(queue), dtype=np.bool_)
        for k, job in enumerate(queue.jobs.tolist()):
            exceeded = usage.exceeded(job, len(queue.tasks(job))) if limited else None
            exceeded = exceeded or (licenses.lacking(job) if licenses else None)
            if exceeded is not None:
                admitted[k] = False
                cycle.record(job, WaitCause.LIMIT, exceeded.reason, exceeded)
        return admitted


def barred(machine: Machine, table: JobTable) -> IntArray:
    """Return the rows of jobs that may never run, (k,); see `MachineLimits.never`."""
    mask = np.zeros(len(table), dtype=np.bool_)
    if machine.partitions:
        mask |= taking_partitions(machine, table, slice(0, len(table))) == NO_PARTITION
    if machine.qos or machine.associations:
        limits, requested = UseLimits(machine, table), time_limits(table, slice(0, len(table)))
        for kind, some in enumerate(limits.rows()):
            for _, longest, others in limits.per_job(kind):
                mask[some] |= (longest < requested[some]) & (requested[some] < UNKNOWN)
                for name, most in others:
                    mask[some] |= np.asarray(amounts(table, some, name, table.tasks[some], 1)) > most
    if limits_use(machine):
        demands = counter_demands(machine, table)
        exceeding = demands.amount > demands.capacity[demands.counter]
        mask[np.repeat(np.arange(len(table)), np.diff(demands.first))[exceeding]] = True
    return np.flatnonzero(mask)


class CounterDemands(NamedTuple):
    """Consumable counters of a machine, and the amounts that each job uses while all its tasks run.

    There is a counter for each license and for each `UseLimit`. A waiting job is admitted if each of its amounts is at most the
    capacity of the counter minus its use; an amount of 0 is not listed for licenses.

    Attributes
    ----------
    capacity : (n_counter,)
    first : (n_job + 1,) demands first[k]:first[k + 1] are those of job k
    counter : (n_demand,)
    amount : (n_demand,)
    """

    capacity: IntArray
    first: IntArray
    counter: IntArray
    amount: IntArray


def limits_use(machine: Machine) -> bool:
    """Return whether a machine limits concurrent use, by licenses or by limits of a QOS or of associations."""
    return bool(machine.licenses) or limits_running_jobs(machine)


def counter_demands(machine: Machine, table: JobTable) -> CounterDemands:
    """Return the counters of a machine and the demands of jobs, from which `MachineLimits.admits` decides.

    Raises InputError for unknown licenses and QOS, and for limits on users or accounts if the jobs do not state them.
    """
    jobs, amounts_of, counters, capacity = [], [], [], list[int]()
    for name, counts in license_requests(machine, table).items():
        some = np.flatnonzero(counts)
        jobs.append(some)
        amounts_of.append(counts[some])
        counters.append(np.full(len(some), len(capacity)))
        capacity.append(machine.licenses[name])
    limits, numbers = UseLimits(machine, table), dict[UseLimit, int]()
    for kind, some in enumerate(limits.rows() if machine.qos or machine.associations else ()):
        for limit in limits.concurrent(kind):
            if limit not in numbers:
                numbers[limit] = len(capacity)
                capacity.append(limit.most)
            jobs.append(some)
            amounts_of.append(np.broadcast_to(amounts(table, some, limit.name, table.tasks[some], 1), some.shape))
            counters.append(np.full(len(some), numbers[limit]))
    job, counter, amount = (_joined(columns) for columns in (jobs, counters, amounts_of))
    order, offset = np.argsort(job, kind="stable"), np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(np.bincount(job, minlength=len(table)), out=offset[1:])
    return CounterDemands(np.array(capacity, dtype=np.int64), offset, counter[order], amount[order])


def _joined(columns: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns]).astype(np.int64)


class _CurrentUse:
    """Current use of each limited amount."""

    def __init__(self, machine: Machine, table: JobTable, runs: Iterable[Run]) -> None:
        self.table, self.limits = table, UseLimits(machine, table)
        self.amounts = Counter[UseLimit]()
        self.running: set[int] = set()  # jobs with a run
        for run in runs:
            new = run.job not in self.running
            for limit in self.limits.concurrent(int(self.limits.kinds.of[run.job])):
                self.amounts[limit] += int(amounts(table, run.job, limit.name, len(run.tasks), new))
            self.running.add(run.job)

    def exceeded(self, job: int, tasks: int) -> Refusal | None:
        """Return the limit that a job would exceed with this many more tasks; None if it exceeds none."""
        for limit in self.limits.concurrent(int(self.limits.kinds.of[job])):
            requested = int(amounts(self.table, job, limit.name, tasks, job not in self.running))
            left = limit.most - self.amounts[limit]
            if requested > left:
                return Refusal(limit.text, limit.name, requested, max(left, 0))
        return None
