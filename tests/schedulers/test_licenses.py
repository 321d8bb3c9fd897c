"""Licenses as a resource of the whole machine: hand-computed starts, and limits recomputed from schedules."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.cli import app as cli
from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec, unsupported_by_all
from poolwise.errors import InputError, UnknownNameError
from poolwise.explain import explain_wait
from poolwise.explain.sentences import answer_sentence, holders_sentence
from poolwise.model import Machine, Schedule, WaitCause, Workload
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine

ORDERS = ("fcfs", "sjf", "area", "fair", "wfp3", "f1", "fm", "memory_area", "edf", "classes", "multifactor")
BACKFILLS = ("none", "skip", "easy", "easy_no_extra", "easy_nodes_only", "conservative", "slurm")
seeds = st.integers(0, 2**32 - 1)


def licensed(**licenses: int) -> Machine:
    return replace(Machine.flat(4), licenses=licenses)


def six_jobs() -> Workload:
    return Workload.of(
        ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s"],
        ["100 s", "50 s", "60 s", "10 s", "10 s", "20 s"],
        requests={"nodes": [1, 1, 2, 1, 1, 4]},
        attributes={"license/matlab": [2, 1, 0, 3, 1, 0]},
    )


def starts(schedule: Schedule) -> dict[int, int]:
    """Return id -> start (s) of the jobs that ran."""
    ids = schedule.workload.id[schedule.job].tolist()
    return dict(zip(ids, (schedule.start // SECOND).tolist(), strict=True))


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_job_without_free_licenses_is_skipped_and_blocks_no_other(backfill: str) -> None:
    jobs, on = six_jobs(), licensed(matlab=2)
    schedule = simulate(jobs, on, ListScheduler(backfill=make("backfills", backfill))).schedule
    assert starts(schedule) == {1: 0, 2: 100, 3: 2, 5: 100, 6: 150}
    assert schedule.rejected == {3: "requests 3 licenses 'matlab', but the machine has 2"}


def test_explanation_names_license_need_and_holders() -> None:
    jobs, on, scheduler = six_jobs(), licensed(matlab=2), ListScheduler()
    explanation = explain_wait(jobs, on, scheduler, 2)
    (episode,) = explanation.episodes
    reason = episode.reason
    assert (reason.cause, reason.resource, reason.needed, reason.free) == (WaitCause.LIMIT, "license/matlab", 1, 0)
    assert reason.text == "it needs 1 of the 2 licenses 'matlab'"
    assert [(holder.job, holder.amount) for holder in episode.holders] == [(0, 2)]
    assert "all of it short of licenses 'matlab' (it needed 1, and nothing was free)" in answer_sentence(explanation)
    assert "job 1 (2 licenses 'matlab', expected to end after 1 min 39 s)" in holders_sentence(explanation)
    assert explain_wait(jobs, on, scheduler, 4).rejected == "requests 3 licenses 'matlab', but the machine has 2"


def test_job_of_several_tasks_holds_its_licenses_once() -> None:
    jobs = Workload.of(
        ["0 s", "0 s"], ["10 s", "10 s"], tasks=[3, 1], requests={"nodes": [1, 1]}, attributes={"license/matlab": [1, 1]}
    )
    assert {*simulate(jobs, licensed(matlab=2), ListScheduler()).schedule.start.tolist()} == {0}
    assert starts(simulate(jobs, licensed(matlab=1), ListScheduler()).schedule) == {1: 0, 2: 10}


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(ORDERS), st.sampled_from(BACKFILLS))
def test_licenses_in_use_never_exceed_their_number(seed: int, order: str, backfill: str) -> None:
    g = np.random.default_rng(seed)
    jobs, on = (
        random_jobs(g, 25),
        replace(machine(np.tile([4, 100], (3, 1)), np.zeros(3, dtype=np.int64)), licenses={"a": 3, "b": 2}),
    )
    placement = FirstNodes()
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill), placement)
    schedule = simulate(jobs, on, scheduler).schedule
    never = {job for job in range(len(jobs)) if any(counts(jobs, name)[job] > most for name, most in on.licenses.items())}
    assert schedule.rejected.keys() == never
    assert not schedule.waiting
    for name, most in on.licenses.items():
        for time in schedule.start.tolist():
            assert counts(jobs, name)[running(schedule, time)].sum() <= most


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(BACKFILLS[:-1]))
def test_first_job_with_free_licenses_does_not_wait_while_nodes_are_free(seed: int, backfill: str) -> None:
    g = np.random.default_rng(seed)
    jobs, on = random_jobs(g, 25), replace(Machine.flat(4), licenses={"a": 3, "b": 2})
    schedule = simulate(jobs, on, ListScheduler(backfill=make("backfills", backfill))).schedule
    start = dict(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))
    for time in {*jobs.submit.tolist(), *schedule.end.tolist()}:
        here = running(schedule, time)
        free = {name: most - counts(jobs, name)[here].sum() for name, most in on.licenses.items()}
        waiting = [job for job, at in start.items() if jobs.submit[job] <= time < at]
        able = [job for job in waiting if all(counts(jobs, name)[job] <= left for name, left in free.items())]
        if able:
            first = min(able, key=lambda job: (int(jobs.submit[job]), int(jobs.id[job])))
            assert jobs.nodes[first] > 4 - jobs.nodes[here].sum()


def random_jobs(g: np.random.Generator, jobs: int) -> Workload:
    duration = g.integers(1, 25, jobs) * SECOND
    return Workload.of(
        g.integers(0, 60, jobs) * SECOND,
        duration,
        requested=duration + g.integers(0, 5, jobs) * SECOND,
        requests={"nodes": g.integers(1, 4, jobs), "memory": g.integers(0, 2, jobs)},
        attributes={
            "license/a": g.integers(0, 5, jobs),
            "license/b": np.where(g.random(jobs) < 0.6, 0, g.integers(1, 3, jobs)),
            "class": g.integers(0, 3, jobs),
            "deadline": g.integers(0, 99, jobs) * SECOND,
        },
    )


def counts(jobs: Workload, name: str) -> np.ndarray:
    return jobs.attributes[f"license/{name}"]


def running(schedule: Schedule, time: int) -> np.ndarray:
    """Return the rows of the jobs that run at a time."""
    return schedule.job[(schedule.start <= time) & (schedule.end > time)]


def test_unknown_license_is_an_error_unless_the_machine_has_none() -> None:
    jobs = six_jobs()
    with pytest.raises(UnknownNameError, match="unknown license 'matlab'"):
        simulate(jobs, licensed(matlba=2), ListScheduler())
    assert starts(simulate(jobs, Machine.flat(4), ListScheduler()).schedule)[4] == 51
    negative = replace(jobs, attributes={"license/matlab": np.full(6, -1)})
    with pytest.raises(InputError, match="a number of licenses is negative or not an integer"):
        simulate(negative, licensed(matlab=2), ListScheduler())


def test_kernels_run_unless_some_job_requests_a_license() -> None:
    jobs = six_jobs()
    none = replace(jobs, attributes={"license/matlab": np.zeros(6, dtype=np.int64)})
    for workload, expected in ((jobs, "jobs request licenses (matlab)"), (none, None)):
        obstacle = unsupported_by_all(RunSpec(workload, licensed(matlab=2), ListScheduler(), Ideal(), Ideal()))
        assert (obstacle and obstacle.why) == expected
    assert simulate(jobs, licensed(matlab=2), ListScheduler()).engine == "reference"


def test_scheduler_that_does_not_enforce_licenses_is_rejected() -> None:
    jobs = replace(six_jobs(), requests={"cores": np.ones(6, dtype=np.int64)})
    with pytest.raises(InputError, match="does not enforce"):
        simulate(
            jobs,
            replace(machine(np.tile([4, 100], (3, 1)), np.zeros(3, dtype=np.int64)), licenses={"matlab": 2}),
            CompositionScheduler(),
        )


def test_unknown_license_of_a_log_names_its_file_and_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on, log = tmp_path / "machine.toml", tmp_path / "log.csv"
    on.write_text('version = 1\n[[node]]\nname = "n"\ncores = 8\n[[rack]]\nnodes = { n = 4 }\n[licenses]\nmatlab = 2\n')
    log.write_text("id,submit,duration,requested,nodes,license/matlb\n1,0,9,9,1,0\n7,2,9,9,1,1\n")
    assert cli.run(["simulate", str(log), "--machine", str(on)]) == 2
    message = capsys.readouterr().err
    assert f"{log}, field 'license/matlb': unknown license 'matlb', requested by job 7" in message
    assert "did you mean 'matlab'?" in message
