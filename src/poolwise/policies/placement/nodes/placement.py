"""Placement of jobs on one or several shared nodes, with memory beyond a node's own from a pool.

A job that requests n `nodes` has n parts, each on a different node; parts of several tasks may share a node. A part takes its
cores, its devices by type and all other counted resources from its node. It takes the free memory of its node first, and the
rest from the pool of the node's rack, or else from the machine's pool.

Nodes that need the least pool memory come first, and among these the nodes with the lowest weight (the attribute `weight`, as
in Slurm); a policy orders the remaining ties (`NodePlacement.node_order`). A job is therefore placed if and only if a valid
placement exists, and additional free resources never prevent its placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.eligibility import eligible_nodes
from poolwise.model.exclusive import SHARE
from poolwise.model.rules import NodeRule
from poolwise.policies.placement.nodes.layout import MEMORY, NODES, NodeLayout, node_layout
from poolwise.policies.placement.requests import check_requests, foreign_request, once_per_kind, request_kinds
from poolwise.registry import register


@dataclass(frozen=True, eq=False, slots=True)
class CandidateNodes:
    """Nodes that could take one part of a job, (n_node,) each.

    Attributes
    ----------
    able : nodes that can hold a part with the memory left in their pool, except nodes that are certainly not needed because
        enough others need less pool memory, or need the same and have a lower weight
    lack : MiB that a part would take from the pool
    cores : free cores
    rack : rack of each node
    parts : number of parts to place
    weight : rank of each node's weight
    requested : cores of a part
    devices : whether a part requests devices, or countable resources other than cores and memory
    """

    able: BoolArray
    lack: IntArray
    cores: IntArray
    rack: IntArray
    parts: int
    weight: IntArray
    requested: int
    devices: bool


class NodePlacement(PlacementPolicy):
    """Base class of placements on shared nodes; subclasses order nodes that are equal in required pool memory and weight."""

    filters_nodes: ClassVar[bool] = True

    def layout(self, machine: Machine) -> NodeLayout:
        """Return the nodes, with the weights by which they are chosen."""
        return node_layout(machine)

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return sort keys, (n_node,), for nodes equal in required pool memory and weight; ties are broken by index."""
        raise NotImplementedError

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for a machine without shared nodes, for unknown resources, and for tasks with several nodes each."""
        check_requests(jobs, node_layout(machine).known)
        several = (jobs.tasks > 1) & (jobs.nodes > 1)
        if several.any():
            job = int(np.argmax(several))
            raise InputError(
                f"job {int(jobs.id[job])} requests {int(jobs.tasks[job])} tasks of {int(jobs.nodes[job])} nodes each",
                field=NODES,
                remedy="request several tasks of one node each, or one task on several nodes",
            )

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all parts of a job, or return what is short."""
        layout = self.layout(snapshot.machine)
        if (foreign := foreign_request(job, layout.known)) is not None:
            return foreign
        if job.tasks > 1 and job.nodes > 1:
            return Refusal(f"tasks that each request several nodes are not supported ({job.tasks} tasks of {job.nodes} nodes)")
        eligible = layout.eligible(job.table, job.index)
        free = snapshot.free.copy()
        rows: list[tuple[int, int, int, int]] = []
        for task in job.numbers:
            placement = self._place(job, task, eligible, free, layout)
            if isinstance(placement, Refusal):
                return placement
            rows += placement
        return Placement.of(rows)

    def _place(
        self, job: Job, task: int, eligible: BoolArray, free: IntArray, layout: NodeLayout
    ) -> list[tuple[int, int, int, int]] | Refusal:
        """Return the rows of a task, and subtract them from the free amounts."""
        nodes = candidates(job, eligible, free, layout)
        able = np.flatnonzero(nodes.able)
        if len(able) < job.nodes:
            return _why_not(job, eligible, free, layout)
        first = np.lexsort((layout.weight[able], nodes.lack[able]))
        last = able[first[job.nodes - 1]]  # of the nodes that are certainly sufficient
        equal = (nodes.lack == nodes.lack[last]) & (layout.weight <= layout.weight[last])
        order = self.node_order(replace(nodes, able=nodes.able & ((nodes.lack < nodes.lack[last]) | equal)))
        rows: list[tuple[int, int, int, int]] = []
        parts = job.nodes
        for node in able[np.lexsort((able, order[able], layout.weight[able], nodes.lack[able]))].tolist():
            pool, lack = int(layout.pool[node]), int(nodes.lack[node])
            if lack and free[pool, layout.memory] < lack:
                continue
            part = list(rows_of_part(job, task, node, lack, free, layout))
            for _, owner, resource, amount in part:
                free[owner, resource] -= amount
            rows += part
            parts -= 1
            if not parts:
                return rows
        there = int(layout.pooled(free)[eligible].max(initial=0))
        return Refusal("not enough pool memory in reach of the free nodes", MEMORY, job.memory * job.nodes, there)

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Return a mask of jobs, (k,): False if fewer nodes than parts could hold one part, each with its whole pool.

        For jobs of several tasks, also False if the nodes have room for fewer tasks.
        """
        layout, table = node_layout(snapshot.machine), snapshot.table
        offers = (*layout.offers(free), (MEMORY, layout.local(free) + layout.pooled(free)))

        def fits(jobs: IntArray) -> BoolArray:
            able = eligible_nodes(snapshot.machine, table, jobs, layout.nodes)
            for name, offered in offers:
                able = able & (offered >= table.request(name)[jobs][:, None])
            tasks = table.tasks[jobs]
            enough: BoolArray = able.sum(axis=1) >= table.nodes[jobs]
            if (tasks > 1).any():
                room = np.where(able, tasks[:, None], 0)
                for name, offered in offers:
                    requested = table.request(name)[jobs][:, None]
                    room = np.where(requested > 0, np.minimum(room, np.maximum(offered, 0) // np.maximum(requested, 1)), room)
                enough &= room.sum(axis=1) >= tasks
            return enough

        return fits(jobs) if len(free) > 1 else once_per_kind(jobs, lambda: request_kinds(snapshot.machine, table), fits)

    def signatures(self, machine: Machine, table: JobTable) -> IntArray | None:
        """Return kinds of jobs with equal requests, (n_job,)."""
        return request_kinds(machine, table)


def candidates(job: Job, eligible: BoolArray, free: IntArray, layout: NodeLayout) -> CandidateNodes:
    """Return the nodes that could take a part of a job, given the (n_node,) eligible nodes and all free amounts."""
    able, cores = eligible, free[layout.nodes, layout.counted[0][1]]
    for name, offered in layout.offers(free):
        able = able & (offered >= job.request(name))
    lack = np.maximum(job.memory - layout.local(free), 0)
    devices = any(
        job.request(name) > 0 for name in (*layout.inside, *(name for name, _ in layout.counted[1:])) if name != SHARE
    )
    able = able & (lack <= layout.pooled(free))
    return CandidateNodes(able, lack, cores, layout.rack, job.nodes, layout.weight, job.request("cores"), devices)


def rows_of_part(
    job: Job, task: int, node: int, lack: int, free: IntArray, layout: NodeLayout
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the amounts that one part takes: from its node column by column, from the pool, and from devices by type."""
    owner = int(layout.nodes[node])
    requested = {column: job.request(name) for name, column in layout.counted}
    requested[layout.memory] = job.memory - lack
    taken = [(task, owner, column, requested[column]) for column in sorted(requested) if requested[column]]
    yield from taken or [(task, owner, layout.counted[0][1], 0)]
    if lack:
        yield task, int(layout.pool[node]), layout.memory, lack
    for kind, inside in layout.inside.items():
        mine = [device for device in inside[node].tolist() if device >= 0 and free[device, layout.device_column] > 0]
        yield from ((task, device, layout.device_column, 1) for device in mine[: job.request(kind)])


def _why_not(job: Job, eligible: BoolArray, free: IntArray, layout: NodeLayout) -> Refusal:
    """Return the resource that too few nodes have enough of, or a refusal for the combination of all of them."""
    there = int(eligible.sum())
    if there < job.nodes:
        return Refusal("not enough eligible nodes", NODES, job.nodes, there)
    offers = list(layout.offers(free))
    for shares in (offered for name, offered in offers if name == SHARE):
        eligible = eligible & (shares >= job.request(SHARE))
        if (there := int(eligible.sum())) < job.nodes:
            alone = job.request(SHARE) > 1
            text = "the job needs whole nodes, and too few are empty" if alone else "exclusive jobs hold too many of the nodes"
            return Refusal(text, NODES, job.nodes, there)
    able = eligible
    for name, offered in (*offers, (MEMORY, layout.local(free) + layout.pooled(free))):
        requested, enough = job.request(name), offered >= job.request(name)
        most = np.sort(offered[eligible])[-job.nodes]  # the amount on the worst of the job's best nodes
        if most < requested:
            fitting = int((eligible & enough).sum())
            return Refusal(f"too few nodes have enough free {name}", name, requested, int(most), job.nodes, fitting)
        able = able & enough
    text = "too few nodes have enough of all requested resources at once"
    return Refusal(text, nodes=job.nodes, fitting=int(able.sum()))


@register("placements", "first_fit")
@dataclass(frozen=True)
class FirstNodes(NodePlacement):
    """First fit: the first nodes that can each hold a part."""

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("first")

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return equal keys."""
        return np.zeros_like(nodes.cores)


@register("placements", "best_fit")
@dataclass(frozen=True)
class FullestNodes(NodePlacement):
    """Best fit: the nodes with the fewest free cores that can each hold a part, so that empty nodes stay empty."""

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("fullest")

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the free cores."""
        return nodes.cores


@register("placements", "worst_fit")
@dataclass(frozen=True)
class EmptiestNodes(NodePlacement):
    """Worst fit: the nodes with the most free cores, which spreads the load."""

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("emptiest")

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the negated free cores."""
        return -nodes.cores


@register("placements", "packed")
@dataclass(frozen=True)
class PackedNodes(NodePlacement):
    """Pack all parts into one rack if one can hold them, else into few racks; first fit within each.

    Of the racks with at least as many able nodes as the job has parts, the one with the fewest able nodes is
    chosen. If there is none, racks with the most able nodes come first. Ties are broken by rack number; nodes without a rack
    form one rack.
    """

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("packed")

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the rank of each node's rack."""
        racks, of = np.unique(nodes.rack, return_inverse=True)
        able = np.bincount(of[nodes.able], minlength=len(racks))
        whole = able >= nodes.parts
        rank = np.empty(len(racks), dtype=np.int64)
        rank[np.lexsort((racks, np.where(whole, able, -able), ~whole))] = np.arange(len(racks))
        return rank[of]


@register("placements", "topology_tree")
@dataclass(frozen=True)
class TreeNodes(NodePlacement):
    """Slurm's topology/tree: use the rack with the fewest able nodes that holds all remaining parts.

    While no rack holds all remaining parts, take all able nodes of the rack with the most. Ties are broken by rack
    number, then by node number; nodes without a rack form one rack.

    Source: recorded days of Slurm 22.05 with `topology/tree` (5,953 choices of nodes; two of them differ).
    """

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("tree")

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the rank of each node's rack."""
        racks, of = np.unique(nodes.rack, return_inverse=True)
        able = np.bincount(of[nodes.able], minlength=len(racks))
        rank, left = np.full(len(racks), len(racks)), nodes.parts
        for position in range(len(racks)):
            whole = np.flatnonzero((able >= left) & (able > 0))
            rack = whole[np.argmin(able[whole])] if len(whole) else np.argmax(able)
            rank[rack], left = position, left - able[rack]
            able[rack] = 0
            if left <= 0:
                break
        return rank[of]


@register("placements", "topology_none")
@dataclass(frozen=True)
class ConsecutiveNodes(NodePlacement):
    """Slurm's topology/none: use the consecutive able nodes that hold all remaining parts with the fewest free cores.

    A sequence has nodes of one weight. While none holds all remaining parts, take the one with the most free cores. Like Slurm,
    also take one that is too short if it has more free cores than all sequences before it. A single part goes to the node with
    the fewest free cores of the sequence, several parts to its first nodes. Ties are broken by node number. For a job that
    requests GPUs or other countable resources, each node counts with the cores that the job requests.

    Slurm does this for jobs that request memory per node. For jobs that request memory per CPU, it rounds the free cores of a
    node down to a multiple of the CPUs per task, which logs do not contain.

    Source: recorded days of Slurm 22.05 with `topology/none` and `select/cons_tres` (`tests/live`).

    Parameters
    ----------
    gpu_weights
        Whether the backfill `slurm` prefers nodes that it has tested for a job with GPUs, as `select/cons_tres` does; see
        `GpuWeights`. No kernel supports this.
    """

    gpu_weights: bool = True

    def rule(self) -> NodeRule:
        """Return the rule with which kernels make the same placements."""
        return NodeRule("consecutive", weighs_gpus=self.gpu_weights)

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the position of each node in the order of use."""
        turn, left, position = np.full(len(nodes.able), len(nodes.able)), nodes.parts, 0
        if nodes.devices:
            nodes = replace(nodes, cores=np.full_like(nodes.cores, nodes.requested))
        for weight in np.unique(nodes.weight[nodes.able]).tolist():
            able = np.flatnonzero(nodes.able & (nodes.weight == weight))
            groups = np.split(able, np.flatnonzero(np.diff(able) > 1) + 1)
            while groups and left > 0:
                group = groups.pop(self._next(groups, nodes, left))
                if left == 1:
                    group = group[[int(np.argmin(nodes.cores[group]))]]
                turn[group] = position + np.arange(len(group))
                position, left = position + len(group), left - len(group)
        return turn

    @staticmethod
    def _next(groups: list[IntArray], nodes: CandidateNodes, left: int) -> int:
        """Return the number of the sequence to use next for the remaining parts, found by a scan in order, as in Slurm."""
        best, best_cores, sufficient = -1, 0, False
        for number, group in enumerate(groups):
            cores, enough = int(nodes.cores[group].sum()), len(group) >= left
            if best < 0 or (cores < best_cores or not sufficient if enough else cores > best_cores):
                best, best_cores, sufficient = number, cores, enough
        return best


PLACEMENTS: Final[Mapping[str, type[NodePlacement]]] = {
    "first": FirstNodes,
    "fullest": FullestNodes,
    "emptiest": EmptiestNodes,
    "packed": PackedNodes,
    "tree": TreeNodes,
    "consecutive": ConsecutiveNodes,
}
"""`NodeRule.prefers` -> the placement that the rule describes."""
