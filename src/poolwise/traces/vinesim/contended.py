"""Transfers that share the links: each row of tasks with data gets a row for their fetching."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Machine, Workload
from poolwise.performance.fetching import COMPUTE, FETCH, WHOLE


def with_fetching(workload: Workload, machine: Machine) -> Workload:
    """Return the workload with a row of stage `FETCH` behind each row whose data travel, of as many tasks.

    A fetching asks for the bandwidth of a port (MB/s); its duration is what its bytes take at that. Row numbers in "id"
    are numbered again; "parent" still names the job.
    """
    size = workload.attributes["data_size"].astype(np.int64)
    travels = size > 0
    row = np.repeat(np.arange(len(workload)), 1 + travels)
    second = np.concatenate([np.zeros(min(1, len(row)), dtype=np.bool_), row[1:] == row[:-1]])
    ports = np.array([name == "port" for name in machine.type])
    port = int(machine.capacity[ports, machine.resource("bandwidth")].max(initial=1))
    bytes_ = size[row]
    none: dict[str, int] = {"task_type": -1, "data_size": 0, "operations": 0}
    columns = {
        name: np.where(second, none[name], column[row]) if name in none else column[row]
        for name, column in workload.attributes.items()
    }
    columns["stage"] = np.where(second, FETCH, np.where(travels[row], COMPUTE, WHOLE))
    duration: IntArray = np.where(second, -(-bytes_ * 1000 // port), workload.duration[row])
    return Workload.of(
        workload.submit[row],
        duration,
        id=np.arange(len(row), dtype=np.int64),
        tasks=workload.tasks[row],
        requests={"slots": np.where(second, 0, 1), "bandwidth": np.where(second, port, 0)},
        attributes=columns,
        excluded=workload.excluded,
        repaired=workload.repaired,
        name=workload.name,
    )
