"""NVMe composition at three sizes, from 1,500 workloads on 5 nodes and 10 devices to 150,000 on 500 nodes and 1,000 devices."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType

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


def calls_per_event(size: int) -> float:
    """Return the function calls per arrival or end, which grow with the algorithm and not with cache misses."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        schedule = run(size)
    finally:
        sys.setprofile(None)
    return calls / (len(schedule.workload) + schedule.n_run)


@case("nvme-scale", cpu_minutes=("<=", 10), calls_growth=("<=", 1.1), growth=("<=", 1.5))
def scale() -> Figures:
    """Return the cost of an event while all sizes grow a hundredfold."""
    small, medium, large = us_per_event(1, 5), us_per_event(10, 2), us_per_event(100, 1)
    few, more = calls_per_event(1), calls_per_event(10)
    return {
        "us_per_event_1500": small,
        "us_per_event_15000": medium,
        "us_per_event_150000": large,
        "growth": large / small,
        "calls_per_event_1500": few,
        "calls_per_event_15000": more,
        "calls_growth": more / few,
        "cpu_minutes": large * 300_000 / 6e7,
    }
