"""`scontrol` commands that make a job run on its placement: nodes by name, pools as licenses.

The leader of a heterogeneous job accepts no list of required nodes, and an update of the leader applies to all components.
Therefore the leader is updated first, with all other nodes excluded, and then each further component by its own job id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import SlurmJob
from poolwise.model import Placement

RETURNED_MARK, SUBMIT_HOLD_MARK = "poolwise-gave-back", "poolwise-waits"
"""Marks in the administrator's comment, which users cannot write: for jobs given back to Slurm, and for jobs that
`deploy/slurm/job_submit.lua` held at submission, which Slurm shows as held by their user."""
TOP_PRIORITY = 4_000_000_000  # priority of released jobs while the partition has other pending jobs that Slurm may start


@dataclass(frozen=True)
class SlurmAssignment:
    """Nodes and licenses assigned to a job."""

    name: str  # of the job
    numbers: tuple[int, ...]  # job ids of its components, the leader first
    nodes: tuple[tuple[str, ...], ...]  # names of the nodes of each component
    excluded: frozenset[str]  # names of the partition's nodes that the leader does not use
    licenses: Mapping[str, int]  # all licenses of the job, including those that its user requested
    memory: int | None = None  # memory per node that Slurm is to count (MiB), None to keep the user's request

    @classmethod
    def of(
        cls,
        name: str,
        gang: tuple[SlurmJob, ...],
        nodes: tuple[tuple[str, ...], ...],
        layout: SlurmLayout,
        placement: Placement,
        partition_nodes: frozenset[str],
    ) -> SlurmAssignment:
        """Return the assignment of a placement: split a whole-node job's nodes among its components and keep user licenses."""
        if layout.whole:
            flat, split, low = nodes[0], list[tuple[str, ...]](), 0
            for job in gang:
                split.append(flat[low : low + job.nodes])
                low += job.nodes
            nodes = tuple(split)
        licenses = user_licenses(gang, layout) | layout.licenses_for(placement)
        memory = None if layout.whole else layout.local_memory(placement)
        numbers = tuple(job.number for job in gang)
        return cls(name, numbers, nodes, partition_nodes - set(nodes[0]), licenses, memory)

    @property
    def all_nodes(self) -> frozenset[str]:
        """Nodes of all components."""
        return frozenset(node for part in self.nodes for node in part)

    def commands(self) -> list[str]:
        """Return the commands that assign nodes and licenses."""
        requested = f"Licenses={_format_licenses(self.licenses)}"
        memory = "" if self.memory is None else f" MinMemoryNode={self.memory}"
        if len(self.numbers) == 1:
            return [f"update JobId={self.name} ReqNodeList={','.join(self.nodes[0])} ExcNodeList= {requested}{memory}"]
        first = f"update JobId={self.numbers[0]} ExcNodeList={','.join(sorted(self.excluded))} {requested}{memory}"
        rest = zip(self.numbers[1:], self.nodes[1:], strict=True)
        return [first, *(f"update JobId={n} ExcNodeList= ReqNodeList={','.join(part)} Licenses={memory}" for n, part in rest)]

    def release(self, first: bool) -> list[str]:
        """Return the commands that release the job, with `TOP_PRIORITY` if it has to start `first` in the partition."""
        name = self.name if len(self.numbers) == 1 else self.numbers[0]
        return [f"release {name}", *([f"update JobId={name} Priority={TOP_PRIORITY}"] if first else [])]

    def mismatch(self, gang: tuple[SlurmJob, ...] | None) -> str:
        """Return how the job differs from the assignment; "" if it is as assigned and still held."""
        if gang is None or any(job.state != "PENDING" for job in gang):
            return "the job is no longer pending"
        if tuple(job.number for job in gang) != self.numbers:
            return "the job's components have changed"
        if any(not job.held for job in gang):
            return "another user has released the job"
        if any(job.held_by_user for job in gang):
            return "the job is held by its user"
        for k, (job, nodes) in enumerate(zip(gang, self.nodes, strict=True)):
            if job.nodes != len(nodes):
                return "the job requests a different number of nodes"
            leader = k == 0 and len(gang) > 1
            if (leader and job.excluded != self.excluded) or (not leader and job.required != set(nodes)):
                return "Slurm does not report the nodes that were assigned"
            if dict(job.licenses) != (dict(self.licenses) if k == 0 else {}):
                return "Slurm does not report the licenses that were assigned"
        return ""


def user_licenses(gang: tuple[SlurmJob, ...], layout: SlurmLayout) -> dict[str, int]:
    """Return the licenses that a job's user requested, without those of pools and devices, which Poolwise assigns."""
    return {name: count for name, count in gang[0].licenses.items() if name not in layout.licenses}


def leader_id(name: str, gang: tuple[SlurmJob, ...]) -> str:
    """Return the id that addresses a job in commands that apply to all of its components."""
    return str(gang[0].number) if len(gang) > 1 else name


def clear_commands(name: str, gang: tuple[SlurmJob, ...], layout: SlurmLayout) -> list[str]:
    """Return the commands that remove assigned nodes and licenses."""
    own = f"Licenses={_format_licenses(user_licenses(gang, layout))}"
    if len(gang) == 1:
        return [f"update JobId={name} ReqNodeList= ExcNodeList= {own}"]
    rest = [f"update JobId={job.number} ReqNodeList= ExcNodeList= Licenses=" for job in gang[1:]]
    return [f"update JobId={gang[0].number} ExcNodeList= {own}", *rest]


def mark_command(name: str, text: str) -> str:
    """Return the command that writes a mark; "" removes it."""
    return f"update JobId={name} AdminComment={text}"


def has_mark(shown: str, text: str) -> bool:
    """Return whether the output of `scontrol show job` contains a mark."""
    return f"AdminComment={text}" in shown


def _format_licenses(licenses: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted(licenses.items()) if count)
