"""A machine with one of each owner, and schedules written out by hand."""

import numpy as np

from poolwise.model import Kind, Machine, Outcome, Schedule, Workload
from poolwise.units import SECOND

MACHINE = Machine(
    name="one of each",
    owners=("node", "pool", "gpu0", "gpu1", "nvme"),
    kind=np.array([Kind.NODE, Kind.POOL, Kind.DEVICE, Kind.DEVICE, Kind.DEVICE], dtype=np.int64),
    type=("node", "pool", "gpu", "gpu", "nvme"),
    rack=np.zeros(5, dtype=np.int64),
    position=np.zeros((5, 2), dtype=np.int64),
    home=np.full(5, -1, dtype=np.int64),
    resources=("memory", "bandwidth", "cores", "devices"),
    capacity=np.array([[8, 0, 10, 0], [8, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 100, 0, 1]], dtype=np.int64),
    attributes={
        "price": np.array([1000.0, 200, 300, 300, 50]),
        "idle_watts": np.array([100.0, 10, 20, 20, 5]),
        "busy_watts": np.array([200.0, 20, 220, 220, 15]),
    },
)


def schedule_of(jobs, machine=MACHINE, rejected=()):
    """Jobs as (submit, start, end, cores, memory, gpus), in s; memory from the pool, a job without start never starts."""
    submit, start, end, cores, memory, gpus = np.array(jobs, dtype=np.int64).reshape(-1, 6).T
    workload = Workload.of(
        submit * SECOND, np.maximum(end - start, 1), requests={"cores": cores, "memory": memory, "gpu": gpus}
    )
    rows = [
        [(0, 2, c), (1, 0, m), *((2 + k, 3, 1) for k in range(g))]
        for c, m, g in zip(workload.request("cores"), workload.request("memory"), workload.request("gpu"), strict=True)
    ]
    order = np.lexsort((np.arange(len(submit)), submit))
    start, end = start[order], end[order]
    ran = [k for k in range(len(rows)) if start[k] >= 0]
    owner, resource, amount = (np.array([row[c] for k in ran for row in rows[k]], dtype=np.int64) for c in range(3))
    return Schedule(
        machine,
        workload,
        np.array(ran, dtype=np.int64),
        start[ran] * SECOND,
        end[ran] * SECOND,
        np.ones(len(ran), dtype=np.int64),
        (Outcome.FINISHED,) * len(ran),
        np.cumsum([0, *(len(rows[k]) for k in ran)]),
        owner,
        resource,
        amount,
        dict.fromkeys(rejected, "no"),
        tuple(k for k in range(len(rows)) if start[k] < 0 and k not in rejected),
        0,
        {},
    )
