"""Placement of jobs on one or several shared nodes, with memory beyond a node's own from a pool.

A job has parts, as many as it asks for `nodes`, each on a different node; the parts of several tasks may share one. A part
takes its cores, its devices by type and whatever else is counted from its node. Its memory comes from its node as far as
that has any left, the rest from the pool of the node's rack, else from that of the machine.

The nodes that need the least from a pool go first; among them a policy chooses (`NodePlacement.turn`). So a job is placed
exactly if there is any way to place it, and with more free it never fits worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.eligibility import eligible_nodes
from poolwise.policies.placement.devices.requests import check_requests, foreign_request
from poolwise.policies.placement.nodes.layout import MEMORY, NODES, NodeLayout, node_layout
from poolwise.policies.placement.request_kinds import once_a_kind, request_kinds
from poolwise.registry import register


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """The nodes that could take one part of a job, (n_node,) each.

    Attributes
    ----------
    able : which nodes have everything, with what their pool has left for one part, and are not behind enough that lack less
    lack : MiB that a part would need from the pool
    cores : free cores
    rack : rack
    parts : parts that want a node
    """

    able: BoolArray
    lack: IntArray
    cores: IntArray
    rack: IntArray
    parts: int


class NodePlacement(PlacementPolicy):
    """What placements on shared nodes have in common; subclasses say which of equally good nodes go first."""

    knows_eligibility: ClassVar[bool] = True

    def turn(self, nodes: Candidates) -> IntArray:
        """(n_node,) numbers by which nodes that need as much of a pool are chosen: the least first, then the first."""
        raise NotImplementedError

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for a machine without shared nodes, what they do not have, and tasks of several nodes each."""
        check_requests(jobs, node_layout(machine).known)
        several = (jobs.tasks > 1) & (jobs.nodes > 1)
        if several.any():
            job = int(np.argmax(several))
            raise InputError(
                f"job {int(jobs.id[job])} has {int(jobs.tasks[job])} tasks of {int(jobs.nodes[job])} nodes each",
                field=NODES,
                remedy="let it have tasks that share nodes, or one task on several nodes",
            )

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all parts of a job, or say what is short."""
        layout = node_layout(snapshot.machine)
        if (foreign := foreign_request(job, layout.known)) is not None:
            return foreign
        if job.tasks > 1 and job.nodes > 1:
            return Refusal(f"{job.tasks} tasks of {job.nodes} nodes each cannot be placed: nodes are those of one task")
        eligible = layout.eligible(job.table, job.index)
        free = snapshot.free.copy()
        rows: list[tuple[int, int, int, int]] = []
        for task in job.numbers:
            found = self._place(job, task, eligible, free, layout)
            if isinstance(found, Refusal):
                return found
            rows += found
        return Placement.of(rows)

    def _place(
        self, job: Job, task: int, eligible: BoolArray, free: IntArray, layout: NodeLayout
    ) -> list[tuple[int, int, int, int]] | Refusal:
        """Rows of a task, which are taken off what is free."""
        nodes = _candidates(job, eligible, free, layout)
        able = np.flatnonzero(nodes.able)
        if len(able) < job.nodes:
            return _why_not(job, eligible, free, layout)
        enough = np.sort(nodes.lack[able])[job.nodes - 1]
        turn = self.turn(replace(nodes, able=nodes.able & (nodes.lack <= enough)))
        rows: list[tuple[int, int, int, int]] = []
        parts = job.nodes
        for node in able[np.lexsort((able, turn[able], nodes.lack[able]))].tolist():
            pool, lack = int(layout.pool[node]), int(nodes.lack[node])
            if lack and free[pool, layout.memory] < lack:
                continue
            part = list(_rows(job, task, node, lack, free, layout))
            for _, owner, resource, amount in part:
                free[owner, resource] -= amount
            rows += part
            parts -= 1
            if not parts:
                return rows
        there = int(layout.pooled(free)[eligible].max(initial=0))
        return Refusal("not enough pool memory beside the free nodes", MEMORY, job.memory * job.nodes, there)

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """(k,) False where fewer nodes than there are parts have all that one asks for, each with the whole of its pool.

        Of several tasks, False where the nodes have room for fewer of them.
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
                    asked = table.request(name)[jobs][:, None]
                    room = np.where(asked > 0, np.minimum(room, np.maximum(offered, 0) // np.maximum(asked, 1)), room)
                enough &= room.sum(axis=1) >= tasks
            return enough

        return fits(jobs) if len(free) > 1 else once_a_kind(jobs, lambda: request_kinds(snapshot.machine, table), fits)

    def alike(self, machine: Machine, table: JobTable) -> IntArray | None:
        """(n_job,) numbers of jobs that ask for the same."""
        return request_kinds(machine, table)


def _candidates(job: Job, eligible: BoolArray, free: IntArray, layout: NodeLayout) -> Candidates:
    able, cores = eligible, free[layout.nodes, layout.counted[0][1]]
    for name, offered in layout.offers(free):
        able = able & (offered >= job.request(name))
    lack = np.maximum(job.memory - layout.local(free), 0)
    return Candidates(able & (lack <= layout.pooled(free)), lack, cores, layout.rack, job.nodes)


def _rows(job: Job, task: int, node: int, lack: int, free: IntArray, layout: NodeLayout) -> Iterator[tuple[int, int, int, int]]:
    """What one part takes: of its node column by column, of the pool, of devices by type."""
    owner = int(layout.nodes[node])
    asked = {column: job.request(name) for name, column in layout.counted}
    asked[layout.memory] = job.memory - lack
    taken = [(task, owner, column, asked[column]) for column in sorted(asked) if asked[column]]
    yield from taken or [(task, owner, layout.counted[0][1], 0)]
    if lack:
        yield task, int(layout.pool[node]), layout.memory, lack
    for kind, inside in layout.inside.items():
        mine = [device for device in inside[node].tolist() if device >= 0 and free[device, layout.device_column] > 0]
        yield from ((task, device, layout.device_column, 1) for device in mine[: job.request(kind)])


def _why_not(job: Job, eligible: BoolArray, free: IntArray, layout: NodeLayout) -> Refusal:
    """The resource that too few nodes have enough of, or that too few have all of them together."""
    there = int(eligible.sum())
    if there < job.nodes:
        return Refusal("not enough nodes on which it may run", NODES, job.nodes, there)
    for name, offered in (*layout.offers(free), (MEMORY, layout.local(free) + layout.pooled(free))):
        most = np.sort(offered[eligible])[-job.nodes]  # as much as the last of its nodes could have
        if most < job.request(name):
            return Refusal(f"too few nodes have enough free {name}", name, job.request(name), int(most))
    return Refusal("too few nodes have enough of everything together")


@register("placements", "first_fit")
@dataclass(frozen=True)
class FirstNodes(NodePlacement):
    """The first nodes that hold a part each."""

    def turn(self, nodes: Candidates) -> IntArray:
        """All alike."""
        return np.zeros_like(nodes.cores)


@register("placements", "best_fit")
@dataclass(frozen=True)
class FullestNodes(NodePlacement):
    """The nodes with the fewest free cores that hold a part each: what is empty stays empty."""

    def turn(self, nodes: Candidates) -> IntArray:
        """Free cores."""
        return nodes.cores


@register("placements", "worst_fit")
@dataclass(frozen=True)
class EmptiestNodes(NodePlacement):
    """The nodes with the most free cores: the load is spread."""

    def turn(self, nodes: Candidates) -> IntArray:
        """The negative of the free cores."""
        return -nodes.cores


@register("placements", "packed")
@dataclass(frozen=True)
class PackedNodes(NodePlacement):
    """All parts in one rack if one can hold them, else in few: first fit within each.

    Of the racks with as many able nodes as the job has parts, the one with the fewest; where none has, racks with the most
    able nodes first. Equal ones by number; nodes in no rack count as one.
    """

    def turn(self, nodes: Candidates) -> IntArray:
        """Rank of a node's rack."""
        racks, of = np.unique(nodes.rack, return_inverse=True)
        able = np.bincount(of[nodes.able], minlength=len(racks))
        whole = able >= nodes.parts
        rank = np.empty(len(racks), dtype=np.int64)
        rank[np.lexsort((racks, np.where(whole, able, -able), ~whole))] = np.arange(len(racks))
        return rank[of]


@register("placements", "topology_tree")
@dataclass(frozen=True)
class TreeNodes(NodePlacement):
    """The rack with the fewest able nodes that holds all parts that are left; while none does, all of the one with the most.

    Equal racks by number, the first nodes of each; nodes in no rack count as one.

    Source: what a Slurm 22.05 with `topology/tree` did in recorded days (5,953 choices of nodes, two of them otherwise).
    """

    def turn(self, nodes: Candidates) -> IntArray:
        """Rank of a node's rack."""
        racks, of = np.unique(nodes.rack, return_inverse=True)
        able = np.bincount(of[nodes.able], minlength=len(racks))
        rank, left = np.full(len(racks), len(racks)), nodes.parts
        for turn in range(len(racks)):
            whole = np.flatnonzero((able >= left) & (able > 0))
            rack = whole[np.argmin(able[whole])] if len(whole) else np.argmax(able)
            rank[rack], left = turn, left - able[rack]
            able[rack] = 0
            if left <= 0:
                break
        return rank[of]
