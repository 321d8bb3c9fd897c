"""Conversion of a run of list scheduling on shared nodes to the arrays of its kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec, limit_of_use
from poolwise.engines.kernel_arrays import blank, read_only, zeros_of
from poolwise.engines.list_columns import SPREADS, ListColumns, backfill_code, has_several_heads, interval_rules, stretched
from poolwise.engines.recalculations import formula_arrays
from poolwise.engines.shared_nodes.arrays import SharedArrays
from poolwise.engines.shared_nodes.groups import group_arrays
from poolwise.engines.shared_nodes.kinds import JobKinds, job_kinds
from poolwise.engines.shared_nodes.node_arrays import able_nodes, as_words, never_nodes, node_arrays, separate_nodes
from poolwise.engines.shared_nodes.outages import node_changes, outage_arrays
from poolwise.engines.shared_nodes.windows import kinds_and_windows, open_sets, window_groups
from poolwise.interfaces import ListRule, QueuePolicy, RecalculatedOrder
from poolwise.interfaces.user_class import rule_of, statement_holds
from poolwise.kernels.common.index import empty_tree
from poolwise.kernels.common.state import CONSERVATIVE, SEVERAL_HEADS, STATIC, Order, record
from poolwise.kernels.shared_nodes import interval_state
from poolwise.kernels.shared_nodes.head_state import BlockArrays, HeadArrays
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.state import (
    CORES,
    MEMORY,
    WORD,
    CounterArrays,
    KindArrays,
    NodeArrays,
    NodeReservations,
    NodeReservationStatus,
    PartArrays,
    ProfileSteps,
    ShadowArrays,
    SharedJobs,
    SharedNow,
    SharedRules,
    SharedState,
    TimelineArrays,
    WindowArrays,
)
from poolwise.model.eligibility import eligible_owners, eligible_sets, has_tiers, tiers
from poolwise.model.exclusive import SHARE
from poolwise.model.priority_formula import PriorityFormula
from poolwise.model.rules import NodeRule
from poolwise.policies.admission.machine_limits import barred, counter_demands
from poolwise.policies.placement.nodes.layout import node_layout
from poolwise.quantities import NEVER

KEPT_KINDS = 1024
"""Number of kinds of jobs for which a backfill pass stores the time at which each node can hold a part."""

PREFERENCES = ("first", "fullest", "emptiest", "packed", "tree", "consecutive")
"""Values of `NodeRule.prefers`, in the order of the constants `kernels.shared_nodes.state.FIRST_FIT` and following."""


class SharedColumns(ListColumns):
    """Inputs of a supported run, and the arrays that the kernel needs."""

    def __init__(self, spec: RunSpec, rule: ListRule) -> None:
        super().__init__(spec, rule)
        self._disturbances, self._requeue = spec.disturbances, spec.requeue
        self._limits_use = limit_of_use(spec) is not None
        self.formula = self._formula()

    def arrays(self, per_event: bool) -> SharedArrays:
        """Build the initial arrays of a replay."""
        from poolwise.kernels.shared_nodes.replay import screen

        n, layout = len(self.workload), node_layout(self.machine)
        grouped, windows = job_kinds(self.workload, layout), None
        rule = rule_of(self.scheduler.backfill)
        at_intervals = rule is not None and rule.times is not None
        if self.machine.windows or at_intervals or self._has_heads:
            grouped, windows = kinds_and_windows(self.workload, self.machine, layout, self.initial)
        placed, kinds = rule_of(self.scheduler.placement), self._kinds(grouped)
        assert isinstance(placed, NodeRule)
        nodes = node_arrays(self.machine, self.workload.table, layout, grouped, placed)
        rules = self._rules(grouped, nodes, per_event)
        fits = np.zeros(len(grouped.parts), dtype=np.bool_)
        screen(kinds, nodes, fits)
        able = fits[grouped.of]
        able[barred(self.machine, self.workload.table)] = False
        jobs = self._jobs(grouped, able, bool(len(nodes.pool)))
        tree = empty_tree(jobs.kind, read_only(grouped.request[grouped.of, CORES]), jobs.length)
        tree.path[np.lexsort((jobs.length, grouped.of))] = np.arange(n)
        now = record(SharedNow)
        now.head, now.ready_kind, now.shadow_kind, now.warm = -1, -1, -1, int(rules.warm_up > 0)
        now.awaited, now.stop, now.renewal = -1, NEVER, NEVER
        if self.recalculates:
            now.renewal = -1
        ahead, profile, empty, outages = None, None, None, None
        if rules.backfill == CONSERVATIVE:
            ahead, profile = separate_nodes(nodes), self._profile(nodes, grouped)
        if self._disturbances:
            changes = node_changes(self.machine, nodes.owner, self._disturbances)
            assert changes is not None
            empty, outages = separate_nodes(nodes), outage_arrays(changes, self._requeue, nodes, len(grouped.parts), n)
            now.last_gain = len(changes)  # every failed node is repaired
        parts = int(grouped.parts[grouped.of[able]].sum())
        state = SharedState(
            jobs=jobs,
            kinds=kinds,
            order=self.order(self.scheduler.order, able),
            rules=rules,
            nodes=nodes,
            timeline=self._timeline(grouped, nodes, able, windows),
            at_shadow=self._shadow(nodes),
            queue=self.queue_arrays(),
            tree=tree,
            runs=self.run_arrays(max(rules.rows * rules.parts, 2 * n)),
            parts=PartArrays(first=blank(n + 1), node=blank(parts), borrow=blank(parts)),
            now=now,
        )
        intervals = self._intervals(nodes, grouped, state.timeline.until.shape[1]) if at_intervals else None
        heads = self._heads(nodes, len(grouped.parts)) if rules.backfill == SEVERAL_HEADS else None
        if outages is None and windows is None and intervals is None and heads is None:
            empty, outages = nodes, outage_arrays([], False, nodes, 0, 0)
        return SharedArrays(state, ahead, empty, profile, outages, windows, intervals, heads)

    @property
    def _has_heads(self) -> bool:
        """True if the kernel of several heads and counters replays the run."""
        rule = rule_of(self.scheduler.backfill)
        assert rule is not None
        return has_several_heads(rule, self.machine, self.workload.table) or (self._limits_use and rule.times is None)

    @property
    def recalculates(self) -> bool:
        """True if keys are recalculated at the times that the order states, not in each pass."""
        rule = rule_of(self.scheduler.backfill)
        return isinstance(self.scheduler.order, RecalculatedOrder) and rule is not None and rule.times is not None

    def _formula(self) -> PriorityFormula | None:
        """Return the priorities as a sum that the kernel recalculates; None if it cannot, for example if tiers differ."""
        order = self.scheduler.order
        if not (isinstance(order, RecalculatedOrder) and self.recalculates) or has_tiers(self.machine):
            return None
        return order.formula(self.machine, self.workload.table) if statement_holds(type(order), "formula") else None

    def check(self, priority: FloatArray, jobs: IntArray) -> FloatArray:
        """Return the keys of jobs (k,); if partitions have different tiers, these are ranks by tier and priority."""
        keys = super().check(priority, jobs)
        if has_tiers(self.machine):
            ranked = np.lexsort((jobs, keys, -tiers(self.machine, self.workload.table)[jobs]))
            keys[ranked] = np.arange(len(ranked))
        return keys

    def _intervals(self, nodes: NodeArrays, grouped: JobKinds, slots: int) -> SharedIntervals:
        """Return the arrays for backfilling at intervals."""
        rule, n, n_node = rule_of(self.scheduler.backfill), len(self.workload), len(nodes.owner)
        assert rule is not None and rule.times is not None
        status, depth = record(interval_state.SharedIntervalStatus), min(rule.times.depth, n)
        status.wake = NEVER
        status.version, status.best_renewal, n_word = -1, -1, -(-n_node // WORD)
        never, class_of = never_nodes(nodes, grouped)
        of_set, (able, able_of) = self._partition_nodes(nodes), able_nodes(nodes, grouped)
        groups, _ = window_groups(self.machine, nodes.owner)
        blocks = _blocks(np.repeat(of_set, 1 << len(groups), axis=0))
        blocks = blocks._replace(able=read_only(able), class_of=read_only(able_of))
        component = _components(blocks.of_set)
        components = int(component.max(initial=-1)) + 1
        return SharedIntervals(
            interval_rules(rule.times),
            status,
            formula_arrays(self),
            interval_state.LineArrays(
                blank(min(n, 2 * depth)), np.zeros(n, dtype=np.bool_), blank(n), blank(depth), blank(depth), blank(depth)
            ),
            interval_state.ComponentArrays(read_only(component), blank(components), blank(components)),
            group_arrays(rule.times, self.workload.table),
            self._counters(),
            blocks,
            zeros_of(
                interval_state.SharedReleases,
                n,
                parts=blank(n_node),
                part=blank(n_node, slots),
                kind_on=np.full((n_node, slots), -1),
                sorts=np.zeros(1, dtype=np.int64),
                changed_at=blank(n_node),
            ),
            self.segments(0, n_node),
            zeros_of(
                interval_state.TrialArrays,
                n_word,
                never=read_only(never),
                class_of=read_only(class_of),
                needed=blank(KEPT_KINDS, n_node),
                fits_after=blank(n_node),
                able=blank(n_node),
                ready=blank(n_node),
                free_from=blank(n_node),
                least=blank(n_node),
                kind=np.full(KEPT_KINDS, -1),
                at=blank(KEPT_KINDS),
                weight=np.sort(node_layout(self.machine).weight),
                usable=as_words(np.ones(n_node, dtype=np.bool_)),
                area=read_only(as_words(open_sets(of_set, groups))),
                ahead=separate_nodes(nodes),
            ),
        )

    def _counters(self) -> CounterArrays:
        """Return the counters for the machine's limits on concurrent use; empty if it has none."""
        demands = counter_demands(self.machine, self.workload.table)
        columns: Any = {name: read_only(column) for name, column in demands._asdict().items()}
        admitted = np.zeros(len(self.workload), dtype=np.bool_)
        return zeros_of(CounterArrays, len(demands.capacity), admitted=admitted, **columns)

    def _partition_nodes(self, nodes: NodeArrays) -> BoolArray:
        """Return the nodes in the partitions of each set of eligible nodes, whatever its constraint, (n_set, n_node)."""
        sets, n = eligible_sets(self.machine, self.workload.table).value, len(nodes.owner)
        return np.array([eligible_owners(self.machine, name, "")[nodes.owner] for name, _ in sets]).reshape(-1, n)

    def _heads(self, nodes: NodeArrays, kinds: int) -> HeadArrays:
        """Return the arrays of the heads of several partitions, or of one head for all jobs."""
        rule, n = rule_of(self.scheduler.backfill), len(nodes.owner)
        assert rule is not None
        of_set, (groups, _) = self._partition_nodes(nodes), window_groups(self.machine, nodes.owner)
        if not has_several_heads(rule, self.machine, self.workload.table):
            of_set = np.ones_like(of_set)
        each = 1 << len(groups)
        allowed = nodes.open[::each, len(nodes.top) // 2 :][:, :n].astype(np.int64)  # the rows without closed groups
        return zeros_of(
            HeadArrays,
            len(of_set),
            backfill=backfill_code(rule),
            counters=self._counters(),
            blocks=_blocks(np.repeat(of_set, each, axis=0)),
            competes=read_only(allowed @ of_set.T.astype(np.int64) > 0),
            line=blank(len(self.workload)),
            ahead=separate_nodes(nodes),
            holds=np.zeros((len(of_set), n), dtype=np.bool_),
            limit=blank(kinds),
            limit_at=np.full(kinds, -1),
            round=blank(1),
        )

    def segments(self, size: int, n_node: int) -> interval_state.SharedSegments:
        """Return space for `size` segments of a backfill pass; a reservation adds up to three, and may cover all nodes."""
        held, twice = (blank(size, -(-n_node // WORD)) for _ in range(2))
        following, since, until = (blank(-(-size // 3) * n_node) for _ in range(3))
        return zeros_of(
            interval_state.SharedSegments,
            size,
            held=held,
            twice=twice,
            falls=np.zeros(size, dtype=np.bool_),
            reserved_from=blank(n_node),
            first=blank(n_node),
            next=following,
            since=since,
            until=until,
        )

    def order(self, order: QueuePolicy, able: BoolArray) -> Order:
        """Return the arrays for computing keys; if partitions have different tiers, ranks by tier and static priority."""
        base_order = super().order(order, able)
        if self.recalculates:
            return base_order._replace(kind=STATIC)  # until the next recalculation
        if has_tiers(self.machine):
            ranked = np.lexsort((base_order.key, -tiers(self.machine, self.workload.table)))  # stable
            base_order.key[ranked] = np.arange(len(ranked))
        return base_order

    def _jobs(self, grouped: JobKinds, able: BoolArray, pools: bool) -> SharedJobs:

        workload = self.workload
        slowed = pools and any(self.slowdown(model, slice(0, 0)).per_part for model in (self.model, self.estimate))
        none = np.zeros(len(workload))
        work, requested = stretched(workload.duration, none), stretched(workload.requested, none)  # rounded as float64
        factors, length = np.zeros((4, len(workload) if slowed else 0)), requested
        if (rule := rule_of(self.scheduler.backfill)) is not None and rule.times is not None:
            length = workload.requested
        if slowed:
            for k, model in enumerate((self.model, self.estimate)):
                factors[2 * k : 2 * k + 2] = self.slowdown(model, slice(None))[:2]
            length = stretched(requested, np.minimum(factors[2:].min(axis=0), 0.0) * (1 + 1e-12))
        columns: Any = (grouped.of, length, able, work, requested, *factors, np.zeros(0, dtype=np.bool_), self._warm_rank())
        return SharedJobs(read_only(workload.submit), *map(read_only, columns))

    def _warm_rank(self) -> IntArray:
        """Return the rank of each job by tier, then submission, (n_job,); (0,) without a warm-up or tiers."""
        if not (self.scheduler.warm_up and has_tiers(self.machine)):
            return np.zeros(0, dtype=np.int64)
        ranked = np.argsort(-tiers(self.machine, self.workload.table), kind="stable")
        rank = np.empty(len(ranked), dtype=np.int64)
        rank[ranked] = np.arange(len(ranked))
        return rank

    def _shadow(self, nodes: NodeArrays) -> ShadowArrays:

        pools = len(nodes.pool)
        size, n = (len(nodes.owner), len(self.workload)) if pools else (0, 0)
        return ShadowArrays(blank(size, nodes.top.shape[1]), blank(pools), blank(pools), blank(n), blank(n))

    def _profile(self, nodes: NodeArrays, grouped: JobKinds) -> ProfileSteps:
        """Return a profile without space for steps; used only under conservative backfilling."""
        n, requested, count = len(nodes.owner), self.workload.requested, len(self.workload)
        parts = grouped.parts[grouped.of]
        status, offset = record(NodeReservationStatus), np.concatenate([[0], np.cumsum(parts)])
        status.last = status.version = -1
        reservations = zeros_of(
            NodeReservations,
            n,
            status=status,
            made_at=blank(count),
            start=blank(count),
            offset=offset,
            node=blank(int(offset[-1])),
            sequence=blank(count),
            following=blank(count),
            most=blank(n, nodes.top.shape[1]),
            is_exact=np.zeros(n, dtype=np.bool_),
            tested=blank(count),
            witness=np.zeros(n, dtype=np.bool_),
        )
        return zeros_of(
            ProfileSteps,
            count,
            first=blank(n),
            size=blank(n),
            room=blank(n),
            time=blank(0),
            free=blank(0, nodes.top.shape[1]),
            used=blank(1),
            hold=np.maximum(requested, stretched(requested, np.zeros(count))),  # rounded as float64 where that is longer
            available=blank(n),
            kept=reservations,
        )

    def _rules(self, grouped: JobKinds, nodes: NodeArrays, per_event: bool) -> SharedRules:

        rule, placed = rule_of(self.scheduler.backfill), rule_of(self.scheduler.placement)
        assert rule is not None and isinstance(placed, NodeRule)
        spread, believed = (SPREADS[self.slowdown(model, slice(0, 0)).spread] for model in (self.model, self.estimate))
        owners = nodes.owner
        devices = grouped.request[:, len(nodes.order) :].sum(axis=1).max(initial=0)
        return SharedRules(
            placement=PREFERENCES.index(placed.prefers),
            backfill=SEVERAL_HEADS if self._has_heads else backfill_code(rule),
            spread=spread,
            believed_spread=believed,
            warm_up=self.scheduler.warm_up,
            per_event=per_event,
            cores=int(self.machine.capacity[owners, nodes.column[CORES]].sum()),
            parts=int(grouped.parts.max(initial=1)),
            rows=len(nodes.order) + 1 + int(devices),
        )

    def _kinds(self, grouped: JobKinds) -> KindArrays:

        n, others = len(grouped.parts), [d for d, name in enumerate(grouped.names) if d > MEMORY and name != SHARE]
        return zeros_of(
            KindArrays,
            n,
            request=read_only(grouped.request),
            parts=read_only(grouped.parts),
            eligible=read_only(grouped.eligible),
            more=(grouped.request[:, others] > 0).any(axis=1),
            group=read_only(grouped.group),
            fits=np.zeros(n, dtype=np.bool_),
            fits_at=np.full(n, -1),
            first_node=np.full(n, -1),
            room=np.zeros(n, dtype=np.bool_),
            room_at=np.full(n, -1),
        )

    def _timeline(self, grouped: JobKinds, nodes: NodeArrays, able: BoolArray, windows: WindowArrays | None) -> TimelineArrays:

        n, size = len(nodes.owner), len(nodes.top)
        least = int(grouped.request[grouped.of[able], CORES].min(initial=int(nodes.top[1, CORES])))
        slots = max(int(nodes.top[1, CORES]) // max(least, 1), 1)
        sets = np.arange(1 if windows is None or not windows.coming.size else (1 << windows.coming.shape[1]) + 1)
        return zeros_of(
            TimelineArrays,
            n,
            until=blank(n, slots),
            run_of=blank(n, slots),
            kind=blank(n, slots),
            local=blank(n, slots),
            first_end=np.full(size, NEVER),
            ready=np.full(size, NEVER),
            exact=np.zeros(n, dtype=np.bool_),
            instant=np.full(len(sets), -1),
            closed=sets,
            earlier=blank(len(sets)),
            holding=blank(len(sets)),
            is_stale=np.zeros(n, dtype=np.bool_),
            shifted=np.zeros(n, dtype=np.bool_),
            front=blank(size),
        )


def _blocks(of_set: BoolArray) -> BlockArrays:
    """Return arrays for the nodes blocked during a pass by jobs that do not fit, given the sets of nodes, (n_set, n_node)."""
    sets, n = of_set.shape
    return BlockArrays(read_only(of_set), np.zeros(n, dtype=np.bool_), blank(sets), blank(sets), blank(0, 0), blank(0))


def _components(of_set: BoolArray) -> IntArray:
    """Return the component of each set of nodes, (n_set, n_node); sets that overlap, even indirectly, form a component."""
    members, n = of_set.astype(np.int64), len(of_set)
    shares, first, before = (members @ members.T > 0) | np.eye(n, dtype=np.bool_), np.arange(n), None
    while before is None or (first != before).any():
        first, before = np.where(shares, first, n).min(axis=1, initial=n), first
    return np.unique(first, return_inverse=True)[1].astype(np.int64)
