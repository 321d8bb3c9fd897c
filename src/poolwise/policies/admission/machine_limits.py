"""Machine limits: partition limits per job, limits of a quality of service (QOS), and licenses.

Source: the partition limits MaxTime and MaxNodes and the QOS limits MaxWall, MaxJobsPerUser, MaxTRESPerUser and GrpTRES, as
described in Slurm's "Resource limits". Licenses without `bf_licenses`: src/slurmctld/licenses.c (`license_job_test`),
src/slurmctld/job_scheduler.c and src/plugins/sched/backfill/backfill.c of Slurm 22.05.8, whose schedulers skip a job that
lacks licenses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import AdmissionPolicy, SchedulingPass
from poolwise.model import JobTable, Machine, QualityOfService, Refusal, Run, Snapshot, WaitCause
from poolwise.model.eligibility import NO_PARTITION, exceeded_limits, taking_partitions, time_limits
from poolwise.model.licenses import LicenseUse, exceeded_licenses, license_requests
from poolwise.model.partition import default_of
from poolwise.model.table_columns import Column
from poolwise.quantities import NEVER, UNKNOWN, format_time, to_seconds
from poolwise.registry import register

QOS, USER, JOBS, NODES = "qos", "user", "jobs", "nodes"
_UNSET = ("", "-1")


@register("admissions", "machine_limits")
@dataclass(frozen=True)
class MachineLimits(AdmissionPolicy):
    """Reject jobs that exceed the limits of all their partitions or of their QOS, or request more licenses than exist.

    Hold jobs back while their QOS is full or their licenses are in use. Each job is checked against the runs at the time it is
    considered, so a pass never exceeds these limits. A job that lacks licenses is skipped and blocks no other job.
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for unknown partitions, QOS and licenses, and for per-user limits if the jobs have no users."""
        license_requests(machine, jobs)
        if machine.partitions:
            taking_partitions(machine, jobs, slice(0, len(jobs)))
        column = jobs.attributes.get(QOS)
        for name in np.unique(column).tolist() if machine.qos and column is not None else ():
            _find(machine, str(name))
        for qos in machine.qos:
            if qos.per_user:
                _users(qos, jobs)

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """Return the limit that the job exceeds by itself, None if it exceeds none."""
        table, machine = snapshot.table, snapshot.machine
        if why := exceeded_limits(machine, table, job):
            return Refusal(why)
        if lacking := exceeded_licenses(machine, table, job):
            return lacking
        qos, requested = qos_of(machine, table, job), int(time_limits(table, slice(job, job + 1))[0])
        if qos is None:
            return None
        if qos.max_time < requested < UNKNOWN:
            return Refusal(f"QOS '{qos.name}' allows at most {format_time(to_seconds(qos.max_time))} per job")
        for whose, name, most in _limits(qos):
            requested_amount = int(_amounts(table, job, name, table.tasks[job], 1))
            if requested_amount > most:
                return Refusal(f"QOS '{qos.name}' allows at most {most} {name} {whose}", name, requested_amount, most)
        return None

    def admits(self, cycle: SchedulingPass) -> BoolArray | None:
        """Return a mask of the waiting jobs with room in their QOS and free licenses, (n_queued,); None without such limits."""
        queue, machine, runs = cycle.queue, cycle.snapshot.machine, cycle.snapshot.runs
        limited = any(qos.per_user or qos.total for qos in machine.qos)
        licenses = LicenseUse(machine, queue.table, runs()) if machine.licenses else None
        if not limited and not (licenses and licenses.requests):
            return None
        usage, admitted = _LimitUsage(machine, queue.table, runs() if limited else ()), np.ones(len(queue), dtype=np.bool_)
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
    requested = time_limits(table, slice(0, len(table)))
    limited = (requested > min((qos.max_time for qos in machine.qos), default=NEVER)) & (requested < UNKNOWN)
    for job in np.flatnonzero(limited & ~mask).tolist():
        qos = qos_of(machine, table, job)
        mask[job] = qos is not None and qos.max_time < requested[job]
    if limits_use(machine):
        demands = counter_demands(machine, table)
        exceeding = demands.amount > demands.capacity[demands.counter]
        mask[np.repeat(np.arange(len(table)), np.diff(demands.first))[exceeding]] = True
    return np.flatnonzero(mask)


class CounterDemands(NamedTuple):
    """Consumable counters of a machine, and the amounts that each job uses while all its tasks run.

    There is a counter for each license, for each total limit of a QOS, and for each of its limits per user and user. A waiting
    job is admitted if each of its amounts is at most the capacity of the counter minus its use; an amount of 0 is listed for
    limits of a QOS only.

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
    """Return whether a machine limits concurrent use, by licenses or by limits of a QOS."""
    return bool(machine.licenses) or any(qos.per_user or qos.total for qos in machine.qos)


def counter_demands(machine: Machine, table: JobTable) -> CounterDemands:
    """Return the counters of a machine and the demands of jobs, by which `MachineLimits.admits` decides.

    Raises InputError for unknown licenses and QOS, and for per-user limits if the jobs have no users.
    """
    jobs, amounts, counters, capacity = [], [], [], list[int]()
    for name, counts in license_requests(machine, table).items():
        some = np.flatnonzero(counts)
        jobs.append(some)
        amounts.append(counts[some])
        counters.append(np.full(len(some), len(capacity)))
        capacity.append(machine.licenses[name])
    for qos, some in _jobs_by_qos(machine, table):
        for whose, name, most in _limits(qos):
            group = np.unique(_users(qos, table)[some], return_inverse=True)[1] if whose == _PER_USER else np.zeros_like(some)
            jobs.append(some)
            amounts.append(np.broadcast_to(_amounts(table, some, name, table.tasks[some], 1), some.shape))
            counters.append(group + len(capacity))
            capacity += [most] * (int(group.max(initial=-1)) + 1)
    job, counter, amount = (_joined(columns) for columns in (jobs, counters, amounts))
    order, offset = np.argsort(job, kind="stable"), np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(np.bincount(job, minlength=len(table)), out=offset[1:])
    return CounterDemands(np.array(capacity, dtype=np.int64), offset, counter[order], amount[order])


def _joined(columns: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns]).astype(np.int64)


def _jobs_by_qos(machine: Machine, table: JobTable) -> Iterator[tuple[QualityOfService, IntArray]]:
    """Yield each QOS with the rows of its jobs, (k,)."""
    if not machine.qos:
        return
    column = table.attributes.get(QOS)
    names, of = (
        (np.array([""]), np.zeros(len(table), dtype=np.int64)) if column is None else np.unique(column, return_inverse=True)
    )
    qos_of_names = [_find(machine, str(name)) for name in names.tolist()]
    for qos in machine.qos:
        yield qos, np.flatnonzero(np.array([each is qos for each in qos_of_names], dtype=np.bool_)[of])


def _users(qos: QualityOfService, table: JobTable) -> Column:
    """Return (n_job,) users; raise InputError if the jobs have none, although a QOS limits each user."""
    if USER not in table.attributes:
        raise InputError(
            f"QOS '{qos.name}' limits each user, but the jobs have no users",
            field=USER,
            remedy="use a log with users, or remove per_user",
        )
    return table.attributes[USER]


class _LimitUsage:
    """Current use of each limited amount, per QOS and user."""

    def __init__(self, machine: Machine, table: JobTable, runs: Iterable[Run]) -> None:
        self.machine, self.table = machine, table
        self.amounts: Counter[tuple[str, str, str]] = Counter()  # QOS, user ("" for all of them), amount's name
        self.running: set[int] = set()  # jobs with a run
        for run in runs:
            qos = qos_of(machine, table, run.job)
            if qos is not None:
                for whose, name, _ in _limits(qos):
                    new = run.job not in self.running
                    self.amounts[self._key(qos, whose, run.job, name)] += int(
                        _amounts(table, run.job, name, len(run.tasks), new)
                    )
            self.running.add(run.job)

    def exceeded(self, job: int, tasks: int) -> Refusal | None:
        """Return the QOS limit that a job would exceed with this many more tasks; None if it exceeds none."""
        qos = qos_of(self.machine, self.table, job)
        for whose, name, most in () if qos is None else _limits(qos):
            assert qos is not None
            requested = int(_amounts(self.table, job, name, tasks, job not in self.running))
            left = most - self.amounts[self._key(qos, whose, job, name)]
            if requested > left:
                return Refusal(f"QOS '{qos.name}' allows at most {most} {name} {whose}", name, requested, max(left, 0))
        return None

    def _key(self, qos: QualityOfService, whose: str, job: int, name: str) -> tuple[str, str, str]:
        return qos.name, str(self.table.attributes[USER][job]) if whose == _PER_USER else "", name


_PER_USER, _IN_ALL = "per user", "in total"


def _limits(qos: QualityOfService) -> Iterator[tuple[str, str, int]]:
    """Yield the limits of a QOS as (whose, name of the amount, maximum)."""
    yield from ((_PER_USER, name, most) for name, most in qos.per_user)
    yield from ((_IN_ALL, name, most) for name, most in qos.total)


def _amounts(table: JobTable, job: int | IntArray, name: str, tasks: int | IntArray, jobs: int) -> int | IntArray:
    """Return the limited amount that tasks of a job, or of each job (k,), use; `jobs` is their count under a limit on jobs."""
    if name == JOBS:
        return jobs
    amounts: int | IntArray = tasks * table.nodes[job] * (1 if name == NODES else table.request(name)[job])
    return amounts


def qos_of(machine: Machine, table: JobTable, job: int) -> QualityOfService | None:
    """Return the QOS of a job, by default that of the machine; None if there is none. Raises InputError if it is unknown."""
    if not machine.qos:
        return None
    column = table.attributes.get(QOS)
    return _find(machine, "" if column is None else str(column[job]))


def _find(machine: Machine, name: str) -> QualityOfService | None:
    if name in _UNSET:
        name = default_of(machine.qos)
    match = next((qos for qos in machine.qos if qos.name == name), None)
    if match is None and name:
        raise UnknownNameError.of(QOS, name, [qos.name for qos in machine.qos], field=QOS)
    return match
