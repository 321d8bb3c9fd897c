"""Conversion of the resources that jobs used in a log to requests on a machine, with whole or shared nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine
from poolwise.model.eligibility import TIME_LIMIT
from poolwise.model.partition import default_of
from poolwise.quantities import SECOND, UNKNOWN, format_count
from poolwise.traces.numbers import round_up

_MILLI = 1000
LACKING = "because the machine's {} have none"
"""Reason to ignore a resource that jobs request, with the part of the machine that lacks it."""


@dataclass(frozen=True, eq=False)
class Request:
    """Requests of jobs on a machine, in the form that `Workload` uses.

    `tasks` (n_job,) are the tasks of each job, and `amounts` maps resources to (n_job,) amounts of each task, per node on
    machines with whole nodes. `repaired` counts the jobs whose request differs from the log, by reason.
    """

    tasks: IntArray
    amounts: dict[str, IntArray]
    repaired: dict[str, int]


@dataclass(frozen=True, eq=False)
class Demand:
    """Resources of jobs in a log, (n_job,) each.

    A job was spread over `parts` >= 1 nodes; if nodes are shared, each part stays on one node. Thousandths of CPUs and GPUs are
    totals over all parts; MiB of memory are per part. `partition`, if known, restricts the nodes that a job may use.
    """

    parts: IntArray
    cpu_milli: IntArray
    memory: FloatArray
    gpu_milli: IntArray
    partition: NDArray[np.str_] | None = None

    def filter_rows(self, keep: BoolArray) -> Demand:
        """Return the demand of the jobs for which (n_job,) `keep` is true."""
        partition = None if self.partition is None else self.partition[keep]
        return Demand(self.parts[keep], self.cpu_milli[keep], self.memory[keep], self.gpu_milli[keep], partition)

    def within_exclusive_nodes(self, machine: Machine, requested: IntArray) -> tuple[Demand, dict[str, int]]:
        """Return the demand of jobs whose log contains all CPUs of their nodes, as in exclusive partitions.

        Also return the counts of changes. On each node, such a job gets at most the cores of the smallest node of its
        partition, or the CPUs that it requested if that number is larger. `requested` (n_job,) are the requested CPUs of all
        parts, 0 if unknown.
        """
        exclusive = {part.name for part in machine.partitions if part.exclusive}
        if self.partition is None or "cores" not in machine.resources:
            return self, {}
        cpu_milli, cores = self.cpu_milli.copy(), machine.capacity[:, machine.resource("cores")]
        for text in np.unique(self.partition).tolist():
            names = (text or default_of(machine.partitions)).split(",")
            sets = [machine.node_sets[name] for name in names if name in machine.node_sets]
            if sets and not exclusive.isdisjoint(names):
                rows, smallest = self.partition == text, cores[np.any(sets, axis=0) & (machine.kind == Kind.NODE)].min()
                most = np.maximum(self.parts[rows] * smallest, requested[rows])
                cpu_milli[rows] = np.minimum(cpu_milli[rows], most * _MILLI)
        changed = int((cpu_milli < self.cpu_milli).sum())
        why = "all CPUs of exclusive nodes, counted as those of the smallest node in the partition, or as requested"
        return replace(self, cpu_milli=cpu_milli), {why: changed} if changed else {}

    def to_request(self, machine: Machine, *, separate_nodes: bool = False) -> Request:
        """Convert the demand to resources of the machine.

        On whole nodes, a job takes as many nodes as its CPUs and GPUs need, and on each node the share of its memory that
        belongs to the CPUs and GPUs there. These numbers refer to the smallest node that the job may use. However, if a part
        has more CPUs than that node but no more than the largest node, each part takes one node. If only some nodes have GPUs,
        jobs with GPUs request "gpu" of each node.

        On shared nodes, each part is a task that requests "cpu_milli" or else "cores", "memory", and "gpu_milli" or else "gpu",
        whichever the nodes or devices have; with `separate_nodes`, the parts of a job are the "nodes" of one task instead, and
        a part with more cores than any node has is divided as in `split_over_nodes`. Resources that the machine lacks are
        ignored and counted. Raises InputError for a job that would request only memory.
        """
        if "nodes" in machine.resources:
            return self._on_whole_nodes(machine)
        return self._on_separate_nodes(machine) if separate_nodes else self._on_shared_nodes(machine)

    def _on_separate_nodes(self, machine: Machine) -> Request:
        parts = self.parts
        if most := max_per_node(machine, "cores"):
            processors = _ceil(self.cpu_milli, _MILLI)
            divided, _ = split_over_nodes(processors, machine)
            parts = np.where(_ceil(self.cpu_milli, parts * _MILLI) > most, np.maximum(parts, divided), parts)
        on_each = Demand(parts, self.cpu_milli, self.memory * self.parts / parts, self.gpu_milli)
        request = on_each._on_shared_nodes(machine)
        nodes = {"nodes": parts} if int(parts.max(initial=1)) > 1 else {}
        return Request(np.ones_like(parts), {**nodes, **request.amounts}, request.repaired)

    def _on_whole_nodes(self, machine: Machine) -> Request:
        nodes = np.zeros(len(self.parts), dtype=np.int64)
        share = np.ones(len(self.parts), dtype=np.float64)
        amounts, repaired = dict[str, IntArray](), dict[str, int]()
        for kind, name, milli in (("CPUs", "cores", self.cpu_milli), ("GPUs", "gpu", self.gpu_milli)):
            each = _min_per_node(machine, name)
            if name == "gpu" and not each and milli.any() and (some := _smallest(machine, name)):
                # Jobs with GPUs run on the nodes that have some.
                wanting = milli > 0
                nodes = np.maximum(nodes, _ceil(milli, some * _MILLI))
                share = np.where(wanting, np.minimum(share, some * _MILLI / np.maximum(milli, 1)), share)
                amounts[name] = np.where(wanting, _ceil(milli, np.maximum(nodes, 1) * _MILLI), 0)
            elif each:
                least, most = self._node_sizes(machine, name)
                part = _ceil(milli, self.parts)
                apart = (part > least * _MILLI) & (part <= most * _MILLI)
                nodes = np.maximum(nodes, np.where(apart, self.parts, _ceil(milli, least * _MILLI)))
                share = np.minimum(share, np.where(apart, 1 / self.parts, least * _MILLI / np.maximum(milli, 1)))
            else:
                _count_ignored(kind, milli, repaired, "whole nodes" if max_per_node(machine, name) else "nodes")
        _check(nodes, machine, "cores, and gpu in its resources (--machine-cores, --machine-gpus)")
        memory = round_up(self.memory * self.parts * share).astype(np.int64)
        return Request(np.ones_like(nodes), {"nodes": nodes, "memory": memory, **amounts}, repaired)

    def _node_sizes(self, machine: Machine, name: str) -> tuple[IntArray, IntArray]:
        """Return the smallest and largest amounts of a resource on the whole nodes on which each job may run, (n_job,)."""
        groups = machine.racks.nodes
        amounts = machine.per_node[name][groups]
        least, most = (np.full(len(self.parts), int(size)) for size in (amounts.min(), amounts.max()))
        if self.partition is not None and machine.partitions and (amounts != amounts[0]).any():
            for text in np.unique(self.partition).tolist():
                names = (text or default_of(machine.partitions)).split(",")
                sets = [machine.node_sets[name] for name in names if name in machine.node_sets]
                usable = amounts[np.any(sets, axis=0)[groups]] if sets else amounts
                rows = self.partition == text
                least[rows], most[rows] = usable.min(), usable.max()
        return least, most

    def _on_shared_nodes(self, machine: Machine) -> Request:
        amounts: dict[str, IntArray] = {}
        repaired: dict[str, int] = {}
        for kind, milli, names in (
            ("CPUs", self.cpu_milli, ("cpu_milli", "cores")),
            ("GPUs", self.gpu_milli, ("gpu_milli", "gpu")),
        ):
            name = next((name for name in names if max_per_node(machine, name) or has_devices(machine, name)), None)
            if name is None or not milli.any():
                _count_ignored(kind, milli, repaired)
                continue
            unit = 1 if name == names[0] else _MILLI
            amounts[name] = _ceil(milli, self.parts * unit)
            rounded = int((amounts[name] * self.parts * unit > milli).sum())
            if rounded:
                repaired[f"{kind} rounded up to a whole number of '{name}' on each node"] = rounded
        total = np.sum([*amounts.values(), np.zeros_like(self.parts)], axis=0)
        _check(total, machine, "cores, and gpu in its resources")
        return Request(self.parts, {**amounts, "memory": round_up(self.memory).astype(np.int64)}, repaired)


def split_over_nodes(processors: IntArray, machine: Machine) -> tuple[IntArray, IntArray]:
    """Return the number of shared nodes for each job's processors, and the cores on each node, (n_job,) each.

    A job that fits one node takes one. Larger jobs take ceil(processors / c) nodes with the same number of cores each, where c
    is the most common core count of the nodes, the largest in a tie. Raises InputError for nodes without cores.
    """
    cores = machine.capacity[machine.of_kind(Kind.NODE), machine.resource("cores")] if "cores" in machine.resources else None
    if cores is None or not cores.any():
        raise InputError(f"the nodes of machine '{machine.name}' have no cores", field="cores", remedy="give its nodes cores")
    sizes, frequency = np.unique(cores[cores > 0], return_counts=True)
    common = int(sizes[frequency == frequency.max()][-1])
    parts = np.where(processors <= int(sizes[-1]), 1, _ceil(processors, common))
    return parts, _ceil(processors, parts)


def max_per_node(machine: Machine, resource: str) -> int:
    """Return the largest amount of a resource on any node of the machine, 0 if no node has it."""
    if resource not in machine.resources:
        return 0
    return int(machine.capacity[machine.of_kind(Kind.NODE), machine.resource(resource)].max(initial=0))


def recorded_limits(machine: Machine, recorded: IntArray, requested: IntArray) -> dict[str, FloatArray]:
    """Return the attribute `TIME_LIMIT` of jobs; empty if it does not matter, or equals the requested times.

    Parameters
    ----------
    machine
        Machine of the jobs; it matters if partitions, QOS or associations limit run times.
    recorded
        (n_job,) limits in the log, ns; `units.UNKNOWN` without one.
    requested
        (n_job,) requested times with which schedulers plan, ns.
    """
    if not (machine.partitions or machine.qos or machine.associations) or np.array_equal(recorded, requested):
        return {}
    return {TIME_LIMIT: np.where(recorded == UNKNOWN, np.nan, recorded / SECOND)}


def has_devices(machine: Machine, name: str) -> bool:
    """Return whether the machine has devices of this type, or devices with a resource of this name."""
    devices = machine.of_kind(Kind.DEVICE)
    if name in machine.resources and machine.capacity[devices, machine.resource(name)].any():
        return True
    return any(machine.type[device] == name for device in devices.tolist())


def _min_per_node(machine: Machine, name: str) -> int:
    """Return the smallest amount of a resource on any whole node, 0 if some nodes lack it."""
    amounts, groups = machine.per_node.get(name), machine.racks.nodes
    return int(amounts[groups].min()) if amounts is not None and len(groups) else 0


def _smallest(machine: Machine, name: str) -> int:
    """Return the smallest amount of a resource among the whole nodes that have it, 0 if none has it."""
    amounts, groups = machine.per_node.get(name), machine.racks.nodes
    return int(min((amount for amount in amounts[groups].tolist() if amount), default=0)) if amounts is not None else 0


def _count_ignored(kind: str, milli: IntArray, repaired: dict[str, int], where: str = "nodes") -> None:
    if count := int((milli > 0).sum()):
        repaired[f"{kind} ignored, {LACKING.format(where)}"] = count


def _check(requested: IntArray, machine: Machine, resources: str) -> None:
    if not requested.all():
        count = int((requested == 0).sum())
        verb = "requests" if count == 1 else "request"
        message = f"{format_count(count, 'job')} {verb} no resource that the nodes of machine '{machine.name}' have"
        raise InputError(message, field="machine", remedy=f"give its nodes {resources}")


def _ceil(amount: IntArray, unit: IntArray | int) -> IntArray:
    return np.asarray(-(-amount // unit), dtype=np.int64)
