"""Many versions of one run on shared nodes: jobs that last and come otherwise, from the same runs at work."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.kernel_arrays import ArrayTemplates, read_only, starts_of
from poolwise.engines.list_columns import stretched
from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings, continue_nodes
from poolwise.engines.shared_nodes.replay import node_kernel, play_nodes
from poolwise.interfaces import rule_of
from poolwise.model import Workload


class SharedSampler:
    """Replays versions of a run that goes on from others, in the same arrays; see `engines.samples.Sampler`."""

    def __init__(self, parts: Parts, sought: IntArray, until: int) -> None:
        from poolwise.kernels.shared_nodes import state

        rule = rule_of(parts.scheduler)
        assert rule is not None and parts.initial is not None
        self._kernel = node_kernel(parts)
        self._columns = SharedColumns(parts, rule)
        arrays = self._columns.arrays(parts.pass_per_event)
        held = NodeHoldings.of(arrays, parts.initial)
        assert held is not None
        self._initial, self._held, self._sought = parts.initial, held, sought
        wanted = np.zeros(len(parts.workload), dtype=np.bool_)
        wanted[sought] = True
        arrays.now[state.SOUGHT], arrays.now[state.STOP] = len(sought), until
        self._arrays = arrays._replace(jobs=arrays.jobs._replace(sought=read_only(wanted)))
        ahead = () if arrays.ahead is None else arrays.ahead
        changing = (arrays.nodes, ahead, arrays.kinds, arrays.timeline, arrays.then, arrays.queue.where, arrays.now)
        self._before = ArrayTemplates(changing)

    def starts(self, workload: Workload) -> IntArray:
        """(k,) ns at which the sought jobs start, `NEVER` for one that does not."""
        from poolwise.kernels.shared_nodes import state

        columns, arrays = self._columns, self._arrays
        columns.show(workload)
        self._before.restore()
        work = read_only(stretched(workload.duration, np.zeros(len(workload))))
        jobs = arrays.jobs._replace(submit=read_only(workload.submit), work=work)
        arrays = arrays._replace(jobs=jobs, order=columns.order(columns.scheduler.order, jobs.able))
        continue_nodes(self._initial, self._held, workload, arrays)
        self._arrays = play_nodes(columns, arrays, self._kernel)
        runs, count = self._arrays.runs, int(self._arrays.now[state.STARTED])
        return starts_of(runs.job[:count], runs.start[:count], self._sought, len(workload))
