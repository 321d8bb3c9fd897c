"""All unit types and task types of VineSim's Table 1, through the machine file, the trace file and both engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poolwise
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.metrics.latency import job_latency_us
from poolwise.metrics.unit_use import dispatch_window, unit_use
from poolwise.model import Machine, Schedule
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.transfer import Transfer
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from tests.helpers.random_studies import difference

MACHINE = """version = 1
format = "vinesim"
affinity = "catalog:accelerators-affinity.txt"
affinity_kind = "relative"
units = { cpu-intel = 1, cpu-arm = 1, gpu = 1, fpga = 1 }
"""
UNITS = ("cpu-intel", "cpu-arm", "gpu", "fpga")
TRACE = """# task_type data_size data_x data_y operations preferred_type parent_job_id task_id predecessors
io  0 0 0 12000   unspecified 0 0 --
mem 0 0 0 100000  unspecified 1 1 0
arb 0 0 0 36000   unspecified 2 2 0
arb 0 0 0 36000   unspecified 2 3 0
arb 0 0 0 36000   unspecified 2 4 0
int 0 0 0 1200000 unspecified 3 5 1,2,3,4
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    path = tmp_path / "units.toml"
    path.write_text(MACHINE, encoding="utf-8")
    return poolwise.load_machine(path)


def run(machine: Machine, folder: Path, trace: str, policy: str, **settings: str) -> Schedule:
    """Return the schedule of a trace, which must be the same from both engines."""
    path = folder / "trace.txt"
    path.write_text(trace, encoding="utf-8")
    workload = poolwise.read(path, machine, "vinesim")
    model, scheduler = Combined((Affinity(), Transfer())), Dispatch(make("placements", policy, **settings))
    reference, compiled = (
        simulate(workload, machine, scheduler, model=model, engine=engine).schedule for engine in ("reference", "compiled")
    )
    assert difference(reference, compiled) == ""
    return compiled


def placed(schedule: Schedule) -> list[tuple[str, int, int]]:
    """Return (unit type, start, end) of each run, ns, in the order of starts."""
    types = [schedule.machine.type[owner] for owner in schedule.owner.tolist()]
    return list(zip(types, schedule.start.tolist(), schedule.end.tolist(), strict=True))


def test_graph_of_io_mem_arb_and_int_tasks_by_hand(machine: Machine, tmp_path: Path) -> None:
    """Under HIGH each task gets the idle unit with the highest affinity of its type.

    IO: 1200 operations/us on the GPU, 1000 on the Intel CPU. MEM: 10,000 on the Intel CPU. ARB: 1,000,000 on the FPGA, 360,000
    on the GPU, 100,000 on the Intel CPU (busy) and 500 on the ARM CPU. INT: 1,200,000 on the GPU, once all others have ended.
    """
    schedule = run(machine, tmp_path, TRACE, "high")
    assert placed(schedule) == [
        ("gpu", 0, 10_000),
        ("cpu-intel", 10_000, 20_000),
        ("fpga", 10_000, 10_036),
        ("gpu", 10_000, 10_100),
        ("cpu-arm", 10_000, 82_000),
        ("gpu", 82_000, 83_000),
    ]
    assert job_latency_us(schedule).tolist() == [10.0, 20.0, 82.0, 83.0], "latencies count from the arrival at 0"
    use = unit_use(schedule, dispatch_window(schedule)).by_type()
    assert {name: round(use[name] * 83_000) for name in UNITS} == {
        "cpu-intel": 10_000,
        "cpu-arm": 72_000,
        "gpu": 11_100,
        "fpga": 36,
    }


@pytest.mark.parametrize(
    ("unit", "task", "operations", "ns"),
    [
        ("cpu-arm", "int", 500, 1_000),
        ("cpu-arm", "fp-bad", 500, 10_000),
        ("cpu-arm", "fp-good", 500, 10_000),
        ("cpu-arm", "mem", 500, 100_000),
        ("cpu-arm", "arb", 500, 1_000),
        ("cpu-intel", "mem", 10_000, 1_000),
        ("cpu-intel", "io", 10_000, 10_000),
        ("cpu-intel", "arb", 100_000, 1_000),
        ("gpu", "mem", 1_200, 1_000),
        ("gpu", "io", 1_200, 1_000),
        ("gpu", "arb", 360_000, 1_000),
        ("fpga", "int", 1_000, 1_000),
        ("fpga", "mem", 1, 1_000),
        ("fpga", "io", 1, 10_000_000_000),
        ("fpga", "arb", 1_000_000, 1_000),
    ],
)
def test_time_of_a_task_on_each_unit_type_equals_table_1(
    machine: Machine, tmp_path: Path, unit: str, task: str, operations: int, ns: int
) -> None:
    schedule = run(machine, tmp_path, f"{task} 0 0 0 {operations} {unit} 0\n", "pref", reading="only")
    assert placed(schedule) == [(unit, 0, ns)]


@pytest.mark.parametrize(("unit", "task"), [("cpu-arm", "io"), ("fpga", "fp-bad"), ("fpga", "fp-good")])
def test_quantities_without_an_affinity_cannot_run_a_task(machine: Machine, tmp_path: Path, unit: str, task: str) -> None:
    with pytest.raises(InputError, match="no unit may run tasks of type"):
        run(machine, tmp_path, f"{task} 0 0 0 10 {unit} 0\n", "pref", reading="only")
    schedule = run(machine, tmp_path, f"{task} 0 0 0 10 {unit} 0\n" * 4, "flat")
    assert unit not in {name for name, _, _ in placed(schedule)} and np.all(schedule.done)
