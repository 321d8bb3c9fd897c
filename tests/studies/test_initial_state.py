"""Studies of a running machine: running jobs continue in every cell, and its scheduler starts the waiting ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from poolwise.cli.app import _discover
from poolwise.cli.app import run as command
from poolwise.engines import simulate
from poolwise.engines.from_state import state_run
from poolwise.errors import InputError
from poolwise.files.state import write_state
from poolwise.files.state_study import study_of
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Placement
from poolwise.quantities import HOUR, SECOND, UNKNOWN
from poolwise.simulation import list_scheduler
from poolwise.studies import load, run
from poolwise.studies.cell_simulation import simulate_again
from poolwise.studies.cells import initial_of, workload_of
from poolwise.studies.description import read_descriptions
from tests.engines.test_from_state import state


def folder_of(found: MachineState, folder: Path) -> Path:
    write_state(found, folder, study_of(found, folder))
    return folder


def random_state(seed: int) -> MachineState:
    """Sixteen processors, some of them in use, and a queue."""
    draw = np.random.default_rng(seed)
    many, now, free = 40, 1000 * SECOND, 16
    submit = np.sort(draw.integers(0, 1000, many)) * SECOND
    tasks = draw.integers(1, 9, many)
    requested = np.where(draw.random(many) < 0.2, UNKNOWN, draw.integers(1, 3000, many) * SECOND)
    runs, waiting = [], []
    for job in range(many):
        if tasks[job] <= free and draw.random() < 0.5:
            runs.append(InitialRun(job, int(draw.integers(submit[job], now + 1)), Placement.of([(0, 0, 0, int(tasks[job]))])))
            free -= int(tasks[job])
        else:
            waiting.append(job)
    runs.sort(key=lambda run: run.start)
    jobs = JobTable(np.arange(many) + 7, submit, requested, np.ones(many, dtype=np.int64), {"nodes": tasks}, {})
    return MachineState(Machine.flat(16), jobs, now, runs, np.array(waiting, dtype=np.int64), "a test")


@pytest.mark.parametrize("seed", range(8))
def test_each_cell_continues_the_simulation_from_the_state(seed: int, tmp_path: Path) -> None:
    """The schedules of a study's cells equal those of `simulate` from the same state."""
    saved = random_state(seed)
    study = load(folder_of(saved, tmp_path / "now"))
    assert [cell.parameters["scheduler.order"] for cell in study.cells] == ["fcfs", "sjf"]
    continued = state_run(saved, HOUR)
    for cell in (*study.cells, *study.baselines):
        order, backfill = cell.scheduler.order, cell.scheduler.backfill
        scheduler = list_scheduler(order.name if order else "fcfs", backfill.name if backfill else "easy", "racks")
        expected = simulate(
            continued.workload, saved.machine, scheduler, initial=continued.initial, engine="reference"
        ).schedule
        schedule = simulate_again(cell)
        jobs, expected_jobs = schedule.job.argsort(), expected.job.argsort()
        assert np.array_equal(schedule.start[jobs], expected.start[expected_jobs])
        assert np.array_equal(schedule.end[jobs], expected.end[expected_jobs])
        held = {run.job: run.start for run in continued.initial.runs}
        starts = dict(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))
        assert {job: starts[job] for job in held} == held, "running jobs keep their start"


def test_study_of_a_state_is_run_described_and_repeated(tmp_path: Path) -> None:
    saved = random_state(1)
    study = load(folder_of(saved, tmp_path / "now"))
    result = run(study, tmp_path / "out", jobs=1)
    assert {cell.jobs for cell in result.cells} == {40}
    description = json.loads((tmp_path / "out/provenance.json").read_text())["runs"][0]
    assert sorted(Path(name).name for name in description["files"]) == [
        "machine.toml",
        "running.csv",
        "state.toml",
        "waiting.csv",
    ]
    recorded = read_descriptions(tmp_path / "out/provenance.json")[1]
    assert recorded.cell().key == study.cells[1].key
    file = tmp_path / "now/waiting.csv"
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(InputError, match=r"waiting\.csv changed"):
        recorded.cell()
    with pytest.raises(InputError, match="the state changed during the study"):
        study.cells[0].workload.read(study.cells[0].machine)


def test_running_and_waiting_jobs_can_be_left_out(tmp_path: Path) -> None:
    cell = load(folder_of(state(), tmp_path / "now")).cells[0]
    left = cell.without((30, 20))
    jobs, initial = workload_of(left), initial_of(left)
    assert jobs.id.tolist() == [10, 50, 40]
    assert initial is not None and [int(jobs.id[run.job]) for run in initial.runs] == [10]
    assert initial.now == 10 * SECOND and left.key != cell.key


def test_machine_may_have_more_but_not_less_than_running_jobs_hold(tmp_path: Path) -> None:
    folder = folder_of(state(), tmp_path / "now")
    file = folder / "machine.toml"
    text = file.read_text()
    capacity = next(line for line in text.splitlines() if "nodes" in line and "4" in line)
    (tmp_path / "more.toml").write_text(text.replace(capacity, capacity.replace("4", "9")))
    (tmp_path / "less.toml").write_text(text.replace(capacity, capacity.replace("4", "2")))
    more = load(folder, {"machine": "../more.toml"}).cells[0]
    assert int(more.machine.capacity.sum()) == 9 and len(simulate_again(more).job) == 5
    less = load(folder, {"machine": "../less.toml"}).cells[0]
    with pytest.raises(InputError, match="the runs hold more nodes"):
        less.workload.read(less.machine)
    other = load(folder, {"machine": "catalog:cerit-racks"}).cells[0]
    with pytest.raises(InputError, match="different nodes, pools or devices"):
        other.workload.read(other.machine)


@pytest.mark.parametrize(
    ("set", "expected"),
    [
        ({"measure.warm_up": 3}, "write warm_up = 0"),
        ({"workload.jobs": 3}, "they do not apply to a state"),
        ({"workload.state": "none.toml"}, "no such file: none.toml"),
        ({"workload.trace": "log.swf"}, "give exactly one of trace, generator and state"),
        ({"workload.format": "swf"}, "format and options apply to a trace"),
        ({"workload.memory_use": "measured"}, "memory_use applies to traces"),
    ],
)
def test_settings_that_conflict_with_a_state_are_errors(set: dict[str, object], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(folder_of(state(), tmp_path / "now"), set)
    assert expected in str(caught.value)


def test_state_with_a_missing_file_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(state(), tmp_path / "now")
    (folder / "running.csv").unlink()
    with pytest.raises(InputError, match=r"has no running\.csv"):
        load(folder)


@pytest.mark.parametrize(("scheduler", "varied"), [("catalog:fm-easy", True), ("catalog:drmaestro", False)])
def test_scheduler_of_the_state_becomes_today(scheduler: str, varied: bool, tmp_path: Path) -> None:
    content = study_of(MachineState(**{**vars(state()), "scheduler": scheduler}), tmp_path)
    assert ("vary" in content, "today" in content) == (varied, varied) and content["scheduler"] == scheduler


def test_existing_study_is_kept(tmp_path: Path) -> None:
    folder = folder_of(state(), tmp_path / "now")
    (folder / "study.toml").write_text("# mine\n")
    folder_of(state(), folder)
    assert (folder / "study.toml").read_text() == "# mine\n"


def test_run_accepts_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _discover()
    monkeypatch.chdir(tmp_path)
    folder_of(random_state(2), tmp_path / "now")
    assert command(["run", "now", "--jobs", "1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["cells"]) == 2 and (tmp_path / "results/now/report.html").is_file()
