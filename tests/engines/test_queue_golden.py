"""Real logs on flat machines against published means, with which an independent simulator agrees."""

import csv
from functools import cache
from itertools import product

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.simulate import Engine
from poolwise.model import Machine, Schedule, Workload
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read
from tests.helpers.data import LOGS, PUBLISHED, available_cases
from tests.helpers.random_studies import difference

TAU_S = 10.0
ENGINES: tuple[Engine, Engine] = ("compiled", "reference")
ORDERS = ("fcfs", "sjf", "wfp3", "f1")
BACKFILLS = ("none", "easy")
NASA = "hpc_nasa_ipsc_1993/NASA-iPSC-1993-3.1-cln.swf.gz"
UNILU = "hpc_unilu_gaia_2014/UniLu-Gaia-2014-2.swf.gz"
HERE = {
    "hpc_hpc2n_excerpt_2002/hpc2n.swf.gz": LOGS / "hpc2n-2002.swf.gz",
    **{name: path for path, name in available_cases((NASA, NASA), (UNILU, UNILU))},
}
RELATIVE = 1e-9


def measure(schedule: Schedule, processors: int) -> dict[str, float]:
    """Return the published columns over the jobs that ran."""
    workload, done = schedule.workload, schedule.done
    wait = (schedule.job_start - workload.submit)[done] / SECOND
    runtime = (schedule.job_end - schedule.job_start)[done] / SECOND
    makespan = int(schedule.job_end.max() - workload.submit[done].min()) / SECOND
    work = int((workload.nodes * workload.duration // SECOND)[done].sum())
    return {
        "jobs": int(done.sum()),
        "mean_wait_s": float(wait.mean()),
        "mean_bounded_slowdown": float(np.maximum((wait + runtime) / np.maximum(runtime, TAU_S), 1.0).mean()),
        "makespan_s": makespan,
        "utilization": work / (processors * makespan),
    }


@cache
def published() -> dict[tuple[str, str, str], dict[str, str]]:
    with (PUBLISHED / "queue_golden.csv").open(newline="") as file:
        return {(row["log"], row["order"], row["backfill"]): row for row in csv.DictReader(file)}


@cache
def log_of(name: str) -> tuple[Machine, Workload]:
    """Return the flat machine of a log and its jobs, with requested times of at least their run times."""
    machine = Machine.flat(int(published()[name, "fcfs", "none"]["processors"]))
    jobs = read(HERE[name], machine)
    requested = np.maximum(jobs.requested, jobs.duration)
    return machine, Workload.of(jobs.submit, jobs.duration, id=jobs.id, requested=requested, requests=dict(jobs.requests))


def assert_published(name: str, order: str, backfill: str, engine: Engine) -> None:
    want = published()[name, order, backfill]
    machine, workload = log_of(name)
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill))
    schedule = simulate(workload, machine, scheduler, engine=engine).schedule
    got = measure(schedule, int(want["processors"]))
    assert got["jobs"] == int(want["jobs"]) == len(workload) - len(schedule.rejected)
    for column in ("mean_wait_s", "mean_bounded_slowdown", "makespan_s", "utilization"):
        assert got[column] == pytest.approx(float(want[column]), rel=RELATIVE, abs=0), column


def test_every_published_row_is_tested() -> None:
    names = [*dict.fromkeys((*HERE, NASA, UNILU))]
    assert [*published()] == [*product(names, ORDERS, BACKFILLS)]


@pytest.mark.parametrize(("log", "order", "backfill"), [*product(HERE, ORDERS, BACKFILLS)])
def test_published_row(log: str, order: str, backfill: str) -> None:
    assert_published(log, order, backfill, "compiled")


@pytest.mark.long
@pytest.mark.parametrize(
    ("log", "order", "backfill"),
    [
        *product([*HERE][:1], ORDERS, BACKFILLS),
        *(pytest.param(log, "wfp3", "easy", marks=pytest.mark.further) for log in [*HERE][1:]),
    ],
)
def test_published_row_without_kernels(log: str, order: str, backfill: str) -> None:
    """The reference engine runs all rows of the smallest log and one row of each other log."""
    assert_published(log, order, backfill, "reference")


@pytest.mark.long
@pytest.mark.parametrize(("order", "backfill"), [("fcfs", "none"), ("wfp3", "easy"), ("f1", "easy")])
def test_engines_agree_on_the_excerpt_of_a_log_with_restricted_distribution(order: str, backfill: str) -> None:
    machine = Machine.flat(128)
    workload = read(LOGS / "nasa-ipsc-1993.swf.gz", machine)
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill))
    compiled, reference = (simulate(workload, machine, scheduler, engine=engine).schedule for engine in ENGINES)
    assert difference(compiled, reference) == "" and compiled.job_start.max() > workload.submit.max() / 2
