"""Memory agent compared with equal shares and a static plan (IRoP), on three real programs with too little local memory.

Run as root, with zram: python -m benchmarks.memory_agent FOLDER [--repeat N] [WAY...]. FOLDER keeps measurements, plan, logs
and results; existing runs are not repeated. It writes FOLDER/memory-agent.csv and prints the table of
docs/explanation/memory-agent.md. Programs: conjugate gradients, a graph search, and a K-means that clusters a quarter of its
table first and then all of it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.memory_agent_table import COLUMNS, WAYS, to_table
from poolwise_agents.profiling.cleanup import OwnedResources, exit_on_signals, owned_resources, records_folder
from poolwise_agents.profiling.control_groups import ControlGroup, find_hierarchy
from poolwise_agents.profiling.experiment import MIB, RESERVE, conditions
from poolwise_agents.profiling.program_run import memory_available
from poolwise_agents.profiling.zram import ZramSwap

PROGRAMS = Path(__file__).parent / "programs"
MEMORY_MIB = 310
"""Local memory of the three programs, MiB; their peaks sum to 450."""
SWAP_MIB = 600
EVERY_S = 1.0
WINDOW_S = 4.0
"""Length of the windows in which slowdowns are measured, s."""
LONGEST_S = 150.0
"""Timeout of a run, s: with equal shares, it would take many times as long as under the other policies."""
STATIC, DYNAMIC = 0.75, 0.25
"""Power of an idle module, and its increase at full load, as shares of the maximum: Sefati et al., section II-A."""
CORES = 3
LOOSER = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Factors of the tolerances that the static plan tries, in this order, until one is feasible."""


@dataclass(frozen=True)
class Program:
    """A program: its name, arguments of the whole run and of a shorter one for its profile, and its tolerance."""

    name: str
    file: str
    arguments: tuple[int, ...]
    shorter: tuple[int, ...]
    tolerance: float

    def command(self, arguments: tuple[int, ...]) -> list[str]:
        """Return the command line."""
        return [sys.executable, str(PROGRAMS / self.file), *map(str, arguments)]


RUNS = (
    Program("conjugate_gradient", "conjugate_gradient.py", (72, 1600), (72, 100), 0.25),
    Program("graph_search", "graph_search.py", (1_000_000, 16), (1_000_000, 2), 1.0),
    Program("kmeans_phases", "kmeans_phases.py", (400_000, 240, 80), (400_000, 24, 8), 0.5),
)


@dataclass
class RunningProgram:
    """A running program: its group, its peak in MiB, and (clock, CPU seconds, faults, units done) of each observation."""

    program: Program
    group: ControlGroup
    process: subprocess.Popen[bytes]
    progress: Path
    observations: list[tuple[float, float, int, float]] = field(default_factory=list)
    peak_mib: int = 0
    code: int | None = None

    @property
    def ended(self) -> str:
        """State at the end: done, killed, or stopped by the timeout."""
        return {0: "done", None: "took too long"}.get(self.code, "killed")

    def observe(self) -> None:
        """Record the resource use and progress."""
        use, text = self.group.usage(), self.progress.read_text() if self.progress.exists() else ""
        self.peak_mib = max(self.peak_mib, -(-use.working_set // MIB))
        self.observations.append((time.monotonic(), use.cpu_ns / 1e9, use.major_faults, float(text or 0)))


@contextmanager
def running_programs(folder: Path, programs: tuple[Program, ...], mine: OwnedResources) -> Iterator[list[RunningProgram]]:
    """Start programs in separate control groups, and stop the programs and remove the groups at the end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    join = 'until [ "$1" = -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'
    running: list[RunningProgram] = []
    hierarchy = find_hierarchy()
    try:
        for program in programs:
            group = _group(hierarchy, program)
            mine.add(group)
            group.create()
            progress = folder / f"{program.name}.progress"
            progress.unlink(missing_ok=True)
            words = ["/bin/sh", "-c", join, "join", *map(str, group.procs_files), "--", *program.command(program.arguments)]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**environment, "PROGRESS": str(progress)})
            running.append(RunningProgram(program, group, process, progress))
        yield running
    finally:
        for each in running:
            each.process.kill()
            each.process.wait()
            each.group.remove()
            mine.resources.remove(each.group)


def _group(hierarchy: ControlGroup, program: Program) -> ControlGroup:
    return hierarchy.group(f"poolwise-experiment-{program.name}")


def run(
    folder: Path, programs: tuple[Program, ...], limits: dict[str, int] | None, mine: OwnedResources
) -> list[RunningProgram]:
    """Run programs to completion under fixed limits in MiB, or under the agent if there are none."""
    with running_programs(folder, programs, mine) as running:
        for workload in running:
            if limits is not None:
                workload.group.set_limit(limits[workload.program.name] * MIB)
        agent = None if limits is not None else _agent(folder, running)
        begun = time.monotonic()
        try:
            while any(workload.process.poll() is None for workload in running) and time.monotonic() - begun < LONGEST_S:
                for workload in running:
                    if workload.process.poll() is None:
                        workload.observe()
                time.sleep(0.25)
            for workload in running:
                workload.code = workload.process.poll()
                workload.observe()
        finally:
            if agent is not None:
                agent.terminate()
                agent.wait()
    return running


def _agent(folder: Path, running: list[RunningProgram]) -> subprocess.Popen[bytes]:
    """Start the agent on the control groups of the programs."""
    lines = [f'version = 1\nmemory = "{MEMORY_MIB} MiB"\nevery = "{EVERY_S * 1000:g} ms"\nclock = "cpu"']
    lines.append(f'state = "{folder / "state"}"\nmeasurements = "{folder / "in-passing.csv"}"\n')
    for workload in running:
        name = workload.group.memory.name
        lines.append(
            f'[[workload]]\nname = "{workload.program.name}"\ngroup = "{name}"\ntolerance = {workload.program.tolerance}'
        )
        lines.append(f'progress = "{workload.progress}"\n')
    file = folder / "agent.toml"
    file.write_text("\n".join(lines))
    with (folder / "agent.log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "poolwise", "agent", "memory", str(file)], stderr=log)


def paces(alone: RunningProgram) -> list[tuple[float, float]]:
    """Return (units done, CPU seconds) of a run with all memory local."""
    return [(done, cpu) for _, cpu, _, done in alone.observations]


def expected(pace: list[tuple[float, float]], done: float) -> float:
    """Return the CPU seconds for `done` units with all memory local, interpolated between observations."""
    import numpy as np

    units, seconds = zip(*pace, strict=True)
    return float(np.interp(done, units, seconds))


def windows(workload: RunningProgram, pace: list[tuple[float, float]]) -> list[float]:
    """Return the slowdowns in CPU time over the windows of a run, starting with the first completed unit."""
    slowdowns, first = [], next((k for k, observation in enumerate(workload.observations) if observation[3] > 0), None)
    if first is None:
        return []
    before = workload.observations[first]
    for observation in workload.observations[first + 1 :]:
        worth = expected(pace, observation[3]) - expected(pace, before[3])
        if observation[0] - before[0] >= WINDOW_S and worth > 0.05:
            slowdowns.append((observation[1] - before[1]) / worth - 1)
            before = observation
    return slowdowns


def rows(
    run: int, way: str, running: list[RunningProgram], alone: dict[str, list[tuple[float, float]]], moves: int
) -> list[dict[str, object]]:
    """Return one row of results per program."""
    makespan = max(workload.observations[-1][0] - workload.observations[0][0] for workload in running)
    cpu = sum(workload.observations[-1][1] for workload in running)
    energy = STATIC * makespan + DYNAMIC * cpu / CORES
    made = []
    for workload in running:
        pace, last = alone[workload.program.name], workload.observations[-1]
        values = (
            run, way, workload.program.name, workload.program.tolerance, last[1], expected(pace, last[3]),
            last[1] / expected(pace, last[3]) - 1, max(windows(workload, pace), default=0.0),
            workload.ended,
            last[2], moves, makespan, energy,
        )  # fmt: skip
        made.append(
            {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in zip(COLUMNS, values, strict=True)}
        )
    return made


def plan(folder: Path, peaks: dict[str, int]) -> dict[str, int]:
    """Solve IRoP's problem with profiles fitted to measurements of shorter runs; return the local MiB of each program."""
    files = [folder / f"profile-{program.name}.csv" for program in RUNS]
    for program, file in zip(RUNS, files, strict=True):
        if not file.exists():
            words = [
                "profile",
                "measure",
                "--make-swap",
                "--clock",
                "cpu",
                "--repeat",
                "1",
                "--timeout",
                "240 s",
                "--name",
                program.name,
            ]
            _poolwise([*words, "--out", str(file), "--", *program.command(program.shorter)])
    text = [file.read_text().splitlines() for file in files]
    (folder / "measured.csv").write_text("\n".join([text[0][0], *(line for lines in text for line in lines[1:])]) + "\n")
    _poolwise(["profile", "fit", str(folder / "measured.csv"), "--out", str(folder / "profiles.csv")])
    for factor in LOOSER:
        lines = ['version = 1\ntheta = "relative"\neta = 0.5\nremote = "4 GiB"\nprofiles = "profiles.csv"']
        lines.append(f'[[module]]\nname = "node"\ncores = {CORES}\nfrequency = 1.0\nmemory = "{MEMORY_MIB} MiB"')
        lines.append(f"static = {STATIC}\ndynamic = {DYNAMIC}")
        for program in RUNS:
            lines.append(
                f'[[workload]]\nname = "{program.name}"\ncores = 1\nfrequency = 1.0\nmemory = "{peaks[program.name]} MiB"'
            )
            lines.append(f'tolerance = {factor * program.tolerance}\nprofile = "{program.name}"')
        (folder / "batch.toml").write_text("\n".join(lines) + "\n")
        if (placed := _place(folder / "batch.toml")) is not None:
            break
        print(f"static: no plan keeps slowdowns within {factor:g} times the tolerances", flush=True)
    else:
        raise RuntimeError("no static plan is feasible, even at the largest factor of LOOSER")
    (folder / "plan.json").write_text(json.dumps({"times_the_tolerances": factor, **placed}, indent=1))
    return {row["name"]: int(row["local_mib"]) for row in placed["workloads"]}


def _place(batch: Path) -> dict[str, Any] | None:
    """Return the plan of a batch; None if no plan places all workloads."""
    words = [sys.executable, "-m", "poolwise", "place", str(batch), "--method", "place", "--json"]
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode == 3:
        return None
    done.check_returncode()
    placement: dict[str, Any] = json.loads(done.stdout)
    return placement


def _poolwise(words: list[str]) -> str:
    return subprocess.run([sys.executable, "-m", "poolwise", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def alone(folder: Path, mine: OwnedResources) -> tuple[dict[str, list[tuple[float, float]]], dict[str, int]]:
    """Return the paces and peaks (MiB) of each program alone with all memory local; measured once."""
    pace, peaks = {}, {}
    for program in RUNS:
        file = folder / f"alone-{program.name}.json"
        if not file.exists():
            (done,) = run(folder, (program,), {program.name: 4096}, mine)
            file.write_text(json.dumps({"peak_mib": done.peak_mib, "pace": paces(done)}))
        content = json.loads(file.read_text())
        pace[program.name], peaks[program.name] = content["pace"], content["peak_mib"]
    return pace, peaks


def one_run(number: int, way: str, limits: dict[str, int] | None, folder: Path, pace: dict, mine: OwnedResources) -> None:
    """Run the three programs under one policy, and write rows and conditions to `WAY.json` in the folder of the run."""
    folder.mkdir(exist_ok=True)  # one per run, because an agent resumes from the state file of another
    swap = ZramSwap.add()
    mine.add(swap)
    swap.enable(SWAP_MIB * MIB)
    about = {**conditions(find_hierarchy(), swap), "limits_mib": limits, "memory_mib_shared": MEMORY_MIB}
    running = run(folder, RUNS, limits, mine)
    swap.remove()
    mine.resources.remove(swap)
    moves = (folder / "agent.log").read_text().count('"event": "limit_moved"') if way == "agent" else 0
    about["load_after"] = os.getloadavg()[0]
    content = {"conditions": about, "rows": rows(number, way, running, pace, moves)}
    (folder / f"{way}.json").write_text(json.dumps(content, indent=1))


def main(folder: Path, ways: Sequence[str], repeat: int) -> None:
    """Run the requested runs that do not exist yet, write all rows and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    if memory_available() < RESERVE + (MEMORY_MIB + SWAP_MIB + 200) * MIB:
        sys.exit("not enough free memory for this experiment")
    numbers = range(1, repeat + 1)
    with exit_on_signals(), owned_resources(records_folder(), "measure") as mine:
        pace, peaks = alone(folder, mine)
        equal = {program.name: MEMORY_MIB // len(RUNS) for program in RUNS}
        limits = {"equal": equal, "static": plan(folder, peaks) if "static" in ways else {}, "agent": None}
        for number in numbers:  # in rounds, so that changes on the computer affect all policies alike
            for way in ways:
                if not (folder / f"run-{number}" / f"{way}.json").exists():
                    print(f"run {number} of {repeat}: {way}", file=sys.stderr, flush=True)
                    one_run(number, way, limits[way], folder / f"run-{number}", pace, mine)
    files = [folder / f"run-{number}" / f"{way}.json" for number in numbers for way in WAYS]
    saved = [row for file in files if file.exists() for row in json.loads(file.read_text())["rows"]]
    with (folder / "memory-agent.csv").open("w", newline="") as text:
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(saved)
    print(to_table(saved))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare equal shares, a static plan and the agent on three programs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"policies to run: {', '.join(WAYS)}; all by default")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="number of runs of each policy")
    words = parser.parse_args()
    if unknown := set(words.ways) - set(WAYS):
        parser.error(f"unknown policy: {', '.join(sorted(unknown))}. Choose from: {', '.join(WAYS)}")
    main(words.folder, words.ways or WAYS, words.repeat)
