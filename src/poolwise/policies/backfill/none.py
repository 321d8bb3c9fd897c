"""No backfilling: strict priority order, in which the first job that does not fit blocks the jobs behind it.

On a machine with partitions, it blocks only jobs that compete for the nodes of its partitions, as in Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, SchedulingPass
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Kind, Machine, Refusal, Snapshot, Start, WaitCause
from poolwise.model.eligibility import eligible_owners, eligible_sets, partition_owners
from poolwise.model.rules import BackfillRule, HeadScope, RackRule
from poolwise.policies.placement.avoid_windows import without_windows
from poolwise.registry import register


@register("backfills", "none")
@dataclass(frozen=True)
class NoBackfill(BackfillPolicy):
    """Start jobs in priority order until one does not fit.

    Parameters
    ----------
    heads
        Jobs blocked by a job that does not fit: those that compete for the nodes of its partitions ("partition"), or all
        ("machine"). Without partitions, both have the same effect.
    """

    heads: HeadScope = "partition"

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts."""
        starts, heads, state = start_in_order(cycle, self.heads)
        for job in cycle.to_explain(starts):
            if isinstance(cycle.place(job, state), Refusal):
                continue
            head = next(head for head in heads if head != job and competes(job, head, cycle, self.heads))
            lack = cycle.place(head, state)
            short = lack if isinstance(lack, Refusal) else None
            text = "it fits, but the policy does not backfill, and the head job waits"
            text = text if short is None else f"{text}: {short.reason}"
            cycle.record(job, WaitCause.ORDER, text, short, blocker=head, blocker_needs=True)
        return starts

    def rule(self) -> BackfillRule:
        """Return the rule: no job has a reservation."""
        return BackfillRule("none", heads=self.heads)


def start_in_order(
    cycle: SchedulingPass,
    heads: HeadScope = "partition",
    *,
    blocks_pools: bool = True,
    most: int | None = None,
    least_priority: float = -np.inf,
    heads_fit_empty: bool = False,
) -> tuple[list[Start], list[int], Snapshot]:
    """Start jobs in priority order; a job that does not fit becomes a head and blocks those behind it.

    With heads by "partition", it blocks the nodes of its partitions, with the devices inside and the memory pools from which
    these nodes borrow (unless `blocks_pools` is False). A job behind it that does not fit on the rest is a head as well. With
    one head for the "machine", or if all jobs may use the same partitions, nothing starts behind the first head. At most `most`
    jobs are considered, blocked ones included. Jobs below `least_priority` do not become heads. With `heads_fit_empty`, the
    same holds for jobs that would not fit outside blocked nodes and windows even if nothing ran, unless they request more nodes
    than their partitions have outside the blocked nodes.

    Returns
    -------
    starts
        The starts in priority order.
    heads
        Rows of the heads in priority order. A head other than the first may fit on blocked nodes.
    snapshot
        The state with these starts.
    """
    if not has_several_heads(cycle, heads):
        return _start_until_first_head(cycle, most, least_priority, heads_fit_empty)
    snapshot, machine = cycle.snapshot, cycle.snapshot.machine
    nodes, home, blocked = machine.kind == Kind.NODE, machine.home, np.zeros(machine.n_owner, dtype=np.bool_)
    starts, found_heads = list[Start](), list[int]()
    blocks = dict(zip(cycle.queue.jobs.tolist(), (cycle.priority >= least_priority).tolist(), strict=True))
    for job in cycle.ranked()[:most].tolist():
        mine = owners_of(job, cycle)
        if not (mine & nodes & ~blocked).any():
            continue
        if (mine & blocked).any():
            hidden = blocked | ((home >= 0) & blocked[home])
            view = snapshot.imagined(snapshot.now, np.where(hidden[:, None], 0, snapshot.free))
            placement = cycle.placement.place(cycle.queue.job(job), view)
        else:
            placement = cycle.place(job, snapshot)
        if isinstance(placement, Refusal):
            if not blocks[job] or (heads_fit_empty and _lacks_nodes(job, blocked, cycle)):
                continue
            found_heads.append(job)
            theirs = owners_of(job, cycle, partition=True)
            blocked |= theirs if blocks_pools else theirs & nodes
            if blocked[nodes].all():
                break
        else:
            starts.append(Start(job, cycle.queue.tasks(job), placement))
            snapshot = snapshot.with_started(job, placement)
    return starts, found_heads, snapshot


def _start_until_first_head(
    cycle: SchedulingPass, most: int | None, least_priority: float, heads_fit_empty: bool
) -> tuple[list[Start], list[int], Snapshot]:
    """Start jobs until one does not fit: the first maximum of the remaining priorities, one linear scan per start, no sort."""
    queue, priority, snapshot = cycle.queue, cycle.priority, cycle.snapshot
    jobs, left = queue.jobs, np.arange(len(queue))
    starts, considered = list[Start](), 0
    while len(left) and (most is None or considered < most):
        at = int(np.argmax(priority[left]))
        job = int(jobs[left[at]])
        placement = cycle.place(job, snapshot)
        considered += 1
        if isinstance(placement, Refusal):
            lacks = heads_fit_empty and _lacks_nodes(job, np.zeros(snapshot.machine.n_owner, dtype=np.bool_), cycle)
            if not lacks and priority[left[at]] >= least_priority:
                return starts, [job], snapshot
            left = np.concatenate([left[:at], left[at + 1 :]])
            continue
        starts.append(Start(job, queue.tasks(job), placement))
        snapshot = snapshot.with_started(job, placement)
        left = np.concatenate([left[:at], left[at + 1 :]])
    return starts, [], snapshot


def _lacks_nodes(job: int, blocked: BoolArray, cycle: SchedulingPass) -> bool:
    """Return whether a job would not fit outside blocked owners, (n_owner,), and windows even if nothing ran.

    Return False if it requests more nodes than its partitions have that work and are not blocked.
    """
    snapshot, machine = cycle.snapshot, cycle.snapshot.machine
    if not (machine.windows or blocked.any()):
        return False
    hidden = blocked | ((machine.home >= 0) & blocked[machine.home])
    left = owners_of(job, cycle, partition=True) & (machine.kind == Kind.NODE) & ~hidden & (snapshot.capacity > 0).any(axis=1)
    if left.sum() < cycle.queue.job(job).nodes:
        return False
    empty = snapshot.imagined(snapshot.now, np.where(hidden[:, None], 0, snapshot.capacity))
    return isinstance(cycle.placement.place(cycle.queue.job(job), empty), Refusal)


def has_several_heads(cycle: SchedulingPass, heads: HeadScope) -> bool:
    """Return whether a pass may have several heads: jobs wait in partitions with different nodes."""
    machine = cycle.snapshot.machine
    if heads == "machine" or not machine.node_sets:
        return False
    return len(partition_owners(machine, cycle.queue.table)) > 1


def competes(job: int, head: int, cycle: SchedulingPass, heads: HeadScope) -> bool:
    """Return whether a job may use a node of the head's partitions, or a memory pool from which one of them borrows."""
    if not has_several_heads(cycle, heads):
        return True
    return bool((owners_of(job, cycle) & owners_of(head, cycle, partition=True)).any())


def owners_of(job: int, cycle: SchedulingPass, *, partition: bool = False) -> BoolArray:
    """Return the nodes on which a job may run and the pools from which they borrow, (n_owner,).

    With `partition`, return the nodes and pools of its partitions, regardless of its other constraints.
    """
    machine = cycle.snapshot.machine
    sets = eligible_sets(machine, cycle.queue.table)
    named, constraint = sets.value[sets.of[job]]
    nodes = eligible_owners(machine, named, "" if partition else constraint) & (machine.kind == Kind.NODE)
    owners: BoolArray = nodes | pools_of(nodes, machine, cycle.placement)
    return owners


def pools_of(nodes: BoolArray, machine: Machine, placement: PlacementPolicy) -> BoolArray:
    """Return the memory pools from which nodes may borrow, (n_owner,): of their racks, else of the machine."""
    pools: BoolArray = machine.kind == Kind.POOL
    rule = rule_of(without_windows(placement))
    if not pools.any() or (isinstance(rule, RackRule) and rule.pools == "system"):
        return pools if bool(nodes.any()) else np.zeros_like(pools)
    racks = np.unique(machine.rack[nodes])
    reachable: BoolArray = pools & np.isin(machine.rack, racks)
    if not np.isin(racks, machine.rack[reachable]).all():
        reachable |= pools & (machine.rack < 0)
    return reachable
