"""NVMe composition at three sizes, from 1,500 workloads on 5 nodes and 10 devices to 150,000 on 500 nodes and 1,000 devices."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.case import Figures, case, seconds
from poolwise import catalog
from poolwise.engines import simulate
from poolwise.files.document import Document, Origin
from poolwise.files.machine import check_machine
from poolwise.files.machine_build import machine_of
from poolwise.model import Machine, Schedule
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.traces.generators.nvme_mix import NvmeMix

GAP_S = 130
"""Time between arrivals on the published machine: a load of about 0.65."""


def machine(size: int) -> Machine:
    """Return `size` copies of the published machine."""
    document = Document.read(catalog.find("machines", "nvme-pooled"))
    for path, count in (("rack.0.nodes.node", 5 * size), ("device.nvme.count", 10 * size)):
        document = document.with_value(path, count, Origin("size"))
    return machine_of(check_machine(document), f"{size} x")


def run(size: int) -> Schedule:
    """Return the published high-bandwidth scenario with `size` times as many workloads in the same time."""
    workload = replace(NvmeMix(), jobs=1500 * size, mean_gap_s=GAP_S / size).generate()
    model = NvmeSharing({"bandwidth_bound": "catalog:nvme-smufin.csv"})
    return simulate(workload, machine(size), CompositionScheduler(), model=model).schedule


def us_per_event(size: int, repeat: int) -> float:
    """Return the CPU time per arrival or end."""
    taken, schedule = seconds(lambda: run(size), repeat)
    return 1e6 * taken / (len(schedule.workload) + schedule.n_run)


@case("nvme-scale", cpu_minutes=("<=", 10), growth=("<=", 1.5))
def scale() -> Figures:
    """Return how the cost of an event changes as all sizes grow a hundredfold."""
    small, medium, large = us_per_event(1, 5), us_per_event(10, 2), us_per_event(100, 1)
    return {
        "us_per_event_1500": small,
        "us_per_event_15000": medium,
        "us_per_event_150000": large,
        "growth": large / small,
        "cpu_minutes": large * 300_000 / 6e7,
    }
