"""Cost per event of composing NVMe, from 1,500 workloads on 5 nodes and 10 devices to 150,000 on 500 nodes and 1,000 devices.

Run as `python benchmarks/nvme_scale.py [SIZE ...]` (sizes 1, 10 and 100 by default). Seconds are of CPU, so that other work
on the computer does not count.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace

from poolwise import catalog
from poolwise.engine import simulate
from poolwise.metrics.deadlines import missed_pct
from poolwise.model import Machine
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.studies.build import machine_of
from poolwise.studies.document import Document, Origin
from poolwise.studies.machine_file import check
from poolwise.traces.generators.nvme_mix import NvmeMix


def machine(size: int) -> Machine:
    """The published machine, `size` times over."""
    document = Document.read(catalog.find("machines", "nvme-pooled"))
    document.set("rack.0.nodes.node", 5 * size, Origin("size"))
    document.set("device.nvme.count", 10 * size, Origin("size"))
    return machine_of(check(document), f"{size} x", document)


def main(sizes: list[int]) -> None:
    """Print a line a size."""
    model = NvmeSharing({"bandwidth_bound": "catalog:nvme-smufin.csv"})
    for size in sizes:
        # 130 s between arrivals on the published machine is a load of about 0.65
        workload = replace(NvmeMix(), jobs=1500 * size, mean_gap_s=130 / size).generate()
        begun = time.process_time()
        schedule = simulate(machine(size), workload, CompositionScheduler(), truth=model).schedule
        seconds = time.process_time() - begun
        events = len(workload) + schedule.n_run
        print(
            f"{len(workload)} workloads, {5 * size} nodes, {10 * size} devices: {seconds:.1f} s CPU, "
            f"{1e6 * seconds / events:.0f} us an event, {missed_pct(schedule):.2f} % missed, "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 10, 100])
