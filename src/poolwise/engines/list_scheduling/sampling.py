"""Sampler of variants of one run on racks: other durations and submit times, the same initial runs."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import ArrayTemplates, read_only, starts_of
from poolwise.engines.list_columns import stretched
from poolwise.engines.list_scheduling.columns import RunColumns, Trees
from poolwise.engines.list_scheduling.initial import RackHoldings, resume_racks
from poolwise.engines.list_scheduling.replay import clear_trees, rack_kernel, replay_racks
from poolwise.interfaces import rule_of
from poolwise.model import Workload


class RackSampler:
    """Replays variants of a run from an initial state in the same arrays; see `engines.compiled_engine.Sampler`."""

    def __init__(self, spec: RunSpec, awaited: IntArray, until: int) -> None:
        from poolwise.kernels.list_scheduling import state

        rule = rule_of(spec.scheduler)
        assert rule is not None and spec.initial is not None
        held = RackHoldings.of(spec.machine, spec.initial)
        assert held is not None
        self._kernel = rack_kernel(rule, len(spec.workload))
        self._initial, self._held, self._awaited = spec.initial, held, awaited
        self._columns = RunColumns(spec, rule)
        is_awaited = np.zeros(len(spec.workload), dtype=np.bool_)
        is_awaited[awaited] = True
        arrays = self._columns.arrays()
        arrays.now[state.AWAITED], arrays.now[state.STOP] = len(awaited), until
        self._arrays = arrays._replace(jobs=arrays.jobs._replace(awaited=read_only(is_awaited)))
        reservations = () if arrays.held is None else (arrays.held.start,)
        self._before = ArrayTemplates((arrays.racks, arrays.queue.where, arrays.now, *reservations))
        true = self._columns.slowdown(spec.truth, slice(None))
        self._slow = true.near * true.weight
        self._trees: Trees | None = None

    def starts(self, workload: Workload) -> IntArray:
        """Return (k,) ns at which the awaited jobs start, `NEVER` for one that does not."""
        from poolwise.kernels.list_scheduling import state

        columns, arrays = self._columns, self._arrays
        columns.set_workload(workload)
        self._before.restore()
        if self._trees is not None:
            clear_trees(self._trees)
        runtime = read_only(stretched(workload.duration, self._slow))
        submit, work = read_only(workload.submit), read_only(workload.duration)
        jobs = arrays.jobs._replace(submit=submit, work=work, runtime=runtime)
        order, backfill_order = columns.orders(jobs.able)
        order = order._replace(kind=arrays.order.kind)
        arrays = arrays._replace(jobs=jobs, order=order, backfill_order=backfill_order, tree=None, heads=None)
        resume_racks(self._initial, self._held, workload, arrays)
        self._arrays, self._trees = replay_racks(columns, arrays, self._trees, self._kernel)
        runs, count = self._arrays.runs, int(self._arrays.now[state.STARTED])
        return starts_of(runs.job[:count], runs.start[:count], self._awaited, len(workload))
