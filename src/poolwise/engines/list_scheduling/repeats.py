"""One run on racks again and again under other orders, in the same arrays."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.compiling import SHORT
from poolwise.engines.kernel_arrays import ArrayTemplates
from poolwise.engines.list_columns import IN_KERNELS
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns, Trees
from poolwise.engines.list_scheduling.replay import forget, play_racks, rack_kernel
from poolwise.interfaces import CappedOrder, QueuePolicy, Scheduler, rule_of
from poolwise.kernels.list_scheduling.state import STARTED
from poolwise.model.rules import BackfillRule, RackRule


class RackRepeats:
    """Replays a run under other orders; see `engines.repeats.Repeats`."""

    def __init__(self, parts: Parts) -> None:
        rule = rule_of(parts.scheduler)
        assert rule is not None
        self._kernel = rack_kernel(rule, SHORT + 1)  # however few jobs: many runs are worth a kernel
        self._columns = RunColumns(parts, rule)
        self._columns.repeated = True
        self._alike = _alike(parts.scheduler)
        self._arrays: ListArrays = self._columns.arrays()
        kept = () if self._arrays.kept is None else (self._arrays.kept.start,)
        self._before = ArrayTemplates((self._arrays.racks, self._arrays.queue.where, self._arrays.now, *kept))
        self._trees: Trees | None = None

    def takes(self, scheduler: Scheduler) -> bool:
        """Whether a scheduler differs from that of the run in nothing but orders that need not be asked."""
        return _alike(scheduler) == self._alike is not None

    def run(self, scheduler: Scheduler) -> tuple[IntArray, IntArray, IntArray]:
        """(n_run,) rows of the jobs, starts and ends (ns), in the order of the starts; valid until the next run."""
        rule = rule_of(scheduler)
        assert rule is not None
        self._columns.follow(rule)
        self._before.restore()
        if self._trees is not None:
            forget(self._trees)
        arrays = self._columns.ordered(self._arrays)._replace(tree=None, heads=None)
        self._arrays, self._trees = play_racks(self._columns, arrays, self._trees, self._kernel)
        runs, count = self._arrays.runs, int(self._arrays.now[STARTED])
        return runs.job[:count], runs.start[:count], runs.end[:count]


def _alike(scheduler: Scheduler) -> tuple[BackfillRule, RackRule, int] | None:
    """What two schedulers must have in common to run in the same arrays; None for one that runs in no kernel unasked."""
    rule = rule_of(scheduler)
    if rule is None:
        return None
    backfill, placement = rule_of(rule.backfill), rule_of(rule.placement)
    beside = rule.backfill.own_order
    unasked = _unasked(rule.order) and (beside is None or beside.kind in IN_KERNELS)
    return (backfill, placement, rule.warm_up) if unasked and backfill is not None and placement is not None else None


def _unasked(order: QueuePolicy) -> bool:
    return (order.order if isinstance(order, CappedOrder) else order).kind in IN_KERNELS
