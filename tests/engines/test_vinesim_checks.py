"""Exact checks of the accelerator specification: VineSim's tables and values derived from its numbers."""

import math
from functools import cache

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.metrics.latency import LatencySummary, job_latency_us, response_us
from poolwise.metrics.unit_use import dispatch_window, unit_use
from poolwise.model import Schedule
from poolwise.quantities import US
from poolwise.random import uniform
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim

FP_BAD, FP_GOOD = 1, 2
CPU, GPU = 0, 2
RATES = np.zeros((6, 7))
RATES[CPU, :3], RATES[GPU, :3] = (100_000, 60_000, 60_000), (1_200_000, 12_000, 1_200_000)  # Table 2


def run(
    units: list[tuple[int, int, int]],
    tasks: vinesim.TaskList,
    gap: float,
    policy: str,
    seed: int = 0,
    rates: np.ndarray = RATES,
    **settings: str,
) -> Schedule:
    case = vinesim.VineSimCase.of(vinesim.UnitList.of(units), tasks, rates, gap)
    scheduler = Dispatch(make("placements", policy, **settings))
    return simulate(case.workload, case.machine, scheduler, model=case.model, estimate=case.estimate, seed=seed).schedule


def mix(gpus: int, units: int = 40) -> list[tuple[int, int, int]]:
    """Return the given number of GPUs behind CPUs in one rack."""
    return [(GPU if k >= units - gpus else CPU, 0, k) for k in range(units)]


def latency(schedule: Schedule) -> float:
    return float(job_latency_us(schedule).mean())


@pytest.mark.parametrize(
    ("kind", "unit", "ns"), [(FP_GOOD, GPU, 2_500), (FP_GOOD, CPU, 50_000), (FP_BAD, GPU, 250_000), (FP_BAD, CPU, 50_000)]
)
def test_times_of_three_million_operations_equal_table_2(kind: int, unit: int, ns: int) -> None:
    schedule = run([(unit, 0, 0)], vinesim.TaskList.of_jobs([1], kind, 3_000_000), 0, "high")
    assert (int(schedule.start[0]), int(schedule.end[0])) == (0, ns)


def test_latencies_of_figure_4_at_low_load() -> None:
    """With 30 tasks on 40 units and one job at a time, the slowest unit that a job uses decides."""

    def low_load_latency(kind: int, gpus: int) -> float:
        return latency(run(mix(gpus), vinesim.TaskList.of_jobs([30] * 20, kind, 3_000_000), 1000, "high"))

    assert [low_load_latency(FP_GOOD, gpus) for gpus in (0, 26, 32, 40)] == [50, 50, 2.5, 2.5]
    assert [low_load_latency(FP_BAD, gpus) for gpus in (0, 8, 13, 40)] == [50, 50, 250, 250]


@cache
def twenty_twenty(gap: float, policy: str, preferred: int = GPU, seed: int = 0, jobs: int = 500) -> Schedule:
    """Schedule jobs of 5 tasks of 30M FP_GOOD operations without data on 20 CPUs and 20 GPUs."""
    return run(mix(20), vinesim.TaskList.of_jobs([5] * jobs, FP_GOOD, 30_000_000, preferred), gap, policy, seed)


def test_high_at_low_load_is_exactly_25_us() -> None:
    assert set(job_latency_us(twenty_twenty(1000, "high"))) == {25.0}


def test_flat_at_low_load_is_488_8_us_in_expectation() -> None:
    """A share of 1 - C(20,5) / C(40,5) of the jobs runs a task on a CPU."""
    expected = 500 - 475 * math.comb(20, 5) / math.comb(40, 5)
    assert expected == pytest.approx(488.8, abs=0.05) and expected / 25 == pytest.approx(19.55, abs=0.005)
    values = np.concatenate([job_latency_us(twenty_twenty(1000, "flat", seed=seed)) for seed in range(4)])
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    assert abs(float(values.mean()) - expected) < 4 * error
    assert set(values) == {25.0, 500.0}


@pytest.mark.parametrize(("gap", "idle"), [(7, True), (6.25, True), (6.249, False), (6, False)])
def test_high_leaves_the_cpus_idle_at_6_25_us_and_above(gap: float, idle: bool) -> None:
    use = unit_use(schedule := twenty_twenty(gap, "high"), dispatch_window(schedule))
    assert (use.by_type()["cpu-intel"] == 0) == idle
    assert (set(job_latency_us(schedule)) == {25.0}) == idle


def test_makespans_with_all_jobs_at_once() -> None:
    """2500 tasks take 3000 us on 20 GPUs and 20 CPUs, and 3125 us on the GPUs alone."""
    cases = [("high", GPU), ("flat", GPU), ("pref", GPU)]
    spans = [dispatch_window(twenty_twenty(0, policy, wanted)).end / US for policy, wanted in cases]
    assert spans == [3000, 3000, 3125]


@pytest.mark.parametrize(("gap", "queues"), [(1000, False), (125, False), (124.9, True), (100, True)])
def test_cpus_alone_sustain_one_job_per_125_us(gap: float, queues: bool) -> None:
    values = job_latency_us(twenty_twenty(gap, "pref", CPU))
    assert (values.max() > 500) == queues and values.min() == 500


def test_latency_of_flat_falls_before_it_rises_as_load_grows() -> None:
    """At high load the CPUs stay busy and the GPUs get the tasks, so the latency is least near 6 us."""
    latency_at = {
        gap: np.mean([latency(twenty_twenty(gap, "flat", seed=seed)) for seed in range(3)])
        for gap in (1000, 125, 25, 10, 6, 4, 2, 0)
    }
    least = min(latency_at, key=latency_at.__getitem__)
    assert least in (4, 6, 10)
    assert (
        latency_at[1000]
        > latency_at[125]
        > latency_at[25]
        > latency_at[10]
        > latency_at[6]
        < latency_at[4]
        < latency_at[2]
        < latency_at[0]
    )


def test_one_gpu_sustains_the_load_of_20_cpus() -> None:
    """The paper states 25, but its numbers give 20: 400 CPUs sustain the same load as 20 GPUs."""
    tasks = vinesim.TaskList.of_jobs([5] * 300, FP_GOOD, 30_000_000)
    for units in ([(GPU, 0, k) for k in range(20)], [(CPU, 0, k) for k in range(400)]):
        own = 25 if units[0][0] == GPU else 500
        assert set(job_latency_us(run(units, tasks, 6.25, "high"))) == {own}
        assert job_latency_us(run(units, tasks, 6.2, "high")).max() > own


@pytest.mark.parametrize(
    ("size", "near_us", "far_us"),
    [(1_000_000, 800, 8000), (62_500, 50, 500), (7_812, 6.25, 62.5)],  # 7812.5 B take 6.25 us
)
def test_transfer_times_equal_table_4(size: int, near_us: float, far_us: float) -> None:
    """The payload crosses one switch (200 ns) within the rack and three across racks; local data cost nothing."""
    tasks = vinesim.TaskList.of([(FP_GOOD, size, 0, 0, 30_000_000, GPU, job) for job in range(3)])
    schedule = run([(GPU, 0, 0), (GPU, 0, 1), (GPU, 1, 0)], tasks, 0, "high")
    here, near, far = (response_us(schedule) - 25).tolist()
    assert here == 0
    assert near == pytest.approx(near_us + 0.2, rel=1e-4)
    assert far == pytest.approx(far_us + 0.6, rel=1e-4)
    if size > 10_000:
        assert (near, far) == (near_us + 0.2, far_us + 0.6)


def figure_15(gap: float, size: int, policy: str, seed: int = 0, jobs: int = 500) -> float:
    """Return the mean latency on two racks of 20 alternating CPUs and GPUs (assumed), with task data at random units."""
    units = [(GPU if y % 2 else CPU, x, y) for x in range(2) for y in range(20)]
    place = (uniform(seed, "test.place", np.arange(5 * jobs)) * 40).astype(int)
    job = np.repeat(np.arange(jobs), 5)
    rows = [(FP_GOOD, size, p // 20, p % 20, 30_000_000, GPU, j) for p, j in zip(place.tolist(), job.tolist(), strict=True)]
    return latency(run(units, vinesim.TaskList.of(rows), gap, policy, seed))


def test_best_policy_at_low_load_depends_on_the_data_size() -> None:
    """With 1000 us between jobs HIGH wins at 8 KB, both are equal at 64 KB, and CLOSER_TO_DATA wins at 1 MB."""
    high, closer = (
        {size: figure_15(1000, size, policy) for size in (7_812, 62_500, 1_000_000)} for policy in ("high", "closer_to_data")
    )
    assert closer[7_812] >= 4 * high[7_812]
    assert closer[62_500] == pytest.approx(high[62_500], rel=0.10)
    assert high[1_000_000] >= 8 * closer[1_000_000]


def test_policies_converge_at_high_load() -> None:
    """At 64 KB and 50 us only CLOSER_TO_DATA sustains the load; with all jobs at once the policies hardly differ."""
    assert figure_15(50, 62_500, "high") >= 3 * figure_15(50, 62_500, "closer_to_data")
    for size in (7_812, 62_500, 1_000_000):
        latencies = [figure_15(0, size, policy) for policy in ("high", "flat", "closer_to_data")]
        assert max(latencies) <= 1.25 * min(latencies)


NEURASMUS = np.zeros((9, 10))  # types 6, 7, 8 are PHI, DFE, GPU; tasks 7, 8, 9 are SGJ, RGJ, NGJ of one operation (Table 3)
NEURASMUS[6, 7:], NEURASMUS[7, 7:], NEURASMUS[8, 7:] = (
    1 / np.array([500, 750, 100]),
    1 / np.array([300, 500, 10]),
    1 / np.array([100, 2400, 60]),
)


def neurasmus(gap: float, counts: dict[int, int], seed: int = 0) -> float:
    """Return the mean latency of 2500 jobs of one kernel each, the three equally likely; CPUs run none."""
    kinds = 7 + (uniform(seed, "test.kernel", np.arange(2500)) * 3).astype(int)
    units = [(kind, 0, k) for kind, count in counts.items() for k in range(count)] + [(CPU, 1, k) for k in range(10)]
    types = vinesim.Types((*vinesim.Types().units, "phi", "dfe", "g"), (*vinesim.Types().tasks, "sgj", "rgj", "ngj"))
    case = vinesim.VineSimCase.of(
        vinesim.UnitList.of(units), vinesim.TaskList.of_jobs([1] * 2500, kinds.tolist(), 1), NEURASMUS, gap, types=types
    )
    return latency(simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule)


@pytest.mark.parametrize("gap", [1000, 50, 20])
def test_mixed_neurasmus_deployment_is_best_at_low_load(gap: float) -> None:
    mixed, dfe, phi, gpu = (neurasmus(gap, units) for units in ({6: 10, 7: 10, 8: 10}, {7: 30}, {6: 30}, {8: 30}))
    assert mixed < dfe < phi < gpu


@pytest.mark.parametrize("gap", [10, 5, 0])
def test_dfe_neurasmus_deployment_is_best_at_high_load(gap: float) -> None:
    """Below about 14 us the mixed deployment lacks capacity."""
    mixed, dfe, phi, gpu = (neurasmus(gap, units) for units in ({6: 10, 7: 10, 8: 10}, {7: 30}, {6: 30}, {8: 30}))
    assert dfe < mixed and dfe < phi < gpu


def test_neurasmus_times_equal_table_3() -> None:
    types = vinesim.Types((*vinesim.Types().units, "phi", "dfe", "g"), (*vinesim.Types().tasks, "sgj", "rgj", "ngj"))
    for unit, times in {6: (500, 750, 100), 7: (300, 500, 10), 8: (100, 2400, 60)}.items():
        tasks = vinesim.TaskList.of_jobs([1, 1, 1], [7, 8, 9], 1)
        case = vinesim.VineSimCase.of(vinesim.UnitList.of([(unit, 0, k) for k in range(3)]), tasks, NEURASMUS, 0, types=types)
        assert response_us(simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule).tolist() == list(times)


def test_spread_distinguishes_median_and_mean() -> None:
    spread = LatencySummary.of(np.array([1.0, 1.0, 10.0]))
    assert (spread.mean, spread.p50) == (4.0, 1.0)
