"""A study of list scheduling on racks as the arrays that the kernels replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, blocks
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.engines.study_columns import StudyColumns
from poolwise.interfaces import PerformanceModel, rule_of
from poolwise.model import Machine, Refusal, Workload
from poolwise.performance.remote_memory import RemoteMemory, mean_factor, sensitivity, sld_factor
from poolwise.policies.backfill.easy_nodes_only import inexhaustible
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import JobArrays, Order, ProfileArrays, RackArrays, Rules, RunArrays, Tree
    from poolwise.kernels.list_scheduling.state import QueueArrays as Waiting

DEEP_QUEUE = 128
"""Waiting jobs beyond which a tree over them pays; below, scanning them is cheaper than keeping one up to date."""


class ListArrays(NamedTuple):
    """The arguments of the kernel `replay`."""

    jobs: JobArrays
    order: Order
    rules: Rules
    racks: RackArrays
    queue: Waiting
    tree: Tree
    profile: ProfileArrays
    runs: RunArrays
    now: IntArray


class RunColumns(StudyColumns):
    """The parts of a run, and what the kernels need of them.

    Parameters
    ----------
    machine, workload, scheduler
        What `unsupported` has no objection to.
    truth, estimate
        `Ideal` or `RemoteMemory`.
    """

    def __init__(
        self,
        machine: Machine,
        workload: Workload,
        scheduler: ListScheduler,
        truth: PerformanceModel,
        estimate: PerformanceModel,
    ) -> None:
        assert isinstance(scheduler.placement, RackPlacement)
        super().__init__(machine, workload, scheduler, truth, estimate)
        self.placement = scheduler.placement

    def arrays(self, warm_up: int, per_event: bool) -> ListArrays:
        """Lay out everything that a replay starts from."""
        from poolwise.kernels.list_scheduling import state
        from poolwise.kernels.list_scheduling.index import plant

        n, rows = len(self.workload), 2 * max(len(self.workload), 1024)
        racks, remote = self._racks(), self.workload.memory - self.machine.local_memory
        np.maximum(remote, 0, out=remote)
        able = self._able(remote, racks)
        order = self.order(able)
        now = blank(state.N_NOW)
        now[state.HEAD], now[state.FIRST], now[state.WARM], now[state.DEPTH] = -1, -1, int(warm_up > 0), DEEP_QUEUE
        queue = state.QueueArrays(
            job=blank(n),
            nodes=blank(n),
            remote=blank(n),
            length=blank(n),
            since=blank(n),
            where=np.full(n, -1),
            chosen=blank(n),
            warm=blank(min(warm_up, n)),
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
        )
        rules = self._rules(warm_up, per_event)
        return ListArrays(self._jobs(remote, able), order, rules, racks, queue, plant(0), self.profile(0), runs, now)

    def profile(self, size: int) -> ProfileArrays:
        """Return a profile with room for `size` instants."""
        from poolwise.kernels.list_scheduling.state import ProfileArrays

        n_rack = len(self.machine.racks.nodes)
        free, pool = np.zeros((size, n_rack), dtype=np.int64), np.zeros((size, n_rack), dtype=np.int64)
        return ProfileArrays(blank(size), free, pool, blank(1), blank(n_rack), blank(n_rack))

    def refusals(self, jobs: IntArray) -> dict[int, str]:
        """Reasons why jobs (k,) do not fit the empty machine, found once for each size of job."""
        reasons: dict[tuple[int, int], str] = {}
        out: dict[int, str] = {}
        for job in jobs.tolist():
            size = int(self.workload.nodes[job]), int(self.workload.memory[job])
            if size not in reasons:
                found = self.placement.place(self.workload.job(job), self.empty)
                assert isinstance(found, Refusal)
                reasons[size] = f"cannot fit on the empty machine: {found.reason}"
            out[job] = reasons[size]
        return out

    def _able(self, remote: IntArray, racks: RackArrays) -> BoolArray:
        """(n_job,) which jobs fit the empty machine."""
        from poolwise.kernels.list_scheduling.racks import screen

        able = np.zeros(len(remote), dtype=np.bool_)
        anywhere = self.placement.scope == "system"
        screen(read_only(self.workload.nodes), read_only(remote), anywhere, racks.free, racks.pool, able)
        return able

    def _jobs(self, remote: IntArray, able: BoolArray) -> JobArrays:
        from poolwise.kernels.list_scheduling.state import JobArrays

        workload, same, mixes = self.workload, self.estimate == self.truth, self.placement.scope == "system"
        runtime, length = np.empty(len(workload), dtype=np.int64), np.empty(len(workload), dtype=np.int64)
        mixed = np.empty((5, len(workload) if mixes else 0))
        for rows in blocks(len(workload)):
            ratio = np.zeros(len(remote[rows]))
            np.divide(remote[rows], workload.memory[rows], out=ratio, where=remote[rows] > 0)
            near = self._factor(self.truth, "near_ns", remote, rows)
            believed_near = near if same else self._factor(self.estimate, "near_ns", remote, rows)
            slow = believed_near * ratio
            if mixes:
                far = self._factor(self.truth, "far_ns", remote, rows)
                believed_far = far if same else self._factor(self.estimate, "far_ns", remote, rows)
                # a mixture may round to just below both its parts
                slow = np.minimum(believed_near, believed_far) * ratio * (1 - 1e-12)
                mixed[:, rows] = ratio, near, far, believed_near, believed_far
            runtime[rows] = stretched(workload.duration[rows], near * ratio)
            length[rows] = stretched(workload.requested[rows], slow)
        whole = workload.submit, workload.nodes, remote, able, workload.duration, workload.requested, runtime, length
        columns: Any = (read_only(column) for column in (*whole, *mixed))
        return JobArrays(*columns)

    def _factor(self, model: PerformanceModel, latency: str, remote: IntArray, rows: slice) -> FloatArray:
        """(n,) slowdown of some jobs with all their memory at a latency of the model; 0 for jobs without remote memory."""
        some = remote[rows] > 0
        factor = np.zeros(len(some))
        if not isinstance(model, RemoteMemory) or model.expect == "none" or not some.any():
            return factor
        ns = getattr(model, latency)
        if model.expect == "mean":
            factor[some] = mean_factor(ns, model.curve)
            return factor
        u = sensitivity(self.workload.table, model.seed)[rows][some]
        if model.curve == "quantile":  # depends on floor(11 u) alone
            steps = np.array([sld_factor((k + 0.5) / 11, ns) for k in range(11)])
            factor[some] = steps[(u * 11).astype(np.int64)]
        else:
            factor[some] = [sld_factor(value, ns, model.curve) for value in u.tolist()]
        return factor

    def _rules(self, warm_up: int, per_event: bool) -> Rules:
        from poolwise.kernels.list_scheduling import state

        rule = rule_of(self.scheduler.backfill)
        assert rule is not None
        code = {"nobody": state.NONE, "head": state.EASY if rule.extra else state.EASY_NO_EXTRA, "everyone": state.CONSERVATIVE}
        spreads = {"worst": state.WORST, "mean": state.MEAN, "paper": state.PAPER}
        spread, believed = (
            spreads[model.spread] if isinstance(model, RemoteMemory) else state.WORST for model in (self.truth, self.estimate)
        )
        return state.Rules(
            self.placement.scope == "system", code[rule.reserves], spread, believed, not rule.counts_pools, warm_up, per_event
        )

    def _racks(self) -> RackArrays:
        from poolwise.kernels.list_scheduling.state import RackArrays

        layout, capacity = self.machine.racks, self.machine.capacity
        free = capacity[layout.nodes, layout.node_column].copy()
        pool = np.where(layout.pools >= 0, capacity[layout.pools, layout.memory_column], 0)
        then_free, then_pool, offered, kept, take, borrow = (np.zeros_like(free) for _ in range(6))
        endless = np.where(layout.pools >= 0, inexhaustible(self.machine), 0)
        of_owner = blank(len(capacity))
        for owner in (layout.nodes, layout.pools):
            of_owner[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
        return RackArrays(
            free,
            pool,
            then_free,
            then_pool,
            offered,
            kept,
            np.arange(len(free)),
            np.zeros((len(free), 4), dtype=np.int64),
            endless,
            take,
            borrow,
            layout.nodes.astype(np.int64),
            layout.pools.astype(np.int64),
            of_owner,
            layout.node_column,
            layout.memory_column,
        )


def stretched(work: IntArray, slow: FloatArray) -> IntArray:
    """(n,) ns that work (ns) takes at a slowdown: `kernels.list_scheduling.racks.stretch` of many jobs."""
    extra = work * slow
    length: IntArray = np.ceil(extra, out=extra).astype(np.int64)
    length += work
    return length
