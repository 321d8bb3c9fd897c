"""The same queue and snapshot with the rows of the job table in another order: rows are names, nothing may hang on them."""

from dataclasses import replace

import numpy as np

from poolwise.model import Decisions, Queue, Reject, Snapshot, Start, Wait
from poolwise.model.run_table import RunTable


def renumbered(queue, snapshot, rows):
    """(queue, snapshot) in which row k is what row `rows[k]` was; progress of runs goes by their numbers and stays."""
    place = {int(row): k for k, row in enumerate(rows)}
    table = queue.table.taken(np.asarray(rows))
    other, passes = Queue(table), queue.passes()
    for job, waited in zip(queue.jobs.tolist(), passes.tolist(), strict=True):
        other.add(place[job], queue.tasks(job), waited)
    runs = RunTable(snapshot.capacity.size)
    for run in snapshot.runs():
        cells = run.placement.owner * len(snapshot.machine.resources) + run.placement.resource
        touched = snapshot.estimate.touches(run.placement, snapshot)
        runs.add(replace(run, job=place[run.job]), cells, touched)
    seen = Snapshot(
        snapshot.now,
        snapshot.machine,
        table,
        snapshot.capacity,
        snapshot.free,
        runs,
        snapshot.estimate,
        snapshot._progress,
        may_grow=snapshot.may_grow,
        freed_at=snapshot.freed_at,
    )
    return other, seen


def named(decisions, rows):
    """Return decisions on renumbered jobs, in the rows that these jobs had."""
    renamed = []
    for decision in decisions:
        assert isinstance(decision, Start | Reject | Wait)
        renamed.append(replace(decision, job=int(rows[decision.job])))
    return Decisions(tuple(renamed), decisions.next_wakeup)
