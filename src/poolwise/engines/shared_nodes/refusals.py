"""Reasons why rejected jobs never run, in the order in which the reference engine rejects these jobs."""

from __future__ import annotations

import numpy as np

from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.kinds import job_kinds
from poolwise.kernels.common.state import Now, RunArrays
from poolwise.model import Refusal
from poolwise.policies.admission.machine_limits import MachineLimits, barred
from poolwise.policies.placement.nodes.layout import node_layout
from poolwise.schedulers.fitting import NEVER_FITS


def refusals(columns: SharedColumns, runs: RunArrays, now: Now, per_event: bool) -> dict[int, str]:
    """Return the reasons why rejected jobs never run: limits that they exceed, or the shortage on the empty machine.

    Among the jobs rejected in one pass, those that do not fit on the empty machine come first. Jobs that arrive during a
    warm-up without belonging to it are rejected when it ends.
    """
    jobs, workload, warm_up = runs.rejected[: now.rejected], columns.workload, columns.scheduler.warm_up
    kind, limits = job_kinds(workload, node_layout(columns.machine)).of, MachineLimits()
    beyond = set(barred(columns.machine, workload.table).tolist())
    shortages, limits_of = dict[int, str](), dict[int, str]()
    for job in jobs.tolist():
        if int(kind[job]) not in shortages:
            placement = columns.scheduler.placement.place(workload.job(job), columns.empty)
            shortages[int(kind[job])] = f"{NEVER_FITS}: {placement.reason}" if isinstance(placement, Refusal) else ""
        if job in beyond and (limit := limits.never(job, columns.empty)) is not None:
            limits_of[job] = limit.reason
    if limits_of and not per_event:  # those of an instant are rejected in one pass
        begin, submit = 0 if columns.initial is None else columns.initial.now, workload.submit
        warm = runs.job[: now.started] < warm_up
        ended = max(runs.start[: now.started][warm].max(initial=begin), submit[:warm_up].max(initial=begin))
        fits = np.array([not shortages[each] for each in kind[jobs].tolist()])
        later = jobs >= warm_up
        jobs = jobs[np.lexsort((fits, later, np.maximum(submit[jobs], np.where(later, ended, begin))))]  # stable
    return {job: limits_of.get(job) or shortages[int(kind[job])] for job in jobs.tolist()}
