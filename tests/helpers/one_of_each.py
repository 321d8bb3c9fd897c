"""A machine with one of each owner, and schedules written out by hand."""

import numpy as np

from poolwise.model import Machine, MachineBuilder, Outcome, Schedule, Workload
from poolwise.quantities import SECOND

BUILD = MachineBuilder("one of each", ("memory", "bandwidth", "cores", "devices"))
BUILD.node("node", memory=8, cores=10, attributes={"price": 1000, "idle_watts": 100, "busy_watts": 200})
BUILD.pool("pool", memory=8, attributes={"price": 200, "idle_watts": 10, "busy_watts": 20})
for gpu in ("gpu0", "gpu1"):
    BUILD.device(gpu, type="gpu", devices=1, attributes={"price": 300, "idle_watts": 20, "busy_watts": 220})
BUILD.device("nvme", type="nvme", devices=1, bandwidth=100, attributes={"price": 50, "idle_watts": 5, "busy_watts": 15})
MACHINE = Machine.of(BUILD)


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
        workload,
        machine,
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
