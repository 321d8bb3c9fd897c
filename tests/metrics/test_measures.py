"""Metrics found by name: the shipped ones say what they are, and one of a user's own stands beside them in a study."""

import shutil

import numpy as np
import pytest

from poolwise import registry
from poolwise.api import simulate
from poolwise.errors import InputError
from poolwise.metrics import METRICS, Outcomes, Window, metrics_of, summarise
from poolwise.metrics.summary import STANDARD
from poolwise.model import Machine, Workload
from poolwise.studies import load, run

OWN = """
from dataclasses import dataclass

from poolwise.metrics import Metric


@dataclass(frozen=True)
class Impatient:
    '''Jobs that wait longer than they can bear.'''

    seconds: int = 0
    metrics = {"impatient_jobs": Metric("jobs that wait too long", "jobs", "lower")}

    def of(self, run):
        waits = (run.outcomes.start - run.outcomes.submit)[run.counted]
        assert len(run.workload) == len(run.outcomes)
        return {"impatient_jobs": float((waits > self.seconds * 10**9).sum())}
"""


def test_a_metric_of_ones_own_is_asked_for_in_a_study(kept_folder, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(kept_folder, folder, ignore=shutil.ignore_patterns("out"))
    (folder / "own.py").write_text(OWN)
    chosen = [{"name": "own.py:Impatient", "seconds": 100}, "latency"]
    study = load(folder / "study.toml", {"measure.metrics": chosen, "vary.scheduler.order": ["fcfs"]})
    result = run(study, tmp_path / "out", jobs=1)
    frame = result.frame()
    assert frame.columns[-5:] == ["impatient_jobs", *(f"{name}_job_latency_us" for name in ("mean", "p50", "p99", "p99_9"))]
    for cell in result.cells:
        outcomes, counted = result.outcomes(cell), result.population(cell)
        waits = (outcomes.start - outcomes.submit)[counted]
        assert cell.metrics["impatient_jobs"] == (waits > 100 * 10**9).sum() > 0
        assert cell.metrics["mean_job_latency_us"] == pytest.approx(((outcomes.end - outcomes.submit)[counted] / 1000).mean())
    again = run(load(folder / "study.toml", {"vary.scheduler.order": ["fcfs"]}), tmp_path / "out", jobs=1).frame()
    assert again.equals(frame[again.columns], null_equal=True), "what is asked for changes no other column, and no run"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (["own.py:Nobody"], "Nobody"),
        (["latenzy"], "did you mean 'latency'"),
        (["waits"], "measured twice"),
        (["latency", "latency"], "twice"),
    ],
)
def test_a_wrong_metric_is_named_where_it_stands(kept_folder, tmp_path, chosen, says):
    folder = tmp_path / "study"
    shutil.copytree(kept_folder, folder, ignore=shutil.ignore_patterns("out"))
    (folder / "own.py").write_text(OWN)
    with pytest.raises(InputError, match=says) as caught:
        load(folder / "study.toml", {"measure.metrics": chosen})
    assert caught.value.field == "measure.metrics"


def test_every_registered_measure_gives_the_metrics_that_it_names():
    workload = Workload.of(
        np.array([0, 1, 2]) * 10**9,
        np.full(3, 5 * 10**9),
        attributes={"deadline": np.array([6, 7, 5]) * 10**9, "parent": np.array([0, 0, 1])},
    )
    outcomes = Outcomes.of(simulate(workload, Machine.flat(1), backfill="none").schedule)
    everyone = np.ones(3, dtype=np.bool_)
    measures = [registry.find("metrics", name)() for name in registry.names("metrics")]
    further = [m for m in measures if type(m) not in {type(s) for s in STANDARD}]
    found = summarise(
        outcomes,
        warm_up=0,
        population=everyone,
        window=Window.whole(outcomes),
        measures=further,
        workload=lambda: workload,
    )
    assert list(found) == list(metrics_of((*STANDARD, *further))) and list(found)[: len(METRICS)] == list(METRICS)
    assert found["missed_deadlines_pct"] == pytest.approx(200 / 3), "they end at 5, 10 and 15 s"
    assert found["mean_job_latency_us"] == pytest.approx((10e6 + 13e6) / 2)
    with pytest.raises(InputError, match="needs the workload"):
        summarise(outcomes, warm_up=0, population=everyone, window=Window.whole(outcomes), measures=further)
