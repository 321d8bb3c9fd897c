"""The queue order `multifactor`: the priorities that Slurm would give.

Source: Slurm's documentation, "Multifactor Priority Plugin", and what Slurm 22.05 prints (`tests/live`).
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
from poolwise.model import JobTable, Machine, Queue, Snapshot
from poolwise.policies.order.multifactor.factors import FixedFactors
from poolwise.policies.order.multifactor.rules import KEYS, PriorityRules
from poolwise.policies.order.multifactor.shares import ShareTree, Usage
from poolwise.registry import register
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.dumps import QOS_REMEDY, SHARES_REMEDY, read_priorities, read_shares
from poolwise.units import SECOND

MOST = float(0xFFFFFFFF)
"""The highest priority that Slurm can give."""


class PriorityTerms(NamedTuple):
    """What each factor, weighted, adds to the priorities of some jobs; (k,) each. What is nice is taken off."""

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
    """Slurm's multifactor priority: age, fair share, job size, partition, QOS, TRES and nice, cut to a whole number.

    As in Slurm a priority changes only when it is recalculated, every PriorityCalcPeriod: a job that has just been submitted
    has no age, whatever has happened since the last recalculation. Usage counts up to the last one, too.

    Jobs are told apart by the columns user, account, qos, partition and nice of the job table, where it has them; a job
    without a partition has the default one, without a QOS that named normal.

    Parameters
    ----------
    conf
        A `slurm.conf`; its weights, limits and flags decide. Without one all weights are 0, as by default in Slurm.
    shares
        A dump of `sshare --all --long --parsable2`: the tree of shares and what was used before time 0.
    qos
        A dump of `sacctmgr --parsable2 show qos format=Name,Priority`.
    settings
        Keys of slurm.conf to replace, such as PriorityWeightAge.
    recalculated
        Seconds from time 0 to a recalculation; others follow and precede it at steps of the period.
    """

    conf: str | None = None
    shares: str | None = None
    qos: str | None = None
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    recalculated: float = 0.0
    kind: ClassVar[OrderKind] = "recalculated"

    def open(self) -> QueuePolicy:
        """Read the files and begin a run."""
        return Recalculated(self)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what the files lack, and warn of jobs whose users have no share."""
        Recalculated(self).check(machine, jobs)

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities, worked out from all that has run; `open` gives an order that remembers the last usage."""
        return self.open().priority(queue, snapshot)


class Recalculated(RecalculatedOrder):
    """The order in a run. It keeps columns of the job table and the usage as of the last recalculation, both caches."""

    def __init__(self, chosen: Multifactor) -> None:
        self.chosen = chosen
        lower = {key.lower() for key in KEYS}
        if unknown := [key for key in chosen.settings if key.lower() not in lower]:
            raise UnknownNameError.of("key of slurm.conf that decides priorities", unknown[0], KEYS, field="settings")
        conf = SlurmConf.of({}) if chosen.conf is None else SlurmConf.read_file(chosen.conf)
        self.conf = conf.with_values(chosen.settings) if chosen.settings else conf
        self.rules = PriorityRules.of(self.conf)
        if self.rules.qos and chosen.qos is None:
            raise self._lacking("PriorityWeightQOS", "qos", "no priorities of QOS are given", QOS_REMEDY)
        if self.rules.fair_share and chosen.shares is None:
            raise self._lacking("PriorityWeightFairshare", "shares", "no shares are given", SHARES_REMEDY)
        self.qualities = {} if chosen.qos is None else read_priorities(Path(chosen.qos))
        self._machine: Machine | None = None
        self._key: object = object()  # names this run's columns in the job table
        self._usage: Usage | None = None
        self._seen = 0  # runs that had ended by the last recalculation

    def _lacking(self, key: str, setting: str, message: str, remedy: str) -> InputError:
        said = self.conf.values[key.lower()]
        problem, remedy = f"{key} is above 0, but {message}", f"{remedy}, or set {key} to 0"
        return InputError(problem, file=said.file, line=said.line or None, field=setting, remedy=remedy)

    @cached_property
    def tree(self) -> ShareTree:
        """The tree of shares."""
        assert self.chosen.shares is not None  # seen to above
        return ShareTree(read_shares(Path(self.chosen.shares)))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what the files lack, and warn of jobs whose users have no share."""
        self._fixed(jobs, machine)
        if not self.rules.fair_share:
            return
        nobody = int((self._whose(jobs) < 0).sum())
        if nobody:
            share = f"{nobody:,} of {len(jobs):,} jobs"
            warnings.warn(f"{share} are of users without a share in {self.chosen.shares}: their fair share is 0", stacklevel=2)

    def last(self, now: int) -> int:
        """The last recalculation (ns) up to a time (ns)."""
        period, first = self.rules.period * SECOND, int(self.chosen.recalculated * SECOND)
        return (now - first) // period * period + first

    def following(self, recalculated: int) -> int:
        """The recalculation (ns) after another."""
        return recalculated + self.rules.period * SECOND

    def at(self, recalculated: int, jobs: IntArray, snapshot: Snapshot) -> FloatArray:
        """(k,) priorities of jobs, (k,) rows, from a recalculation (ns) until the next; those submitted later have no age."""
        age, share, size, partition, quality, resources, nice = self.terms(recalculated, jobs, snapshot)
        total = age + share + size + partition + quality + resources - nice  # in this order, as Slurm adds
        whole: FloatArray = np.floor(np.clip(total, 1.0, MOST))
        return whole

    def terms(self, when: int, jobs: IntArray, snapshot: Snapshot) -> PriorityTerms:
        """What each factor adds to the priorities of jobs, (k,) rows."""
        table, rules = snapshot.table, self.rules
        waited = np.maximum(when // SECOND - table.submit[jobs] // SECOND, 0).astype(np.float64)
        age = np.minimum(waited / float(rules.max_age), 1.0) * float(rules.age)
        share = self._share(when, jobs, snapshot) * float(rules.fair_share) if rules.fair_share else np.zeros(len(jobs))
        return PriorityTerms(age, share, *(column[jobs] for column in self._fixed(table, snapshot.machine)))

    # Columns that never change

    def _fixed(self, table: JobTable, machine: Machine) -> tuple[FloatArray, ...]:
        """(n_job,) each: size, partition, QOS, resources, nice, all weighted."""
        if self._machine is not machine:
            self._machine, self._key = machine, object()
        factors = FixedFactors(self.rules, self.conf, machine, self.qualities)
        makes = (factors.job_size, factors.partition, factors.quality, factors.resources, factors.nice)
        return tuple(self._column(table, make.__name__, make) for make in makes)

    def _column(self, table: JobTable, name: str, make: Callable[[JobTable, slice], FloatArray]) -> FloatArray:
        found: FloatArray = table.derived((self._key, name), make)
        return found

    # Fair share

    def _whose(self, table: JobTable) -> IntArray:
        """(n_job,) position of each job's user in the tree, -1 for nobody."""

        def make(table: JobTable, rows: slice) -> IntArray:
            users, accounts = table.attributes.get("user"), table.attributes.get("account")
            if users is None:
                raise InputError(
                    "the jobs have no users, so no fair share", field="user",
                    remedy="read a log that names users, or set PriorityWeightFairshare to 0",
                )  # fmt: skip
            names = users[rows].tolist()
            whose = [None] * len(names) if accounts is None else accounts[rows].tolist()
            found = [self.tree.find(None if a is None else str(a), str(u)) for a, u in zip(whose, names, strict=True)]
            return np.array(found, dtype=np.int64)

        found: IntArray = table.derived((self._key, "whose"), make)
        return found

    def _share(self, when: int, jobs: IntArray, snapshot: Snapshot) -> FloatArray:
        """(k,) fair share factors at a recalculation (ns)."""
        usage = self._used(when, snapshot)
        if "NO_FAIR_TREE" in self.rules.flags:
            factor = self.tree.classic(usage.effective, self.rules.damping)
        else:
            factor = self.tree.fair_tree(usage.amount)
        return np.append(factor, 0.0)[self._whose(snapshot.table)[jobs]]  # -1 is the 0 at the end

    def _used(self, when: int, snapshot: Snapshot) -> Usage:
        """Usage of all associations at a recalculation (ns)."""
        table, history = snapshot.table, snapshot.history
        if history is None:
            raise InputError(
                "this platform keeps no history of runs, so that no fair share can be worked out", field="shares",
                remedy="set PriorityWeightFairshare to 0",
            )  # fmt: skip
        known = self._usage
        if known is None or known.at > when:
            known, self._seen = Usage(self.tree, self.rules.decay, self.last(0)), 0
        self._usage = known
        if known.at == when:
            return known
        running = list(snapshot.runs())
        job = np.concatenate([history.job[self._seen :], np.array([run.job for run in running], dtype=np.int64)])
        start = np.concatenate([history.start[self._seen :], np.array([run.start for run in running], dtype=np.int64)])
        ended = history.end[self._seen :]
        end = np.concatenate([ended, np.full(len(running), snapshot.now + 1, dtype=np.int64)])
        factors = FixedFactors(self.rules, self.conf, snapshot.machine, self.qualities)
        billing = self._column(table, "billing", factors.billing)[job]
        whose = self._whose(table)[job]
        while known.at < when:
            known.advance(known.at + self.rules.period * SECOND, whose, start, end, billing)
        self._seen += int(np.searchsorted(ended, when, side="left"))
        return known
