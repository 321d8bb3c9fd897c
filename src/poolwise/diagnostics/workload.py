"""Diagnostics of a workload on a machine before any advice: load, overload, jobs that can never run, and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poolwise.diagnostics.outliers import Outliers, few, ids_text, largest, node_hours, outliers
from poolwise.hashing import Json
from poolwise.metrics.load import ResourceLoad, loads, partition_loads
from poolwise.metrics.outcomes import Outcomes, Status
from poolwise.metrics.throughput import offered_load
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND, format_count, format_memory, format_time

MOVED = 0.05
"""Minimum relative change of the load, caused by a few jobs, at which it is also reported without them."""


@dataclass(frozen=True)
class NeverRun:
    """Jobs that can never run, for one reason.

    Attributes
    ----------
    reason : the scheduler's reason, with the scarce resource
    ids : ids of these jobs, in order of submission
    most_nodes : largest number of nodes that one of them requests
    most_memory : largest memory per node that one of them requests, MiB
    unit : node, or task on shared nodes
    """

    reason: str
    ids: tuple[int, ...]
    most_nodes: int
    most_memory: int
    unit: str

    @property
    def text(self) -> str:
        """Reason, ids and largest requests in words."""
        memory = f" and {format_memory(self.most_memory)} per {self.unit}" if self.most_memory else ""
        nodes = f"{self.most_nodes:,} {self.unit}{'' if self.most_nodes == 1 else 's'}"
        return f"{self.reason} ({ids_text(self.ids)}; up to {nodes}{memory})"


PLAUSIBLE_MIB = 128
"""Memory per node below which an amount is probably a number without its unit."""


@dataclass(frozen=True)
class Diagnostics:
    """Properties of a workload to know before any advice.

    Attributes
    ----------
    jobs, nodes : number of jobs and nodes
    load : offered load, on shared nodes that of the scarcest resource; NaN if it is undefined
    load_without_few : offered load without the few jobs (`few`) that use the most node-hours, or hours of the scarcest resource
    span_s : seconds from the first to the last submission
    never : jobs that can never run, by reason
    outliers : groups of a few jobs much larger than all others
    small_memory : sentence about implausibly small amounts of memory; "" if the amounts are plausible
    resources : load of each resource of shared nodes, the scarcest first; empty on whole nodes
    partitions : load of the scarcest resource of each partition, the highest first
    """

    jobs: int
    nodes: int
    load: float
    load_without_few: float
    span_s: float
    never: tuple[NeverRun, ...]
    outliers: tuple[Outliers, ...]
    small_memory: str = ""
    resources: tuple[ResourceLoad, ...] = ()
    partitions: tuple[ResourceLoad, ...] = ()

    @classmethod
    def of(cls, outcomes: Outcomes, workload: Workload | None = None, machine: Machine | None = None) -> Diagnostics:
        """Diagnose a workload from the outcomes of a run on a machine, which show the jobs that can never run.

        The load of shared nodes and of partitions requires the workload and the machine.
        """
        light = np.ones(len(outcomes), dtype=np.bool_)
        hours = np.where(outcomes.status != Status.REJECTED, node_hours(outcomes), 0.0)
        light[largest(hours, few(len(outcomes)))] = False
        load, without_few = offered_load(outcomes), offered_load(outcomes, light)
        resources, partitions = list[ResourceLoad](), list[ResourceLoad]()
        if machine is not None and workload is not None:
            runnable = outcomes.status != Status.REJECTED
            partitions = partition_loads(workload, machine, runnable, few(len(outcomes)))
            if not outcomes.whole_nodes:
                resources = loads(workload, machine, runnable, few(len(outcomes)))
        if resources:
            load, without_few = resources[0].load, resources[0].without_few
        return cls(
            jobs=len(outcomes),
            nodes=outcomes.n_nodes,
            load=load,
            load_without_few=without_few,
            resources=tuple(resources),
            partitions=tuple(partitions),
            span_s=float(np.ptp(outcomes.submit) / SECOND) if len(outcomes) else 0.0,
            never=_never(outcomes),
            outliers=outliers(outcomes),
            small_memory=_small_memory(outcomes),
        )

    @property
    def overloaded(self) -> bool:
        """True if jobs request at least as much time of nodes, or of a resource, as the machine offers while they arrive."""
        return self.load >= 1

    @property
    def backlog_s(self) -> float:
        """Lower bound on the work left when the last job arrives, in seconds of the whole machine at reference speed."""
        return (self.load - 1) * self.span_s if self.overloaded else 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about the load, implausible memory, jobs that can never run, and outliers."""
        small = (self.small_memory,) if self.small_memory else ()
        return (*self._load(), *small, *self._never(), *(group.text for group in self.outliers))

    def to_dict(self) -> Json:
        """Return plain data; an undefined load is None."""
        return {
            "load": _known(self.load),
            "load_without_few": _known(self.load_without_few),
            "few": few(self.jobs),
            "load_of": self.resources[0].resource if self.resources else "nodes",
            "overloaded": self.overloaded,
            "resources": {part.resource: part.load for part in self.resources},
            "partitions": [
                {"partition": part.partition, "load": part.load, "load_of": part.resource, "overloaded": part.load >= 1}
                for part in self.partitions
            ],
            "backlog_s": self.backlog_s,
            "never_run": [
                {"reason": n.reason, "ids": list(n.ids), "most_nodes": n.most_nodes, "most_memory_mib": n.most_memory}
                for n in self.never
            ],
            "outliers": [group.to_dict() for group in self.outliers],
            "sentences": list(self.sentences),
        }

    def _load(self) -> tuple[str, ...]:
        if math.isnan(self.load) or self._never_running == self.jobs:
            return self._partition_loads()
        first = self.resources[0].resource if self.resources else "node"
        of = f"the machine's {first}" if self.resources else f"what {self.nodes:,} nodes offer"
        words = f"Load {self.load:.3g}: between the first and the last submission, jobs request {100 * self.load:.3g} % of {of}"
        if self.load - self.load_without_few >= MOVED * self.load > 0:
            most = f"{first.removesuffix('s')}-hours"
            words += f" ({100 * self.load_without_few:.3g} % without the {few(self.jobs)} jobs with the most {most})"
        if len(self.resources) > 1:
            words += "; " + ", ".join(f"{load.resource} {100 * load.load:.3g} %" for load in self.resources[1:])
        if not self.overloaded:
            return (f"{words}.", *self._partition_loads())
        overload = (
            "Overloaded: the queue grows as long as jobs arrive, so waits depend more on the length of the log than on a "
            f"policy or a pool; when the last job arrives, at least {format_time(self.backlog_s)} of work for the whole "
            "machine is left."
        )
        return (f"{words}.", overload, *self._partition_loads())

    def _partition_loads(self) -> tuple[str, ...]:
        full = [part for part in self.partitions if part.load >= 1]
        names = ", ".join(f"{part.partition} ({100 * part.load:.3g} % of its {part.resource})" for part in full)
        return (f"Overloaded partitions, counting only jobs that may not run elsewhere: {names}.",) if full else ()

    @property
    def _never_running(self) -> int:
        return sum(len(group.ids) for group in self.never)

    def _never(self) -> tuple[str, ...]:
        if not self.never:
            return ()
        count = self._never_running
        reasons = "; ".join(group.text if len(self.never) == 1 else f"{len(group.ids):,} {group.text}" for group in self.never)
        return (f"{count:,} of {format_count(self.jobs, 'job')} can never run: {reasons}.",)


def _small_memory(outcomes: Outcomes) -> str:
    largest_job, per_node = int(outcomes.memory.max(initial=0)), outcomes.node_memory // max(outcomes.n_nodes, 1)
    amounts = (("a node has", per_node), ("jobs request at most", largest_job))
    small = [f"{words} {amount} MiB" for words, amount in amounts if 0 < amount < PLAUSIBLE_MIB]
    advice = 'numbers without a unit are MiB; write a unit, such as "16 GiB"'
    return f"Memory is implausibly small: {' and '.join(small)} ({advice})." if small else ""


def _never(outcomes: Outcomes) -> tuple[NeverRun, ...]:
    """Return the jobs that can never run, by reason in alphabetical order."""
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
