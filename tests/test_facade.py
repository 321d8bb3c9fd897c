"""The facade `import poolwise`: names, simulations, comparisons, forecasts, batches and figures."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import poolwise
from poolwise import performance, policies, registry, schedulers, simulation
from poolwise.cli import app
from poolwise.errors import InputError
from poolwise.files.state import write_state
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from tests.helpers import nvme_examples
from tests.helpers.small_study import write


@pytest.fixture(scope="module")
def run() -> poolwise.SimulatedRun:
    machine = poolwise.Machine.of_racks(2, 4, local=1024, pool=8192)
    workload = poolwise.Workload.of(
        np.arange(40) * 10**10,
        np.full(40, 10**11),
        requests={"nodes": 1 + np.arange(40) % 5, "memory": 512 * (1 + np.arange(40) % 6)},
    )
    return poolwise.simulate(workload, machine, order="fm", backfill="easy", engine="reference")


def test_every_public_name_can_be_imported() -> None:
    for name in poolwise.__all__:
        assert getattr(poolwise, name) is not None


@pytest.mark.parametrize("package", [poolwise, performance, policies, schedulers])
def test_exported_names_equal_those_that_type_checkers_see(package: ModuleType) -> None:
    stub = Path(str(package.__file__)).with_name("__init__.pyi").read_text(encoding="utf-8")
    typed = [alias.asname for node in ast.parse(stub).body for alias in getattr(node, "names", ())]
    assert sorted(typed) == package.__all__ == dir(package)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'no_such_name'"):
        package.no_such_name  # noqa: B018  # the access is what is tested


def test_import_and_names_of_the_facade_load_nothing() -> None:
    code = "import sys, poolwise; dir(poolwise); assert not {'numpy', 'polars', 'poolwise.model'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_packages_offer_every_registered_class() -> None:
    registered = set()
    for group in ("orders", "backfills", "placements", "admissions", "preemptions", "costs", "models", "schedulers"):
        for name in registry.names(group):
            entry = registry.find(group, name)
            registered.add(entry if isinstance(entry, type) else type(entry))
    offered = {getattr(package, name) for package in (performance, policies, schedulers) for name in package.__all__}
    assert {kind for kind in registered if kind.__module__.startswith("poolwise")} <= offered
    assert {kind.__name__ for kind in offered - registered} == {"CostModel", "Places", "TaskClasses", "Waiting"}


def test_log_is_the_first_argument_of_read(run: poolwise.SimulatedRun) -> None:
    with pytest.raises(TypeError, match=r"read\(\) takes the path first and the machine second"):
        poolwise.read(run.machine, "catalog:example-sacct.txt")  # type: ignore[arg-type]


def test_amounts_may_be_text_or_integers() -> None:
    text = poolwise.Machine.of_racks(4, 48, local="64 GiB", pool="1280 GiB", cores=12)
    number = poolwise.Machine.of_racks(4, 48, local=64 * 1024, pool=1280 * 1024, cores=12)
    assert np.array_equal(text.capacity, number.capacity) and text.local_memory == 64 * 1024
    times = np.array([0, 600], dtype=np.int64) * 10**9
    arrays = poolwise.Workload.of(times, times + 10**9, requests={"nodes": np.array([1, 2]), "memory": np.array([1024, 1024])})
    texts = poolwise.Workload.of(["0 s", "10 min"], ["1 s", "601 s"], requests={"nodes": [1, 2], "memory": "1 GiB"})
    mixed = poolwise.Workload.of([0, "10 min"], np.array(["1 s", "601 s"]), requests={"nodes": [1, 2], "memory": 1024})
    for other in (texts, mixed):
        assert np.array_equal(other.submit, arrays.submit) and np.array_equal(other.duration, arrays.duration)
        assert np.array_equal(other.memory, arrays.memory) and np.array_equal(other.requested, arrays.requested)
    with pytest.raises(InputError, match="GiBs") as caught:
        poolwise.Workload.of("0 s", "1 h", requests={"memory": "64 GiBs"})
    assert caught.value.field == "memory"
    with pytest.raises(InputError, match="the unit is missing"):
        poolwise.Machine.of_racks(1, 1, local="64")


def test_default_placement_suits_the_machine() -> None:
    build = poolwise.MachineBuilder("shared")
    for k in range(2):
        build.node(f"node{k}", cores=8, memory="16 GiB")
    machine = poolwise.Machine.of(build)
    workload = poolwise.Workload.of(["0 s"] * 3, "1 min", requests={"cores": 8, "memory": "8 GiB"})
    run = poolwise.simulate(workload, machine, engine="reference")
    assert isinstance(run.scheduler, poolwise.ListScheduler)
    assert run.scheduler.placement == policies.FirstNodes() and run.jobs == 3
    racks = poolwise.simulate(workload, poolwise.Machine.of_racks(1, 3, local="16 GiB", cores=8), engine="reference")
    assert isinstance(racks.scheduler, poolwise.ListScheduler) and racks.scheduler.placement == policies.RackPlacement()
    with pytest.raises(InputError, match="has no whole nodes"):
        poolwise.simulate(workload, machine, placement="racks")


def test_schedulers_and_models_may_be_named(tmp_path: Path, run: poolwise.SimulatedRun) -> None:
    (tmp_path / "mine.py").write_text("from poolwise import Ideal, ListScheduler\n\n\nclass Mine(ListScheduler):\n    pass\n")
    ideal = poolwise.simulate(run.workload, run.machine, scheduler="catalog:fm-easy", model="ideal", engine="reference")
    mine = poolwise.simulate(
        run.workload, run.machine, scheduler=f"{tmp_path / 'mine.py'}:Mine", model=f"{tmp_path / 'mine.py'}:Ideal"
    )
    assert (ideal.schedule.job_end - ideal.schedule.job_start)[0] == 10**11
    assert type(mine.scheduler).__name__ == "Mine"
    (tmp_path / "fcfs.toml").write_text('version = 1\norder = "fcfs"\nbackfill = "none"\n')
    filed = poolwise.simulate(run.workload, run.machine, scheduler=tmp_path / "fcfs.toml", engine="reference")
    assert isinstance(filed.scheduler, poolwise.ListScheduler) and filed.scheduler.backfill == policies.NoBackfill()


def test_runs_in_memory_are_compared(run: poolwise.SimulatedRun, tmp_path: Path) -> None:
    same = poolwise.compare(run, run)
    assert same.labels == ("workload (1)", "workload (2)")
    assert {d.interval.mean for d in same.differences} == {0.0}
    fcfs = poolwise.simulate(run.workload, run.machine, engine="reference")
    (tmp_path / "late.py").write_text(
        "class Late:\n    metrics = {'late_jobs': __import__('poolwise').Metric('jobs that wait', 'jobs', 'lower')}\n\n"
        "    def of(self, run):\n        return {'late_jobs': float((run.outcomes.start > run.outcomes.submit).sum())}\n"
    )
    comparison = poolwise.compare(fcfs, run, metrics=[f"{tmp_path / 'late.py'}:Late"])
    assert {d.metric for d in comparison.differences} >= {"late_jobs", "mean_wait_s"}
    assert "FCFS()" in comparison.labels[0] and "FM()" in comparison.labels[1]
    wait = next(d for d in comparison.differences if d.metric == "mean_wait_s")
    assert (wait.first, wait.value) == pytest.approx((fcfs.metrics["mean_wait_s"], run.metrics["mean_wait_s"]))
    with pytest.raises(InputError, match="cannot compare 1 runs"):
        poolwise.compare(run)


def test_run_in_memory_is_compared_with_a_file(tmp_path: Path, run: poolwise.SimulatedRun) -> None:
    columns = ("id", "submit_ns", "start_ns", "end_ns")
    run.frame().select(columns).write_csv(tmp_path / "saved.csv")
    comparison = poolwise.compare(run, tmp_path / "saved.csv")
    assert {d.value - d.first for d in comparison.differences if d.metric.endswith("wait_s")} == {0.0}


@pytest.mark.parametrize("kind", ["slowdown", "utilization", "waiting", "gantt"])
def test_run_is_plotted(run: poolwise.SimulatedRun, kind: str, tmp_path: Path) -> None:
    plot = run.plot(kind)  # type: ignore[arg-type]
    assert plot._repr_html_().startswith("<figure><svg") and "var(--" not in plot._repr_svg_()
    for ending in ("png", "svg", "pdf"):
        assert plot.save(tmp_path / "new" / f"{kind}.{ending}").stat().st_size > 1000
    with pytest.raises(InputError, match=r"cannot write a figure as 'plot\.docx'"):
        plot.save(tmp_path / "plot.docx")
    assert plot.figure.name in [figure.name for figure in poolwise.figures(run)]


def test_gantt_chart_shows_the_wait_of_one_job(run: poolwise.SimulatedRun) -> None:
    frame = run.frame().sort("wait_s")
    longest, job = int(frame["id"][-1]), int(frame["id"][-5])
    assert run.plot("gantt").figure.title == f"Nodes while job {longest} waited, the longest wait"
    assert run.plot("gantt", job=job).figure.title == f"Nodes while job {job} waited"
    with pytest.raises(InputError, match="job 99 did not start"):
        run.plot("gantt", job=99)
    with pytest.raises(InputError, match="did you mean 'slowdown'"):
        run.plot("slowdwn")  # type: ignore[arg-type]


def test_utilization_of_shared_nodes_counts_cores() -> None:
    build = poolwise.MachineBuilder("shared")
    build.node("node", cores=8)
    workload = poolwise.Workload.of(["0 s", "1 min"], ["1 min", "1 min"], requests={"cores": [8, 4]})
    run = poolwise.simulate(workload, poolwise.Machine.of(build), engine="reference")
    figure = run.plot("utilization").figure
    assert figure.title == "Cores in use over time"
    values = figure.series["workload"]  # type: ignore[attr-defined]
    assert values[0] == pytest.approx(100.0) and values[-1] == pytest.approx(50.0)


def test_run_without_finished_jobs_has_no_figures_over_time() -> None:
    workload = poolwise.Workload.of("0 s", "1 h", requests={"nodes": 9})
    run = poolwise.simulate(workload, poolwise.Machine.flat(4), engine="reference")
    assert [figure.name for figure in poolwise.figures(run)] == ["tail"]
    with pytest.raises(InputError, match="no job finished"):
        run.plot("waiting")


def test_figures_need_a_result() -> None:
    with pytest.raises(TypeError, match=r"figures\(\) needs a run or a result of run, plan, compare or forecast, got int"):
        poolwise.figures(3)  # type: ignore[arg-type]


@pytest.mark.long
def test_forecast_of_a_state_and_of_its_folder(tmp_path: Path) -> None:
    machine = poolwise.Machine.flat(4)
    table = poolwise.Workload.of(["0 s", "10 s"], ["1 h", "1 h"], requests={"nodes": [4, 2]}).table
    running = [poolwise.InitialRun(0, 0, poolwise.Placement.of([(0, 0, machine.resource("nodes"), 4)]))]
    state = poolwise.MachineState(machine, table, 60 * 10**9, running, np.array([1]))
    answer = poolwise.forecast(state, [2], samples=20)
    assert [job.name for job in answer.jobs] == ["job 2"] and answer.changes and answer.policy == "fcfs with easy"
    by = poolwise.forecast(state, by="2h", samples=20, order="sjf", backfill="none", changes=False)
    assert by.policy == "sjf with none" and by.jobs[0].chance_by is not None
    new = poolwise.forecast(state, new="nodes=1,time=1h", samples=20, scheduler="catalog:fcfs-easy", changes=False)
    assert new.jobs[0].name == "the new job" and new.policy == "catalog:fcfs-easy"
    write_state(state, tmp_path / "state")
    assert repr(poolwise.forecast(tmp_path / "state", [2], samples=20)) == repr(answer)
    with pytest.raises(InputError, match=r"job 7|named 7"):
        poolwise.forecast(state, ["7"])


def test_batch_is_placed() -> None:
    placed = poolwise.place("batch-150x1200", method="first-fit", time_limit=5.0)
    assert placed.checked.valid and placed.frame().height == 150
    assert placed.to_dict()["objective"] == placed.solution.objective
    assert "<table" in placed._repr_html_()
    with pytest.raises(InputError, match="must be above 0"):
        poolwise.place("batch-150x1200", time_limit=0.0)
    with pytest.raises(InputError, match="2 parsecs"):
        poolwise.place("batch-150x1200", time_limit="2 parsecs")


def test_study_is_run_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = poolwise.run(next(folder.glob("*study*.toml")), jobs=1)
    assert result.folder == Path("results") / result.study.name and result.folder.is_dir()


def test_plan_takes_settings_only_with_a_file() -> None:
    with pytest.raises(TypeError, match="pass it to load_plan"):
        poolwise.plan(poolwise.load_plan("gpu-share"), set={"plan.seeds": 1})


def test_run_is_shown_as_a_table_in_notebooks(run: poolwise.SimulatedRun) -> None:
    html = run._repr_html_()
    assert html.count("<table>") == 1
    assert html.startswith("<p>Load 3.85: ")
    assert "mean bounded slowdown" in html
    assert "nan" not in html


def test_plain_data_of_a_run_is_valid_json(run: poolwise.SimulatedRun) -> None:
    import json

    assert json.loads(json.dumps(run.to_dict(), allow_nan=False))["jobs"] == 40


def test_policies_may_be_objects_or_names(run: poolwise.SimulatedRun) -> None:
    scheduler = poolwise.list_scheduler("fm", "easy", "racks", "rack")
    again = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, scheduler=scheduler, engine="reference", baseline=run.schedule
    )
    assert np.array_equal(again.schedule.start, run.schedule.start)
    assert again.metrics["discrimination_s"] == 0.0


@pytest.mark.parametrize(
    ("large", "note"),
    [
        (0, "no job needs remote memory: memory pools have no effect"),
        (1, "only 0.5 % of the jobs need remote memory: memory pools can have little effect"),
    ],
)
def test_note_says_that_few_jobs_need_remote_memory(large: int, note: str) -> None:
    machine = poolwise.Machine.of_racks(1, 4, local=1024, pool=8192)
    memory = np.where(np.arange(200) < large, 2000, 10)
    jobs = poolwise.Workload.of(
        np.arange(200) * 10**9, np.full(200, 10**9), requests={"nodes": np.ones(200, int), "memory": memory}
    )
    assert note in poolwise.simulate(jobs, machine, engine="reference").notes


def test_order_is_loaded_from_a_file(tmp_path: Path, run: poolwise.SimulatedRun) -> None:
    (tmp_path / "mine.py").write_text(
        "class Longest:\n    kind = 'static'\n\n    def priority(self, queue, snapshot):\n"
        "        return queue.table.requested_s[queue.jobs]\n",
        encoding="utf-8",
    )
    mine = poolwise.simulate(
        run.schedule.workload, run.schedule.machine, order=f"{tmp_path / 'mine.py'}:Longest", engine="reference"
    )
    assert int(mine.schedule.done.sum()) == 40


MEMORY = poolwise.Workload.of(
    np.arange(30) * 10**9,
    np.full(30, 10**11),
    requests={"nodes": np.ones(30, int), "memory": np.full(30, 4096)},
)


def test_remote_memory_is_the_default_model_on_racks_with_pools() -> None:
    """On racks with pools the default model is remote memory with the seed of the run."""
    machine = poolwise.Machine.of_racks(2, 4, local=1024, pool=65536)
    for engine in ("reference", "compiled"):
        default = poolwise.simulate(MEMORY, machine, seed=7, engine=engine).schedule
        explicit = poolwise.simulate(MEMORY, machine, model=RemoteMemory(seed=7), engine=engine).schedule
        other = poolwise.simulate(MEMORY, machine, seed=8, engine=engine).schedule
        ideal = poolwise.simulate(MEMORY, machine, model=Ideal(), engine=engine).schedule
        assert default.end.tolist() == explicit.end.tolist() != other.end.tolist()
        assert (ideal.job_end - ideal.job_start == 10**11).all()
        assert ((default.job_end - default.job_start)[default.done] > 10**11).all()


@pytest.mark.parametrize(
    ("machine", "model"),
    [
        (poolwise.Machine.of_racks(2, 4, local=1024, pool=65536), RemoteMemory(seed=3)),
        (poolwise.Machine.of_racks(2, 4, local=1024), Ideal()),
        (poolwise.Machine.flat(8), Ideal()),
        (nvme_examples.machine(fabric=100), Ideal()),  # a pool, but shared nodes
    ],
    ids=["pools", "no pools", "flat", "shared nodes"],
)
def test_default_model_depends_on_the_machine(machine: poolwise.Machine, model: object) -> None:
    assert simulation.default_model(machine, 3) == model


def test_command_line_chooses_the_placement_too(commands: None, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "catalog:cerit-2013.swf.gz", "--machine", "cerit-shared", "--set", "workload.jobs=30", "--json"]
    assert app.run([*words, "--engine", "reference"]) == 0
    assert '"first_fit"' in capsys.readouterr().out
    assert app.run([*words, "--placement", "racks"]) == 2
