"""Queue order `multifactor`: job priorities as computed by Slurm's multifactor plugin.

Source: Slurm's documentation, "Multifactor Priority Plugin", and the output of Slurm 22.05 (`tests/live`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import OrderKind, PreparedOrder, QueuePolicy, RecalculatedOrder
from poolwise.model import Accounting, JobTable, Machine, Queue, Snapshot
from poolwise.model.priority_formula import PriorityFormula, UsageShares
from poolwise.policies.order.multifactor.factors import FixedFactors
from poolwise.policies.order.multifactor.rules import KEYS, PriorityRules
from poolwise.policies.order.multifactor.shares import ShareTree, Usage
from poolwise.quantities import SECOND
from poolwise.registry import InputFile, register
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.dumps import QOS_REMEDY, SHARES_REMEDY, read_priorities, read_shares

MOST = float(0xFFFFFFFF)
"""Highest priority in Slurm."""


class PriorityTerms(NamedTuple):
    """Weighted contribution of each factor to the priorities of jobs, (k,) each. Only `nice` is subtracted."""

    age: FloatArray
    fair_share: FloatArray
    job_size: FloatArray
    partition: FloatArray
    qos: FloatArray
    tres: FloatArray
    nice: FloatArray


@register("orders", "multifactor")
@dataclass(frozen=True)
class Multifactor(PreparedOrder):
    """Slurm's multifactor priority: age, fair share, job size, partition, QOS, TRES and nice, truncated to a whole number.

    As in Slurm, priorities change only when they are recalculated, once per PriorityCalcPeriod. A newly submitted job has no
    age until the next recalculation, and usage counts up to the last one.

    For each resource in PriorityWeightTRES, the TRES term adds its weight times the fraction of the partition's amount that the
    job requests. The resources are cpu, mem, node, gres/gpu (the resource or devices "gpu", of all types together) and
    license/NAME, of which each partition has as many as the machine. The GPUs of a partition are those in the Gres of its
    NodeName lines, or all GPUs of the machine if no slurm.conf lists its nodes. With GRES/gpu=2000, a job with 4 of the
    partition's 16 GPUs gains 500. With PriorityFlags=NO_NORMAL_TRES, weights apply to the amounts themselves. A resource that
    the partition lacks adds nothing, as in Slurm; gres/gpu:TYPE and other generic resources are refused.

    Jobs are distinguished by the columns user, account, qos, partition and nice of the job table, where present. A job
    without a partition is in the default one; a job without a QOS has the QOS "normal".

    Parameters
    ----------
    conf
        A `slurm.conf`, which sets weights, limits and flags. Without one all weights are 0, which is Slurm's default.
    shares
        A dump of `sshare --all --long --parsable2`: the share tree and the usage before time 0.
    qos
        A dump of `sacctmgr --parsable2 show qos format=Name,Priority`.
    settings
        Values that override keys of slurm.conf, such as PriorityWeightAge.
    recalculated
        Time of one recalculation in seconds from time 0. The others precede and follow it at multiples of the period.
    """

    conf: InputFile | None = None
    shares: InputFile | None = None
    qos: InputFile | None = None
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    recalculated: float = 0.0
    kind: ClassVar[OrderKind] = "recalculated"

    def open(self) -> QueuePolicy:
        """Read the files and return the order of one run."""
        return Recalculated(self)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError if the files are incomplete, and warn of jobs whose users have no share."""
        Recalculated(self).check(machine, jobs)

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities, (n_queued,), from the whole history; `open` returns an order that caches the usage."""
        return self.open().priority(queue, snapshot)


class Recalculated(RecalculatedOrder):
    """Multifactor order of one run, with cached columns of the job table and the usage as of the last recalculation."""

    def __init__(self, chosen: Multifactor) -> None:
        self.chosen = chosen
        spelled = {key.lower(): key for key in KEYS}
        if unknown := [key for key in chosen.settings if key.lower() not in spelled]:
            raise UnknownNameError.of("priority key of slurm.conf", unknown[0], KEYS, field="settings")
        by_key: dict[str, str] = {}
        for key in chosen.settings:
            if (other := by_key.setdefault(key.lower(), key)) != key:
                remedy = f"write {spelled[key.lower()]} once"
                raise InputError(f"'{other}' and '{key}' are the same key of slurm.conf", field="settings", remedy=remedy)
        conf = SlurmConf.of({}) if chosen.conf is None else SlurmConf.read_file(chosen.conf)
        self.conf = conf.with_values(chosen.settings) if chosen.settings else conf
        self.rules = PriorityRules.of(self.conf)
        if self.rules.qos and chosen.qos is None:
            raise self._missing_dump("PriorityWeightQOS", "qos", "no QOS priorities are given", QOS_REMEDY)
        if self.rules.fair_share and chosen.shares is None:
            raise self._missing_dump("PriorityWeightFairshare", "shares", "no shares are given", SHARES_REMEDY)
        self.qualities = {} if chosen.qos is None else read_priorities(Path(chosen.qos))
        self._machine: Machine | None = None
        self._key: object = object()  # identifies this run's columns in the job table
        self._columns: tuple[FloatArray | None, ...] = (None,) * 5  # fixed columns, and those of them that are not 0 everywhere
        self._nonzero: tuple[FloatArray | None, ...] = self._columns
        self._usage: Usage | None = None
        self._counted = 0  # number of runs that had ended by the last recalculation

    def _missing_dump(self, key: str, setting: str, message: str, remedy: str) -> InputError:
        weight = self.conf.values[key.lower()]
        problem, remedy = f"{key} is above 0, but {message}", f"{remedy}, or set {key} to 0"
        return InputError(problem, file=weight.file, line=weight.line or None, field=setting, remedy=remedy)

    @cached_property
    def tree(self) -> ShareTree:
        """Share tree of the associations."""
        assert self.chosen.shares is not None  # checked in __init__
        return ShareTree(read_shares(Path(self.chosen.shares)))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError if the files are incomplete, and warn of jobs whose users have no share."""
        self._fixed(jobs, machine)
        if not self.rules.fair_share:
            return
        without = int((self._associations(jobs) < 0).sum())
        if without:
            which = f"{without:,} of {len(jobs):,} jobs belong to users without a share in {self.chosen.shares}"
            warnings.warn(f"{which}: their fair-share factor is 0", stacklevel=2)

    def last(self, now: int) -> int:
        """Return the time (ns) of the last recalculation at or before `now` (ns)."""
        period, first = self.rules.period * SECOND, int(self.chosen.recalculated * SECOND)
        return (now - first) // period * period + first

    def following(self, recalculated: int) -> int:
        """Return the time (ns) of the recalculation after the given one."""
        return recalculated + self.rules.period * SECOND

    def at(self, recalculated: int, jobs: IntArray, accounting: Accounting) -> FloatArray:
        """Return jobs' priorities, (k,), from one recalculation (ns) to the next; jobs submitted in between have no age."""
        total = self._age(recalculated, jobs, accounting.table)  # then in Slurm's order of addition
        if self.rules.fair_share:
            total += self._share(recalculated, jobs, accounting)
        *added, nice = self._fixed(accounting.table, accounting.machine)
        for column in added:
            if column is not None:
                total += column[jobs]
        if nice is not None:
            total -= nice[jobs]
        return np.floor(np.clip(total, 1.0, MOST))

    def formula(self, machine: Machine, jobs: JobTable) -> PriorityFormula | None:
        """Return the priorities as a sum; None with the classic fair-share algorithm."""
        shares, none = None, np.zeros((0, len(jobs)))
        *added, nice = self._fixed(jobs, machine)
        if self.rules.fair_share and "NO_FAIR_TREE" in self.rules.flags:
            return None
        if self.rules.fair_share:
            usage, tree = Usage(self.tree, self.rules.decay, self.last(0), classic=False), self.tree
            billing = self._column(jobs, "billing", FixedFactors(self.rules, self.conf, machine, self.qualities).billing)
            shares = UsageShares(
                weight=float(self.rules.fair_share),
                user=self._associations(jobs),
                billing=billing,
                parent=tree.parent,
                share=tree.level_share,
                upward=tree.upward,
                usage=usage.amount,
                at=usage.at,
                decay=usage.decay,
                remains=usage.remains(self.rules.period),
                rank=tree.rank,
            )
        terms = [column for column in added if column is not None]
        return PriorityFormula(
            age=float(self.rules.age),
            max_age=float(self.rules.max_age),
            shares=shares,
            added=np.stack(terms) if terms else none,
            subtracted=none if nice is None else nice[None],
            most=MOST,
        )

    def terms(self, when: int, jobs: IntArray, accounting: Accounting) -> PriorityTerms:
        """Return the weighted contribution of each factor to the priorities of jobs, (k,) rows."""
        nothing, table = np.zeros(len(jobs)), accounting.table
        share = self._share(when, jobs, accounting) if self.rules.fair_share else nothing
        fixed = (nothing if column is None else column[jobs] for column in self._fixed(table, accounting.machine))
        return PriorityTerms(self._age(when, jobs, table), share, *fixed)

    def _age(self, when: int, jobs: IntArray, table: JobTable) -> FloatArray:
        """Return the weighted age, (k,): the time since submission relative to PriorityMaxAge, at most 1."""
        submitted = self._column(table, "submitted", lambda table, rows: (table.submit[rows] // SECOND).astype(np.float64))
        waited = np.maximum(float(when // SECOND) - submitted[jobs], 0.0)
        return np.minimum(waited / float(self.rules.max_age), 1.0) * float(self.rules.age)

    # Columns that do not change

    def _fixed(self, table: JobTable, machine: Machine) -> tuple[FloatArray | None, ...]:
        """Return the weighted columns job size, partition, QOS, TRES and nice, (n_job,) each; None where all are 0."""
        if self._machine is not machine:
            self._machine, self._key = machine, object()
        factors = FixedFactors(self.rules, self.conf, machine, self.qualities)
        makes = (factors.job_size, factors.partition, factors.quality, factors.resources, factors.nice)
        columns = tuple(self._column(table, make.__name__, make) for make in makes)
        if any(column is not seen for column, seen in zip(columns, self._columns, strict=True)):
            self._columns, self._nonzero = columns, tuple(column if column.any() else None for column in columns)
        return self._nonzero

    def _column(self, table: JobTable, name: str, make: Callable[[JobTable, slice], FloatArray]) -> FloatArray:
        return table.derived((self._key, name), make)

    # Fair share

    def _associations(self, table: JobTable) -> IntArray:
        """Return the position of each job's user in the share tree, (n_job,); -1 for users without a share."""

        def make(table: JobTable, rows: slice) -> IntArray:
            users, accounts = table.attributes.get("user"), table.attributes.get("account")
            if users is None:
                raise InputError(
                    "cannot compute fair share: the jobs have no users", field="user",
                    remedy="read a log with users, or set PriorityWeightFairshare to 0",
                )  # fmt: skip
            names = users[rows].tolist()
            charged = [None] * len(names) if accounts is None else accounts[rows].tolist()
            positions = [self.tree.find(None if a is None else str(a), str(u)) for a, u in zip(charged, names, strict=True)]
            return np.array(positions, dtype=np.int64)

        return table.derived((self._key, "whose"), make)

    def _share(self, when: int, jobs: IntArray, accounting: Accounting) -> FloatArray:
        """Return the weighted fair share, (k,), as of a recalculation (ns)."""
        usage = self._usage_at(when, accounting)
        if "NO_FAIR_TREE" in self.rules.flags:
            factor = self.tree.classic(usage.effective, self.rules.damping)
        else:
            factor = self.tree.fair_tree(usage.amount)
        weighted = np.append(factor, 0.0) * float(self.rules.fair_share)
        return weighted[self._associations(accounting.table)[jobs]]  # position -1 selects the appended 0

    def _usage_at(self, when: int, accounting: Accounting) -> Usage:
        """Return the usage of all associations as of a recalculation (ns)."""
        table, history = accounting.table, accounting.ended
        if history is None:
            raise InputError(
                "cannot compute fair share: this platform keeps no history of runs", field="shares",
                remedy="set PriorityWeightFairshare to 0",
            )  # fmt: skip
        usage = self._usage
        if usage is None or usage.at > when:
            classic = "NO_FAIR_TREE" in self.rules.flags
            usage, self._counted = Usage(self.tree, self.rules.decay, self.last(0), classic=classic), 0
        self._usage = usage
        if usage.at == when:
            return usage
        first, ended = self._counted, history.end[self._counted :]
        job = np.concatenate([history.job[first:], accounting.job])
        start = np.concatenate([history.start[first:], accounting.start])
        end = np.concatenate([ended, np.full(len(accounting.job), accounting.now + 1, dtype=np.int64)])
        rows = np.argsort(job, kind="stable")  # sums do not depend on which runs have ended by the time of the call
        job, start, end = job[rows], start[rows], end[rows]
        factors = FixedFactors(self.rules, self.conf, accounting.machine, self.qualities)
        billing = self._column(table, "billing", factors.billing)[job]
        whose = self._associations(table)[job]
        while usage.at < when:
            usage.advance(usage.at + self.rules.period * SECOND, whose, start, end, billing)
        self._counted += int(np.searchsorted(ended, when, side="left"))
        return usage
