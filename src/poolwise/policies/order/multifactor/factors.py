"""Time-invariant factors of the multifactor priority: job size, partition, quality of service, TRES and nice value.

Source: Slurm's documentation, "Multifactor Priority Plugin"; verified digit by digit against Slurm 22.05 (`tests/live`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import JobTable, Kind, Machine
from poolwise.model.licenses import LICENSE
from poolwise.policies.order.multifactor.rules import TRES, PriorityRules
from poolwise.quantities import MINUTE
from poolwise.slurm.cluster import gpus_of_node
from poolwise.slurm.conf import SlurmConf

GPU = "gpu"
"""Resource that jobs with GPUs request, and type of device; gres/gpu in Slurm."""


@dataclass(frozen=True)
class ClusterSize:
    """Nodes, CPUs, MiB of memory and GPUs of a machine, counted as Slurm does."""

    nodes: int
    cpu: int
    mem: int
    gpu: int = 0

    @classmethod
    def of(cls, machine: Machine) -> ClusterSize:
        """Count the nodes of a machine, exclusive and shared ones."""
        owners, capacity = machine.of_kind(Kind.NODE), machine.capacity
        count = capacity[owners, machine.resource("nodes")] if "nodes" in machine.resources else np.zeros(len(owners), np.int64)
        whole = count > 0
        amounts = {}
        for name in ("cores", "memory", GPU):
            each = machine.per_node.get(name)
            own = capacity[owners, machine.resource(name)] if name in machine.resources else np.zeros(len(owners), np.int64)
            amounts[name] = int(np.where(whole, 0 if each is None else each[owners] * count, own).sum())
        devices = sum(machine.type[owner] == GPU for owner in machine.of_kind(Kind.DEVICE).tolist())
        return cls(int(np.where(whole, count, 1).sum()), amounts["cores"], amounts["memory"], amounts[GPU] + devices)


@dataclass(frozen=True)
class FixedFactors:
    """Weighted factors that never change, computed for rows of a job table.

    Attributes
    ----------
    rules, conf : the priority settings and the whole slurm.conf
    machine : machine that determines the size of the cluster
    qualities : QOS -> priority
    """

    rules: PriorityRules
    conf: SlurmConf
    machine: Machine
    qualities: Mapping[str, int]

    def job_size(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the weighted job size, (k,): (nodes / N + CPUs / C) / 2, clipped to 0 to 1, times its weight."""
        rules, size = self.rules, ClusterSize.of(self.machine)
        nodes, cpu = (amount.astype(np.float64) for amount in _nodes_and_cpus(table, rows, self.machine))
        if not rules.job_size:
            return np.zeros(len(nodes))
        if "SMALL_RELATIVE_TO_TIME" in rules.flags:
            minutes = np.maximum(-(-table.requested[rows] // MINUTE), 1)
            factor = np.maximum(nodes * float(size.cpu) / float(size.nodes), cpu) / minutes / size.cpu
            factor = 1.0 - factor if rules.favor_small else factor
        else:
            if rules.favor_small:
                nodes, cpu = size.nodes - nodes, size.cpu - cpu
            factor = (nodes / float(size.nodes) + cpu / float(size.cpu)) / 2
        return np.clip(factor, 0.0, 1.0) * float(rules.job_size)

    def partition(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the weighted partition factor, (k,): PriorityJobFactor relative to the largest one."""
        factors = {name: section.partition_priority("PriorityJobFactor") for name, section in self.conf.partitions.items()}
        default = self.conf.default_partition
        names = _texts(table, "partition", rows, default)
        if not self.rules.partition:
            return np.zeros(len(names))
        for name in sorted({*names} - {*factors}):
            remedy = f"define it with PartitionName=, or use one of: {', '.join(factors) or 'none is defined'}"
            problem = f"jobs request partition '{name}', which is not defined"
            raise InputError(problem, file=self.conf.file, field="PartitionName", remedy=remedy)
        most = max(factors.values(), default=0)
        scale = 1.0 if "NO_NORMAL_PART" in self.rules.flags else float(most)
        relative = {name: value / scale if scale else 0.0 for name, value in factors.items()}
        return np.array([relative[name] for name in names], dtype=np.float64) * float(self.rules.partition)

    def quality(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the weighted QOS factor, (k,): priority relative to the largest one; 0 for a QOS that is not in the dump."""
        most = max(self.qualities.values(), default=0)
        scale = 1.0 if "NO_NORMAL_QOS" in self.rules.flags else float(most)
        relative = {name: value / scale if scale else 0.0 for name, value in self.qualities.items()}
        names = _texts(table, "qos", rows, "normal")
        return np.array([relative.get(name, 0.0) for name in names], dtype=np.float64) * float(self.rules.qos)

    def resources(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the weighted TRES factor, (k,): each amount relative to the total of the job's partition.

        Licenses belong to the whole machine, and so to every partition.
        """
        nodes, cpu = _nodes_and_cpus(table, rows, self.machine)
        requested = {"cpu": cpu, "mem": table.memory[rows] * nodes, "node": nodes, "gres/gpu": table.request(GPU)[rows] * nodes}
        total = np.zeros(len(nodes))
        if not self.rules.tres:
            return total
        names = _texts(table, "partition", rows, self.conf.default_partition)
        sizes = {name: self._partition_size(name) for name in {*names}}
        licenses = {(LICENSE + name).lower(): name for name in self.machine.licenses}
        for resource in (*TRES, *licenses):
            weight = self.rules.tres.get(resource)
            if weight is None:
                continue
            if resource in licenses:
                requested[resource] = _licenses(table, rows, licenses[resource])
            if "NO_NORMAL_TRES" in self.rules.flags:
                factor = requested[resource].astype(np.float64)
            else:
                whole = np.array([sizes[name][resource] for name in names], dtype=np.float64)
                factor = np.divide(requested[resource], whole, out=np.zeros(len(whole)), where=whole > 0)
            total += factor * weight
        return total

    def _partition_size(self, name: str) -> dict[str, int]:
        """Return the TRES of a partition: of its own nodes if slurm.conf lists them, else of the machine."""
        section = self.conf.partitions.get(name)
        if section is not None and section.text("Nodes", "ALL").upper() != "ALL":
            hosts = self.conf.hosts(name)
            cpu, mem = self.conf.amount(hosts, "CPUs"), self.conf.amount(hosts, "RealMemory")
            gpu = sum(gpus_of_node(self.conf.by_host[host]) for host in hosts) if "gres/gpu" in self.rules.tres else 0
            size = ClusterSize(len(hosts), cpu, mem, gpu)
        else:
            size = ClusterSize.of(self.machine)
        licenses = {(LICENSE + name).lower(): count for name, count in self.machine.licenses.items()}
        return {"cpu": size.cpu, "mem": size.mem, "node": size.nodes, "gres/gpu": size.gpu, **licenses}

    def nice(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the nice values, (k,), which are subtracted; 0 if the table has none."""
        column = table.attributes.get("nice")
        count = len(range(*rows.indices(len(table))))
        return np.zeros(count) if column is None else np.asarray(column[rows], dtype=np.float64)

    def billing(self, table: JobTable, rows: slice) -> FloatArray:
        """Return the billing rate of each job per second, (k,): its CPUs."""
        return _nodes_and_cpus(table, rows, self.machine)[1].astype(np.float64)


def _texts(table: JobTable, name: str, rows: slice, default: str) -> list[str]:
    """Return an attribute of some rows as text, with the default for missing columns and empty values."""
    column = table.attributes.get(name)
    if column is None:
        return [default] * len(range(*rows.indices(len(table))))
    return [str(value) or default for value in column[rows].tolist()]


def _licenses(table: JobTable, rows: slice, name: str) -> IntArray:
    """Return each job's number of licenses with a name, (k,); zeros for texts, which `license_requests` rejects."""
    column = table.attributes.get(LICENSE + name)
    if column is None or column.dtype.kind not in "iuf":
        return np.zeros(len(range(*rows.indices(len(table)))), dtype=np.int64)
    return np.nan_to_num(column[rows]).astype(np.int64)  # empty cells of tables are NaN


def _nodes_and_cpus(table: JobTable, rows: slice, machine: Machine) -> tuple[IntArray, IntArray]:
    """Return the nodes and CPUs of each job, (k,) each: all CPUs of exclusive nodes, requested CPUs of shared nodes."""
    nodes = table.nodes[rows] * table.tasks[rows]
    own = table.request("cores")[rows] * nodes
    each = machine.per_node.get("cores")
    whole = table.request("nodes")[rows] > 0
    if each is None or not whole.any():
        return nodes, np.maximum(own, 1)
    per_node = int(each[machine.of_kind(Kind.NODE)].max())
    return nodes, np.where(whole, nodes * max(per_node, 1), np.maximum(own, 1))
