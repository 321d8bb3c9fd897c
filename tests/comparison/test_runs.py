"""Comparisons of saved runs."""

import contextlib
import io
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from poolwise import studies
from poolwise.cli import app as cli
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.saved_run import read_runs
from poolwise.comparison.sentences import difference_sentence, population_sentence
from poolwise.errors import InputError
from poolwise.metrics import METRICS, mean_interval, paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from tests.helpers import small_study
from tests.helpers.kept_trials import spoil, written


@pytest.fixture(scope="module")
def ran(kept_folder):
    """Return the results of a small study: four settings under three seeds."""
    sizes = {"vary.machine.pool.memory.memory": ["16 GiB", "64 GiB"]}
    study = studies.load(kept_folder / "study.toml", {"seeds.values": [0, 1, 2], "measure.baseline": False, **sizes})
    return kept_folder / "out", studies.run(study, kept_folder / "out", jobs=1)


def test_cells_that_differ_only_in_the_seed_are_one_run(ran):
    out, result = ran
    runs = read_runs(str(out))
    assert [sorted(run.outcomes) for run in runs] == [[0, 1, 2]] * 4
    assert {tuple(run.parameters.values()) for run in runs} == {tuple(map(str, c.parameters.values())) for c in result.cells}
    selected = read_runs(f"{out}:order=fm,memory=64 GiB,seed=1")
    assert len(selected) == 1 and list(selected[0].outcomes) == [1]
    key = result.cells[0].key
    (by_key,) = read_runs(f"{out}:{key[:12]}")
    assert np.array_equal(by_key.outcomes[0].start, result.outcomes(result.cells[0]).start)


def test_run_does_not_differ_from_itself(ran):
    out, _ = ran
    (run,) = read_runs(f"{out}:order=fm,memory=64 GiB")
    for over in ("seeds", "jobs"):
        comparison = Comparison.of([run, run], over)
        assert {d.verdict for d in comparison.differences} == {"alike"} and not comparison.changed(5)
        assert all(d.interval.mean == 0 for d in comparison.differences)
    assert len(set(comparison.labels)) == 2


def test_values_and_changes_carry_their_unit(ran):
    out, _ = ran
    comparison = Comparison.of([*read_runs(f"{out}:order=fcfs,memory=64 GiB"), *read_runs(f"{out}:order=fm,memory=16 GiB")])
    (throughput,) = [d for d in comparison.differences if d.metric == "throughput_per_100s"]
    number = r"[+-]?[\d.]+"
    text = rf"Throughput: {number} jobs / 100 s compared with {number} jobs / 100 s, {number} jobs / 100 s"
    assert re.match(rf"{text} \[{number} to {number}\]; ", difference_sentence(comparison, throughput))


def test_metrics_match_the_study(ran):
    """The study measures the jobs that all runs finish, so all four runs are compared."""
    out, result = ran
    comparison = Comparison.of(read_runs(str(out)))
    for k, run in enumerate(comparison.runs):
        mine = [c for c in result.cells if list(map(str, c.parameters.values())) == list(run.parameters.values())]
        assert [c.seed for c in mine] == [0, 1, 2]
        for name in ("mean_bounded_slowdown", "p99_wait_s", "throughput_per_100s", "utilization", "mean_degradation"):
            assert comparison.metrics[k][name].tolist() == pytest.approx([c.metrics[name] for c in mine], rel=0, abs=0)


def test_differences_are_paired(ran):
    out, _ = ran
    runs = [read_runs(f"{out}:order={order},memory=64 GiB")[0] for order in ("fcfs", "fm")]
    comparison = Comparison.of(runs)
    per_job = [np.stack([bounded_slowdown(run.outcomes[seed])[5:] for seed in (0, 1, 2)]) for run in runs]
    over_seeds = next(d for d in comparison.differences if d.metric == "mean_bounded_slowdown")
    assert over_seeds.interval == mean_interval(per_job[1].mean(axis=1) - per_job[0].mean(axis=1))
    assert over_seeds.verdict == "better" and comparison.labels == ("order=fcfs", "order=fm")
    over_jobs = {d.metric: d for d in Comparison.of(runs, "jobs").differences}
    assert over_jobs["mean_bounded_slowdown"].interval == paired_block_bootstrap(
        per_job[1].mean(axis=0) - per_job[0].mean(axis=0)
    )
    assert math.isnan(over_jobs["p99_wait_s"].interval.low) and over_jobs["p99_wait_s"].verdict == "unknown"


def test_verdict_follows_the_direction_of_the_metric(ran):
    out, _ = ran
    runs = [read_runs(f"{out}:order=fm,memory={size} GiB")[0] for size in (16, 64)]
    there, back = Comparison.of(runs), Comparison.of(runs[::-1])
    opposite = {"better": "worse", "worse": "better", "alike": "alike", "changed": "changed"}
    pairs = list(zip(there.differences, back.differences, strict=True))
    assert all(opposite[a.verdict] == b.verdict for a, b in pairs)
    verdicts = {d.metric: d.verdict for d in there.differences}
    assert verdicts["p90_bounded_slowdown"] == "better"
    assert METRICS["memory_dollars"].better == "lower" and verdicts["memory_dollars"] == "worse", "64 GiB cost more than 16"


def test_changed_jobs_have_the_largest_changes(ran):
    out, _ = ran
    runs = [read_runs(f"{out}:order={order},memory=16 GiB,seed=0")[0] for order in ("fcfs", "fm")]
    jobs = Comparison.of(runs).changed(3)
    change = wait_s(runs[1].outcomes[0]) - wait_s(runs[0].outcomes[0])
    change[:5] = 0  # the warm-up is not measured
    longer, shorter = np.sort(change)[::-1][:3], np.sort(change)[:3]
    assert [job.change_s for job in jobs] == pytest.approx([c for c in [*longer, *shorter] if c])
    ids = runs[0].outcomes[0].id
    assert all(change[ids == job.id] == pytest.approx(job.change_s) for job in jobs)


def test_schedule_file_is_a_run_with_times_only(ran, tmp_path):
    out, _ = ran
    (cell,) = read_runs(f"{out}:order=fm,memory=64 GiB,seed=0")
    o = cell.outcomes[0]
    rows = [f"{i},{s},{a},{e},0:1:0" for i, s, a, e in zip(o.id, o.submit, o.start, o.end, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["id,submit_ns,start_ns,end_ns,placement", *rows[:20], *rows[21:]]) + "\n")
    (schedule,) = read_runs(str(tmp_path / "a.csv"))
    comparison = Comparison.of([cell, schedule])
    assert set(comparison.metrics[0]) >= {"mean_wait_s", "p99_bounded_slowdown", "makespan_s"}
    assert not {"mean_degradation", "utilization", "mean_bounded_slowdown_local"} & set(comparison.metrics[0])
    assert comparison.metrics[0]["measured_jobs"].tolist() == comparison.metrics[1]["measured_jobs"].tolist() == [54.0]
    assert not comparison.changed(3) and comparison.labels == ("out order=fm memory=64 GiB", "a.csv")


def test_saved_schedules_keep_their_warm_up(tmp_path):
    small_study.write(tmp_path)
    for order in ("fcfs", "sjf"):
        words = ["simulate", "jobs.csv", "--machine", "machine.toml", "--set", f"scheduler.order={order}"]
        words += ["--set", "measure.warm_up=7", "--schedule", f"{order}.csv", "--json"]
        with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
            assert cli.run(words) == 0
    files = [tmp_path / "fcfs.csv", tmp_path / "sjf.csv"]
    comparison = Comparison.of([run for file in files for run in read_runs(str(file))])
    assert int(comparison.population(0, 0).sum()) == 53
    assert "after a warm-up of 7 jobs" in population_sentence(comparison)
    for file in files:  # a warm-up job that was rejected
        lines = file.read_text().splitlines()
        file.write_text("\n".join(line for line in lines if not line.startswith("3,")) + "\n")
    comparison = Comparison.of([run for file in files for run in read_runs(str(file))])
    assert int(comparison.population(0, 0).sum()) == 53


def test_incomparable_runs_are_rejected(ran, tmp_path):
    out, _ = ran
    (first,) = read_runs(f"{out}:order=fm,memory=64 GiB,seed=0")
    (other,) = read_runs(f"{out}:order=fm,memory=64 GiB,seed=1")
    o = first.outcomes[0]
    moved = replace(first, outcomes={0: replace(o, submit=o.submit + 1)})
    for runs, words in (
        ([first], "cannot compare 1 runs"),
        ([first, other], "share no seed"),
        ([first, moved], "differ from those of the other runs"),
    ):
        with pytest.raises(InputError, match=words):
            Comparison.of(runs)
    with pytest.raises(InputError, match="an interval over seeds needs at least two"):
        Comparison.of([first, first], "seeds")
    for reference, words in (
        (f"{out}:order=sjf", "no run matches 'order=sjf'"),
        (str(tmp_path), "has no study results"),
        (str(tmp_path / "none"), "no such folder or file"),
    ):
        with pytest.raises(InputError, match=words):
            read_runs(reference)
    (tmp_path / "a.csv").write_text("id,submit_ns\n1,2\n")
    with pytest.raises(InputError, match="not a schedule"):
        read_runs(str(tmp_path / "a.csv"))
    shutil.copytree(out, tmp_path / "out")
    spoil(tmp_path / "out", next(iter(written(tmp_path / "out"))), "parquet")
    with pytest.raises(InputError, match="missing or damaged"):
        read_runs(str(tmp_path / "out"))
