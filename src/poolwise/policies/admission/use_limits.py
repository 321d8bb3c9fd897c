"""Limits of QOS and associations that apply to each job: the limited amounts, and the groups whose running jobs share them.

Source: the limits MaxWall, MaxJobs, MaxTRES, GrpJobs and GrpTRES of QOS and associations in Slurm's "Resource limits".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import AssociationLimits, JobTable, Machine, QualityOfService
from poolwise.model.partition import default_of
from poolwise.model.table_columns import Column, Kinds
from poolwise.quantities import NEVER

QOS, USER, ACCOUNT = "qos", "user", "account"
"""Attributes of jobs that determine their limits."""
JOBS, NODES = "jobs", "nodes"
"""Amounts other than resources."""
PER_USER, IN_ALL = "per user", "in total"
_UNSET = ("", "-1")


def limits_running_jobs(machine: Machine) -> bool:
    """Return whether a QOS or an association of a machine limits what running jobs use together."""
    return any(qos.per_user or qos.total for qos in machine.qos) or any(
        each.per_user or each.total for each in machine.associations
    )


class UseLimit(NamedTuple):
    """A limit on an amount that the running jobs of a group, such as ("qos", "high", "ann"), use together."""

    group: tuple[str, ...]
    owner: str  # in messages: QOS 'high'
    whose: str
    name: str
    most: int

    @property
    def text(self) -> str:
        """The limit in words."""
        return f"{self.owner} allows at most {counted(self.most, self.name)} {self.whose}"


class UseLimits:
    """The limits of QOS and associations of a machine for the jobs of a table.

    As in Slurm (src/slurmctld/acct_policy.c), a limit of a job's QOS on an amount replaces the limits of its associations on
    that amount.

    Raises InputError for an unknown QOS, and if jobs lack the users or accounts to which limits refer.
    """

    def __init__(self, machine: Machine, table: JobTable) -> None:
        self.machine, self.table = machine, table
        self._concurrent: dict[int, tuple[UseLimit, ...]] = {}
        self._associations = {(each.account, each.user): each for each in machine.associations}
        self._qos = {each.name: each for each in machine.qos}

    @cached_property
    def kinds(self) -> Kinds:
        """Kind of each job; jobs with equal QOS, user and account have the same number."""
        return self.table.kinds("limits of use", _columns)

    def rows(self) -> list[IntArray]:
        """Return the rows of the jobs of each kind, (k,)."""
        of = self.kinds.of
        return np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of, minlength=len(self.kinds.value)))[:-1])

    def concurrent(self, kind: int) -> tuple[UseLimit, ...]:
        """Return the limits on concurrent use that apply to jobs of a kind."""
        if kind not in self._concurrent:
            self._concurrent[kind] = tuple(self._limits(*self.kinds.value[kind]))
        return self._concurrent[kind]

    def per_job(self, kind: int) -> list[tuple[str, int, tuple[tuple[str, int], ...]]]:
        """Return the limits on each job of a kind: the QOS or association that sets them, the time (ns), and other amounts."""
        qos, user, account = self.kinds.value[kind]
        match, limits = self.qos(qos), list[tuple[str, int, tuple[tuple[str, int], ...]]]()
        if match is not None:
            limits.append((f"QOS '{match.name}'", match.max_time, ()))
        timed, counted = match is not None and match.max_time < NEVER, set[str]()
        for each in self._chain(user, account):
            new = tuple((name, most) for name, most in each.per_job if name not in counted)
            limits.append((each.label, NEVER if timed else each.max_time, new))
            timed = timed or each.max_time < NEVER
            counted |= {name for name, _ in new}
        return limits

    def qos(self, name: str) -> QualityOfService | None:
        """Return the QOS that a job names, by default the machine's default QOS; None if there is none."""
        if not self.machine.qos:
            return None
        name = default_of(self.machine.qos) if name in _UNSET else name
        if name and name not in self._qos:
            raise UnknownNameError.of(QOS, name, [*self._qos], field=QOS)
        return self._qos.get(name)

    def _limits(self, qos: str, user: str, account: str) -> Iterator[UseLimit]:
        """Yield the limits on concurrent use of jobs with a QOS, user and account."""
        if (match := self.qos(qos)) is not None:
            for name, most in match.per_user:
                self._require(USER, f"QOS '{match.name}' limits each user")
                yield UseLimit((QOS, match.name, user), f"QOS '{match.name}'", PER_USER, name, most)
            for name, most in match.total:
                yield UseLimit((QOS, match.name), f"QOS '{match.name}'", IN_ALL, name, most)
        limited = set[str]() if match is None else {name for name, _ in match.per_user}
        total = set[str]() if match is None else {name for name, _ in match.total}
        for each in self._chain(user, account):
            for name, most in each.per_user:
                if name not in limited:
                    self._require(USER, f"{each.label} limits each user")
                    yield UseLimit((USER, account, user), each.label, PER_USER, name, most)
            limited |= {name for name, _ in each.per_user}
            for name, most in each.total:
                if name not in total:
                    yield UseLimit((ACCOUNT, each.account, each.user), each.label, IN_ALL, name, most)

    def _chain(self, user: str, account: str) -> Iterator[AssociationLimits]:
        """Yield the associations of jobs with a user and account: the user's own, then the accounts, innermost first."""
        if not self.machine.associations:
            return
        self._require(ACCOUNT, "the machine limits associations")
        if (account, user) in self._associations and user:
            yield self._associations[account, user]
        while each := self._associations.get((account, "")):
            yield each
            account = each.parent

    def _require(self, column: str, why: str) -> None:
        if column not in self.table.attributes:
            remedy = f"use a log with {column}s, or remove the limits from the machine"
            raise InputError(f"{why}, but the jobs have no {column}s", field=column, remedy=remedy)


def _columns(table: JobTable, rows: slice) -> tuple[Column, ...]:
    """Return the QOS, users and accounts of some rows, as text."""
    empty = np.full(len(table.submit[rows]), "")
    return tuple(
        table.attributes[name][rows].astype(np.str_) if name in table.attributes else empty for name in (QOS, USER, ACCOUNT)
    )


def counted(number: int, name: str) -> str:
    """Return an amount in words, such as "1 core" or "3 cores"; only jobs, nodes and cores have a singular form."""
    return f"{number} {name.removesuffix('s') if number == 1 and name in (JOBS, NODES, 'cores') else name}"


def amounts(table: JobTable, job: int | IntArray, name: str, tasks: int | IntArray, jobs: int) -> int | IntArray:
    """Return how much of a limited amount the tasks of one job, or of several, (k,), use; return `jobs` for a limit on jobs."""
    if name == JOBS:
        return jobs
    requested: int | IntArray = tasks * table.nodes[job] * (1 if name == NODES else table.request(name)[job])
    return requested
