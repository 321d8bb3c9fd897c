"""What is said to Slurm so that a job runs where it was decided: nodes by name, pools as licences.

A heterogeneous job's leader takes no list of required nodes, and what is updated of it is updated of all components: so the
leader comes first, with all other nodes excluded, and then each of the others by its own number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import SlurmJob
from poolwise.model import Placement

GAVE_BACK, WAITS = "poolwise-gave-back", "poolwise-waits"
"""Stand in the administrator's comment, where users cannot write: of a job that was given back, and of one that was held at its
submission (`deploy/slurm/job_submit.lua`), which Slurm shows as its user's own hold."""
FIRST = 4_000_000_000
"""Priority of jobs that are released while others of the partition are Slurm's to start."""


@dataclass(frozen=True)
class SlurmAssignment:
    """Nodes and licences that a job is given.

    Attributes
    ----------
    name : the job
    numbers : of its components, the leader first
    nodes : names of nodes of each component
    others : names of all other nodes of the partition than the leader's
    licences : all licences of the job, its user's own ones among them
    memory : MiB of each node for Slurm to count, None where that is as the user said
    """

    name: str
    numbers: tuple[int, ...]
    nodes: tuple[tuple[str, ...], ...]
    others: frozenset[str]
    licences: Mapping[str, int]
    memory: int | None = None

    @classmethod
    def of(
        cls,
        name: str,
        gang: tuple[SlurmJob, ...],
        nodes: tuple[tuple[str, ...], ...],
        layout: SlurmLayout,
        placement: Placement,
        everywhere: frozenset[str],
    ) -> SlurmAssignment:
        """Cut the nodes of a job taken whole into those of its components, and add its user's own licences."""
        if layout.whole:
            flat, cut, low = nodes[0], list[tuple[str, ...]](), 0
            for job in gang:
                cut.append(flat[low : low + job.nodes])
                low += job.nodes
            nodes = tuple(cut)
        licences = own_licences(gang, layout) | layout.bought(placement)
        memory = None if layout.whole else layout.local_memory(placement)
        numbers = tuple(job.number for job in gang)
        return cls(name, numbers, nodes, everywhere - set(nodes[0]), licences, memory)

    @property
    def all_nodes(self) -> frozenset[str]:
        """Nodes of all components."""
        return frozenset(node for part in self.nodes for node in part)

    def commands(self) -> list[str]:
        """What assigns nodes and licences."""
        bought = f"Licenses={_licences(self.licences)}"
        memory = "" if self.memory is None else f" MinMemoryNode={self.memory}"
        if len(self.numbers) == 1:
            return [f"update JobId={self.name} ReqNodeList={','.join(self.nodes[0])} ExcNodeList= {bought}{memory}"]
        first = f"update JobId={self.numbers[0]} ExcNodeList={','.join(sorted(self.others))} {bought}{memory}"
        rest = zip(self.numbers[1:], self.nodes[1:], strict=True)
        return [first, *(f"update JobId={n} ExcNodeList= ReqNodeList={','.join(part)} Licenses={memory}" for n, part in rest)]

    def release(self, first: bool) -> list[str]:
        """What lets the job start, `first` before all others of the partition."""
        name = self.name if len(self.numbers) == 1 else self.numbers[0]
        return [f"release {name}", *([f"update JobId={name} Priority={FIRST}"] if first else [])]

    def why_not(self, gang: tuple[SlurmJob, ...] | None) -> str:
        """Say what is not as it was assigned; "" where all is, and the job still held."""
        if gang is None or any(job.state != "PENDING" for job in gang):
            return "it does not wait any more"
        if tuple(job.number for job in gang) != self.numbers:
            return "it has other components"
        if any(not job.held for job in gang):
            return "somebody has released it"
        if any(job.held_by_user for job in gang):
            return "its user holds it"
        for k, (job, nodes) in enumerate(zip(gang, self.nodes, strict=True)):
            if job.nodes != len(nodes):
                return "it asks for another number of nodes"
            leader = k == 0 and len(gang) > 1
            if (leader and job.excluded != self.others) or (not leader and job.required != set(nodes)):
                return "Slurm does not show the nodes that it was given"
            if dict(job.licences) != (dict(self.licences) if k == 0 else {}):
                return "Slurm does not show the licences that it was given"
        return ""


def own_licences(gang: tuple[SlurmJob, ...], layout: SlurmLayout) -> dict[str, int]:
    """Licences that a job's user asked for, but for pools and devices: these Poolwise decides."""
    return {name: count for name, count in gang[0].licences.items() if name not in layout.licences}


def leader(name: str, gang: tuple[SlurmJob, ...]) -> str:
    """What Slurm calls a job in commands that are for all of its components."""
    return str(gang[0].number) if len(gang) > 1 else name


def cleared(name: str, gang: tuple[SlurmJob, ...], layout: SlurmLayout) -> list[str]:
    """What takes back nodes and licences."""
    own = f"Licenses={_licences(own_licences(gang, layout))}"
    if len(gang) == 1:
        return [f"update JobId={name} ReqNodeList= ExcNodeList= {own}"]
    rest = [f"update JobId={job.number} ReqNodeList= ExcNodeList= Licenses=" for job in gang[1:]]
    return [f"update JobId={gang[0].number} ExcNodeList= {own}", *rest]


def mark(name: str, text: str) -> str:
    """What writes a mark; "" takes it away."""
    return f"update JobId={name} AdminComment={text}"


def is_marked(shown: str, text: str) -> bool:
    """Whether `scontrol show job` shows a mark."""
    return f"AdminComment={text}" in shown


def _licences(licences: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted(licences.items()) if count)
