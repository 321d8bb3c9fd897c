"""Description of the computer and its load during a measurement, which is needed to interpret the results."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.profiling.cleanup import OwnedResources
from poolwise.profiling.control_groups import Hierarchy
from poolwise.profiling.program_run import run_program
from poolwise.profiling.zram import ZramSwap, swaps

PROBED_PAGES = 4096
PROBE_LONGEST_S = 60.0


def page_in_latency(hierarchy: Hierarchy, owned: OwnedResources, name: str, seed: int = 0) -> dict[str, Any]:
    """Measure quantiles of the page-in time from swap in microseconds (see `page_in_probe`).

    Raises InputError if pages were not swapped out.
    """
    probe = [sys.executable, str(Path(__file__).with_name("page_in_probe.py")), str(PROBED_PAGES), str(seed)]
    found: dict[str, Any] = json.loads(
        run_program(probe, hierarchy.group(f"{name}-probe"), owned, longest_s=PROBE_LONGEST_S).output
    )
    if found["major_faults"] < PROBED_PAGES // 2:
        problem = f"only {found['major_faults']} of {PROBED_PAGES} probed pages were swapped out"
        raise InputError(problem, field="swap", remedy="create swap with --make-swap, or allow the group to swap")
    return found


def conditions(hierarchy: Hierarchy, swap: ZramSwap | None) -> dict[str, Any]:
    """Describe the computer: processor, memory, kernel, control groups, swap, load."""
    cpu = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "processor": cpu[0] if cpu else platform.processor(),
        "processors": os.cpu_count(),
        "memory_mib": int(memory) // 1024,
        "kernel": platform.release(),
        "control_groups": hierarchy.dialect.version,
        "swap": [device for device, _ in swaps()],
        "swap_made": None if swap is None else f"zram, {swap.compressor}",
        "swappiness": int(_lines("/proc/sys/vm/swappiness")[0]),
        "page_cluster": int(_lines("/proc/sys/vm/page-cluster")[0]),
        "load_before": os.getloadavg()[0],
    }


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()
