"""Measures how a real program slows down with less local memory, and describes the computer, for `poolwise profile fit`.

Source: Sefati et al., IRoP, section II-B: a limit on local memory, swap in memory for the rest, completion times.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise_agents.profiling.cleanup import OwnedResources
from poolwise_agents.profiling.control_groups import ControlGroup
from poolwise_agents.profiling.program_run import ProgramRun, memory_available, run_program
from poolwise_agents.profiling.zram import ZramSwap, swaps

MIB = 2**20
RESERVE = 1024 * MIB  # memory that always remains for other programs (bytes)
SWAP_FACTOR = 1.25  # swap per byte of remote memory, since pages keep their swap slot for a while after a page-in
PROBED_PAGES = 4096
PROBE_LONGEST_S = 60.0

BeforeEachRun = Callable[[int, int, str], None]
"""Called with the number of completed runs, the number of all runs, and a description of the next run."""
Conditions = dict[str, Any]
Intervention = Callable[[ZramSwap | None, Conditions, Callable[[], Conditions]], AbstractContextManager[None]]
"""Context of the measured runs: gets the created swap, the conditions, to which it may add, and a probe of page-ins."""


@dataclass(frozen=True)
class MeasurementPlan:
    """Program and settings of a measurement."""

    workload: str  # name of the program in the measurements
    command: tuple[str, ...]
    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)  # shares of local memory, descending from 1
    # shares of one processor, a substitute for its frequency, measured with all memory local; empty for none
    cpus: tuple[float, ...] = ()
    repeat: int = 3  # runs per share
    make_swap: bool = False  # whether to create swap in memory
    compressor: str = ""  # compression algorithm of that swap, empty for the kernel's default
    longest_s: float = 600.0  # time after which a run counts as failed (s)
    # "wall", or "cpu" for the processor time of all processes, for computers with other load, and if page-ins use the processor
    # themselves (zram)
    clock: str = "wall"

    def __post_init__(self) -> None:
        if self.clock not in ("wall", "cpu"):
            raise InputError(f"unknown clock '{self.clock}'", field="clock", remedy="use wall or cpu")
        if self.clock == "cpu" and self.cpus:
            problem = "processor time does not depend on the processor share"
            raise InputError(problem, field="clock", remedy="omit --cpu, or use --clock wall")
        if not self.command:
            raise InputError("no command", field="command", remedy="write it after --")
        if self.repeat < 1:
            raise InputError(f"repeat must be at least 1, got {self.repeat}", field="repeat", remedy="set it to at least 1")
        if not self.shares or self.shares[0] != 1 or any(not 0 < share <= 1 for share in self.shares):
            raise InputError(
                f"invalid shares {self.shares}", field="shares", remedy="write shares in (0, 1], the first of them 1"
            )
        if any(later >= earlier for earlier, later in zip(self.shares, self.shares[1:], strict=False)):
            raise InputError(f"shares {self.shares} do not descend", field="shares", remedy="write each share once, descending")
        if any(not 0 < share <= 1 for share in self.cpus) or len(set(self.cpus)) < len(self.cpus):
            raise InputError(f"invalid shares {self.cpus}", field="cpu", remedy="write each share once, in (0, 1]")

    @property
    def rounds(self) -> list[tuple[float, float | None]]:
        """(share of local memory, share of a processor or None for unlimited) of each run of one round."""
        return [(share, None) for share in self.shares] + [(1.0, cpu) for cpu in self.cpus]

    @property
    def number_of_runs(self) -> int:
        """Number of runs, including the first one, which finds the peak."""
        return 1 + self.repeat * len(self.rounds)


@dataclass(frozen=True)
class LimitedRun:
    """One run: `remote` is the share of memory that was not local, `cpu` the share of a processor (None: unlimited)."""

    remote: float
    cpu: float | None
    run: ProgramRun

    def seconds(self, clock: str) -> float:
        """Return the duration of the run by a clock of the plan."""
        return self.run.seconds if clock == "wall" else self.run.use.cpu_ns / 1e9


@dataclass(frozen=True)
class LimitedRuns:
    """Results of a measurement: runs, peak memory with all memory local (bytes), and conditions."""

    plan: MeasurementPlan
    peak: int
    runs: tuple[LimitedRun, ...]
    conditions: Conditions


def _no_intervention(*_: object) -> AbstractContextManager[None]:
    return nullcontext()


def measure_program(
    plan: MeasurementPlan,
    parent: ControlGroup,
    owned: OwnedResources,
    progress: BeforeEachRun,
    during: Intervention = _no_intervention,
) -> LimitedRuns:
    """Run a program with all memory local to find its peak, then repeatedly with each share.

    The first run also warms the page cache and is not part of the results; `during` is entered after it. Each round runs all
    shares, so that other changes on the computer affect all shares equally. Raises InputError with a remedy if memory, swap or
    permissions are missing, or if the program fails.
    """
    within = memory_available() - RESERVE
    if within <= 0:
        raise _memory_error(0)
    if len(plan.shares) > 1 and not plan.make_swap and not swaps():
        remedy = "add --make-swap (as root), or set up swap in memory (zram)"
        raise InputError("no swap for memory that is not local", field="swap", remedy=remedy)
    progress(0, plan.number_of_runs, "all local, to find its peak")
    group, probe = (parent.group(f"poolwise-{os.getpid()}{suffix}") for suffix in ("", "-probe"))
    peak = run_program(plan.command, group, owned, limit=within, longest_s=plan.longest_s).peak
    if peak < MIB:
        raise InputError(f"the program uses only {peak / MIB:.2f} MiB", field="command", remedy="give it a larger problem")
    swap = _prepare_swap(plan, peak, owned)
    about = conditions(parent, swap)
    about["page_in"] = page_in_latency(probe, owned) if len(plan.shares) > 1 else None
    with during(swap, about, lambda: page_in_latency(probe, owned)):
        runs = _rounds(plan, group, owned, peak, within, progress)
    about["load_after"] = os.getloadavg()[0]
    return LimitedRuns(plan, peak, runs, about)


def _rounds(
    plan: MeasurementPlan, group: ControlGroup, owned: OwnedResources, peak: int, within: int, progress: BeforeEachRun
) -> tuple[LimitedRun, ...]:
    total = plan.number_of_runs
    runs: list[LimitedRun] = []
    for turn in range(plan.repeat):
        for share, cpu in plan.rounds:
            words = f"{share:.0%} local" if cpu is None else f"{cpu:.0%} of a processor"
            progress(1 + len(runs), total, f"{words}, {turn + 1} of {plan.repeat}")
            limit = within if share == 1 else int(share * peak)
            try:
                run = run_program(plan.command, group, owned, limit=limit, cpu=cpu, longest_s=plan.longest_s)
            except InputError as error:
                raise InputError(f"with {words}: {error.message}", field=error.field, remedy=error.remedy) from None
            runs.append(LimitedRun(1 - share, cpu, run))
    progress(total, total, "done")
    return tuple(runs)


def _prepare_swap(plan: MeasurementPlan, peak: int, owned: OwnedResources) -> ZramSwap | None:
    """Check that memory and swap suffice for the smallest share, with the reserve for others; create swap if requested."""
    remote = int(SWAP_FACTOR * (1 - plan.shares[-1]) * peak)
    if not remote:
        return None
    if memory_available() - RESERVE < peak + remote:
        raise _memory_error(peak + remote)
    if not plan.make_swap:
        free = max(free for _, free in swaps())
        if free < remote:
            problem = f"{remote // MIB} MiB of swap are needed, but only {free // MIB} MiB are free"
            raise InputError(problem, field="swap", remedy="add swap or --make-swap, or reduce the problem size")
        return None
    swap = ZramSwap.add()
    owned.add(swap)
    swap.enable(remote + 16 * MIB, plan.compressor)  # 16 MiB for the pages of the probe
    return swap


def _memory_error(need: int) -> InputError:
    needed = (need + RESERVE) // MIB
    problem = f"{memory_available() // MIB} MiB of memory are free, but {needed} MiB are needed (reserve included)"
    return InputError(problem, field="memory", remedy="stop other programs, or reduce the problem size")


def page_in_latency(group: ControlGroup, owned: OwnedResources) -> Conditions:
    """Measure quantiles of the page-in time (us, see `page_in_probe`); raise InputError if pages were not swapped out."""
    probe = [sys.executable, str(Path(__file__).with_name("page_in_probe.py")), str(PROBED_PAGES), "0"]
    probed: Conditions = json.loads(run_program(probe, group, owned, longest_s=PROBE_LONGEST_S).output)
    if probed["major_faults"] < PROBED_PAGES // 2:
        problem = f"only {probed['major_faults']} of {PROBED_PAGES} probed pages were swapped out"
        raise InputError(problem, field="swap", remedy="create swap with --make-swap, or allow the group to swap")
    return probed


def conditions(parent: ControlGroup, swap: ZramSwap | None) -> Conditions:
    """Describe the computer: processor, memory, kernel, control groups, swap, load."""
    cpu = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "processor": cpu[0] if cpu else platform.processor(),
        "processors": os.cpu_count(),
        "memory_mib": int(memory) // 1024,
        "kernel": platform.release(),
        "control_groups": parent.dialect.version,
        "swap": [device for device, _ in swaps()],
        "swap_made": None if swap is None else f"zram, {swap.compressor}",
        "swappiness": int(_lines("/proc/sys/vm/swappiness")[0]),
        "page_cluster": int(_lines("/proc/sys/vm/page-cluster")[0]),
        "load_before": os.getloadavg()[0],
    }


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


# Table of the runs, with the columns that `poolwise profile fit` reads first

COLUMNS: Mapping[str, Callable[[LimitedRuns, LimitedRun], object]] = {
    "workload": lambda measured, limited_run: measured.plan.workload,
    "remote": lambda measured, limited_run: f"{limited_run.remote:.6g}",
    "frequency": lambda measured, limited_run: f"{1.0 if limited_run.cpu is None else limited_run.cpu:.6g}",
    "seconds": lambda measured, limited_run: f"{limited_run.seconds(measured.plan.clock):.6g}",
    "peak_mib": lambda measured, limited_run: f"{measured.peak / MIB:.1f}",
    "working_set_mib": lambda measured, limited_run: f"{limited_run.run.peak / MIB:.1f}",
    "swapped_mib": lambda measured, limited_run: f"{limited_run.run.swapped / MIB:.1f}",
    "faults": lambda measured, limited_run: limited_run.run.use.faults,
    "major_faults": lambda measured, limited_run: limited_run.run.use.major_faults,
    "refaults": lambda measured, limited_run: limited_run.run.use.refaults,
    "cpu_s": lambda measured, limited_run: f"{limited_run.seconds('cpu'):.6g}",
    "wall_s": lambda measured, limited_run: f"{limited_run.seconds('wall'):.6g}",
}
"""Columns; `seconds` uses the plan's clock, and `frequency` is the processor share (1 if unlimited)."""


def to_rows(measured: LimitedRuns) -> list[dict[str, object]]:
    """Return one row per run."""
    return [{name: value(measured, limited_run) for name, value in COLUMNS.items()} for limited_run in measured.runs]


def to_csv(measured: LimitedRuns) -> str:
    """Return the content of the file."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(to_rows(measured))
    return text.getvalue()
