"""The first `poolwise simulate` after installation, by the clock: nothing is compiled, the kernels' folder is empty."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.case import Figures, case
from poolwise.traces.generators import generate
from poolwise.units import SECOND

COMPILED = "from poolwise.engines.list_scheduling.loading import load; load('short queues'); load('deep queues')"
"""Returns once the kernels are compiled that a run needs."""


@case("first-simulate", first_s=("<=", 10.0))
def first_simulate() -> Figures:
    """20,000 jobs of the Lublin-Feitelson model at load 0.9 under FCFS and EASY; then again at once, and with all compiled."""
    workload = generate("lublin", jobs=20_000, nodes=128, load=0.9)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "lublin.swf"
        columns = (workload.id, workload.submit // SECOND, -(-workload.duration // SECOND), workload.nodes)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        unsaid = " ".join(["-1"] * 7)
        log.write_text("".join(f"{i} {s} -1 {d} {n} -1 -1 {n} {d} -1 1 {unsaid}\n" for i, s, d, n in rows), encoding="utf-8")
        cache = Path(folder) / "cache"
        runs = {"first": _seconds(log, cache), "again": _seconds(log, cache)}
        subprocess.run([sys.executable, "-c", COMPILED], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
        runs["compiled"] = _seconds(log, cache)
    return {
        f"{name}_{what}": spent for name, run in runs.items() for what, spent in zip(("s", "processor_s"), run, strict=True)
    }


def _seconds(log: Path, cache: Path) -> tuple[float, float]:
    """Seconds of one run in a process of its own: by the clock, and of all processors."""
    words = [sys.executable, "-m", "poolwise", "simulate", str(log), "--processors", "128", "--order", "fcfs", "--json"]
    before, begun = _spent(), time.perf_counter()
    subprocess.run(words, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun, _spent() - before


def _spent() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
