"""Samplers that replay variants of one run in the same arrays: other durations and submit times, but the same initial runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import ArrayTemplates, read_only, starts_of
from poolwise.engines.list_columns import stretched
from poolwise.engines.list_scheduling.columns import RunColumns, Trees
from poolwise.engines.list_scheduling.initial import RackHoldings, resume_racks
from poolwise.engines.list_scheduling.replay import clear_trees, rack_kernel, replay_racks
from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings, resume_nodes, take_counters
from poolwise.engines.shared_nodes.replay import node_kernel, replay_nodes
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Workload


class _Awaited:
    """The awaited jobs of all replays, and the arrays to restore before each of them."""

    def __init__(self, state: RackState | SharedState, rows: IntArray, until: int, changing: Iterable[Any]) -> None:
        state.now.awaited, state.now.stop = len(rows), until
        self._rows, self._before = rows, ArrayTemplates((state.queue.where, state.now, *changing))
        self.restore = self._before.restore

    def flags(self, jobs: int) -> BoolArray:
        """Return whether each job is awaited, (n_job,)."""
        mask = np.zeros(jobs, dtype=np.bool_)
        mask[self._rows] = True
        return read_only(mask)

    def starts(self, state: RackState | SharedState) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for a job that did not start."""
        runs, count = state.runs, state.now.started
        return starts_of(runs.job[:count], runs.start[:count], self._rows, len(state.jobs.submit))


class RackSampler:
    """Replays variants of a run on racks; see `engines.compiled_engine.Sampler`."""

    def __init__(self, spec: RunSpec, awaited: IntArray, until: int) -> None:
        rule = rule_of(spec.scheduler)
        assert rule is not None and spec.initial is not None
        held = RackHoldings.of(spec.machine, spec.initial)
        assert held is not None
        self._kernel = rack_kernel(spec, rule)
        self._initial, self._held = spec.initial, held
        self._columns = RunColumns(spec, rule)
        arrays = self._columns.arrays()
        self._awaited = _Awaited(
            arrays.state, awaited, until, (arrays.state.racks, *(arrays.held or ())[:1], *(arrays.intervals or ())[1:2])
        )
        flags = self._awaited.flags(len(spec.workload))
        self._arrays = arrays.with_state(jobs=arrays.state.jobs._replace(awaited=flags))
        true = self._columns.slowdown(spec.model, slice(None))
        self._slow = true.near * true.weight
        self._trees: Trees | None = None

    def starts(self, workload: Workload) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for a job that does not start."""
        columns, state = self._columns, self._arrays.state
        columns.set_workload(workload)
        self._awaited.restore()
        if self._trees is not None:
            clear_trees(self._trees)
        runtime = read_only(stretched(workload.duration, self._slow))
        submit, work = read_only(workload.submit), read_only(workload.duration)
        jobs = state.jobs._replace(submit=submit, work=work, runtime=runtime)
        order, backfill_order = columns.orders(jobs.able)
        order = order._replace(kind=state.order.kind)
        arrays = self._arrays.with_state(jobs=jobs, order=order, backfill_order=backfill_order).without_trees()
        resume_racks(self._initial, self._held, workload, arrays.state)
        self._arrays, self._trees = replay_racks(columns, arrays, self._trees, self._kernel)
        return self._awaited.starts(self._arrays.state)


class SharedSampler:
    """Replays variants of a run on shared nodes; see `engines.compiled_engine.Sampler`."""

    def __init__(self, spec: RunSpec, awaited: IntArray, until: int) -> None:
        rule = rule_of(spec.scheduler)
        assert rule is not None and spec.initial is not None
        self._kernel = node_kernel(spec)
        self._columns = SharedColumns(spec, rule)
        arrays = self._columns.arrays(spec.pass_per_event)
        held, state = NodeHoldings.of(arrays.state, spec.initial), arrays.state
        assert held is not None
        self._initial, self._held = spec.initial, held
        changing = state.nodes, arrays.ahead or (), state.kinds, state.timeline, state.at_shadow, *(arrays.intervals or ())[1:3]
        if arrays.profile is not None:
            changing = *changing, arrays.profile.kept.status
        self._awaited = _Awaited(state, awaited, until, changing)
        self._arrays = arrays.with_state(jobs=state.jobs._replace(awaited=self._awaited.flags(len(spec.workload))))

    def starts(self, workload: Workload) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for a job that does not start."""
        columns, jobs = self._columns, self._arrays.state.jobs
        columns.set_workload(workload)
        self._awaited.restore()
        work = read_only(stretched(workload.duration, np.zeros(len(workload))))
        jobs = jobs._replace(submit=read_only(workload.submit), work=work)
        arrays = self._arrays.with_state(jobs=jobs, order=columns.order(columns.scheduler.order, jobs.able))
        resume_nodes(self._initial, self._held, workload, arrays.state)
        take_counters(arrays.state, arrays.counters)
        self._arrays = replay_nodes(columns, arrays, self._kernel)
        return self._awaited.starts(self._arrays.state)
