"""Conversion of a run of list scheduling on racks to the arrays of its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from poolwise.arrays import BoolArray, IntArray, blocks
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.engines.list_columns import IN_KERNELS, ListColumns, rows_held, stretched
from poolwise.engines.list_scheduling.capacity_changes import capacity_after, change_arrays, peak
from poolwise.interfaces import CappedOrder, ListRule, RecalculatedOrder, opened, rule_of
from poolwise.interfaces.capped import cap, machine_nodes, node_seconds
from poolwise.model import Refusal
from poolwise.model.rules import RackRule
from poolwise.policies.backfill.easy_nodes_only import inexhaustible
from poolwise.units import NEVER

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import (
        ChangeArrays,
        JobArrays,
        Order,
        ProfileArrays,
        RackArrays,
        ReservationArrays,
        ReservationCacheArrays,
        Rules,
        RunArrays,
        Tree,
    )
    from poolwise.kernels.list_scheduling.state import QueueArrays as Waiting

Trees: TypeAlias = "tuple[Tree, Tree]"
"""Two trees over the waiting jobs: in the order of backfilling, and in the order of the queue."""
DEEP_QUEUE = 128
"""Number of waiting jobs above which a tree over them pays off; below, scans are cheaper than updating a tree."""


class ListArrays(NamedTuple):
    """Arguments of the kernel `replay`."""

    jobs: JobArrays
    order: Order
    backfill_order: Order
    rules: Rules
    racks: RackArrays
    queue: Waiting
    tree: Tree | None
    heads: Tree | None
    profile: ProfileArrays | None
    held: ReservationArrays | None
    changes: ChangeArrays | None
    runs: RunArrays
    now: IntArray


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
        order, backfill_order = self.orders(arrays.jobs.able)
        queue = arrays.queue._replace(area=self._areas())
        return arrays._replace(order=order, backfill_order=backfill_order, rules=self._rules(), queue=queue)

    def _areas(self) -> IntArray:
        """Return (n_job,) node-seconds, or (0,) without a cap."""
        return read_only(blank(0) if self.cap is None else node_seconds(self.workload.table))

    def arrays(self) -> ListArrays:
        """Build the initial arrays of a replay."""
        from poolwise.kernels.list_scheduling import state
        from poolwise.kernels.list_scheduling.index import lay_out

        n, warm_up = len(self.workload), self.scheduler.warm_up
        rows = 2 * max(n, 1024) + rows_held(self.initial)
        racks, remote = self._racks(), self.workload.memory - self.machine.local_memory
        np.maximum(remote, 0, out=remote)
        able = self._able(remote, racks)
        (order, backfill_order), renewed = self.orders(able), isinstance(self.scheduler.order, RecalculatedOrder)
        order = order._replace(kind=state.STATIC) if renewed else order  # until the next recalculation
        now = blank(state.N_NOW)
        now[state.RENEWAL] = -1 if renewed else NEVER
        now[state.HEAD], now[state.FIRST], now[state.WARM] = -1, -1, int(warm_up > 0)
        now[state.SHADOW] = NEVER
        now[state.AWAITED], now[state.STOP], now[state.FRONT] = -1, NEVER, -NEVER
        now[state.DEPTH] = 0 if self._disturbances else DEEP_QUEUE
        queue = state.QueueArrays(
            job=blank(n),
            nodes=blank(n),
            remote=blank(n),
            length=blank(n),
            since=blank(n),
            where=np.full(n, -1),
            chosen=blank(n),
            warm=blank(min(warm_up, n)),
            area=self._areas(),
        )
        runs = state.RunArrays(
            job=blank(n),
            start=blank(n),
            end=blank(n),
            expected=blank(n),
            offset=blank(n + 1),
            owner=blank(rows),
            resource=blank(rows),
            amount=blank(rows),
            ending=blank(n),
            due=blank(n),
            rejected=blank(n),
            early=blank(n if self.backfill.reserves == "all" else 0),
        )
        profile = self.profile(0) if self.backfill.reserves == "all" else None
        jobs = self._jobs(remote, able)
        held = self._reservations() if self.backfill.keeps else None
        tree, changes = None, None
        if self._disturbances:
            tree = lay_out(jobs.nodes, jobs.remote, jobs.length, able) if profile is None else None
            changes, now[state.LAST_GAIN] = change_arrays(self.machine, self._disturbances, self._requeue, jobs)
        return ListArrays(
            jobs, order, backfill_order, self._rules(), racks, queue, tree, tree, profile, held, changes, runs, now
        )

    def orders(self, able: BoolArray) -> tuple[Order, Order]:
        """Return the order of the queue, without its cap, and the order of backfilling."""
        order = self.order(self.scheduler.order if self.cap is None else self.cap.order, able)
        backfill_order = self.scheduler.backfill.own_order
        return order, order if backfill_order is None else self.order(backfill_order, able)

    def profile(self, size: int) -> ProfileArrays:
        """Return an empty profile with space for `size` instants."""
        from poolwise.kernels.list_scheduling.state import ProfileArrays, StepArrays

        n_rack = len(self.machine.racks.nodes)
        free, pool = (np.zeros((n_rack, size), dtype=np.int64) for _ in range(2))
        tail_free, tail_pool, step_free, step_pool = (np.zeros((size, n_rack), dtype=np.int64) for _ in range(4))
        return ProfileArrays(
            time=blank(size),
            nodes=blank(size),
            memory=blank(size),
            free=free,
            pool=pool,
            begins=blank(size),
            size=blank(7),
            least_free=blank(n_rack),
            least_pool=blank(n_rack),
            low=blank(size),
            recent_free=blank(n_rack),
            recent_pool=blank(n_rack),
            tail_free=tail_free,
            tail_pool=tail_pool,
            steps=StepArrays(blank(size), blank(size), blank(size), step_free, step_pool),
            cache=self._reservation_cache(0 if self.backfill.keeps else len(self.workload)),
        )

    def _reservation_cache(self, n: int) -> ReservationCacheArrays:
        """Return arrays for a cached reservation of each of n jobs."""
        from poolwise.kernels.list_scheduling.state import ReservationCacheArrays

        take, borrow = (np.zeros((n, len(self.machine.racks.nodes)), dtype=np.int64) for _ in range(2))
        return ReservationCacheArrays(
            ranked=blank(n),
            place=blank(n),
            key=np.zeros(n),
            start=blank(n),
            end=blank(n),
            take=take,
            borrow=borrow,
            margin=blank(n),
            counted=np.zeros(n, dtype=np.bool_),
            gain_from=blank(n),
            gain_until=blank(n),
            loss_from=blank(n),
            loss_until=blank(n),
            loss_on=blank(n),
        )

    def _reservations(self) -> ReservationArrays:
        """Return arrays for a held reservation of each job."""
        from poolwise.kernels.list_scheduling.state import ReservationArrays

        n = len(self.workload)
        take, borrow = (np.zeros((n, len(self.machine.racks.nodes)), dtype=np.int64) for _ in range(2))
        return ReservationArrays(np.full(n, -1), blank(n), take, borrow, blank(n), blank(n))

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

    def _able(self, remote: IntArray, racks: RackArrays) -> BoolArray:
        """Return (n_job,) which jobs fit the empty machine, with the peak capacity of its racks."""
        from poolwise.kernels.list_scheduling.racks import screen

        able, most = np.zeros(len(remote), dtype=np.bool_), (racks.free, racks.pool)
        if self._disturbances:
            most = peak(self.machine, self._disturbances)
        screen(read_only(self.nodes), read_only(remote), self.anywhere, *most, able)
        return able

    def _jobs(self, remote: IntArray, able: BoolArray) -> JobArrays:
        from poolwise.kernels.list_scheduling.state import JobArrays

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
        return JobArrays(*columns)

    def _rules(self) -> Rules:
        from poolwise.kernels.list_scheduling import state

        rule = self.backfill
        code = {"none": state.NONE, "head": state.EASY if rule.extra else state.EASY_NO_EXTRA, "all": state.CONSERVATIVE}
        spreads = {"worst": state.WORST, "mean": state.MEAN, "paper": state.PAPER}
        spread, believed = (spreads[spread] for spread in self.spreads)
        nodes_only, warm_up = not rule.counts_pools, self.scheduler.warm_up
        capped = self.cap is not None
        patience, backlogs = (0, 0.0) if self.cap is None else (cap(self.cap, 0, 1), self.cap.backlogs)
        return state.Rules(
            self.anywhere,
            code[rule.reserves],
            spread,
            believed,
            nodes_only,
            warm_up,
            self.per_event,
            self.scheduler.backfill.own_order is not None,
            capped,
            patience,
            backlogs,
            machine_nodes(self.machine),
        )

    def _racks(self) -> RackArrays:
        from poolwise.kernels.list_scheduling.state import RackArrays

        layout, capacity = self.machine.racks, self.machine.capacity
        free = capacity[layout.nodes, layout.node_column].copy()
        pool = np.where(layout.pools >= 0, capacity[layout.pools, layout.memory_column], 0)
        shadow_free, shadow_pool, offered, held, take, borrow = (np.zeros_like(free) for _ in range(6))
        unlimited_pool = np.where(layout.pools >= 0, inexhaustible(self.machine), 0)
        of_owner = blank(len(capacity))
        for owner in (layout.nodes, layout.pools):
            of_owner[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
        return RackArrays(
            free,
            pool,
            shadow_free,
            shadow_pool,
            offered,
            held,
            np.arange(len(free)),
            np.zeros((len(free), 4), dtype=np.int64),
            unlimited_pool,
            take,
            borrow,
            layout.nodes.astype(np.int64),
            layout.pools.astype(np.int64),
            of_owner,
            layout.node_column,
            layout.memory_column,
        )
