"""Goals for completion times.

Source: Amaral et al., DRMaestro, "Experiment 3"; specs of the flow placement, "Simulation". A job without a goal (0) cannot
violate one; a job that has a goal and was rejected or never ran violates it.
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.model import Schedule


def violated(schedule: Schedule, *, queueing: bool = False) -> BoolArray:
    """Return (n_job,) jobs that took longer than their goal, the attribute "goal" in ns.

    The time counts from the start of the job or, with `queueing`, from its submission. Raises InputError if the workload has
    no goals.
    """
    column = schedule.workload.attributes.get("goal")
    if column is None:
        raise InputError("the workload has no goals", field="goal", remedy="give each job a goal in ns, 0 for none")
    goal = column.astype(np.float64)
    begin = schedule.workload.submit if queueing else schedule.job_start
    late: BoolArray = (goal > 0) & (~schedule.done | (schedule.job_end - begin > goal))
    return late
