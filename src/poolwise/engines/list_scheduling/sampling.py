"""Many versions of one run on racks: jobs that last and come otherwise, from the same runs at work."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.kernel_arrays import ArrayTemplates, read_only, starts_of
from poolwise.engines.list_columns import stretched
from poolwise.engines.list_scheduling.columns import RunColumns, Trees
from poolwise.engines.list_scheduling.initial import RackHoldings, continue_racks
from poolwise.engines.list_scheduling.replay import forget, play_racks, rack_kernel
from poolwise.interfaces import rule_of
from poolwise.model import Workload


class RackSampler:
    """Replays versions of a run that goes on from others, in the same arrays; see `engines.samples.Sampler`."""

    def __init__(self, parts: Parts, sought: IntArray, until: int) -> None:
        from poolwise.kernels.list_scheduling import state

        rule = rule_of(parts.scheduler)
        assert rule is not None and parts.initial is not None
        held = RackHoldings.of(parts.machine, parts.initial)
        assert held is not None
        self._kernel = rack_kernel(rule, len(parts.workload))
        self._initial, self._held, self._sought = parts.initial, held, sought
        self._columns = RunColumns(parts, rule)
        wanted = np.zeros(len(parts.workload), dtype=np.bool_)
        wanted[sought] = True
        arrays = self._columns.arrays()
        arrays.now[state.SOUGHT], arrays.now[state.STOP] = len(sought), until
        self._arrays = arrays._replace(jobs=arrays.jobs._replace(sought=read_only(wanted)))
        kept = () if arrays.kept is None else (arrays.kept.start,)
        self._before = ArrayTemplates((arrays.racks, arrays.queue.where, arrays.now, *kept))
        true = self._columns.slowdown(parts.truth, slice(None))
        self._slow = true.near * true.weight
        self._trees: Trees | None = None

    def starts(self, workload: Workload) -> IntArray:
        """(k,) ns at which the sought jobs start, `NEVER` for one that does not."""
        from poolwise.kernels.list_scheduling import state

        columns, arrays = self._columns, self._arrays
        columns.show(workload)
        self._before.restore()
        if self._trees is not None:
            forget(self._trees)
        runtime = read_only(stretched(workload.duration, self._slow))
        submit, work = read_only(workload.submit), read_only(workload.duration)
        jobs = arrays.jobs._replace(submit=submit, work=work, runtime=runtime)
        order, beside = columns.orders(jobs.able)
        order = order._replace(kind=arrays.order.kind)
        arrays = arrays._replace(jobs=jobs, order=order, beside=beside, tree=None, heads=None)
        continue_racks(self._initial, self._held, workload, arrays)
        self._arrays, self._trees = play_racks(columns, arrays, self._trees, self._kernel)
        runs, count = self._arrays.runs, int(self._arrays.now[state.STARTED])
        return starts_of(runs.job[:count], runs.start[:count], self._sought, len(workload))
