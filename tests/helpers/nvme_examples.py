"""Small machines with devices, and workloads on them, for the tests of composition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolwise.model import Kind, Machine, Workload
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.units import SECOND

SMUFIN = SharingTable.read("catalog:nvme-smufin.csv")
FIO = SharingTable.read("catalog:nvme-fio.csv")
SHARING = NvmeSharing({"smufin": SMUFIN, "fio": FIO})
RESOURCES = ("bandwidth", "cores", "storage")


def machine(
    nodes: Sequence[int] = (25, 25),
    devices: Sequence[tuple[int, int]] = ((2000, 600),) * 4,
    homes: Sequence[int] | None = None,
    racks: Sequence[int] | None = None,
    fabric: int | None = None,
) -> Machine:
    """Nodes by cores, devices by (bandwidth, storage), inside nodes or in racks; `fabric` limits rack 0."""
    n, d = len(nodes), len(devices)
    pools = 1 if fabric is not None else 0
    capacity = np.zeros((n + d + pools, 3), dtype=np.int64)
    capacity[:n, 1] = nodes
    capacity[n : n + d, [0, 2]] = np.array(devices, dtype=np.int64).reshape(d, 2)
    capacity[n + d :, 0] = fabric or 0
    rack = np.array([0] * n + list(racks or [0] * d) + [0] * pools, dtype=np.int64)
    return Machine(
        name="test",
        owners=(*(f"node{k}" for k in range(n)), *(f"nvme{k}" for k in range(d)), *(["fabric"] * pools)),
        kind=np.array([Kind.NODE] * n + [Kind.DEVICE] * d + [Kind.POOL] * pools, dtype=np.int64),
        type=("node",) * n + ("nvme",) * d + ("fabric",) * pools,
        rack=rack,
        position=np.stack([rack, np.zeros_like(rack)], axis=1),
        home=np.array([-1] * n + list(homes or [-1] * d) + [-1] * pools, dtype=np.int64),
        resources=RESOURCES,
        capacity=capacity,
    )


KINDS = {
    # base time s, cores, bandwidth, storage, peak
    "smufin": (1600, 6, 1800, 43, 6000),
    "fio": (900, 2, 2000, 0, 6000),
    "capacity": (800, 6, 160, 600, 160),
    "small": (700, 3, 300, 100, 300),
    "compute": (900, 15, 0, 0, 0),
}


def workload(jobs: Sequence[tuple[float, str]], deadlines: Sequence[float] | None = None, factor: float = 4.0) -> Workload:
    """Jobs as (submit s, kind); deadlines in s, else submit + factor * base time."""
    rows = [KINDS[kind] for _, kind in jobs]
    submit = [s for s, _ in jobs]
    due = deadlines if deadlines is not None else [s + factor * row[0] for s, row in zip(submit, rows, strict=True)]

    def column(k: int) -> np.ndarray:
        return np.array([row[k] for row in rows], dtype=np.int64)

    return Workload.of(
        np.array([s * SECOND for s in submit], dtype=np.int64),
        column(0) * SECOND,
        requests={"cores": column(1), "bandwidth": column(2), "storage": column(3)},
        attributes={
            "kind": np.array([kind for _, kind in jobs]),
            "peak_bandwidth": column(4),
            "deadline": np.array([d * SECOND for d in due], dtype=np.int64),
        },
    )
