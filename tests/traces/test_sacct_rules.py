"""Each kind of row in an export is treated by the rule that docs/reference/slurm-logs.md states for it."""

from pathlib import Path

import numpy as np
import pytest

from poolwise import Machine, Workload, read
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from tests.helpers.data import DATA

LOG = DATA / "slurm-export" / "sacct.txt"
MACHINE = """version = 1
[[node]]
name = "thin"
cores = 32
memory = "184 GiB"
allocation = "shared"
features = ["ib", "thin"]
[[node]]
name = "big"
cores = 64
memory = "1500 GiB"
allocation = "shared"
resources = { gpu = 4 }
[[rack]]
nodes = { thin = 6, big = 4 }
[[partition]]
name = "batch"
nodes = ["thin"]
default = true
max_time = "1 d"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "machine.toml").write_text(MACHINE)
    return load_machine(tmp_path / "machine.toml")


@pytest.fixture
def jobs(machine: Machine) -> Workload:
    return read(LOG, machine)


def row(jobs: Workload, id: int) -> dict[str, object]:
    k = int(np.flatnonzero(jobs.id == id)[0])
    facts = {"minutes": jobs.duration[k] / 60e9, "nodes": int(jobs.nodes[k]), "cores": int(jobs.request("cores")[k])}
    return {**facts, "gpu": int(jobs.request("gpu")[k]), **{name: jobs.attributes[name][k] for name in ("state", "constraint")}}


def test_every_row_is_a_job_a_step_or_counted(jobs: Workload) -> None:
    assert jobs.excluded == {
        "cannot be read": 1,
        "identical duplicate row": 1,
        "earlier part of a job that changed its size": 1,
        "earlier row of a job that was requeued, or that was still active in an earlier export": 3,
        "step whose job is not in the export": 1,
        "waiting when exported": 2,
        "running when exported": 1,
        "cancelled before it ran": 1,
    }
    steps = 4  # of jobs 100 and 110
    assert len(jobs) + steps + sum(jobs.excluded.values()) == len(LOG.read_text().splitlines()) - 1


def test_array_tasks_are_jobs_of_their_own(jobs: Workload) -> None:
    assert [row(jobs, id)["state"] for id in (104, 102, 103)] == ["COMPLETED", "FAILED", "CANCELLED"]
    assert 101 not in jobs.id  # the pending tasks have one row, with the number of the array


def test_requeued_job_is_its_last_run(jobs: Workload) -> None:
    assert (row(jobs, 110)["minutes"], row(jobs, 110)["state"]) == (120, "COMPLETED")
    used = read(LOG, Machine.of_racks(1, 9, local="184 GiB", cores=32), memory_field="used")
    assert used.memory[used.id == 110] == [3 * 1024]  # of the step of that run, not of the run that failed


def test_failed_node_ends_a_job(jobs: Workload) -> None:
    assert (row(jobs, 111)["minutes"], row(jobs, 111)["state"]) == (500 / 60, "NODE_FAIL")


def test_preempted_job_that_waits_again_is_waiting(jobs: Workload) -> None:
    assert 112 not in jobs.id


def test_cancelled_job_counts_if_it_ran(jobs: Workload) -> None:
    assert 120 not in jobs.id
    assert row(jobs, 121)["minutes"] == 77 / 60


def test_components_are_jobs_and_counted(jobs: Workload) -> None:
    assert (row(jobs, 130)["gpu"], row(jobs, 131)["gpu"]) == (0, 4)
    assert jobs.repaired["component of a heterogeneous job, treated as a separate job"] == 2


def test_resized_job_has_its_last_size(jobs: Workload) -> None:
    assert (row(jobs, 140)["minutes"], row(jobs, 140)["nodes"], row(jobs, 140)["cores"]) == (50, 2, 32)


def test_gpus_are_counted_once_with_and_without_types(jobs: Workload) -> None:
    assert (row(jobs, 131)["gpu"], row(jobs, 172)["gpu"]) == (4, 2)


def test_constraints_keep_the_features_that_the_machine_has(jobs: Workload) -> None:
    assert [row(jobs, id)["constraint"] for id in (110, 160, 161, 162)] == ["ib", "ib&thin", "", ""]
    assert jobs.repaired["constraint with alternatives, counts or features that the machine lacks, read without that part"] == 2


def test_limit_is_the_requested_one_though_the_job_ran_longer(jobs: Workload) -> None:
    assert jobs.attributes["time_limit_s"][jobs.id == 150] == [3600.0]
    assert jobs.duration[jobs.id == 150] == [3620 * 10**9]


def test_alternatives_are_not_joined_if_another_column_may_contain_bars(tmp_path: Path, machine: Machine) -> None:
    text = LOG.read_text().replace("|Account|", "|Comment|", 1)
    (tmp_path / "log.txt").write_text(text)
    assert read(tmp_path / "log.txt", machine).excluded["cannot be read"] == 2


def test_unknown_state_names_line_and_field(tmp_path: Path, machine: Machine) -> None:
    lines = LOG.read_text().replace("OUT_OF_MEMORY", "OUT_OF_MEMROY").splitlines()[:-1]  # without the row that was cut off
    (tmp_path / "log.txt").write_text("\n".join(lines))
    with pytest.raises(InputError, match="unknown state 'OUT_OF_MEMROY'") as raised:
        read(tmp_path / "log.txt", machine, strict=True)
    assert raised.value.field == "State"
    assert "OUT_OF_MEMROY" in lines[(raised.value.line or 0) - 1]


@pytest.mark.parametrize(("requested", "cores"), [("40", 40), ("", 32), ("1", 32), ("1K", 64)])
def test_requested_cpus_decide_which_nodes_hold_a_job_of_an_exclusive_partition(
    tmp_path: Path, requested: str, cores: int
) -> None:
    partition = '[[partition]]\nname = "whole"\nnodes = ["thin", "big"]\nexclusive = true\n'
    (tmp_path / "machine.toml").write_text(MACHINE + partition)
    (tmp_path / "log.txt").write_text(
        "JobIDRaw|Partition|Submit|State|NNodes|AllocCPUS|ReqCPUS|ElapsedRaw\n"
        f"1|whole|2026-03-01T00:00:00|COMPLETED|1|64|{requested}|60\n"
    )
    jobs = read(tmp_path / "log.txt", load_machine(tmp_path / "machine.toml"))
    assert jobs.request("cores").tolist() == [cores]
    assert sum("all CPUs of exclusive nodes" in reason for reason in jobs.repaired) == (cores < 64)
