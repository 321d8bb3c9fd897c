"""Exclusive jobs by hand: schedules, explanations, the column, and the schedule without the added resource."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import poolwise
from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.samples import sampler_of
from poolwise.errors import InputError, PolicyError
from poolwise.explain import wait_answer
from poolwise.files.machine import load_machine
from poolwise.files.machine_formats.owners import owner_tables
from poolwise.interfaces import PlacementPolicy
from poolwise.metrics.resource_use import resource_use
from poolwise.metrics.window import Window
from poolwise.model import Initial, InitialRun, Job, Machine, Placement, Refusal, Snapshot, Workload
from poolwise.model.exclusive import SHARE, exclusive_jobs, exclusive_nodes
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read, write_table

FIRST = ListScheduler(placement=FirstNodes())


def two_nodes() -> Machine:
    build = poolwise.MachineBuilder("two nodes")
    for k in range(2):
        build.node(f"c{k + 1}", cores=8, memory="16 GiB")
    return Machine.of(build)


def four_jobs(exclusive: object = (0, 1, 0, 1)) -> Workload:
    """Return jobs of two cores: ordinary on node 1, exclusive on node 2, ordinary, and exclusive."""
    return Workload.of(
        ["0 s", "1 s", "2 s", "3 s"],
        ["100 s", "50 s", "20 s", "10 s"],
        requests={"cores": [2] * 4, "memory": ["1 GiB"] * 4},
        attributes={"exclusive": np.array(exclusive)},
    )


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_four_jobs_by_hand(engine: poolwise.engines.simulate.Engine) -> None:
    """The third job joins the first, not the second; the fourth waits until node 2 is empty."""
    schedule = simulate(four_jobs(), two_nodes(), FIRST, engine=engine).schedule
    assert (schedule.job_start // SECOND).tolist() == [0, 1, 2, 51]
    assert schedule.placements() == [
        "c1:memory=1024:cores=2", "c2:memory=1024:cores=2", "c1:memory=1024:cores=2", "c2:memory=1024:cores=2",
    ]  # fmt: skip
    ordinary = simulate(four_jobs((0, 0, 0, 0)), two_nodes(), FIRST, engine=engine).schedule
    assert (ordinary.job_start // SECOND).tolist() == [0, 1, 2, 3]


def test_added_resource_is_not_reported() -> None:
    run = poolwise.simulate(four_jobs(), two_nodes(), placement="first_fit", engine="reference")
    assert run.schedule.machine.resources == ("memory", "cores")
    assert {*run.schedule.workload.requests} == {"cores", "memory"}
    uses = resource_use(run.schedule, Window(0, 100 * SECOND))
    assert [use.resource for use in uses] == ["cores", "memory"]
    assert SHARE not in run._repr_html_()


def test_explanation_names_whole_nodes() -> None:
    explanation = poolwise.explain_wait(four_jobs(), two_nodes(), FIRST, job=4)
    answer = wait_answer(explanation, "log")
    assert "Job 4 waited 48 s, all of it short of nodes" in answer.headline
    assert explanation.episodes[0].reason.text == "the job needs whole nodes, and too few are empty"
    assert "job 1 (1 node" in " ".join(answer.because)
    assert explanation.to_dict()["placement"] == [
        {"owner": "c2", "resource": "memory", "amount": 1024}, {"owner": "c2", "resource": "cores", "amount": 2},
    ]  # fmt: skip
    assert "1,048,576" not in str(answer) and "1048576" not in str(explanation.to_dict())


def test_explanation_of_an_ordinary_job_names_the_exclusive_ones() -> None:
    explanation = poolwise.explain_wait(four_jobs((1, 1, 0, 0)), two_nodes(), FIRST, job=3)
    assert explanation.episodes[0].reason.text == "exclusive jobs hold too many of the nodes"
    assert explanation.wait == 49 * SECOND


def test_job_without_cores_keeps_its_node() -> None:
    jobs = Workload.of("0 s", "1 s", requests={"cores": 0}, attributes={"exclusive": np.array([True])})
    assert simulate(jobs, two_nodes(), FIRST).schedule.placement_of(0) == [(0, 1, 0)]


def test_initial_runs_hold_their_nodes() -> None:
    machine, jobs = two_nodes(), four_jobs((1, 0, 0, 0))
    runs = [InitialRun(0, 0, Placement.of([(0, 0, 0, 1024), (0, 0, 1, 2)]))]
    initial = Initial(SECOND, runs)
    for engine in ("reference", "compiled"):
        schedule = simulate(jobs, machine, FIRST, engine=engine, initial=initial).schedule
        assert [schedule.placement_of(k)[0][0] for k in range(4)] == [0, 1, 1, 1]
    spec = RunSpec(jobs, machine, FIRST, Ideal(), Ideal(), initial=initial)
    sampler, obstacle = sampler_of(spec, np.array([3]))
    assert obstacle is None and sampler.starts(jobs).tolist() == [3 * SECOND]


@pytest.mark.parametrize("values", [[0, 1, 2, 0], ["true", "false", "yse", ""]])
def test_invalid_flag_is_an_error(values: list[object]) -> None:
    with pytest.raises(InputError, match=r"job 3: exclusive is '(2|yse)', neither true nor false"):
        simulate(four_jobs(values), two_nodes(), FIRST)


@pytest.mark.parametrize("values", [["true", "False", "", "1"], [1.0, 0.0, np.nan, 1.0], [True, False, False, True]])
def test_flags_of_any_type_are_read(values: list[object]) -> None:
    assert exclusive_jobs(four_jobs(values), two_nodes()).tolist() == [True, False, False, True]


def test_whole_nodes_need_no_resource() -> None:
    assert exclusive_nodes(four_jobs(), Machine.flat(4)) is None


def test_machine_of_whole_and_shared_nodes_is_refused() -> None:
    build = poolwise.MachineBuilder("mixed")
    build.whole_nodes("whole", 2)
    build.node("shared", cores=8, memory="16 GiB")
    with pytest.raises(InputError, match="whole and shared nodes"):
        exclusive_nodes(four_jobs(), Machine.of(build))


class OnlyCores(PlacementPolicy):
    """Places jobs on cores of the first node, and ignores its other resources."""

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        return Placement.of([(0, 0, snapshot.machine.resource("cores"), job.request("cores"))])


def test_placement_that_ignores_resources_is_refused() -> None:
    with pytest.raises(PolicyError, match="exclusive jobs would not be alone"):
        simulate(four_jobs(), two_nodes(), ListScheduler(placement=OnlyCores()))


TABLE = "submit_ns,duration_ns,request.cores,exclusive\n0,1000,2,true\n0,1000,2,\n5,1000,2,{}\n"


@pytest.mark.parametrize(("header", "mapped"), [("", False), ("submit,duration,cores,exclusive", True)])
def test_column_of_a_table(tmp_path: Path, header: str, mapped: bool) -> None:
    path = tmp_path / "jobs.csv"
    text = TABLE.replace(TABLE.partition("\n")[0], header) if mapped else TABLE
    path.write_text(text.format("FALSE"))
    jobs = read(path, two_nodes())
    assert jobs.attributes["exclusive"].tolist() == [1, 0, 0]
    path.write_text(text.format("ture"))
    with pytest.raises(InputError, match="'ture' is neither true nor false") as caught:
        read(path, two_nodes())
    assert (caught.value.line, caught.value.field) == (4, "exclusive")


def test_column_of_a_parquet_table(tmp_path: Path) -> None:
    columns = {"submit_ns": [0, 0], "duration_ns": [9, 9], "request.cores": [1, 1], "exclusive": [True, False]}
    pl.DataFrame(columns).write_parquet(tmp_path / "jobs.parquet")
    jobs = read(tmp_path / "jobs.parquet", two_nodes())
    assert jobs.attributes["exclusive"].tolist() == [1, 0]
    write_table(jobs, tmp_path / "again.csv")
    assert read(tmp_path / "again.csv", two_nodes()).attributes["exclusive"].tolist() == [1, 0]


MACHINE = """version = 1
[[node]]
name = "thin"
allocation = "shared"
cores = 8
[[rack]]
nodes = { thin = 2 }
[[partition]]
name = "alone"
nodes = ["thin"]
default = true
exclusive = true
"""


def test_partition_of_a_machine_file(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(MACHINE)
    machine = load_machine(path)
    assert machine.partitions[0].exclusive and owner_tables(machine)["partition"][0]["exclusive"]
    jobs = Workload.of(["0 s", "0 s", "0 s"], "10 s", requests={"cores": 1})
    assert (simulate(jobs, machine, FIRST).schedule.job_start // SECOND).tolist() == [0, 0, 10]
    path.write_text(MACHINE.replace("exclusive = true", "exclusive = false"))
    assert "exclusive" not in owner_tables(load_machine(path))["partition"][0]
