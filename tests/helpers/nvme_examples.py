"""Small machines with NVMe devices, and workloads on them, for composition tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolwise.model import Machine, MachineBuilder, Workload
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.quantities import SECOND

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
    """Build nodes by cores and devices by (bandwidth, storage), inside nodes or in racks; `fabric` limits rack 0."""
    build = MachineBuilder("test", RESOURCES)
    for k, cores in enumerate(nodes):
        build.node(f"node{k}", cores=cores)
    places = zip(devices, homes or [-1] * len(devices), racks or [0] * len(devices), strict=True)
    for k, ((bandwidth, storage), home, rack) in enumerate(places):
        build.device(f"nvme{k}", type="nvme", home=home, rack=rack, bandwidth=bandwidth, storage=storage)
    if fabric is not None:
        build.pool("fabric", type="fabric", bandwidth=fabric)
    return Machine.of(build)


KINDS = {
    # base time s, cores, bandwidth, storage, peak
    "smufin": (1600, 6, 1800, 43, 6000),
    "fio": (900, 2, 2000, 0, 6000),
    "capacity": (800, 6, 160, 600, 160),
    "small": (700, 3, 300, 100, 300),
    "compute": (900, 15, 0, 0, 0),
}


def workload(jobs: Sequence[tuple[float, str]], deadlines: Sequence[float] | None = None, factor: float = 4.0) -> Workload:
    """Build jobs from (submit s, kind), with deadlines in s, by default submit + factor * base time."""
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
