"""Slurm's backfill around reserved windows on shared nodes: kernels equal the reference engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.interfaces import PlacementPolicy, Scheduler
from poolwise.model import Machine, ReservedWindow, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.placement.nodes.placement import ConsecutiveNodes, TreeNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.differential.test_backfill_components import random_chains
from tests.helpers.limits_of_use import with_limits
from tests.helpers.mid_state import check_every_engine, instants
from tests.helpers.node_machines import machine, random_jobs, random_machine
from tests.helpers.random_studies import difference
from tests.helpers.shared_studies import PLACEMENTS, random_windows

SPAN_S = 600
"""Time in which jobs are submitted."""


def windows_of(g: np.random.Generator, on: Machine) -> Iterator[ReservedWindow]:
    """Yield windows on up to three sets of nodes: some of all nodes, or of all nodes of a partition."""
    sets = [*on.node_sets.values(), np.ones(on.n_owner, dtype=np.bool_), g.random(on.n_owner) < 0.4, g.random(on.n_owner) < 0.2]
    chosen = [sets[k] for k in g.choice(len(sets), int(g.integers(1, 4)), replace=False)]
    for k in range(int(g.integers(1, 7))):
        start = int(g.integers(0, SPAN_S))
        length = int(g.choice([5, 60, 150]))
        users = frozenset(["ada"] if g.random() < 0.4 else [])
        yield ReservedWindow(f"w{k}", start * SECOND, (start + length) * SECOND, chosen[int(g.integers(len(chosen)))], users)


def settings_of(g: np.random.Generator) -> dict[str, int]:
    """Draw SchedulerParameters."""
    drawn = {
        "bf_window": int(g.choice([10, 20, 60])), "bf_interval": int(g.choice([7, 15])),
        "bf_resolution": int(g.choice([1, 60])), "bf_max_job_test": int(g.choice([2, 20, 500])),
    }  # fmt: skip
    return drawn | ({"default_queue_depth": int(g.integers(1, 9))} if g.random() < 0.3 else {})


def compare(load: Workload, on: Machine, how: Scheduler) -> Schedule:
    """Return the schedule, which must be the same in both engines."""
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == ""
    return plain.schedule


def check_windows(seed: int, jobs: int = 40, placement: PlacementPolicy | None = None) -> tuple[Schedule, ListScheduler]:
    """Compare the engines on partitions of mixed nodes with windows; return the schedule and the scheduler."""
    g = np.random.default_rng(seed)
    on, names = random_chains(g)
    on = replace(on, windows=tuple(windows_of(g, on)))
    limit = g.integers(5, 300, jobs)
    submit = np.sort(g.integers(0, SPAN_S, jobs))
    load = Workload.of(
        submit * SECOND,
        np.maximum((limit * g.choice([0.3, 0.95, 1], jobs)).astype(np.int64), 1) * SECOND,
        requested=limit * SECOND,
        requests={"nodes": g.choice([1, 1, 2, 3], jobs), "cores": g.choice([4, 8, 16], jobs)},
        attributes={"partition": g.choice(names, jobs), "user": g.choice(["ada", "bob"], jobs)},
    )
    order = make("orders", ("fcfs", "fcfs", "sjf")[seed % 3])
    every, begun = float(g.choice([0, 0, 2])), float(g.choice([0, 0.5]))
    chosen = make("placements", PLACEMENTS[seed % 4]) if placement is None else placement
    how = ListScheduler(order, SlurmBackfill(None, settings_of(g), begun, every), chosen)
    return compare(load, on, how), how


def check_warm_up(seed: int, name: str) -> None:
    """Compare the engines with windows and a warm-up; under Slurm's backfill, some machines have limits as well."""
    g = np.random.default_rng(seed)
    on = random_machine(g, 9, pools=False)
    load = random_jobs(g, on, int(g.integers(1, 50)))
    load = replace(load, attributes={**load.attributes, "user": g.choice(["ada", "bob", "cay"], len(load))})
    if name == "slurm" and g.random() < 0.5:
        on, load = with_limits(g, on, load)
    on = replace(on, windows=tuple(random_windows(g, load, on)))
    filling = SlurmBackfill(None, settings_of(g)) if name == "slurm" else replace(make("backfills", name), heads="machine")
    how = ListScheduler(make("orders", ("fcfs", "sjf")[seed % 2]), filling, make("placements", PLACEMENTS[seed % 4]))
    compare(load, on, WarmUp.before(how, int(g.integers(1, len(load) + 2))))


@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
def test_windows_during_a_warm_up(name: str) -> None:
    for seed in range(8):
        check_warm_up(seed, name)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
def test_further_windows_during_a_warm_up(name: str) -> None:
    for seed in range(8, 120):
        check_warm_up(seed, name)


def check_random_machines(seed: int, *, limited: bool = False, placement: PlacementPolicy | None = None) -> None:
    """Compare the engines on any machine with devices, and windows that begin or end when a job does; also with limits."""
    g = np.random.default_rng(seed)
    on = random_machine(g, 9, pools=False)
    load = random_jobs(g, on, int(g.integers(1, 50)))
    load = replace(load, attributes={**load.attributes, "user": g.choice(["ada", "bob", "cay"], len(load))})
    if limited:
        on, load = with_limits(g, on, load)
    on = replace(on, windows=tuple(random_windows(g, load, on)))
    how = ListScheduler(
        make("orders", ("fcfs", "sjf", "wfp3")[seed % 3]),
        SlurmBackfill(None, settings_of(g)),
        make("placements", PLACEMENTS[seed % 4]) if placement is None else placement,
    )
    compare(load, on, how)


@pytest.mark.parametrize("seed", [*range(3), pytest.param(3, marks=pytest.mark.long)])
def test_windows_on_partitions(seed: int) -> None:
    check_windows(seed)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(4, 50))
def test_further_windows_on_partitions(seed: int) -> None:
    check_windows(seed)


@pytest.mark.parametrize("seed", range(2))
def test_windows_on_random_machines(seed: int) -> None:
    check_random_machines(seed)


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_windows_with_limits_of_use(seed: int) -> None:
    check_random_machines(seed, limited=True)


OWN = TreeNodes(), ConsecutiveNodes(gpu_weights=False)
"""Placements that choose nodes as Slurm does."""


FURTHER = [pytest.param(seed, marks=[pytest.mark.long, pytest.mark.further]) for seed in range(20, 60)]


@pytest.mark.parametrize("seed", [0, 5, *FURTHER])
@pytest.mark.parametrize("placement", OWN)
def test_windows_with_slurms_own_placements(placement: PlacementPolicy, seed: int) -> None:
    check_windows(seed, placement=placement)
    for limited in (False, True):
        check_random_machines(seed, limited=limited, placement=placement)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(2, 21))
def test_further_windows_on_random_machines(seed: int) -> None:
    check_random_machines(seed)


@pytest.mark.parametrize("seed", [2, 9])
def test_replays_from_intermediate_states_continue_the_schedule(seed: int) -> None:
    whole, how = check_windows(seed)
    for time in instants(whole, 4, np.random.default_rng(seed)):
        check_every_engine(whole, time, how, Ideal(), None, ("reference", "compiled"))


def two_nodes(windows: list[ReservedWindow]) -> Machine:
    """Return nodes of 16 and 8 cores."""
    on = machine(np.array([[16, 64], [8, 64]]), np.zeros(2, dtype=np.int64))
    return replace(on, windows=tuple(windows))


def starts(
    jobs: list[tuple[int, int, int, int, str]], on: Machine, settings: dict[str, int], partitions: Sequence[str] = ()
) -> list[int]:
    """Return the starts (s) of jobs, given by submission, time limit (s), nodes, cores and user, the same in both engines."""
    submit, limit, nodes, cores, users = (np.array(column) for column in zip(*jobs, strict=True))
    attributes = {"user": users} | ({"partition": np.array(partitions)} if partitions else {})
    requests = {"nodes": nodes, "cores": cores}
    load = Workload.of(submit * SECOND, limit * SECOND, requests=requests, attributes=attributes)
    how = ListScheduler(make("orders", "fcfs"), SlurmBackfill(None, settings), make("placements", "first_fit"))
    schedule = compare(load, on, how)
    return [int(start) // SECOND for start in schedule.start[np.argsort(schedule.job)]]


def test_head_that_lacks_nodes_once_a_window_comes_near_blocks_no_others() -> None:
    window = ReservedWindow("w", 500 * SECOND, 600 * SECOND, np.array([True, False]))
    jobs = [(0, 480, 1, 16, "bob"), (1, 100, 2, 8, "bob"), (2, 10, 1, 8, "bob")]
    starting = starts(jobs, two_nodes([window]), {"bf_interval": 30, "bf_max_job_test": 1, "bf_resolution": 1})
    assert starting == [0, 600, 420], "the third starts with the first pass after 500 - 100 s"


def test_expected_start_moves_behind_a_window_that_comes_near() -> None:
    window = ReservedWindow("w", 350 * SECOND, 400 * SECOND, np.array([False, True]), frozenset(["ada"]))
    jobs = [
        (0, 1000, 1, 16, "bob"), (0, 300, 1, 4, "ada"), (1, 1000, 1, 16, "bob"), (2, 100, 1, 8, "bob"), (200, 120, 1, 4, "ada"),
    ]  # fmt: skip
    starting = starts(jobs, two_nodes([window]), {"bf_interval": 10, "bf_resolution": 1})
    assert starting[4] == 260, "until the pass at 250 s, the fourth is expected to start at 300 s"


def test_job_behind_a_window_is_planned_once_its_next_trial_is_in_the_planning_window() -> None:
    window = ReservedWindow("w", 200 * SECOND, 900 * SECOND, np.array([False, True]), frozenset(["ada"]))
    jobs = [(0, 2000, 1, 16, "bob"), (1, 2000, 1, 16, "bob"), (150, 100, 1, 8, "bob"), (400, 700, 1, 8, "ada")]
    settings = {"bf_interval": 10, "bf_resolution": 1, "bf_window": 10}
    assert starts(jobs, two_nodes([window]), settings)[2:] == [900, 1000], "from 310 s on, the third is expected at 901 s"


def test_job_that_lacks_nodes_is_not_considered_again_behind_a_later_head() -> None:
    nodes = {"first": (0, 1, 2), "second": (2, 3), "third": (3,)}
    sets = {name: np.isin(np.arange(4), rows) for name, rows in nodes.items()}
    on = machine(np.array([[8, 64]] * 4), np.zeros(4, dtype=np.int64), sets=sets)
    window = ReservedWindow("w", 500 * SECOND, 600 * SECOND, np.array([True, False, False, False]))
    jobs = [(0, 1000, 1, 8, "bob"), (410, 100, 3, 8, "bob"), (411, 100, 2, 8, "bob"), (412, 10, 1, 8, "bob")]
    on, names = replace(on, windows=(window,)), ["third", "first", "second", "first"]
    settings = {"bf_interval": 60, "bf_resolution": 1, "bf_max_job_test": 1}
    assert starts(jobs, on, settings, names)[3] == 412, "the second job would block the first partition behind the third"
