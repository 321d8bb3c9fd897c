import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.metrics.compositions import composition_faults
from poolwise.metrics.deadlines import missed, missed_high_priority_pct, missed_pct
from poolwise.metrics.devices import demand_before, device_use, mean_load, nodes_of
from poolwise.metrics.window import Window
from poolwise.model import Outcome, Schedule
from poolwise.quantities import SECOND
from tests.helpers.nvme_examples import SHARING, machine, workload


def record(what, jobs, runs, waiting=()):
    """Return a schedule from runs (job, start s, end s, rows)."""
    rows = [row for *_, placement in runs for row in placement]
    lengths = [len(placement) for *_, placement in runs]
    return Schedule(
        machine=what,
        workload=jobs,
        job=np.array([job for job, *_ in runs], dtype=np.int64),
        start=np.array([start * SECOND for _, start, *_ in runs], dtype=np.int64),
        end=np.array([end * SECOND for _, _, end, _ in runs], dtype=np.int64),
        tasks=np.ones(len(runs), dtype=np.int64),
        outcome=(Outcome.FINISHED,) * len(runs),
        offset=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        owner=np.array([owner for owner, _, _ in rows], dtype=np.int64),
        resource=np.array([resource for _, resource, _ in rows], dtype=np.int64),
        amount=np.array([amount for _, _, amount in rows], dtype=np.int64),
        rejected={},
        waiting=tuple(waiting),
        passes=0,
        refused={},
    )


def on(node, *devices, cores=6, storage=43):
    rows = [(node, 1, cores)]
    for k, device in enumerate(devices):
        rows += [(device, 0, 0), (device, 2, storage if k == 0 else 0)]
    return rows


WHAT = machine(nodes=(25, 25), devices=((2000, 600),) * 4)  # owners 0, 1 are nodes, 2 to 5 devices
JOBS = workload([(0, "smufin"), (0, "smufin"), (10, "smufin"), (20, "compute")], deadlines=[40, 39, 60, 100])
RECORD = record(
    WHAT, JOBS, [(0, 0, 40, on(0, 2, 3)), (1, 0, 20, on(0, 2, 3)), (2, 10, 50, on(1, 4)), (3, 20, 30, [(1, 1, 15)])]
)


def test_time_averages_match_a_hand_computation():
    """0-10 s: 1 composition, 2 devices, 2 workloads; 10-20: 2, 3, 3; 20-40: 2, 3, 2; 40-50: 1, 1, 1; 50-60: nothing."""
    use = device_use(RECORD, Window(0, 60 * SECOND))
    assert use.usage_pct == pytest.approx(100 * (10 * 2 + 10 * 3 + 20 * 3 + 10 * 1) / 60 / 4)
    assert use.composition_size == pytest.approx((10 * 2 + 10 * 1.5 + 20 * 1.5 + 10 * 1) / 50)
    assert use.sharing_ratio == pytest.approx((10 * 2 + 10 * 1.5 + 20 * 1 + 10 * 1) / 50)
    assert use.composition_size_floor == pytest.approx((10 * 2 + 10 + 20 + 10 + 10 * 1) / 60)
    assert use.sharing_ratio_floor == pytest.approx((10 * 2 + 10 + 20 + 10 + 0) / 60)
    assert use.cpu_load == pytest.approx((6 * 40 + 6 * 20 + 6 * 40 + 15 * 10) / (50 * 60))
    assert use.bandwidth_load == pytest.approx(1800 * 100 / (8000 * 60))
    assert use.capacity_load == pytest.approx(43 * 100 / (2400 * 60))


def test_device_use_counts_only_the_window():
    use = device_use(RECORD, Window(15 * SECOND, 20 * SECOND))
    assert (use.composition_size, use.sharing_ratio) == (1.5, 1.5)
    assert mean_load(RECORD, "cores", Window(15 * SECOND, 20 * SECOND)) == pytest.approx(18 / 50)
    assert np.isnan(mean_load(RECORD, "cores", Window(5, 5)))


def test_demand_before_a_start_excludes_ends_of_the_same_instant():
    assert demand_before(RECORD, "bandwidth").tolist() == [0, 1800 / 8000, 3600 / 8000, 3600 / 8000]


def test_nodes_of_runs():
    assert nodes_of(RECORD).tolist() == [0, 0, 1, 1]


def test_missed_deadlines():
    assert missed(RECORD).tolist() == [False, False, False, False]
    jobs = workload([(0, "smufin")] * 3, deadlines=[39, 20, 9999])
    jobs.attributes["high_priority"] = np.array([1, 1, 0])
    late = record(WHAT, jobs, [(0, 0, 40, on(0, 2)), (1, 0, 20, on(0, 3))], waiting=(2,))
    assert missed(late).tolist() == [True, False, True]
    assert missed_pct(late, np.array([True, True, False])) == 50
    assert missed_high_priority_pct(late) == pytest.approx(100 / 3)
    assert np.isnan(missed_pct(late, np.zeros(3, dtype=bool)))


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([(0, 0, 9, on(0, 2, 3)), (1, 5, 9, on(0, 3))], "in 2 compositions"),
        ([(0, 0, 9, on(0, 2)), (1, 5, 9, on(1, 2))], "in 2 compositions or on several nodes"),
        ([(0, 0, 9, on(0, 2, storage=400)), (1, 5, 9, on(0, 2, storage=400))], "capacity of storage"),
        ([(0, 0, 9, on(0, 2, cores=15)), (1, 5, 9, on(0, 2, cores=15))], "capacity of cores"),
    ],
)
def test_composition_faults_are_detected(runs, words):
    assert words in composition_faults(record(WHAT, JOBS, runs))[0]


def test_compositions_across_places_and_exceeded_fabrics_are_detected():
    apart = machine(devices=((2000, 600),) * 2, racks=(0, 1))
    assert "several locations" in composition_faults(record(apart, JOBS, [(0, 0, 9, on(0, 2, 3))]))[0]
    inside = machine(devices=((2000, 600),) * 2, homes=(0, 0))
    assert "attached to another node" in composition_faults(record(inside, JOBS, [(0, 0, 9, on(1, 2))]))[0]
    narrow = machine(devices=((2000, 600),) * 2, fabric=3000)
    assert "fabric" in composition_faults(record(narrow, JOBS, [(0, 0, 9, on(0, 2)), (1, 1, 9, on(1, 3))]))[0]


def test_simulated_run_has_no_faults_and_matches_a_slow_count():
    jobs = workload([(40 * k, ("smufin", "capacity", "compute")[k % 3]) for k in range(60)])
    from poolwise.schedulers.composition import CompositionScheduler

    schedule = simulate(jobs, machine(nodes=(25,) * 3), CompositionScheduler(), model=SHARING).schedule
    assert composition_faults(schedule) == []
    window = Window(0, int(schedule.end.max()))
    instants = np.linspace(0, window.end, 4001)[:-1] + window.end / 8000
    devices = [{o for o, _, _ in schedule.placement_of(k) if o >= 3} for k in range(schedule.n_run)]
    ratios = []
    for t in instants:
        here = [frozenset(devices[k]) for k in range(schedule.n_run) if devices[k] and schedule.start[k] <= t < schedule.end[k]]
        if here:
            ratios.append((sum(map(len, set(here))) / len(set(here)), len(here) / len(set(here))))
    use = device_use(schedule, window)
    assert (use.composition_size, use.sharing_ratio) == pytest.approx(np.mean(ratios, axis=0), rel=0.01)
