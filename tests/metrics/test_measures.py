"""Registered measures: descriptions of the shipped ones, and user-defined measures in a study."""

import shutil
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import engines, registry
from poolwise.errors import InputError
from poolwise.metrics import METRICS, Measure, MeasuredRun, Metric, Window, metrics_of, summarize
from poolwise.metrics.measures import OfferedLoad, Waits
from poolwise.metrics.summary import STANDARD, every_measure, measure_run, metric_columns, metrics_named
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.list import ListScheduler
from poolwise.simulation import measured, simulate
from poolwise.studies import load, run
from poolwise.traces import info, vinesim
from tests.helpers.memory_over_time import machine_with, using
from tests.helpers.nvme_examples import SHARING
from tests.helpers.nvme_examples import machine as nvme_machine
from tests.helpers.nvme_examples import workload as nvme_workload
from tests.helpers.one_of_each import schedule_of

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


def test_study_computes_a_user_defined_metric(kept_folder, tmp_path):
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
    assert again.equals(frame[again.columns], null_equal=True), "a further metric changes no other column and no run"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["own.py:Missing"], "Missing"),
        (["latenzy"], "did you mean 'latency'"),
        (["waits"], "two measures define the metric"),
        (["latency", "latency"], "two measures define"),
    ],
)
def test_invalid_metric_error_states_the_line(kept_folder, tmp_path, chosen, message):
    folder = tmp_path / "study"
    shutil.copytree(kept_folder, folder, ignore=shutil.ignore_patterns("out"))
    (folder / "own.py").write_text(OWN)
    with pytest.raises(InputError, match=message) as caught:
        load(folder / "study.toml", {"measure.metrics": chosen})
    assert caught.value.field == "measure.metrics"


def test_metrics_are_equal_with_and_without_a_schedule():
    workload = Workload.of(
        np.array([0, 1, 2]) * 10**9,
        np.full(3, 5 * 10**9),
        attributes={"deadline": np.array([6, 7, 5]) * 10**9, "parent": np.array([0, 0, 1])},
    )
    run = simulate(workload, Machine.flat(1), backfill="none")
    outcomes, everyone = run.outcomes, np.ones(3, dtype=np.bool_)
    further = [registry.make("metrics", name) for name in ("deadlines", "latency")]
    measure = {"warm_up": 0, "population": everyone, "window": Window.whole(outcomes), "measures": further}
    values = summarize(outcomes, **measure, workload=lambda: workload)
    assert list(values) == list(metrics_of((*STANDARD, *further))) and list(values)[: len(METRICS)] == list(METRICS)
    assert values["missed_deadlines_pct"] == pytest.approx(200 / 3), "they end at 5, 10 and 15 s"
    assert values["mean_job_latency_us"] == pytest.approx((10e6 + 13e6) / 2)
    assert {name: run.metrics.get(name, np.nan) for name in values} == pytest.approx(values, rel=0, nan_ok=True)
    with pytest.raises(InputError, match="needs the workload"):
        summarize(outcomes, **measure)
    with pytest.raises(InputError, match="needs the schedule"):
        summarize(outcomes, **{**measure, "measures": [registry.make("metrics", "units")]})


def one_of_each_system():
    """Yield runs on whole nodes, shared nodes, NVMe devices, processing units, and whole nodes with memory use over time."""
    nvme = nvme_workload([(0, "smufin"), (1, "compute")])
    devices = nvme_machine()
    tasks, units = vinesim.TaskList.of_jobs([2, 1], 2, 20), vinesim.UnitList.of([(0, 0, 0)])
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    case = vinesim.VineSimCase.of(units, tasks, rates)
    done = engines.simulate(case.workload, case.machine, Dispatch(), model=case.model)
    whole = simulate(Workload.of(np.zeros(3), np.full(3, 10**9)), Machine.flat(2))
    placed = engines.simulate(nvme, devices, CompositionScheduler(), model=SHARING)
    return {
        "whole nodes": whole.schedule,
        "shared nodes": schedule_of([(0, 0, 10, 6, 4, 1), (4, 10, 20, 8, 0, 2)]),
        "devices": placed.schedule,
        "units": done.schedule,
        "memory over time": engines.simulate(using([80], [[(0, 20)]], [9]), machine_with(100), ListScheduler()).schedule,
    }


def test_every_measure_applies_to_some_system_and_is_omitted_elsewhere():
    """A measure that applies returns exactly its declared metrics; only metrics with `per` have several parts."""
    further = {
        "whole nodes": {"load"},
        "shared nodes": {"devices", "resources", "energy", "purchase", "memory", "memory_dollars"},
        "devices": {"devices", "resources", "deadlines"},
        "units": {"units", "task_latency"},
        "memory over time": {"load", "memory", "memory_dollars", "memory_use"},
    }
    always = {"waits", "throughput", "fairness", "latency"}
    for system, schedule in one_of_each_system().items():
        run = MeasuredRun.of(schedule)
        applying = {name for name in registry.names("metrics") if registry.make("metrics", name).applies(run)}
        assert applying == always | further[system], system
        measurements = measured(schedule, "any", 0.0)
        assert list(measurements.described) == list(measurements.metrics)
        expected = metrics_of(registry.make("metrics", name) for name in applying)
        assert {name.partition(".")[0] for name in measurements.metrics} == set(expected)
        assert all(("." in name) == bool(metric.per) for name, metric in measurements.described.items())
    assert set.union(always, *further.values()) == set(registry.names("metrics"))


def test_energy_and_resources_of_shared_nodes_match_a_hand_computation():
    """Half of the time 6 of 10 cores, 4 of 8 MiB of the pool and one GPU are in use; the other half, only idle watts."""
    run = MeasuredRun.of(schedule_of([(0, 0, 10, 6, 4, 1)]))
    run = replace(run, window=Window(0, 20 * SECOND))
    assert registry.make("metrics", "energy").of(run) == {"energy_j": pytest.approx((155 + 265 / 2) * 20)}
    assert registry.make("metrics", "purchase").of(run) == {"purchase_cost": 1850}
    values = registry.make("metrics", "resources").of(run)
    assert values["resource_used.cores"] == pytest.approx(0.3) and values["resource_stranded.cores"] == 0


class Parts(Measure):
    """Measure that returns one part for each name given to it."""

    metrics: ClassVar = {"whole": Metric("a whole", "", "lower"), "part": Metric("a part", "", "lower", per="letter")}

    def __init__(self, *names):
        self.names = names

    def of(self, run):
        return dict.fromkeys(self.names, 1)


def test_parts_follow_their_metric_and_undeclared_names_are_rejected():
    run = MeasuredRun.of(schedule_of([(0, 0, 10, 6, 4, 1)]))
    assert list(measure_run(run, [Parts("part.b", "whole", "part.a")])) == ["whole", "part.b", "part.a"]
    rows = [{"part.b": 1.0}, {"part.a": 1.0, "part.b": 2.0}]
    assert metric_columns([Parts()], rows) == ("whole", "part.b", "part.a")
    assert metrics_named([Parts()], ["part.a"])["part.a"].description == "a part: a"
    for names, wrong in ((("part.a",), "whole"), (("whole", "part"), "part"), (("whole", "whole.a"), "whole.a"), (("x",), "x")):
        with pytest.raises(InputError, match=f"Parts (returns|declares the metric) '{wrong}'"):
            measure_run(run, [Parts(*names)])


def test_requested_measure_replaces_the_registered_one():
    kinds = [type(measure) for measure in every_measure([Waits()])]
    assert kinds.count(Waits) == 1 and kinds[-1] is Waits and len(kinds) == len(registry.names("metrics"))
    assert [type(measure) for measure in every_measure()][: 1 + len(STANDARD)] == [OfferedLoad, *map(type, STANDARD)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30), st.integers(1, 5)), min_size=1, max_size=12), st.integers(1, 4)
)
def test_load_matches_trace_info_and_is_the_first_metric(jobs, nodes):
    submit, duration, width = (np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True))
    workload = Workload.of(submit * SECOND, duration * SECOND, requests={"nodes": width})
    machine = Machine.flat(nodes)
    result = simulate(workload, machine, engine="reference")
    expected = info(workload, machine)["load"]
    assert result.metrics["offered_load"] == pytest.approx(np.nan if expected is None else expected, nan_ok=True)
    assert next(iter(result.metrics)) == "offered_load"
