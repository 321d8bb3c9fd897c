"""What the jobs of a log ask of a machine: whole nodes, or CPUs, memory and GPUs of nodes that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine
from poolwise.traces.numbers import round_up

_MILLI = 1000


@dataclass(frozen=True, eq=False)
class Request:
    """What jobs ask of a machine, as a `Workload` has it.

    Attributes
    ----------
    tasks : (n_job,) tasks of each job
    amounts : resource -> (n_job,) amounts of each task, per node where it takes whole nodes
    repaired : reason -> jobs for which the machine counts otherwise than the log
    """

    tasks: IntArray
    amounts: dict[str, IntArray]
    repaired: dict[str, int]


@dataclass(frozen=True, eq=False)
class Demand:
    """What jobs had in a log, (n_job,) each.

    Attributes
    ----------
    parts : nodes that the job was spread over, at least 1; a part stays together where nodes are shared
    cpu_milli : thousandths of a CPU, of all parts together
    memory : MiB of each part
    gpu_milli : thousandths of a GPU, of all parts together
    """

    parts: IntArray
    cpu_milli: IntArray
    memory: FloatArray
    gpu_milli: IntArray

    def filter_rows(self, keep: BoolArray) -> Demand:
        """Those jobs for which (n_job,) `keep` is true."""
        return Demand(self.parts[keep], self.cpu_milli[keep], self.memory[keep], self.gpu_milli[keep])

    def on(self, machine: Machine, *, apart: bool = False) -> Request:
        """Say it in what the machine has.

        Where nodes are taken whole a job needs as many as hold its CPUs and its GPUs, and on each of them its memory in the
        share of the job that one node can hold. Where they are shared each part is a task that asks for "cpu_milli" or else
        "cores", "memory", and "gpu_milli" or else "gpu", whichever the nodes or devices have. What the machine has nothing of
        is left out and counted. Raises InputError for a job that would ask for nothing but memory.

        Parameters
        ----------
        apart
            On shared nodes the parts of a job stay on different nodes: they are the "nodes" of one task. A part with more
            cores than any node has is divided, as `share_out` divides processors.
        """
        if "nodes" in machine.resources:
            return self._whole(machine)
        return self._apart(machine) if apart else self._shared(machine)

    def _apart(self, machine: Machine) -> Request:
        parts = self.parts
        if most := most_on_a_node(machine, "cores"):
            processors = _ceil(self.cpu_milli, _MILLI)
            divided, _ = share_out(processors, machine)
            parts = np.where(_ceil(self.cpu_milli, parts * _MILLI) > most, np.maximum(parts, divided), parts)
        on_each = Demand(parts, self.cpu_milli, self.memory * self.parts / parts, self.gpu_milli)
        asked = on_each._shared(machine)
        nodes = {"nodes": parts} if int(parts.max(initial=1)) > 1 else {}
        return Request(np.ones_like(parts), {**nodes, **asked.amounts}, asked.repaired)

    def _whole(self, machine: Machine) -> Request:
        nodes = np.zeros(len(self.parts), dtype=np.int64)
        share = np.ones(len(self.parts), dtype=np.float64)
        repaired: dict[str, int] = {}
        for what, name, milli in (("CPUs", "cores", self.cpu_milli), ("GPUs", "gpu", self.gpu_milli)):
            each = _per_node(machine, name)
            if each:
                nodes = np.maximum(nodes, _ceil(milli, each * _MILLI))
                share = np.minimum(share, each * _MILLI / np.maximum(milli, 1))
            else:
                _leave_out(what, milli, repaired)
        _check(nodes, machine, "cores, and gpu in its resources (--machine-cores, --machine-gpus)")
        memory = round_up(self.memory * self.parts * share).astype(np.int64)
        return Request(np.ones_like(nodes), {"nodes": nodes, "memory": memory}, repaired)

    def _shared(self, machine: Machine) -> Request:
        amounts: dict[str, IntArray] = {}
        repaired: dict[str, int] = {}
        for what, milli, names in (
            ("CPUs", self.cpu_milli, ("cpu_milli", "cores")),
            ("GPUs", self.gpu_milli, ("gpu_milli", "gpu")),
        ):
            name = next((name for name in names if most_on_a_node(machine, name) or on_devices(machine, name)), None)
            if name is None or not milli.any():
                _leave_out(what, milli, repaired)
                continue
            unit = 1 if name == names[0] else _MILLI
            amounts[name] = _ceil(milli, self.parts * unit)
            more = int((amounts[name] * self.parts * unit > milli).sum())
            if more:
                repaired[f"{what} rounded up to a whole number of '{name}' on each node"] = more
        asked = np.sum([*amounts.values(), np.zeros_like(self.parts)], axis=0)
        _check(asked, machine, "cores, and gpu in its resources")
        return Request(self.parts, {**amounts, "memory": round_up(self.memory).astype(np.int64)}, repaired)


def share_out(processors: IntArray, machine: Machine) -> tuple[IntArray, IntArray]:
    """Shared nodes that jobs with (n_job,) processors take, and the cores of each, (n_job,) both.

    What fits a node takes one; else ceil(processors / c) nodes take the same number of cores each, c the cores of a common
    node: those that most nodes have, of equally many the most. Raises InputError for nodes without cores.
    """
    cores = machine.capacity[machine.of_kind(Kind.NODE), machine.resource("cores")] if "cores" in machine.resources else None
    if cores is None or not cores.any():
        raise InputError(f"the nodes of machine '{machine.name}' have no cores", field="cores", remedy="give its nodes cores")
    sizes, many = np.unique(cores[cores > 0], return_counts=True)
    common = int(sizes[many == many.max()][-1])
    parts = np.where(processors <= int(sizes[-1]), 1, _ceil(processors, common))
    return parts, _ceil(processors, parts)


def most_on_a_node(machine: Machine, resource: str) -> int:
    """Most that any node of the machine has of a resource, 0 if none has it."""
    if resource not in machine.resources:
        return 0
    return int(machine.capacity[machine.of_kind(Kind.NODE), machine.resource(resource)].max(initial=0))


def on_devices(machine: Machine, name: str) -> bool:
    """Whether the machine has devices of a type of this name, or devices that have a resource of this name."""
    devices = machine.of_kind(Kind.DEVICE)
    if name in machine.resources and machine.capacity[devices, machine.resource(name)].any():
        return True
    return any(machine.type[device] == name for device in devices.tolist())


def _per_node(machine: Machine, name: str) -> int:
    """What each whole node brings at least, 0 if some bring none."""
    found, groups = machine.per_node.get(name), machine.racks.nodes
    return int(found[groups].min()) if found is not None and len(groups) else 0


def _leave_out(what: str, milli: IntArray, repaired: dict[str, int]) -> None:
    if count := int((milli > 0).sum()):
        repaired[f"{what} left out, since the machine's nodes have none"] = count


def _check(asked: IntArray, machine: Machine, what: str) -> None:
    if not asked.all():
        count = int((asked == 0).sum())
        message = f"{count:,} jobs ask for nothing that the nodes of machine '{machine.name}' have"
        raise InputError(message, field="machine", remedy=f"give its nodes {what}")


def _ceil(amount: IntArray, unit: IntArray | int) -> IntArray:
    return np.asarray(-(-amount // unit), dtype=np.int64)
