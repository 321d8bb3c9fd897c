"""Conversion of a run of list scheduling on racks to the arrays of its kernel."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from poolwise.arrays import BoolArray, IntArray, blocks
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank, read_only, zeros_of
from poolwise.engines.list_columns import (
    IN_KERNELS,
    SPREADS,
    ListColumns,
    backfill_code,
    has_several_heads,
    interval_rules,
    stretched,
)
from poolwise.engines.list_scheduling.capacity_changes import capacity_after, change_arrays, no_changes, peak
from poolwise.engines.list_scheduling.mixed_nodes import head_arrays, is_mixed, least_remote, mixed_arrays, pool_cells
from poolwise.interfaces import CappedOrder, ListRule, RecalculatedOrder
from poolwise.interfaces.capped import cap, machine_nodes, node_seconds
from poolwise.interfaces.order import opened
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.common import state as common
from poolwise.kernels.common.index import lay_out
from poolwise.kernels.common.state import Order, Tree
from poolwise.kernels.list_scheduling import interval_state, state
from poolwise.kernels.list_scheduling.head_state import RackHeadArrays
from poolwise.model import Refusal
from poolwise.model.rules import RackRule
from poolwise.policies.admission.machine_limits import MachineLimits, barred
from poolwise.policies.backfill.easy import inexhaustible
from poolwise.quantities import NEVER

Trees: TypeAlias = "tuple[Tree, Tree]"
"""Two trees over the waiting jobs: in the order of backfilling, and in the order of the queue."""
DEEP_QUEUE = 128
"""Number of waiting jobs above which a tree over them pays off; with fewer jobs, scans are cheaper than updating a tree."""


class ListArrays(NamedTuple):
    """Arguments of the kernel `replay`."""

    state: state.RackState
    tree: Tree | None
    heads: Tree | None
    profile: state.ProfileArrays | None
    held: state.ReservationArrays | None
    changes: state.ChangeArrays | None
    intervals: interval_state.IntervalArrays | None
    partitions: RackHeadArrays | None

    def with_state(self, **arrays: Any) -> ListArrays:
        """Return the arguments with the arrays of the state replaced."""
        return self._replace(state=self.state._replace(**arrays))

    def with_trees(self, tree: Tree, heads: Tree) -> ListArrays:
        """Return the arguments of the kernel for queues in trees."""
        return self._replace(tree=tree, heads=heads, changes=self.changes or no_changes())

    def without_trees(self) -> ListArrays:
        """Return the arguments of the kernel that scans queues; the arguments of reservations are unchanged."""
        return self._replace(tree=None, heads=None, changes=None if self.profile is None else self.changes)

    @property
    def changing(self) -> bool:
        """True if the capacity of racks changes."""
        return self.changes is not None and len(self.changes.time) > 0


class RunColumns(ListColumns):
    """Inputs of a run, and the arrays that the kernel needs.

    Parameters
    ----------
    spec
        Specification of a supported run.
    rule
        Rule of its scheduler.
    """

    def __init__(self, spec: RunSpec, rule: ListRule) -> None:
        super().__init__(spec, rule)
        self.per_event, self._disturbances, self._requeue = spec.pass_per_event, spec.disturbances, spec.requeue
        self.set_scheduler(rule)
        self.nodes = self.workload.nodes if int(self.workload.tasks.max()) == 1 else self.workload.nodes * self.workload.tasks

    def set_scheduler(self, rule: ListRule) -> None:
        """Switch to another scheduler."""
        backfill, placement = rule_of(rule.backfill), rule_of(rule.placement)
        assert backfill is not None and isinstance(placement, RackRule)
        self.scheduler = rule._replace(order=opened(rule.order))
        order = self.scheduler.order
        self.cap = order if isinstance(order, CappedOrder) and order.order.kind in IN_KERNELS else None
        self.backfill, self.anywhere = backfill, placement.pools == "system"

    def with_current_orders(self, arrays: ListArrays) -> ListArrays:
        """Return the arrays for the same jobs under the orders of the current scheduler.

        Its backfill and placement must have the same rules as before, and its orders must not need a callback during the run.
        """
        order, backfill_order = self.orders(arrays.state.jobs.able)
        waiting = arrays.state.waiting._replace(area=self._areas())
        rules = self._rules(arrays.state.jobs.mixed)
        return arrays.with_state(order=order, backfill_order=backfill_order, rules=rules, waiting=waiting)

    def _areas(self) -> IntArray:
        """Return the requested node-seconds of each job, (n_job,); (0,) without a cap."""
        return read_only(blank(0) if self.cap is None else node_seconds(self.workload.table))

    def arrays(self) -> ListArrays:
        """Build the initial arrays of a replay."""
        n, all_reserve = len(self.workload), self.backfill.reserves == "all"
        racks, mixed = self._racks(), None
        if is_mixed(self.machine, self.workload.table):
            mixed = mixed_arrays(self.machine, self.workload.table)
            remote = least_remote(mixed)
        else:
            remote = self.workload.memory - self.machine.local_memory
            np.maximum(remote, 0, out=remote)
        able = self._able(remote, mixed, racks)
        (order, backfill_order), renewed = self.orders(able), isinstance(self.scheduler.order, RecalculatedOrder)
        order = order._replace(kind=common.STATIC) if renewed else order  # until the next recalculation
        now = common.record(state.RackNow)
        now.renewal = -1 if renewed else NEVER
        now.head, now.first, now.warm = -1, -1, int(self.scheduler.warm_up > 0)
        now.shadow = NEVER
        now.awaited, now.stop, now.front = -1, NEVER, -NEVER
        now.depth = 0 if self._disturbances else DEEP_QUEUE
        jobs = self._jobs(remote, able, mixed)
        profile = self.profile(0) if all_reserve else None
        held = self._reservations() if self.backfill.keeps else None
        tree, changes = None, None if profile is None or held is not None else no_changes()
        if self._disturbances:
            tree = lay_out(jobs.nodes, jobs.remote, jobs.length, able) if profile is None else None
            changes, now.last_gain = change_arrays(self.machine, self._disturbances, self._requeue, jobs)
        whole = state.RackState(
            jobs=jobs,
            order=order,
            backfill_order=backfill_order,
            rules=self._rules(mixed),
            racks=racks,
            queue=self.queue_arrays(),
            waiting=zeros_of(state.WaitingArrays, n, area=self._areas()),
            runs=self.run_arrays(2 * max(n, 1024)),
            due=state.DueArrays(run=blank(n), early=blank(n if all_reserve else 0)),
            now=now,
        )
        partitions = None
        if has_several_heads(self.backfill, self.machine, self.workload.table):
            partitions = head_arrays(self.machine, self.workload.table, self.scheduler.placement)
        return ListArrays(whole, tree, tree, profile, held, changes, self._intervals(jobs), partitions)

    def orders(self, able: BoolArray) -> tuple[Order, Order]:
        """Return the order of the queue, without its cap, and the order of backfilling."""
        order = self.order(self.scheduler.order if self.cap is None else self.cap.order, able)
        backfill_order = self.scheduler.backfill.backfill_order
        return order, order if backfill_order is None else self.order(backfill_order, able)

    def profile(self, size: int) -> state.ProfileArrays:
        """Return an empty profile with space for `size` instants."""
        n_rack, cached = len(self.machine.racks.nodes), 0 if self.backfill.keeps else len(self.workload)
        return zeros_of(
            state.ProfileArrays,
            size,
            free=blank(n_rack, size),
            pool=blank(n_rack, size),
            status=common.record(state.ProfileStatus),
            least_free=blank(n_rack),
            least_pool=blank(n_rack),
            recent_free=blank(n_rack),
            recent_pool=blank(n_rack),
            tail_free=blank(size, n_rack),
            tail_pool=blank(size, n_rack),
            steps=zeros_of(state.StepArrays, size, free=blank(size, n_rack), pool=blank(size, n_rack)),
            cache=zeros_of(
                state.ReservationCacheArrays,
                cached,
                key=np.zeros(cached),
                take=blank(cached, n_rack),
                borrow=blank(cached, n_rack),
                counted=np.zeros(cached, dtype=np.bool_),
            ),
        )

    def _reservations(self) -> state.ReservationArrays:
        """Return arrays with space for one kept reservation of each job."""
        n, n_rack = len(self.workload), len(self.machine.racks.nodes)
        return zeros_of(state.ReservationArrays, n, start=np.full(n, -1), take=blank(n, n_rack), borrow=blank(n, n_rack))

    def _intervals(self, jobs: state.JobArrays) -> interval_state.IntervalArrays | None:
        """Return the arrays for backfilling at intervals; None for other backfills."""
        times, n = self.backfill.times, len(self.workload)
        if times is None:
            return None
        nodes, memory = self._capacity()
        n_run, n_rack = min(n, int(nodes.sum())) + 1, len(nodes)
        sizes, demand = np.unique(np.stack((jobs.nodes, jobs.remote))[:, jobs.able], axis=1, return_inverse=True)
        demand_of = blank(n)
        demand_of[jobs.able] = demand
        status = common.record(interval_state.IntervalStatus)
        status.wake = NEVER
        return interval_state.IntervalArrays(
            interval_rules(times),
            status,
            zeros_of(
                interval_state.RankArrays,
                sizes.shape[1],
                job=blank(min(2 * times.depth + 2, n)),
                planned=blank(min(2 * times.depth + 2, n)),
                key=np.zeros(n),
                demand=demand_of,
                nodes=np.ascontiguousarray(sizes[0]),
                remote=np.ascontiguousarray(sizes[1]),
            ),
            zeros_of(
                interval_state.ReleaseArrays,
                n_rack,
                end=blank(n_run),
                run=blank(n_run),
                free=blank(n_run + 1, n_rack),
                pool=blank(n_run + 1, n_rack),
                nodes=nodes,
                memory=memory,
            ),
            self.segments(0),
        )

    def segments(self, size: int) -> interval_state.SegmentArrays:
        """Return arrays with space for `size` segments of a backfill pass."""
        tables = ("nodes", "memory", "least_nodes", "least_memory", "tail_nodes", "tail_memory")
        racks = {name: blank(size, len(self.machine.racks.nodes)) for name in tables}
        return zeros_of(interval_state.SegmentArrays, size, **racks)

    def refusals(self, jobs: IntArray, after: IntArray | None = None) -> dict[int, str]:
        """Return row -> why the job does not fit on the empty machine after `after` changes of capacity, (k,) each."""
        reasons: dict[tuple[int, ...], str] = {}
        out: dict[int, str] = {}
        mixed, table, limits = is_mixed(self.machine, self.workload.table), self.workload.table, MachineLimits()
        signatures = self.scheduler.placement.signatures(self.machine, table) if mixed or self._lacking().any() else None
        beyond = set(barred(self.machine, table).tolist()) if mixed else ()
        for job, count in zip(jobs.tolist(), np.zeros_like(jobs).tolist() if after is None else after.tolist(), strict=True):
            if job in beyond:
                exceeded = limits.never(job, self.empty)
                assert exceeded is not None
                out[job] = exceeded.reason
                continue
            request = (int(self.nodes[job]), int(self.workload.memory[job])) if signatures is None else (int(signatures[job]),)
            size = *request, count
            if size not in reasons:
                empty = self.empty
                if count:
                    empty = empty.imagined(0, capacity_after(self.machine, self._disturbances, count))
                refusal = self.scheduler.placement.place(self.workload.job(job), empty)
                assert isinstance(refusal, Refusal)
                reasons[size] = f"cannot fit on the empty machine: {refusal.reason}"
            out[job] = reasons[size]
        return out

    def _able(self, remote: IntArray, mixed: state.MixedArrays | None, racks: state.RackArrays) -> BoolArray:
        """Return whether each job fits the empty machine with the peak capacity of its racks, (n_job,)."""
        from poolwise.kernels.list_scheduling.racks import screen

        able, most = np.zeros(len(remote), dtype=np.bool_), (racks.free, racks.pool)
        if self._disturbances:
            most = peak(self.machine, self._disturbances)
        screen(read_only(self.nodes), read_only(remote), self.anywhere, mixed, *most, able)
        able &= ~self._lacking()
        if mixed is not None:
            able[barred(self.machine, self.workload.table)] = False
        return able

    def _lacking(self) -> BoolArray:
        """Return whether each job requests more of another resource, such as GPUs, than any node has, (n_job,)."""
        table = self.workload.table
        mask = np.zeros(len(table), dtype=np.bool_)
        for name, most in self.machine.racks.further(table.requests).items():
            mask |= table.request(name) > most
        return mask

    def _jobs(self, remote: IntArray, able: BoolArray, mixed: state.MixedArrays | None) -> state.JobArrays:
        workload, n = self.workload, len(self.workload)
        runtime, length = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        by_node = mixed is not None and not self.machine.racks.uniform
        varies = self.anywhere or by_node
        slowdowns = np.empty((6, n if varies else 0))
        for rows in blocks(n):
            true = self.slowdown(self.model, rows)
            believed = true if self.estimate == self.model else self.slowdown(self.estimate, rows)
            self.spreads = true.spread, believed.spread
            slow = believed.near * believed.weight
            if varies:
                # a weighted mean may round to just below both values
                slow = np.minimum(believed.near, believed.far)
                slow = np.minimum(slow, 0) if by_node else slow * believed.weight
                slow -= 1e-12 * np.abs(slow)
                slowdowns[:, rows] = *true[:3], *believed[:3]
            runtime[rows] = stretched(workload.duration[rows], true.near * true.weight)
            length[rows] = stretched(workload.requested[rows], slow)
        whole = workload.submit, self.nodes, remote, able, workload.duration, workload.requested, runtime, length
        columns = (read_only(column) for column in (*whole, *slowdowns, np.zeros(0, dtype=np.bool_)))
        return state.JobArrays._make((*columns, mixed))

    def _rules(self, mixed: state.MixedArrays | None) -> state.Rules:
        by_node = mixed is not None and not self.machine.racks.uniform
        spread, believed = (SPREADS[spread] for spread in self.spreads)
        patience, backlogs = (0, 0.0) if self.cap is None else (cap(self.cap, 0, 1), self.cap.backlogs)
        return state.Rules(
            anywhere=self.anywhere,
            closed=mixed is None and not self.anywhere,
            varies=self.anywhere or by_node,
            by_node=by_node,
            backfill=backfill_code(self.backfill),
            spread=spread,
            believed_spread=believed,
            nodes_only=not self.backfill.counts_pools,
            warm_up=self.scheduler.warm_up,
            per_event=self.per_event,
            separate_order=self.scheduler.backfill.backfill_order is not None,
            capped=self.cap is not None,
            patience=patience,
            backlogs=backlogs,
            nodes=machine_nodes(self.machine),
        )

    def _capacity(self) -> tuple[IntArray, IntArray]:
        """Return the nodes of each rack, and the MiB of its pool, (n_rack,) each."""
        layout, capacity = self.machine.racks, self.machine.capacity
        pools = pool_cells(layout)
        pool = np.where(pools >= 0, capacity[pools, layout.memory_column], 0)
        return capacity[layout.nodes, layout.node_column].copy(), pool

    def _racks(self) -> state.RackArrays:
        layout, capacity = self.machine.racks, self.machine.capacity
        free, pool = self._capacity()
        pools = pool_cells(layout)
        of_owner = blank(len(capacity))
        for owner in (layout.nodes, pools):
            of_owner[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
        return zeros_of(
            state.RackArrays,
            len(free),
            free=free,
            pool=pool,
            rank=np.arange(len(free)),
            whole=blank(len(free), 4),
            unlimited_pool=np.where(pools >= 0, inexhaustible(self.machine), 0),
            node_owner=layout.nodes.astype(np.int64),
            pool_owner=pools,
            of_owner=of_owner,
            node_column=layout.node_column,
            memory_column=layout.memory_column,
        )
