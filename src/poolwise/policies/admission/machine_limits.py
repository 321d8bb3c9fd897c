"""The limits that a machine sets: those of its partitions for one job, and those of its qualities of service (QOS).

Source: the limits MaxTime and MaxNodes of partitions, MaxWall, MaxJobsPerUser, MaxTRESPerUser and GrpTRES of QOS, as Slurm's
"Resource limits" describes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import AdmissionPolicy
from poolwise.model import JobTable, Machine, QualityOfService, Queue, Refusal, Run, Snapshot
from poolwise.model.eligibility import NO_PARTITION, beyond, taking_partitions
from poolwise.model.partition import default_of
from poolwise.registry import register
from poolwise.units import NEVER, UNKNOWN, format_time, to_seconds

QOS, USER, JOBS, NODES = "qos", "user", "jobs", "nodes"
_NOTHING = ("", "-1")


@register("admissions", "machine_limits")
@dataclass(frozen=True)
class MachineLimits(AdmissionPolicy):
    """A job beyond the limits of all its partitions, or of its QOS by itself, never runs; one whose QOS is full waits.

    Each job is held against what runs when its turn comes, so a pass never starts more than a QOS may have.
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for partitions and QOS that the machine does not have, and for limits per user without users."""
        if machine.partitions:
            taking_partitions(machine, jobs, slice(0, len(jobs)))
        column = jobs.attributes.get(QOS)
        for name in np.unique(column).tolist() if machine.qos and column is not None else ():
            _find(machine, str(name))
        if USER not in jobs.attributes and (limited := next((qos for qos in machine.qos if qos.per_user), None)):
            raise InputError(
                f"QOS '{limited.name}' limits each user, and the jobs do not say whose they are",
                field=USER,
                remedy="give a log with users, or leave per_user out",
            )

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """The limits that the job is beyond by itself."""
        table, machine = snapshot.table, snapshot.machine
        if why := beyond(machine, table, job):
            return Refusal(why)
        qos, requested = qos_of(machine, table, job), int(table.requested[job])
        if qos is None:
            return None
        if qos.max_time < requested < UNKNOWN:
            return Refusal(f"QOS '{qos.name}' allows {format_time(to_seconds(qos.max_time))} a job")
        for whose, name, most in _limits(qos):
            asked = _asked(table, job, name, int(table.tasks[job]), 1)
            if asked > most:
                return Refusal(f"QOS '{qos.name}' allows {most} {name} {whose}", name, asked, most)
        return None

    def admits(self, queue: Queue, snapshot: Snapshot) -> BoolArray | None:
        """The jobs whose QOS has room for them."""
        if not any(qos.per_user or qos.total for qos in snapshot.machine.qos):
            return None
        held = _Held(snapshot.machine, queue.table, snapshot.runs())
        return np.array([held.full(job, len(queue.tasks(job))) is None for job in queue.jobs.tolist()], dtype=np.bool_)

    def why(self, job: int, queue: Queue, snapshot: Snapshot) -> Refusal:
        """The limit that is reached."""
        found = _Held(snapshot.machine, queue.table, snapshot.runs()).full(job, len(queue.tasks(job)))
        return found if found is not None else super().why(job, queue, snapshot)


def barred(machine: Machine, table: JobTable) -> IntArray:
    """(k,) rows of jobs that may never run, where no QOS limits what jobs have at a time: see `MachineLimits.never`."""
    found = np.zeros(len(table), dtype=np.bool_)
    if machine.partitions:
        found |= taking_partitions(machine, table, slice(0, len(table))) == NO_PARTITION
    limited = (table.requested > min((qos.max_time for qos in machine.qos), default=NEVER)) & (table.requested < UNKNOWN)
    for job in np.flatnonzero(limited & ~found).tolist():
        qos = qos_of(machine, table, job)
        found[job] = qos is not None and qos.max_time < table.requested[job]
    return np.flatnonzero(found)


class _Held:
    """What the runs have of each limited amount, for each QOS and user."""

    def __init__(self, machine: Machine, table: JobTable, runs: Iterable[Run]) -> None:
        self.machine, self.table = machine, table
        self.amounts: Counter[tuple[str, str, str]] = Counter()  # QOS, user ("" for all of them), amount's name
        self.working: set[int] = set()  # jobs with a run
        for run in runs:
            qos = qos_of(machine, table, run.job)
            if qos is not None:
                for whose, name, _ in _limits(qos):
                    new = run.job not in self.working
                    self.amounts[self._key(qos, whose, run.job, name)] += _asked(table, run.job, name, len(run.tasks), new)
            self.working.add(run.job)

    def full(self, job: int, tasks: int) -> Refusal | None:
        """The limit of its QOS beyond which a job with so many tasks would go; None if it would go beyond none."""
        qos = qos_of(self.machine, self.table, job)
        for whose, name, most in () if qos is None else _limits(qos):
            assert qos is not None
            asked = _asked(self.table, job, name, tasks, job not in self.working)
            left = most - self.amounts[self._key(qos, whose, job, name)]
            if asked > left:
                return Refusal(f"QOS '{qos.name}' allows {most} {name} {whose}", name, asked, max(left, 0))
        return None

    def _key(self, qos: QualityOfService, whose: str, job: int, name: str) -> tuple[str, str, str]:
        return qos.name, str(self.table.attributes[USER][job]) if whose == _PER_USER else "", name


_PER_USER, _IN_ALL = "a user", "in all"


def _limits(qos: QualityOfService) -> Iterator[tuple[str, str, int]]:
    """(whose, amount's name, most) of a QOS."""
    yield from ((_PER_USER, name, most) for name, most in qos.per_user)
    yield from ((_IN_ALL, name, most) for name, most in qos.total)


def _asked(table: JobTable, job: int, name: str, tasks: int, jobs: int) -> int:
    """What so many tasks of a job count of an amount; `jobs` is what they count of the jobs themselves."""
    if name == JOBS:
        return jobs
    nodes = int(table.nodes[job])
    return tasks * nodes * (1 if name == NODES else int(table.request(name)[job]))


def qos_of(machine: Machine, table: JobTable, job: int) -> QualityOfService | None:
    """QOS of a job, the default one where it names none; None without one. Raises InputError for an unknown one."""
    if not machine.qos:
        return None
    column = table.attributes.get(QOS)
    return _find(machine, "" if column is None else str(column[job]))


def _find(machine: Machine, name: str) -> QualityOfService | None:
    if name in _NOTHING:
        name = default_of(machine.qos)
    found = next((qos for qos in machine.qos if qos.name == name), None)
    if found is None and name:
        raise UnknownNameError.of(QOS, name, [qos.name for qos in machine.qos], field=QOS)
    return found
