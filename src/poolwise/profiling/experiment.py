"""Measures how a real program slows down as less of its memory is local: the numbers that `poolwise profile fit` takes.

Source: Sefati et al., IRoP, section II-B: a limit on local memory, swap in memory for the rest, completion times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poolwise.errors import InputError
from poolwise.profiling.added_latency import MOST_NS, AddedLatency, added_latency
from poolwise.profiling.cleanup import OwnedResources
from poolwise.profiling.control_groups import ControlGroup, Hierarchy
from poolwise.profiling.environment import conditions, page_in_latency
from poolwise.profiling.program_run import ProgramRun, memory_available, run_program
from poolwise.profiling.zram import ZramSwap, swaps

MIB = 2**20
RESERVE = 1024 * MIB
"""Bytes of memory that are left to others at all times."""
SPARE = 1.25
"""Swap for each byte that is to go there: pages that have come in keep their place in swap for a while."""

BeforeEachRun = Callable[[int, int, str], None]
"""Told how many runs are done, of how many, and what comes next."""


@dataclass(frozen=True)
class MeasuringPlan:
    """What is to be measured.

    Attributes
    ----------
    workload : name of the program in the measurements
    command : the program and its arguments
    shares : shares of local memory, descending from 1
    cpus : shares of one processor's time, a stand-in for its frequency, measured with all memory local; empty for none
    repeat : runs at each
    make_swap : whether to make swap in memory for it
    compressor : algorithm of that swap, empty for the kernel's choice
    latency_ns : nanoseconds that a page-in from that swap is to take longer, as through a network
    longest_s : seconds after which a run counts as failed
    clock : "wall", or "cpu" for the processor time of all its processes: on a computer that has other work, and where page-ins
        are work of the processor themselves (zram)
    """

    workload: str
    command: tuple[str, ...]
    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    cpus: tuple[float, ...] = ()
    repeat: int = 3
    make_swap: bool = False
    compressor: str = ""
    latency_ns: int = 0
    longest_s: float = 600.0
    clock: str = "wall"

    def __post_init__(self) -> None:
        if self.clock not in ("wall", "cpu"):
            raise InputError(f"clock '{self.clock}'", field="clock", remedy="wall or cpu")
        if self.clock == "cpu" and self.cpus:
            problem = "processor time does not change with a program's share of a processor"
            raise InputError(problem, field="clock", remedy="leave out --cpu, or take --clock wall")
        if not self.command:
            raise InputError("no command", field="command", remedy="write it after --")
        if self.repeat < 1:
            raise InputError(f"{self.repeat} runs", field="repeat", remedy="at least 1")
        if not 0 <= self.latency_ns <= MOST_NS:
            remedy = f"at most {MOST_NS // 1000} us, for which a processor spins"
            raise InputError(f"{self.latency_ns / 1000:g} us", field="latency", remedy=remedy)
        if not self.shares or self.shares[0] != 1 or any(not 0 < share <= 1 for share in self.shares):
            raise InputError(f"shares {self.shares}", field="shares", remedy="shares in (0, 1], the first of them 1")
        if any(later >= earlier for earlier, later in zip(self.shares, self.shares[1:], strict=False)):
            raise InputError(f"shares {self.shares}", field="shares", remedy="write them descending, each once")
        if any(not 0 < share <= 1 for share in self.cpus) or len(set(self.cpus)) < len(self.cpus):
            raise InputError(f"shares {self.cpus}", field="cpu", remedy="shares in (0, 1], each once")

    @property
    def rounds(self) -> list[tuple[float, float | None]]:
        """Shares of local memory, and of a processor (None: unlimited), of the runs of one round."""
        return [(share, None) for share in self.shares] + [(1.0, cpu) for cpu in self.cpus]

    @property
    def number_of_runs(self) -> int:
        """How many runs there are, with the first, which finds the peak."""
        return 1 + self.repeat * len(self.rounds)


@dataclass(frozen=True)
class LimitedRun:
    """One run: `remote` is the share of its memory that was not local, `cpu` its share of a processor (None: unlimited)."""

    remote: float
    cpu: float | None
    run: ProgramRun

    def seconds(self, clock: str) -> float:
        """How long it took by a clock of the plan."""
        return self.run.seconds if clock == "wall" else self.run.use.cpu_ns / 1e9


@dataclass(frozen=True)
class LimitedRuns:
    """What was measured: its runs, the peak with all memory local in bytes, and the circumstances."""

    plan: MeasuringPlan
    peak: int
    runs: tuple[LimitedRun, ...]
    conditions: dict[str, Any]


def measure_program(plan: MeasuringPlan, hierarchy: Hierarchy, mine: OwnedResources, progress: BeforeEachRun) -> LimitedRuns:
    """Run a program with all of its memory local to find its peak, then at each share in turn, as often as is asked for.

    The first run counts for nothing else: it warms the caches of files. Rounds of all shares are repeated, rather than each
    share, so that what changes on the computer meanwhile spreads over all of them. Raises InputError with a remedy for want
    of memory, swap or rights, and where the program fails.
    """
    name = f"poolwise-{os.getpid()}"
    within = memory_available() - RESERVE
    if within <= 0:
        raise _too_little(0)
    _refuse_without_swap(plan)
    progress(0, plan.number_of_runs, "all local, to find its peak")
    group = hierarchy.group(name)
    peak = run_program(plan.command, group, mine, limit=within, longest_s=plan.longest_s).peak
    if peak < MIB:
        raise InputError(f"the program holds {peak / MIB:.2f} MiB", field="command", remedy="give it a larger problem")
    swap = _room(plan, peak, mine)
    about = conditions(hierarchy, swap)
    about["wanted_latency_ns"] = plan.latency_ns
    about["page_in"] = page_in_latency(hierarchy, mine, name) if len(plan.shares) > 1 else None
    with added_latency(plan.latency_ns, swap) as added:
        about["added_latency"] = added.said
        if added.counters is not None:
            about |= {"page_in": _slowed(added, hierarchy, mine, name), "page_in_without": about["page_in"]}
        runs = _rounds(plan, group, mine, peak, within, progress)
        about["slowed"] = added.reads()
    about["load_after"] = os.getloadavg()[0]
    return LimitedRuns(plan, peak, runs, about)


def _rounds(
    plan: MeasuringPlan, group: ControlGroup, mine: OwnedResources, peak: int, within: int, progress: BeforeEachRun
) -> tuple[LimitedRun, ...]:
    """Run the program as the plan says, after the first run."""
    todo = plan.number_of_runs
    runs: list[LimitedRun] = []
    for turn in range(plan.repeat):
        for share, cpu in plan.rounds:
            words = f"{share:.0%} local" if cpu is None else f"{cpu:.0%} of a processor"
            progress(1 + len(runs), todo, f"{words}, {turn + 1} of {plan.repeat}")
            limit = within if share == 1 else int(share * peak)
            try:
                run = run_program(plan.command, group, mine, limit=limit, cpu=cpu, longest_s=plan.longest_s)
            except InputError as error:
                raise InputError(f"with {words}: {error.message}", field=error.field, remedy=error.remedy) from None
            runs.append(LimitedRun(1 - share, cpu, run))
    progress(todo, todo, "done")
    return tuple(runs)


def _slowed(added: AddedLatency, hierarchy: Hierarchy, mine: OwnedResources, name: str) -> dict[str, Any]:
    """Probe page-ins with the latency added; raises InputError where they are not slowed by it."""
    found, reads = page_in_latency(hierarchy, mine, name), added.reads()
    if reads is None or reads["reads"] < found["major_faults"] // 2:
        problem = (
            f"{found['major_faults']} pages came in from swap, and {0 if reads is None else reads['reads']} reads were slowed"
        )
        raise InputError(problem, field="latency", remedy="leave out --latency: this kernel brings pages in another way")
    return found


def _refuse_without_swap(plan: MeasuringPlan) -> None:
    if len(plan.shares) > 1 and not plan.make_swap and not swaps():
        remedy = "add --make-swap (as root), or set up swap in memory (zram)"
        raise InputError("there is no swap for what is not local", field="swap", remedy=remedy)


def _room(plan: MeasuringPlan, peak: int, mine: OwnedResources) -> ZramSwap | None:
    """Make sure that swap and memory hold the program at its smallest share, and nobody else runs short."""
    remote = int(SPARE * (1 - plan.shares[-1]) * peak)
    if not remote:
        return None
    if memory_available() - RESERVE < peak + remote:
        raise _too_little(peak + remote)
    if not plan.make_swap:
        free = max(free for _, free in swaps())
        if free < remote:
            problem = f"{remote // MIB} MiB are to be swapped, and {free // MIB} MiB of swap are free"
            raise InputError(problem, field="swap", remedy="make more swap, add --make-swap, or give a smaller problem")
        return None
    swap = ZramSwap.add()
    mine.add(swap)
    swap.begin(remote + 16 * MIB, plan.compressor)  # the probe's pages find room even beside nothing else
    return swap


def _too_little(need: int) -> InputError:
    problem = f"{memory_available() // MIB} MiB of memory are free; {(need + RESERVE) // MIB} MiB are needed, reserve included"
    return InputError(problem, field="memory", remedy="end other programs, or give the program a smaller problem")
