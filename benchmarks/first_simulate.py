"""Wall-clock time of the first `poolwise simulate` after installation, with an empty kernel cache."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.case import Figures, case
from poolwise.quantities import SECOND
from poolwise.traces.generators import generate

COMPILED = "from poolwise.engines.list_scheduling.loading import load; load('short queues'); load('deep queues')"
"""Code that returns once the kernels of a run are compiled."""


@case("first-simulate", first_s=("<=", 10.0))
def first_simulate() -> Figures:
    """Time 20,000 Lublin-Feitelson jobs at load 0.9 under FCFS and EASY: first run, immediate second run, and compiled run."""
    workload = generate("lublin", jobs=20_000, nodes=128, load=0.9)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "lublin.swf"
        columns = (workload.id, workload.submit // SECOND, -(-workload.duration // SECOND), workload.nodes)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        unknown = " ".join(["-1"] * 7)
        log.write_text("".join(f"{i} {s} -1 {d} {n} -1 -1 {n} {d} -1 1 {unknown}\n" for i, s, d, n in rows), encoding="utf-8")
        cache = Path(folder) / "cache"
        runs = {"first": _seconds(log, cache), "again": _seconds(log, cache)}
        subprocess.run([sys.executable, "-c", COMPILED], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
        runs["compiled"] = _seconds(log, cache)
    return {
        f"{name}_{what}": spent for name, run in runs.items() for what, spent in zip(("s", "processor_s"), run, strict=True)
    }


def _seconds(log: Path, cache: Path) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of one run in a new process."""
    words = [sys.executable, "-m", "poolwise", "simulate", str(log), "--processors", "128", "--order", "fcfs", "--json"]
    before, begun = _spent(), time.perf_counter()
    subprocess.run(words, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun, _spent() - before


def _spent() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
