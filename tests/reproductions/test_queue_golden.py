"""Real logs on flat machines against published means (an independent simulator agrees with them)."""

import csv
from pathlib import Path

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.model import Machine, Schedule
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read
from poolwise.units import SECOND

TAU_S = 10.0
ORDERS = ("fcfs", "sjf", "wfp3", "f1")
BACKFILLS = ("none", "easy")
LOGS = {
    "hpc_hpc2n_excerpt_2002/hpc2n.swf.gz": 240,
    "hpc_nasa_ipsc_1993/NASA-iPSC-1993-3.1-cln.swf.gz": 128,
    "hpc_unilu_gaia_2014/UniLu-Gaia-2014-2.swf.gz": 2004,
}
RELATIVE = 1e-9


def measure(schedule: Schedule, processors: int) -> dict[str, float]:
    """The published columns, over the jobs that ran."""
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


@pytest.fixture(scope="module")
def published(shared: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    with (shared / "published" / "queue_golden.csv").open(newline="") as file:
        return {(row["log"], row["order"], row["backfill"]): row for row in csv.DictReader(file)}


@pytest.mark.parametrize("log", LOGS)
def test_every_published_row_is_covered(log, published):
    here = {(order, backfill) for name, order, backfill in published if name == log}
    assert here == {(order, backfill) for order in ORDERS for backfill in BACKFILLS}
    assert {name for name, _, _ in published} == set(LOGS)


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("log", LOGS)
def test_published_row(log, order, backfill, published, shared):
    want = published[log, order, backfill]
    processors = LOGS[log]
    assert int(want["processors"]) == processors
    machine = Machine.flat(processors)
    workload = read(shared / "data" / log, machine)
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill))
    schedule = simulate(machine, workload, scheduler).schedule
    got = measure(schedule, processors)
    assert got["jobs"] == int(want["jobs"]) == len(workload) - len(schedule.rejected)
    for column in ("mean_wait_s", "mean_bounded_slowdown", "makespan_s", "utilization"):
        assert got[column] == pytest.approx(float(want[column]), rel=RELATIVE, abs=0), column
