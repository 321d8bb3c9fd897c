import fcntl
import shutil
import signal
import subprocess
import sys

import polars as pl
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.metrics import METRICS, Outcomes, Window, common_population, summarize
from poolwise.studies import load, run
from poolwise.studies.cells import workload_of
from poolwise.studies.diagnostics import diagnostic_sentences
from tests.helpers.kept_trials import content, forget, spoil, written
from tests.helpers.waiting import is_alive, wait_until


class Counting:
    """Progress listener that counts runs and calls a function after some of them."""

    def __init__(self, then=None, after=0):
        self.done, self.damaged, self.ran, self.then, self.after = 0, 0, [], then, after

    def begin(self, total, done, damaged):
        self.total, self.done, self.damaged = total, done, damaged

    def advance(self, label, seconds):
        self.ran.append(label)
        if self.then is not None and len(self.ran) == self.after:
            self.then()


@pytest.fixture(scope="module")
def undisturbed(kept_folder):
    """A study folder, and its result from one process."""
    return kept_folder, run(load(kept_folder / "study.toml"), kept_folder / "out", jobs=1)


def test_results_match_single_runs_measured_together(undisturbed):
    _, result = undisturbed
    outcomes, baselines = {}, {}
    for cell in result.study.cells:
        for results, simulated in ((outcomes, cell), (baselines, cell.baseline())):
            model, estimate = models_of(simulated.performance, simulated.seed)
            scheduler = scheduler_of(simulated.scheduler, simulated.warm_up)
            made = simulate(
                workload_of(simulated), simulated.machine, scheduler, model=model, estimate=estimate, seed=simulated.seed
            )
            results[cell.key] = Outcomes.of(made.schedule)
    population = common_population(list(outcomes.values()), 5)
    for cell in result.cells:
        expected = summarize(
            outcomes[cell.key],
            warm_up=5,
            population=population,
            window=Window.of(outcomes[cell.key], 5),
            baseline=baselines[cell.key],
        )
        assert cell.metrics == pytest.approx(expected, nan_ok=True, rel=0, abs=0)
    small, large = (c for c in result.cells if c.parameters["scheduler.order"] == "fm")
    assert small.metrics["mean_bounded_slowdown"] > large.metrics["mean_bounded_slowdown"]


def test_files_match_the_result(undisturbed):
    folder, result = undisturbed
    frame = pl.read_parquet(folder / "out" / "results.parquet")
    assert frame.equals(result.frame(), null_equal=True)
    assert frame["scheduler.order"].to_list() == ["fcfs", "fcfs", "fm", "fm"]
    assert set(METRICS) <= set(frame.columns)
    text = pl.read_csv(folder / "out" / "results.csv")
    assert text["mean_wait_s"].to_list() == frame["mean_wait_s"].to_list(), "CSV keeps every digit"
    assert str(folder) not in (folder / "out" / "provenance.json").read_text()
    assert "<td>fm</td>" in result._repr_html_()


@pytest.mark.long
def test_results_do_not_depend_on_processes_or_repetition(undisturbed, tmp_path):
    folder, first = undisturbed
    before = content(folder / "out")
    again = Counting()
    run(first.study, folder / "out", jobs=1, progress=again)
    assert (again.done, again.ran) == (6, []), "4 cells and 2 baselines are stored"
    assert content(folder / "out") == before
    run(first.study, tmp_path / "two", jobs=2)
    assert content(tmp_path / "two") == before


def test_only_missing_or_damaged_cells_are_run(undisturbed, tmp_path):
    folder, first = undisturbed
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    before = content(out)
    missing, damaged, altered, *_ = written(out)
    forget(out, missing)
    spoil(out, damaged)
    spoil(out, altered, "parquet")
    progress = Counting()
    run(first.study, out, jobs=1, progress=progress)
    assert (progress.done, progress.damaged, len(progress.ran)) == (3, 2, 3)
    assert content(out) == before


def test_changed_study_does_not_reuse_old_results(undisturbed, tmp_path):
    folder, first = undisturbed
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    changed = load(folder / "study.toml", {"vary.scheduler.order": ["fm", "sjf"], "workload.jobs": 50})
    progress = Counting()
    result = run(changed, out, jobs=1, progress=progress)
    assert progress.done == 0 and {cell.jobs for cell in result.cells} == {50}
    assert not {cell.key for cell in first.cells} & {cell.key for cell in result.cells}
    wider = load(folder / "study.toml", {"vary.scheduler.order": ["fm", "sjf"]})
    progress = Counting()
    run(wider, out, jobs=1, progress=progress)
    assert (progress.done, len(progress.ran)) == (4, 2), "FM and the baselines are reused"


@pytest.mark.long
def test_killed_run_resumes(undisturbed, tmp_path):
    folder, first = undisturbed
    out = tmp_path / "out"
    code = f"""
import os, signal
from poolwise.studies import load, run
class Stop:
    ran = 0
    def begin(self, *_): pass
    def advance(self, *_):
        self.ran += 1
        if self.ran == 2: os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    run(load({str(folder / "study.toml")!r}), {str(out)!r}, jobs=2, progress=Stop())
"""
    killed = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(written(out)) == 2 and not (out / "results.csv").exists()
    progress = Counting()
    run(first.study, out, jobs=2, progress=progress)
    assert (progress.done, len(progress.ran)) == (2, 4)
    assert content(out) == content(folder / "out")


def test_second_writer_is_refused_and_changes_nothing(undisturbed, tmp_path):
    folder, first = undisturbed
    out = tmp_path / "out"
    out.mkdir()
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another run is writing"):
            run(first.study, out, jobs=1)
    assert [file.name for file in out.iterdir()] == [".lock"]
    run(first.study, out, jobs=1)
    assert content(out) == content(folder / "out")


@pytest.mark.long
def test_interrupted_run_leaves_complete_cells_and_no_workers(undisturbed, tmp_path):
    _, first = undisturbed

    def interrupt():
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(first.study, out, jobs=2, progress=Counting(interrupt, after=1))
    assert len(written(out)) == 1 and sorted(file.name for file in out.iterdir()) == [".lock", "cells.sqlite"]
    progress = Counting()
    run(first.study, out, jobs=1, progress=progress)
    assert progress.done == 1


@pytest.mark.long
def test_workers_exit_with_their_parent_process(folder):
    code = f"""
import os, signal, sys, joblib
from poolwise.studies import load, run
from poolwise.studies.cell_simulation import Cells
from poolwise.runner.executors.local import _in_worker
cell = load({str(folder / "study.toml")!r}).cells[0]
def worker(cell, parent):
    _in_worker(Cells(), {{cell.key: cell}}, parent, None)
    return os.getpid()
if __name__ == "__main__":
    from joblib import Parallel, delayed
    print(*Parallel(2)(delayed(worker)(cell, os.getpid()) for _ in range(2)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    workers = [int(word) for word in killed.stdout.split()]
    assert workers
    wait_until(lambda: not any(map(is_alive, workers)), "the workers have exited")


@pytest.mark.long
def test_error_in_a_cell_names_the_cell(folder):
    study = load(folder / "study.toml", {"measure.warm_up": 60, "measure.baseline": False})
    with pytest.raises(InputError, match=r"leaves no job .*scheduler\.order=fcfs") as caught:
        run(study, folder / "out", jobs=1)
    assert caught.value.field == "measure.warm_up"
    with pytest.raises(InputError, match=r"in cell scheduler\.order="):
        run(study, folder / "out", jobs=2)
    assert not written(folder / "out")


def test_unwritable_folder_is_an_error(folder):
    (folder / "file").write_text("")
    with pytest.raises(InputError, match="cannot write results"):
        run(load(folder / "study.toml"), folder / "file" / "out", jobs=1)
    with pytest.raises(InputError, match="jobs must be at least 1"):
        run(load(folder / "study.toml"), folder / "out", jobs=0)


def test_rejected_and_excluded_jobs_are_counted_and_reported(folder):
    text = (folder / "jobs.csv").read_text() + "61,4000000000000,2,100000000000,81920\n62,4000000000000,9,100000000000,0\n"
    (folder / "jobs.csv").write_text(text)
    result = run(load(folder / "study.toml"), folder / "out", jobs=1)
    by_pool = {c.parameters["machine.pool.memory.memory"]: sum(c.rejected.values()) for c in result.cells}
    assert by_pool == {"32 GiB": 2, "64 GiB": 1}
    assert {int(result.population(cell).sum()) for cell in result.cells} == {55}, "measured on the jobs that both sizes can run"
    sentences = diagnostic_sentences(result.diagnostics())
    assert any(line.startswith("On 32 GiB: 2 of 62 jobs can never run: ") for line in sentences)
    assert any(line.startswith("On 64 GiB: 1 of 62 jobs can never run: cannot fit on the empty machine") for line in sentences)
    assert "2 jobs did not finish in every run" in " ".join(result.notes())


def test_population_of_the_paper_differs_between_runs(folder):
    result = run(
        load(folder / "study.toml", {"measure.population": "paper", "measure.baseline": False}), folder / "out", jobs=1
    )
    sizes = [int(result.population(cell).sum()) for cell in result.cells]
    assert all(0 < size < 55 for size in sizes)
    assert all(cell.metrics["discrimination_s"] != cell.metrics["discrimination_s"] for cell in result.cells)


def test_pool_size_matters_on_the_catalog_trace(tmp_path):
    settings = {
        "vary.scheduler.order": ["fm"],
        "vary.machine.pool.memory.memory": ["192 GiB", "2 TiB"],
        "workload.first": 7200,
        "workload.jobs": 1000,
        "measure.warm_up": 100,
    }
    result = run(load("cerit-pools", settings), tmp_path, jobs=1)
    small, large = (cell.metrics for cell in result.cells)
    assert small["mean_bounded_slowdown"] > 2 * large["mean_bounded_slowdown"]


def test_metrics_do_not_depend_on_the_outcome_cache(undisturbed, tmp_path, monkeypatch):
    """With a million cells, the cache holds only a few."""
    folder, first = undisturbed
    monkeypatch.setattr("poolwise.studies.measured.CACHE_MB", 0)
    again = run(first.study, folder / "out", jobs=1)
    assert len(again._runs._outcomes) == 1
    assert again.frame().equals(first.frame(), null_equal=True)
    assert [again.facts[cell.key] for cell in again.study.runs] == [first.facts[cell.key] for cell in first.study.runs]
    assert len(again.facts) == 6 and "none" not in again.facts
