"""Sampler of variants of one run on shared nodes: other durations and submit times, the same initial runs."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import ArrayTemplates, read_only, starts_of
from poolwise.engines.list_columns import stretched
from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings, resume_nodes
from poolwise.engines.shared_nodes.replay import node_kernel, replay_nodes
from poolwise.interfaces import rule_of
from poolwise.model import Workload


class SharedSampler:
    """Replays variants of a run from an initial state in the same arrays; see `engines.compiled_engine.Sampler`."""

    def __init__(self, spec: RunSpec, awaited: IntArray, until: int) -> None:
        from poolwise.kernels.shared_nodes import state

        rule = rule_of(spec.scheduler)
        assert rule is not None and spec.initial is not None
        self._kernel = node_kernel(spec)
        self._columns = SharedColumns(spec, rule)
        arrays = self._columns.arrays(spec.pass_per_event)
        held = NodeHoldings.of(arrays, spec.initial)
        assert held is not None
        self._initial, self._held, self._awaited = spec.initial, held, awaited
        is_awaited = np.zeros(len(spec.workload), dtype=np.bool_)
        is_awaited[awaited] = True
        arrays.now[state.AWAITED], arrays.now[state.STOP] = len(awaited), until
        self._arrays = arrays._replace(jobs=arrays.jobs._replace(awaited=read_only(is_awaited)))
        ahead = () if arrays.ahead is None else arrays.ahead
        changing = (arrays.nodes, ahead, arrays.kinds, arrays.timeline, arrays.at_shadow, arrays.queue.where, arrays.now)
        self._before = ArrayTemplates(changing)

    def starts(self, workload: Workload) -> IntArray:
        """Return (k,) ns at which the awaited jobs start, `NEVER` for one that does not."""
        from poolwise.kernels.shared_nodes import state

        columns, arrays = self._columns, self._arrays
        columns.set_workload(workload)
        self._before.restore()
        work = read_only(stretched(workload.duration, np.zeros(len(workload))))
        jobs = arrays.jobs._replace(submit=read_only(workload.submit), work=work)
        arrays = arrays._replace(jobs=jobs, order=columns.order(columns.scheduler.order, jobs.able))
        resume_nodes(self._initial, self._held, workload, arrays)
        self._arrays = replay_nodes(columns, arrays, self._kernel)
        runs, count = self._arrays.runs, int(self._arrays.now[state.STARTED])
        return starts_of(runs.job[:count], runs.start[:count], self._awaited, len(workload))
