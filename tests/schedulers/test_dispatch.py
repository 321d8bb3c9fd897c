"""Task dispatch: comparison with a naive implementation, guarantees, network contention, and loss of units."""

from dataclasses import replace

import numpy as np
import pytest

from poolwise.conformance import check
from poolwise.conformance.cases import Case
from poolwise.conformance.scheduler import check_scheduler
from poolwise.engines import Disturbance, simulate
from poolwise.errors import InputError
from poolwise.metrics.latency import response_us
from poolwise.model import Schedule
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import POLICIES, TIERED, Naive, policy_of, study

named = pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])


def by_task(schedule: Schedule) -> list[tuple[int, int, int]]:
    """Return (start, end, unit) in trace order; runs of one row start in the order of its tasks."""
    rows = zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), schedule.owner.tolist(), strict=True)
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


@pytest.mark.long
@named
@pytest.mark.parametrize("block", range(2))
def test_random_studies_match_a_full_scan(entry: tuple[str, dict[str, object]], block: int) -> None:
    for seed in range(12 * block, 12 * block + 12):
        this, policy = study(seed, 40), policy_of(entry)
        case = this.case()
        schedule = simulate(
            case.workload, case.machine, Dispatch(policy), model=case.model, seed=seed, engine="reference"
        ).schedule
        assert schedule.done.all() and not schedule.refused
        assert by_task(schedule) == Naive(this, policy, seed).run(), seed


@pytest.mark.long
@named
def test_long_running_dispatcher_decides_as_a_fresh_one(entry: tuple[str, dict[str, object]]) -> None:
    for seed in (3, 4, 5):
        case = study(seed, 30).case()
        results = check_scheduler(Dispatch(policy_of(entry)), Case(case.workload, case.machine, model=case.model))
        assert [str(result) for result in results if not result.ok] == []


@pytest.mark.parametrize("entry", [("flat", {}), ("earliest_finish", {}), ("delay", {"patience": 0.3})])
def test_unit_policies_fulfill_the_placement_contract(entry: tuple[str, dict[str, object]]) -> None:
    assert [str(result) for result in check(policy_of(entry)) if not result.ok] == []


def test_blocked_task_does_not_block_other_types() -> None:
    """A task that only the GPU may run waits; a task of another type behind it takes the idle CPU at once."""
    rates = np.zeros((6, 7))
    rates[2, 2], rates[0, 1] = 1.0, 1.0
    tasks = vinesim.TaskList.of([(2, 0, 0, 0, 10, 2, 0), (2, 0, 0, 0, 10, 2, 1), (1, 0, 0, 0, 10, 0, 2)])
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), tasks, rates)
    schedule = simulate(case.workload, case.machine, Dispatch(), model=case.model).schedule
    assert by_task(schedule) == [(0, 10_000, 0), (10_000, 20_000, 0), (0, 10_000, 1)]


def test_earliest_finish_waits_for_a_fast_unit_that_is_soon_free() -> None:
    """GPU 25 us, CPU 500 us: twenty tasks queue at the GPU; the CPU receives the task that would finish after 500 us there."""
    rates = np.zeros((6, 7))
    rates[0, 2], rates[2, 2] = 60_000, 1_200_000
    tasks = vinesim.TaskList.of_jobs([21], 2, 30_000_000)
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), tasks, rates)
    intervals = by_task(
        simulate(case.workload, case.machine, Dispatch(make("placements", "earliest_finish")), model=case.model).schedule
    )
    assert sorted(unit for _, _, unit in intervals) == [0] * 20 + [1]
    assert max(end for _, end, _ in intervals) == 500_000


def test_delay_waits_at_most_as_long_as_the_better_unit_saves() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2], rates[2, 2] = 1.0, 4.0
    tasks = vinesim.TaskList.of_jobs([3], 2, 100)  # 25 us on the GPU, 100 us on the CPU: waiting 75 us pays off
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), tasks, rates)
    for patience, starts in (
        (1.0, [(0, 0), (25_000, 0), (50_000, 0)]),
        (0.5, [(0, 0), (25_000, 0), (37_500, 1)]),
        (0, [(0, 0), (0, 1), (25_000, 0)]),
    ):
        policy = make("placements", "delay", patience=patience)
        schedule = simulate(case.workload, case.machine, Dispatch(policy), model=case.model).schedule
        assert sorted((start, unit) for start, _, unit in by_task(schedule)) == starts


@named
def test_tasks_of_lost_units_are_requeued_and_run_once(entry: tuple[str, dict[str, object]]) -> None:
    """Tasks of a lost unit are requeued in their old position; all of them finish, none twice."""
    this = study(7, 40)
    case = this.case()
    slots = case.machine.resource("slots")
    lost = [
        Disturbance(5_000, 0, slots, -1),
        Disturbance(9_000, 1, slots, -1),
        Disturbance(40_000, 0, slots, 1),
        Disturbance(80_000, 1, slots, 1),
    ]
    schedule = simulate(case.workload, case.machine, Dispatch(policy_of(entry)), model=case.model, disturbances=lost).schedule
    assert schedule.done.all() and not schedule.refused
    assert int(schedule.finished.sum()) == len(this.tasks)


def test_task_without_an_allowed_unit_is_an_error_before_the_run() -> None:
    rates = np.zeros((6, 7))
    rates[0, :] = 1.0
    units = vinesim.UnitList.of([(0, 0, 0), (2, 0, 1)])
    with pytest.raises(InputError, match="no unit of 'deployment' can run tasks of type 1"):
        vinesim.VineSimCase.of(units, vinesim.TaskList.of_jobs([1], 1, 10), np.zeros((6, 7)))
    case = vinesim.VineSimCase.of(units, vinesim.TaskList.of_jobs([1], 1, 10, preferred_type=2), rates)
    for engine in ("reference", "auto"):
        with pytest.raises(InputError, match="may run tasks of type 1 that prefer unit type 2"):
            simulate(case.workload, case.machine, Dispatch(make("placements", "pref")), model=case.model, engine=engine)
    simulate(case.workload, case.machine, Dispatch(make("placements", "pref", reading="first")), model=case.model)


@pytest.mark.parametrize(
    ("name", "settings"), [("high", {"tie": "coin"}), ("pref", {"reading": "maybe"}), ("delay", {"patience": -1.0})]
)
def test_unsupported_settings_are_rejected(name: str, settings: dict[str, object]) -> None:
    case = study(1).case()
    with pytest.raises(InputError):
        simulate(case.workload, case.machine, Dispatch(make("placements", name, **settings)), model=case.model)


def test_deadline_order_precedes_age() -> None:
    """One unit and ten simultaneous tasks with reversed deadlines: served in reverse. A dynamic order is rejected."""
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0)]), vinesim.TaskList.of_jobs([1] * 10, 2, 10), rates)
    workload = replace(case.workload, attributes={**case.workload.attributes, "deadline": np.arange(10)[::-1] * 1000})
    scheduler = Dispatch(make("placements", "high"), make("orders", "edf"))
    schedule = simulate(workload, case.machine, scheduler, model=case.model).schedule
    assert schedule.job.tolist() == list(range(10))[::-1]
    with pytest.raises(InputError, match="changes with time"):
        simulate(workload, case.machine, Dispatch(order=make("orders", "wfp3")), model=case.model)


@named
def test_long_running_dispatcher_decides_as_a_fresh_one_by_deadlines(entry: tuple[str, dict[str, object]]) -> None:
    case = study(6, 30).case()
    deadline = np.arange(len(case.workload)) * 7919 % 101
    workload = replace(case.workload, attributes={**case.workload.attributes, "deadline": deadline})
    results = check_scheduler(Dispatch(policy_of(entry), make("orders", "edf")), Case(workload, case.machine, model=case.model))
    assert [str(result) for result in results if not result.ok] == []


# Contention


def shared(rows: list[tuple[int, ...]], units: list[tuple[int, int, int]], **options: object) -> vinesim.VineSimCase:
    rates = np.zeros((6, 7))
    rates[2, 2] = 1.0
    return vinesim.VineSimCase.of(vinesim.UnitList.of(units), vinesim.TaskList.of(rows), rates, contended=True, **options)


def fetch(rows: list[tuple[int, ...]], units: list[tuple[int, int, int]], **options: object) -> Schedule:
    case = shared(rows, units, **options)
    return simulate(case.workload, case.machine, Dispatch(), model=case.model, estimate=case.estimate).schedule


def test_single_transfer_takes_its_uncontended_time() -> None:
    """1 MB within a rack and across (uplink 10 Gb/s): 800 us, plus 0.2 and 0.6 us of switches, plus 25 us of computing."""
    for x, latency in ((5, 0.2), (6, 0.6)):
        schedule = fetch([(2, 1_000_000, x, 9, 25, 5, 0)], [(2, 5, 0)])
        assert response_us(schedule).tolist() == [825 + latency]


def test_transfers_share_links_and_release_bandwidth_when_they_end() -> None:
    """Two flows from rack 5 over one uplink of 1250 MB/s, 1 MB and 0.5 MB; a third one in rack 0 has its ports to itself.

    Both get 625 until the small one ends after 800 us; the large one then has 0.5 MB left, at 1250: 400 us more.
    """
    rows = [(2, 1_000_000, 5, 0, 25, 5, 0), (2, 500_000, 5, 1, 25, 5, 1), (2, 1_000_000, 0, 9, 25, 5, 2)]
    schedule = fetch(rows, [(2, 0, 0), (2, 0, 1), (2, 0, 2)])
    assert response_us(schedule).tolist() == [1225.6, 825.6, 825.2]


def test_task_next_to_its_data_does_not_wait() -> None:
    schedule = fetch([(2, 1_000_000, 0, 0, 25, 5, 0), (2, 0, 0, 0, 25, 5, 1)], [(2, 0, 0), (2, 0, 0)])
    assert response_us(schedule).tolist() == [25, 25]


def test_uplinks_have_physical_capacity_under_contention_by_default() -> None:
    rows = [(2, 1_000_000, 5, 0, 25, 5, 0)]
    schedule = fetch(rows, [(2, 0, 0)], network=vinesim.Bandwidths(uplink=125))
    assert response_us(schedule).tolist() == [8025.6]


def test_lost_task_fetches_again_and_releases_its_bandwidth() -> None:
    """Two flows of 1 MB over one uplink of 1250 MB/s get 625 each; after 400 us each has 0.75 MB left.

    Then the first unit is lost and the second flow has 1250. The first returns after 200 us, when the other has 0.5 MB left:
    these take 800 us with both flows active, and the new flow needs another 400.3 us (its latency of 0.6 us comes first).
    """
    rows = [(2, 1_000_000, 5, 0, 25, 5, 0), (2, 1_000_000, 5, 1, 25, 5, 1)]
    case = shared(rows, [(2, 0, 0), (2, 0, 1)])
    slots = case.machine.resource("slots")
    lost = [Disturbance(400_600, 0, slots, -1), Disturbance(600_600, 0, slots, 1)]
    schedule = simulate(
        case.workload, case.machine, Dispatch(), model=case.model, estimate=case.estimate, disturbances=lost
    ).schedule
    assert by_task(schedule) == [
        (0, 400_600, 0),
        (600_600, 600_600 + 800_000 + 400_300 + 25_000, 0),
        (0, 400_600 + 200_000 + 800_000 + 25_000, 1),
    ]


@pytest.mark.parametrize("entry", TIERED[:2], ids=["flat", "high"])
def test_long_running_dispatcher_decides_as_a_fresh_one_under_contention(entry: tuple[str, dict[str, object]]) -> None:
    case = study(8, 30).case(contended=True)
    results = check_scheduler(Dispatch(policy_of(entry)), Case(case.workload, case.machine, model=case.model))
    assert [str(result) for result in results if not result.ok] == []


def test_contention_does_not_change_a_run_without_data() -> None:
    this = study(9, 40)
    table = this.tasks.table.copy()
    table[:, 1] = 0
    this = replace(this, tasks=vinesim.TaskList.of(table))
    alone, shared = this.case(), this.case(contended=True)
    runs = [simulate(c.workload, c.machine, Dispatch(), model=c.model, estimate=c.estimate).schedule for c in (alone, shared)]
    assert by_task(runs[0]) == by_task(runs[1])
