"""A workload on a machine, looked at before any advice: load, overload, jobs that can never run, outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poolwise.diagnostics.few_jobs import ids_text
from poolwise.diagnostics.outliers import Outliers, few, largest, node_hours, outliers
from poolwise.hashing import Json
from poolwise.metrics.outcomes import Outcomes, Status
from poolwise.metrics.throughput import offered_load
from poolwise.units import SECOND, format_memory, format_time

MOVED = 0.05
"""A load that a few jobs change by this share of itself is told without them too."""


@dataclass(frozen=True)
class NeverRun:
    """Jobs that can never run, for one reason.

    Attributes
    ----------
    reason : what the scheduler said, the resource that is short in it
    ids : of all of them, in the order of submission
    most_nodes : the most nodes that one of them asks for
    most_memory : the most memory a node that one of them asks for, MiB
    unit : node, or task where jobs share nodes
    """

    reason: str
    ids: tuple[int, ...]
    most_nodes: int
    most_memory: int
    unit: str

    @property
    def text(self) -> str:
        """Reason, ids and the largest requests, in words."""
        memory = f" and {format_memory(self.most_memory)} a {self.unit}" if self.most_memory else ""
        nodes = f"{self.most_nodes:,} {self.unit}{'' if self.most_nodes == 1 else 's'}"
        return f"{self.reason} ({ids_text(self.ids)}; up to {nodes}{memory})"


@dataclass(frozen=True)
class Diagnostics:
    """What to know before any advice.

    Attributes
    ----------
    jobs, nodes : how many there are
    load : offered load; NaN where it is undefined
    load_without_few : the same without the few jobs (`few`) of most node-hours
    span_s : seconds from the first to the last submission
    never : jobs that can never run, by reason
    outliers : a few jobs far above all others
    """

    jobs: int
    nodes: int
    load: float
    load_without_few: float
    span_s: float
    never: tuple[NeverRun, ...]
    outliers: tuple[Outliers, ...]

    @classmethod
    def of(cls, outcomes: Outcomes) -> Diagnostics:
        """Look at a workload that has run on a machine: what can never run, the run has shown."""
        light = np.ones(len(outcomes), dtype=np.bool_)
        hours = np.where(outcomes.status != Status.REJECTED, node_hours(outcomes), 0.0)
        light[largest(hours, few(len(outcomes)))] = False
        return cls(
            jobs=len(outcomes),
            nodes=outcomes.n_nodes,
            load=offered_load(outcomes),
            load_without_few=offered_load(outcomes, light),
            span_s=float(np.ptp(outcomes.submit) / SECOND) if len(outcomes) else 0.0,
            never=_never(outcomes),
            outliers=outliers(outcomes),
        )

    @property
    def overloaded(self) -> bool:
        """Whether jobs ask for all that the machine offers while they arrive, or more."""
        return self.load >= 1

    @property
    def backlog_s(self) -> float:
        """Seconds that the whole machine must still work, at reference speed, when the last job arrives; at least."""
        return (self.load - 1) * self.span_s if self.overloaded else 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """The load first, then jobs that can never run, then outliers."""
        return (*self._load(), *self._never(), *(group.text for group in self.outliers))

    def to_dict(self) -> Json:
        """Plain data; None in the place of a load that is undefined."""
        return {
            "load": _known(self.load),
            "load_without_few": _known(self.load_without_few),
            "few": few(self.jobs),
            "overloaded": self.overloaded,
            "backlog_s": self.backlog_s,
            "never_run": [
                {"reason": n.reason, "ids": list(n.ids), "most_nodes": n.most_nodes, "most_memory_mib": n.most_memory}
                for n in self.never
            ],
            "outliers": [group.to_dict() for group in self.outliers],
            "sentences": list(self.sentences),
        }

    def _load(self) -> tuple[str, ...]:
        if math.isnan(self.load):
            return ()
        words = (
            f"Load {self.load:.3g}: between the first and the last submission jobs ask for {100 * self.load:.3g} % of what "
            f"{self.nodes:,} nodes offer"
        )
        if self.load - self.load_without_few >= MOVED * self.load > 0:
            words += f" ({100 * self.load_without_few:.3g} % without the {few(self.jobs)} of most node-hours)"
        if not self.overloaded:
            return (f"{words}.",)
        follows = (
            "Overloaded: the queue grows for as long as jobs arrive, so waits say more of the length of the log than of a "
            f"policy or a pool; work for at least {format_time(self.backlog_s)} of the whole machine is left when the last "
            "job arrives."
        )
        return f"{words}.", follows

    def _never(self) -> tuple[str, ...]:
        if not self.never:
            return ()
        count = sum(len(group.ids) for group in self.never)
        why = "; ".join(group.text if len(self.never) == 1 else f"{len(group.ids):,} {group.text}" for group in self.never)
        return (f"{count:,} of {self.jobs:,} jobs can never run: {why}.",)


def _never(outcomes: Outcomes) -> tuple[NeverRun, ...]:
    """Jobs that can never run, by reason in the order of the alphabet."""
    groups: dict[str, list[int]] = {}
    for row in np.flatnonzero(outcomes.status == Status.REJECTED).tolist():
        groups.setdefault(outcomes.reason[row], []).append(row)
    return tuple(
        NeverRun(
            reason,
            tuple(int(job) for job in outcomes.id[rows]),
            int(outcomes.nodes[rows].max()),
            int(outcomes.memory[rows].max()),
            outcomes.unit,
        )
        for reason, rows in sorted(groups.items())
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
