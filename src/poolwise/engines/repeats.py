"""Repeated runs of the same jobs under different schedulers, in arrays that are built once; used by searches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import ArrayTemplates
from poolwise.engines.list_columns import IN_KERNELS
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns, Trees
from poolwise.engines.list_scheduling.replay import clear_trees, rack_kernel, replay_racks
from poolwise.engines.simulate import simulate
from poolwise.interfaces import CappedOrder, QueuePolicy, Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.model.rules import BackfillRule, RackRule
from poolwise.quantities import NEVER


class StartsAndEnds(NamedTuple):
    """Starts and ends (ns) of jobs, (n_job,) each; `NEVER` for jobs that do not run."""

    start: IntArray
    end: IntArray


class _RackRepeats:
    """Replays a run on racks under different orders, in the same arrays."""

    def __init__(self, spec: RunSpec) -> None:
        rule = rule_of(spec.scheduler)
        assert rule is not None
        self._kernel = rack_kernel(spec, rule, waits=True)
        self._columns = RunColumns(spec, rule)
        self._columns.repeated = True
        self._shared_rules = _shared_rules(spec.scheduler)
        self._arrays: ListArrays = self._columns.arrays()
        changed_arrays = (*(self._arrays.held or ())[:1], *(self._arrays.intervals or ())[1:2])
        self._before = ArrayTemplates(
            (self._arrays.state.racks, self._arrays.state.queue.where, self._arrays.state.now, *changed_arrays)
        )
        self._trees: Trees | None = None

    def accepts(self, scheduler: Scheduler) -> bool:
        """Return whether a scheduler differs from that of the run only in its orders, and these need no callback."""
        return _shared_rules(scheduler) == self._shared_rules is not None

    def run(self, scheduler: Scheduler) -> tuple[IntArray, IntArray, IntArray]:
        """Run under a scheduler; return job rows, starts and ends (ns) in start order, (n_run,), valid until the next call."""
        rule = rule_of(scheduler)
        assert rule is not None
        self._columns.set_scheduler(rule)
        self._before.restore()
        if self._trees is not None:
            clear_trees(self._trees)
        arrays = self._columns.with_current_orders(self._arrays).without_trees()
        self._arrays, self._trees = replay_racks(self._columns, arrays, self._trees, self._kernel)
        runs, count = self._arrays.state.runs, self._arrays.state.now.started
        return runs.job[:count], runs.start[:count], runs.end[:count]


def _shared_rules(scheduler: Scheduler) -> tuple[BackfillRule, RackRule, int] | None:
    """Return the rules that schedulers with the same arrays must share; None if orders need callbacks or rules are unknown."""
    rule = rule_of(scheduler)
    if rule is None:
        return None
    backfill, placement = rule_of(rule.backfill), rule_of(rule.placement)
    backfill_order = rule.backfill.backfill_order
    no_callback = _needs_no_callback(rule.order) and (backfill_order is None or backfill_order.kind in IN_KERNELS)
    if not no_callback or backfill is None or not isinstance(placement, RackRule):
        return None
    return backfill, placement, rule.warm_up


def _needs_no_callback(order: QueuePolicy) -> bool:
    return (order.order if isinstance(order, CappedOrder) else order).kind in IN_KERNELS


@dataclass
class Repeats:
    """A run that is repeated under different schedulers, with the results of `simulate`.

    Parameters
    ----------
    spec
        Specification of the run with its first scheduler.
    """

    spec: RunSpec
    _racks: list[_RackRepeats] = field(default_factory=list)

    def under(self, scheduler: Scheduler) -> StartsAndEnds:
        """Run under a scheduler, reusing the arrays of an earlier run if they match."""
        racks = next((racks for racks in self._racks if racks.accepts(scheduler)), None)
        if racks is None:
            spec = replace(self.spec, scheduler=scheduler)
            steady = not spec.disturbances and spec.machine.failures is None and spec.initial is None
            if steady and list_scheduling.unsupported(spec) is None:
                racks = _RackRepeats(spec)
                if racks.accepts(scheduler):
                    self._racks.append(racks)
        if racks is not None and racks.accepts(scheduler):
            return self._times(*racks.run(scheduler))
        return self._simulated(scheduler)

    def _simulated(self, scheduler: Scheduler) -> StartsAndEnds:
        spec = self.spec
        schedule = simulate(
            spec.workload,
            spec.machine,
            scheduler,
            model=spec.model,
            estimate=spec.estimate,
            seed=spec.seed,
            disturbances=spec.disturbances,
            requeue=spec.requeue,
            pass_per_event=spec.pass_per_event,
            initial=spec.initial,
        ).schedule
        return self._times(schedule.job, schedule.start, schedule.end)

    def _times(self, job: IntArray, start: IntArray, end: IntArray) -> StartsAndEnds:
        """Return starts and ends by job; for a requeued job, the first start and the last end."""
        n = len(self.spec.workload)
        starts, ends = np.full(n, NEVER), np.full(n, NEVER)
        starts[job[::-1]], ends[job] = start[::-1], end
        return StartsAndEnds(starts, ends)
