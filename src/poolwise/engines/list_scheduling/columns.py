"""Conversion of a run of list scheduling on racks to the arrays of its kernel."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from poolwise.arrays import BoolArray, IntArray, blocks
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank, read_only, zeros_of
from poolwise.engines.list_columns import IN_KERNELS, SPREADS, ListColumns, backfill_code, stretched
from poolwise.engines.list_scheduling.capacity_changes import capacity_after, change_arrays, peak
from poolwise.interfaces import CappedOrder, ListRule, RecalculatedOrder, opened, rule_of
from poolwise.interfaces.capped import cap, machine_nodes, node_seconds
from poolwise.kernels.common import state as common
from poolwise.kernels.common.index import lay_out
from poolwise.kernels.common.state import Order, Tree
from poolwise.kernels.list_scheduling import state
from poolwise.model import Refusal
from poolwise.model.rules import RackRule
from poolwise.policies.backfill.easy import inexhaustible
from poolwise.units import NEVER

Trees: TypeAlias = "tuple[Tree, Tree]"
"""Two trees over the waiting jobs: in the order of backfilling, and in the order of the queue."""
DEEP_QUEUE = 128
"""Number of waiting jobs above which a tree over them pays off; below, scans are cheaper than updating a tree."""


class ListArrays(NamedTuple):
    """Arguments of the kernel `replay`."""

    state: state.RackState
    tree: Tree | None
    heads: Tree | None
    profile: state.ProfileArrays | None
    held: state.ReservationArrays | None
    changes: state.ChangeArrays | None

    def with_state(self, **arrays: Any) -> ListArrays:
        """Return the arguments with other arrays of the state."""
        return self._replace(state=self.state._replace(**arrays))


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

        Its backfill and placement must have the same rules, and its orders must not need a callback during the run.
        """
        order, backfill_order = self.orders(arrays.state.jobs.able)
        waiting = arrays.state.waiting._replace(area=self._areas())
        return arrays.with_state(order=order, backfill_order=backfill_order, rules=self._rules(), waiting=waiting)

    def _areas(self) -> IntArray:
        """Return (n_job,) node-seconds, or (0,) without a cap."""
        return read_only(blank(0) if self.cap is None else node_seconds(self.workload.table))

    def arrays(self) -> ListArrays:
        """Build the initial arrays of a replay."""
        n, all_reserve = len(self.workload), self.backfill.reserves == "all"
        racks, remote = self._racks(), self.workload.memory - self.machine.local_memory
        np.maximum(remote, 0, out=remote)
        able = self._able(remote, racks)
        (order, backfill_order), renewed = self.orders(able), isinstance(self.scheduler.order, RecalculatedOrder)
        order = order._replace(kind=common.STATIC) if renewed else order  # until the next recalculation
        now = common.record(state.RackNow)
        now.renewal = -1 if renewed else NEVER
        now.head, now.first, now.warm = -1, -1, int(self.scheduler.warm_up > 0)
        now.shadow = NEVER
        now.awaited, now.stop, now.front = -1, NEVER, -NEVER
        now.depth = 0 if self._disturbances else DEEP_QUEUE
        jobs = self._jobs(remote, able)
        profile = self.profile(0) if all_reserve else None
        held = self._reservations() if self.backfill.keeps else None
        tree, changes = None, None
        if self._disturbances:
            tree = lay_out(jobs.nodes, jobs.remote, jobs.length, able) if profile is None else None
            changes, now.last_gain = change_arrays(self.machine, self._disturbances, self._requeue, jobs)
        whole = state.RackState(
            jobs=jobs,
            order=order,
            backfill_order=backfill_order,
            rules=self._rules(),
            racks=racks,
            queue=self.queue_arrays(),
            waiting=zeros_of(state.WaitingArrays, n, area=self._areas()),
            runs=self.run_arrays(2 * max(n, 1024)),
            due=state.DueArrays(run=blank(n), early=blank(n if all_reserve else 0)),
            now=now,
        )
        return ListArrays(whole, tree, tree, profile, held, changes)

    def orders(self, able: BoolArray) -> tuple[Order, Order]:
        """Return the order of the queue, without its cap, and the order of backfilling."""
        order = self.order(self.scheduler.order if self.cap is None else self.cap.order, able)
        backfill_order = self.scheduler.backfill.own_order
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
        """Return arrays for a held reservation of each job."""
        n, n_rack = len(self.workload), len(self.machine.racks.nodes)
        return zeros_of(state.ReservationArrays, n, start=np.full(n, -1), take=blank(n, n_rack), borrow=blank(n, n_rack))

    def refusals(self, jobs: IntArray, after: IntArray | None = None) -> dict[int, str]:
        """Return why jobs (k,) do not fit the machine if it is empty, after (k,) changes; computed once per size of job."""
        reasons: dict[tuple[int, int, int], str] = {}
        out: dict[int, str] = {}
        for job, count in zip(jobs.tolist(), np.zeros_like(jobs).tolist() if after is None else after.tolist(), strict=True):
            size = int(self.nodes[job]), int(self.workload.memory[job]), count
            if size not in reasons:
                empty = self.empty
                if count:
                    empty = empty.imagined(0, capacity_after(self.machine, self._disturbances, count))
                found = self.scheduler.placement.place(self.workload.job(job), empty)
                assert isinstance(found, Refusal)
                reasons[size] = f"cannot fit on the empty machine: {found.reason}"
            out[job] = reasons[size]
        return out

    def _able(self, remote: IntArray, racks: state.RackArrays) -> BoolArray:
        """Return (n_job,) which jobs fit the empty machine, with the peak capacity of its racks."""
        from poolwise.kernels.list_scheduling.racks import screen

        able, most = np.zeros(len(remote), dtype=np.bool_), (racks.free, racks.pool)
        if self._disturbances:
            most = peak(self.machine, self._disturbances)
        screen(read_only(self.nodes), read_only(remote), self.anywhere, *most, able)
        return able

    def _jobs(self, remote: IntArray, able: BoolArray) -> state.JobArrays:
        workload, n = self.workload, len(self.workload)
        runtime, length = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        mixed = np.empty((6, n if self.anywhere else 0))
        for rows in blocks(n):
            true = self.slowdown(self.truth, rows)
            believed = true if self.estimate == self.truth else self.slowdown(self.estimate, rows)
            self.spreads = true.spread, believed.spread
            slow = believed.near * believed.weight
            if self.anywhere:
                # a weighted mean may round to just below both values
                slow = np.minimum(believed.near, believed.far) * believed.weight
                slow -= 1e-12 * np.abs(slow)
                mixed[:, rows] = *true[:3], *believed[:3]
            runtime[rows] = stretched(workload.duration[rows], true.near * true.weight)
            length[rows] = stretched(workload.requested[rows], slow)
        whole = workload.submit, self.nodes, remote, able, workload.duration, workload.requested, runtime, length
        columns: Any = (read_only(column) for column in (*whole, *mixed, np.zeros(0, dtype=np.bool_)))
        return state.JobArrays(*columns)

    def _rules(self) -> state.Rules:
        spread, believed = (SPREADS[spread] for spread in self.spreads)
        patience, backlogs = (0, 0.0) if self.cap is None else (cap(self.cap, 0, 1), self.cap.backlogs)
        return state.Rules(
            anywhere=self.anywhere,
            backfill=backfill_code(self.backfill),
            spread=spread,
            believed_spread=believed,
            nodes_only=not self.backfill.counts_pools,
            warm_up=self.scheduler.warm_up,
            per_event=self.per_event,
            separate_order=self.scheduler.backfill.own_order is not None,
            capped=self.cap is not None,
            patience=patience,
            backlogs=backlogs,
            nodes=machine_nodes(self.machine),
        )

    def _racks(self) -> state.RackArrays:
        layout, capacity = self.machine.racks, self.machine.capacity
        free = capacity[layout.nodes, layout.node_column].copy()
        pool = np.where(layout.pools >= 0, capacity[layout.pools, layout.memory_column], 0)
        of_owner = blank(len(capacity))
        for owner in (layout.nodes, layout.pools):
            of_owner[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
        return zeros_of(
            state.RackArrays,
            len(free),
            free=free,
            pool=pool,
            rank=np.arange(len(free)),
            whole=blank(len(free), 4),
            unlimited_pool=np.where(layout.pools >= 0, inexhaustible(self.machine), 0),
            node_owner=layout.nodes.astype(np.int64),
            pool_owner=layout.pools.astype(np.int64),
            of_owner=of_owner,
            node_column=layout.node_column,
            memory_column=layout.memory_column,
        )
