"""A study of list scheduling on shared nodes as the arrays that the kernels replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.engines.shared_nodes.kinds import JobKinds, job_kinds
from poolwise.engines.study_columns import StudyColumns
from poolwise.interfaces import rule_of
from poolwise.model import Refusal
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.policies.placement.nodes.layout import NodeLayout, node_layout
from poolwise.policies.placement.nodes.placement import EmptiestNodes, FirstNodes, FullestNodes, NodePlacement, PackedNodes
from poolwise.schedulers.fitting import NEVER_FITS
from poolwise.units import NEVER

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import Order, Tree
    from poolwise.kernels.shared_nodes.state import (
        JobArrays,
        KindArrays,
        NodeArrays,
        QueueArrays,
        Rules,
        RunArrays,
        TimelineArrays,
    )


class SharedArrays(NamedTuple):
    """The arguments of the kernel `replay`."""

    jobs: JobArrays
    kinds: KindArrays
    order: Order
    rules: Rules
    nodes: NodeArrays
    timeline: TimelineArrays
    queue: QueueArrays
    tree: Tree
    runs: RunArrays
    now: IntArray


PLACEMENTS: tuple[type[NodePlacement], ...] = (FirstNodes, FullestNodes, EmptiestNodes, PackedNodes)
"""In the order of `kernels.shared_nodes.state.FIRST_FIT` and those after it."""


class SharedColumns(StudyColumns):
    """The parts of a run that `unsupported` has no objection to, and what the kernels need of them."""

    def arrays(self, per_event: bool) -> SharedArrays:
        """Lay out everything that a replay starts from."""
        from poolwise.kernels.list_scheduling.index import plant
        from poolwise.kernels.shared_nodes import state
        from poolwise.kernels.shared_nodes.replay import screen

        n, layout = len(self.workload), node_layout(self.machine)
        wanted = job_kinds(self.workload, layout)
        nodes, kinds = self._nodes(layout, wanted), self._kinds(wanted)
        rules = self._rules(wanted, nodes, per_event)
        fits = np.zeros(len(wanted.parts), dtype=np.bool_)
        screen(rules, kinds, nodes, fits)
        able = fits[wanted.of]
        jobs = state.JobArrays(
            read_only(self.workload.submit),
            read_only(wanted.of),
            read_only(wanted.ask[wanted.of, state.CORES]),
            read_only(self.workload.requested),
            read_only(self.workload.duration),
            read_only(able),
        )
        tree = plant(n)
        tree.path[np.lexsort((self.workload.requested, wanted.of))] = np.arange(n)
        now = blank(state.N_NOW)
        now[state.HEAD], now[state.AWAITED] = -1, -1
        queue = state.QueueArrays(blank(n), blank(n), np.full(n, -1))
        timeline = self._timeline(wanted, nodes, able, rules.overruns)
        runs = self._runs(int(wanted.parts[wanted.of[able]].sum()), max(rules.rows * rules.parts, 2 * n))
        return SharedArrays(jobs, kinds, self.order(able), rules, nodes, timeline, queue, tree, runs, now)

    def refusals(self, jobs: IntArray) -> dict[int, str]:
        """Reasons why jobs (k,) do not fit the empty machine, found once for each kind of job."""
        kind = job_kinds(self.workload, node_layout(self.machine)).of
        reasons: dict[int, str] = {}
        for job in jobs.tolist():
            if int(kind[job]) not in reasons:
                found = self.scheduler.placement.place(self.workload.job(job), self.empty)
                assert isinstance(found, Refusal)
                reasons[int(kind[job])] = f"{NEVER_FITS}: {found.reason}"
        return {job: reasons[int(kind[job])] for job in jobs.tolist()}

    def _rules(self, wanted: JobKinds, nodes: NodeArrays, per_event: bool) -> Rules:
        from poolwise.kernels.list_scheduling.state import CONSERVATIVE, EASY, EASY_NO_EXTRA, NONE
        from poolwise.kernels.shared_nodes.state import CORES, Rules

        rule, placement = rule_of(self.scheduler.backfill), self.scheduler.placement
        assert rule is not None
        code = {"nobody": NONE, "head": EASY if rule.extra else EASY_NO_EXTRA, "everyone": CONSERVATIVE}
        owners = nodes.owner
        devices = wanted.ask[:, len(nodes.order) :].sum(axis=1).max(initial=0)
        return Rules(
            placement=[type(placement) is kind for kind in PLACEMENTS].index(True),
            backfill=code[rule.reserves],
            per_event=per_event,
            overruns=bool((self.workload.duration > self.workload.requested).any()),
            cores=int(self.machine.capacity[owners, nodes.column[CORES]].sum()),
            parts=int(wanted.parts.max(initial=1)),
            rows=len(nodes.order) + 1 + int(devices),
        )

    def _kinds(self, wanted: JobKinds) -> KindArrays:
        from poolwise.kernels.shared_nodes.state import KindArrays

        n = len(wanted.parts)
        given = (read_only(column) for column in (wanted.ask, wanted.parts, wanted.eligible, wanted.group))
        return KindArrays(*given, np.zeros(n, np.bool_), np.full(n, -1), np.zeros(n, np.bool_), np.full(n, -1))

    def _nodes(self, layout: NodeLayout, wanted: JobKinds) -> NodeArrays:
        from poolwise.kernels.shared_nodes.state import CORES, WORD, NodeArrays

        machine, n, types = self.machine, len(layout.nodes), list(layout.inside.values())
        leaves, counted = 1 << (n - 1).bit_length(), len(wanted.names) - len(types)
        columns = [layout.counted[0][1], layout.memory, *(column for _, column in layout.counted[1:])]
        top = np.full((2 * leaves, len(wanted.names)), -1, dtype=np.int64)
        leaf = top[leaves : leaves + n]
        for d, column in enumerate(columns):
            leaf[:, d] = machine.capacity[layout.nodes, column] if column >= 0 else 0
        devices = np.full((n, len(types), max((owners.shape[1] for owners in types), default=0)), -1, dtype=np.int64)
        for t, owners in enumerate(types):
            devices[:, t, : owners.shape[1]] = owners
            leaf[:, counted + t] = (owners >= 0).sum(axis=1)
        sets = eligible_sets(machine, self.workload.table).value
        within = np.zeros((len(sets), 2 * leaves), dtype=np.bool_)
        for k, value in enumerate(sets):
            within[k, leaves : leaves + n] = eligible_owners(machine, *value)[layout.nodes]
        for t in range(leaves - 1, 0, -1):
            top[t] = np.maximum(top[2 * t], top[2 * t + 1])
            within[:, t] = within[:, 2 * t] | within[:, 2 * t + 1]
        pools, pool_of = np.unique(layout.pool[layout.pool >= 0], return_inverse=True)
        of = np.full(n, -1, dtype=np.int64)
        of[layout.pool >= 0] = pool_of
        racks, rack = np.unique(layout.rack, return_inverse=True)
        free = leaf[:, CORES]
        classes = int(free.max()) + 1 if type(self.scheduler.placement) in (FullestNodes, EmptiestNodes) else 0
        bits = np.zeros((classes, -(-n // WORD)), dtype=np.int64)
        if classes:
            np.add.at(bits, (free, np.arange(n) // WORD), 1 << (np.arange(n) % WORD))
        return NodeArrays(
            top=top,
            open=within,
            rack=rack.astype(np.int64),
            pool_of=of,
            pool=machine.capacity[pools, layout.memory] if len(pools) else blank(0),
            having=np.bincount(free, minlength=classes).astype(np.int64) if classes else blank(0),
            bits=bits,
            idle=(1 << leaf[:, counted:]) - 1,
            chosen=blank(n),
            lack=blank(n),
            key=blank(n),
            line=blank(n),
            count=blank(len(racks)),
            owner=layout.nodes.astype(np.int64),
            pool_owner=pools.astype(np.int64),
            device=devices,
            column=np.array([*columns, *(layout.device_column for _ in types)], dtype=np.int64),
            order=np.argsort(np.array(columns), kind="stable"),
        )

    def _timeline(self, wanted: JobKinds, nodes: NodeArrays, able: BoolArray, overruns: bool) -> TimelineArrays:
        from poolwise.kernels.shared_nodes.state import CORES, TimelineArrays

        n, size = len(nodes.owner), len(nodes.top)
        least = int(wanted.ask[wanted.of[able], CORES].min(initial=int(nodes.top[1, CORES])))
        slots = max(int(nodes.top[1, CORES]) // max(least, 1), 1)
        until, by, kind, local = (np.zeros((n, slots), dtype=np.int64) for _ in range(4))
        ready, first_end = np.full(size, NEVER), np.full(size if overruns else 0, NEVER)
        return TimelineArrays(blank(n), until, by, kind, local, ready, blank(n), np.zeros(n, np.bool_), first_end, blank(size))

    def _runs(self, parts: int, rows: int) -> RunArrays:
        from poolwise.kernels.shared_nodes.state import RunArrays

        n = len(self.workload)
        return RunArrays(
            job=blank(n),
            start=blank(n),
            end=blank(n),
            expected=blank(n),
            part=blank(n + 1),
            node=blank(parts),
            lack=blank(parts),
            offset=blank(n + 1),
            owner=blank(rows),
            resource=blank(rows),
            amount=blank(rows),
            ending=blank(n),
            rejected=blank(n),
        )
