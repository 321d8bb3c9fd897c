"""Preemption between qualities of service (QOS).

Source: Slurm's src/plugins/preempt/qos/preempt_qos.c, and observed behavior of Slurm 22.05 (`tests/live`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.model import JobTable, Machine, Queue, Run, Snapshot
from poolwise.model.partition import default_of
from poolwise.policies.preemption.stopping import Mode, StoppingPolicy, check_modes
from poolwise.quantities import SECOND
from poolwise.registry import register
from poolwise.short_repr import short_repr

QOS = "qos"


@register("preemptions", "qos")
@dataclass(frozen=True)
class QosPreemption(StoppingPolicy):
    """Jobs of a QOS stop runs of the QOS in its list, as with Slurm's `preempt/qos`.

    A run stops only if it uses nodes of the waiting job's partitions. Runs whose QOS has the lowest priority come first, then
    those on the fewest nodes. The modes and exempt times are those of the run's QOS. Waiting jobs precede jobs of the QOS whose
    runs they may stop, regardless of priority.

    Parameters
    ----------
    preempts
        QOS -> the QOS whose runs its jobs may stop.
    priorities
        QOS -> its priority; 0 for others.
    modes
        QOS -> mode of its runs: "requeue", "cancel" or "off". Others have `mode`.
    exempt
        QOS -> seconds for which its runs cannot be stopped. Others have `exempt_s`.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.policies import QosPreemption
    >>> poolwise.ListScheduler(preemption=QosPreemption(preempts={"urgent": ("normal",)})).preempts
    True
    """

    __repr__ = short_repr

    preempts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    modes: Mapping[str, Mode] = field(default_factory=dict)
    exempt: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_modes(self.modes, "modes")

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError if the jobs have no QOS."""
        if self.preempts and len(jobs) and QOS not in jobs.attributes:
            raise InputError("the jobs have no QOS", field=QOS, remedy="use a log with QOS, or remove preemption")

    def reprioritize(self, priority: FloatArray, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return ranks by priority, in which each job precedes all jobs of the QOS whose runs it may stop."""
        qos = np.array([_qos(snapshot, job) for job in queue.jobs.tolist()])
        order = np.argsort(-priority, kind="stable")
        for name in sorted(self.preempts, key=lambda name: len(self._below(name))):
            first = int(np.argmax(np.isin(qos[order], self.preempts[name])))
            behind = np.flatnonzero(qos[order] == name)
            behind = behind[behind > first]
            if np.isin(qos[order[first]], self.preempts[name]) and len(behind):
                order = np.insert(np.delete(order, behind), first, order[behind])
        values = np.empty(len(order))
        values[order] = -np.arange(len(order))
        return values

    def _below(self, name: str) -> set[str]:
        """Return the QOS whose runs a QOS may stop, directly or through other QOS."""
        below, left = set[str](), [name]
        while left:
            more = {*self.preempts.get(left.pop(), ())} - below
            below |= more
            left += more
        return below

    def group_of(self, job: int, snapshot: Snapshot) -> str:
        """Return the QOS of a job."""
        return _qos(snapshot, job)

    def yields(self, group: str | int, other: str | int) -> bool:
        """Return whether a QOS is in the list of another one."""
        return group in self.preempts.get(str(other), ())

    def rank(self, run: Run, snapshot: Snapshot) -> int:
        """Return the priority of the run's QOS, up to Slurm's 16 bits."""
        return min(self.priorities.get(_qos(snapshot, run.job), 0), 0xFFFF)

    def mode_of(self, run: Run, snapshot: Snapshot) -> Mode:
        """Return the mode of the run's QOS."""
        return self.modes.get(_qos(snapshot, run.job), self.mode)

    def exempt_until(self, run: Run, snapshot: Snapshot) -> int:
        """Return the time (ns) from which a run can be stopped."""
        return run.start + round(self.exempt.get(_qos(snapshot, run.job), self.exempt_s) * SECOND)


def _qos(snapshot: Snapshot, job: int) -> str:
    """Return the name of a job's QOS, by default the machine's default QOS."""
    column = snapshot.table.attributes.get(QOS)
    name = "" if column is None else str(column[job])
    return default_of(snapshot.machine.qos) if name in ("", "-1") else name
