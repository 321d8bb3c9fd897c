"""Metrics of tasks on units, compared with hand computations and with counting each nanosecond."""

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.metrics import MeasuredRun
from poolwise.metrics.latency import LatencySummary, job_latency_us, response_us, task_latency_us
from poolwise.metrics.measures import LatencyMeasure, TaskLatency
from poolwise.metrics.unit_use import dispatch_window, energy_j, purchase, unit_series, unit_use
from poolwise.model import Schedule
from poolwise.performance.affinity import compute_times, rates
from poolwise.schedulers.dispatch import Dispatch
from poolwise.simulation import measured
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import study


def run(seed: int, **options: object) -> Schedule:
    case = study(seed, 40).case(**options)
    return simulate(case.workload, case.machine, Dispatch(), model=case.model, estimate=case.estimate).schedule


@pytest.mark.parametrize("seed", range(6))
def test_busy_time_matches_counting_each_nanosecond(seed: int) -> None:
    schedule = run(seed)
    window = dispatch_window(schedule)
    step = max(1, (window.end - window.begin) // 997)
    use, series = unit_use(schedule, window), unit_series(schedule, window, step)
    assert (window.begin, window.end) == (0, int(schedule.end.max()))
    for unit, share in zip(use.unit.tolist(), use.utilization.tolist(), strict=True):
        mine = schedule.owner == unit
        assert share == pytest.approx(float((schedule.end - schedule.start)[mine].sum()) / window.end, abs=1e-12)
    assert use.overall == pytest.approx(float((series.overall * series.length).sum()) / window.end, abs=1e-9)
    for k in (0, len(series.begin) // 2, len(series.begin) - 1):
        low, high = int(series.begin[k]), int(series.begin[k] + series.length[k])
        for name, column in series.by_type.items():
            units = [u for u in use.unit.tolist() if schedule.machine.type[u] == name]
            rows = np.isin(schedule.owner, units)
            inside = np.clip(np.minimum(schedule.end[rows], high) - np.maximum(schedule.start[rows], low), 0, None)
            assert column[k] == pytest.approx(inside.sum() / (len(units) * (high - low)), abs=1e-9)
    assert series.overall.min() >= 0 and series.overall.max() <= 1 + 1e-12


def hand(prices: bool = True) -> Schedule:
    """Return two jobs of two tasks: 10 us on the GPU, 20 us on the CPU; the second arrives after 5 us."""
    rates = np.zeros((6, 7))
    rates[0, 2], rates[2, 2] = 1.0, 2.0
    power = vinesim.Power(np.full((6, 7), np.nan), np.full(6, np.nan))
    power.busy[0, 2], power.busy[2, 2], power.idle[[0, 2]] = 90, 250, (30, 60)
    case = vinesim.VineSimCase.of(
        vinesim.UnitList.of([(0, 0, 0), (2, 0, 1)]),
        vinesim.TaskList.of_jobs([2, 2], 2, 20),
        rates,
        "5us",
        prices=np.array([300.0, np.nan, 2000.0, np.nan, np.nan, np.nan]) if prices else None,
        power=power if prices else None,
    )
    return simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule


def test_metrics_match_a_hand_computation() -> None:
    """Job 0: GPU 0-10, CPU 0-20. Job 1: GPU 10-20, and 20-30, since HIGH prefers it to the idle CPU."""
    schedule = hand()
    assert job_latency_us(schedule).tolist() == [20, 25]
    assert sorted(task_latency_us(schedule).tolist()) == [10, 15, 20, 25]
    assert sorted(response_us(schedule).tolist()) == [10, 10, 10, 20]
    run = measured(schedule, "reference", 0.0)
    assert run.metrics["unit_utilization_by_type.cpu-intel"] == pytest.approx(2 / 3)
    assert run.metrics["unit_utilization_by_type.gpu"] == 1.0
    assert run.described["unit_utilization_by_type.gpu"].description == "mean utilization of processing units: gpu"
    assert run.metrics["unit_utilization"] == pytest.approx(5 / 6)
    assert run.metrics["p50_unit_utilization"] == pytest.approx(5 / 6)
    assert run.metrics["purchase_cost"] == purchase(schedule.machine) == 2300
    assert run.metrics["energy_j"] == pytest.approx((20 * 90 + 10 * 30 + 30 * 250) * 1e-6)
    assert (run.jobs, run.metrics["measured_tasks"], run.metrics["makespan_s"]) == (2, 4, 30e-6)
    assert run.metrics["mean_job_latency_us"] == 22.5
    assert run.metrics["mean_task_latency_us"] == 17.5 and run.metrics["p99_response_us"] == pytest.approx(19.7)
    series = unit_series(schedule, dispatch_window(schedule), 10_000)
    assert {name: column.tolist() for name, column in series.by_type.items()} == {"cpu-intel": [1, 1, 0], "gpu": [1, 1, 1]}
    assert series.overall.tolist() == [1, 1, 0.5]


def test_tasks_of_unmeasured_jobs_are_excluded() -> None:
    run = replace(MeasuredRun.of(hand()), population=np.array([True, False]))
    values = TaskLatency().of(run)
    assert (values["measured_tasks"], values["mean_task_latency_us"], values["mean_response_us"]) == (2, 15, 15)
    assert LatencyMeasure().of(run)["mean_job_latency_us"] == 20


def test_metrics_that_do_not_apply_are_omitted() -> None:
    metrics = measured(hand(prices=False), "reference", 0.0).metrics
    assert not {"purchase_cost", "energy_j", "mean_degradation", "memory_dollars", "resource_used.slots"} & set(metrics)


def test_missing_power_is_rejected() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    tasks, units = vinesim.TaskList.of_jobs([1], 2, 20), vinesim.UnitList.of([(0, 0, 0)])
    power = vinesim.Power(np.full((6, 7), np.nan), np.zeros(6))
    case = vinesim.VineSimCase.of(units, tasks, rates, power=power)
    schedule = simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule
    with pytest.raises(InputError, match="power for unit type 'cpu-intel' and tasks of type 2"):
        energy_j(schedule, dispatch_window(schedule))
    with pytest.raises(InputError, match="unit type 'cpu-intel' has no price"):
        vinesim.VineSimCase.of(units, tasks, rates, prices=np.full(6, np.nan))


def test_job_consists_of_all_rows_of_one_parent() -> None:
    """Tasks with data in several places are separate rows; the job ends with the last of them."""
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    rows = [(2, 0, 0, 0, 10, 5, 4), (2, 0, 1, 0, 30, 5, 4), (2, 0, 1, 0, 30, 5, 4), (2, 0, 0, 0, 5, 5, 2)]
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, k) for k in range(4)]), vinesim.TaskList.of(rows), rates, 100)
    assert case.workload.tasks.tolist() == [1, 2, 1]
    assert case.workload.attributes["parent_job_id"].tolist() == [4, 4, 2]
    schedule = simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule
    assert job_latency_us(schedule).tolist() == [30, 5]


@pytest.mark.parametrize("seed", range(2, 6))
def test_response_includes_transfers_over_shared_links(seed: int) -> None:
    """Each task is one run; its response minus its compute time is its transfer time, zero without data."""
    schedule = run(seed, contended=True)
    columns = {name: column[schedule.job] for name, column in schedule.workload.attributes.items()}
    rate = rates(schedule.machine)[columns["task_type"], schedule.owner]
    fetching = response_us(schedule) - compute_times(columns["operations"].astype(float), rate) / 1000
    place = np.stack([columns["data_x"], columns["data_y"]], axis=1)
    travels = (columns["data_size"] > 0) & (place != schedule.machine.position[schedule.owner]).any(axis=1)
    assert len(fetching) == schedule.n_run == int(schedule.workload.tasks.sum())
    assert (fetching[travels] >= 0.2 + columns["data_size"][travels] / 1250 - 1e-9).all() and travels.any()
    assert fetching[~travels] == pytest.approx(0.0, abs=1e-9)


def test_spread_of_no_values_is_nan() -> None:
    assert LatencySummary.of(np.zeros(0)).count == 0 and np.isnan(LatencySummary.of(np.zeros(0)).p99_9)


@pytest.mark.parametrize("interval", [0, -5])
def test_invalid_sampling_interval_is_rejected(interval: int) -> None:
    schedule = hand()
    with pytest.raises(InputError, match="sampling interval"):
        unit_series(schedule, dispatch_window(schedule), interval)
