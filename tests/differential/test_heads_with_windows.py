"""Heads of several partitions on machines with reserved windows: compiled and reference engine produce the same bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec, limit_of_use
from poolwise.engines.list_columns import has_several_heads
from poolwise.interfaces import BackfillPolicy, Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Machine, Partition, ReservedWindow, Workload
from poolwise.model.eligibility import has_tiers
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.easy import Easy, EasyNoExtra
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.nodes.placement import ConsecutiveNodes, FirstNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.divided_machines import divided_with_windows
from tests.helpers.mid_state import check_every_engine, cut, instants
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import OWN, Curious, Stepped, at_intervals, difference
from tests.helpers.seeds import few_and_more
from tests.helpers.shared_studies import NAMED, PLACEMENTS

BACKFILLS = NoBackfill(), Easy(), Easy(), EasyNoExtra()
EVERY_PLACEMENT = [
    *map(lambda name: make("placements", name), [*PLACEMENTS, "topology_tree"]),
    ConsecutiveNodes(gpu_weights=False),
]


def has_heads(load: Workload, on: Machine, how: ListScheduler) -> bool:
    """Return whether the kernel of several heads and limits of use replays a run."""
    rule = rule_of(how.backfill)
    assert rule is not None
    several = has_several_heads(rule, on, load.table)
    return several or limit_of_use(RunSpec(load, on, how, Ideal(), Ideal())) is not None


def draw(seed: int, most: int, nodes: int) -> tuple[Workload, Machine, ListScheduler]:
    """Draw a study; if its jobs use one set of nodes without limits of use, its order is static, as windows then require."""
    g = np.random.default_rng(seed)
    load, on = divided_with_windows(g, int(g.integers(most // 3, most)), nodes)
    how = ListScheduler(NAMED[0], BACKFILLS[int(g.integers(4))], EVERY_PLACEMENT[seed % 6])
    orders = [*NAMED, *OWN, Curious(), Stepped()]
    if has_tiers(on):
        orders = [NAMED[0], NAMED[1], Curious(), Stepped()]
    if not has_heads(load, on, how):
        orders = NAMED[:2]
    return load, on, replace(how, order=orders[int(g.integers(len(orders)))])


def compare(seed: int, most: int = 100, nodes: int = 9) -> Counter[str]:
    """Run one random study in both engines, which must agree; return the features that change the schedule."""
    load, on, listed = draw(seed, most, nodes)
    g = np.random.default_rng(seed)

    def run(backfill: BackfillPolicy) -> Scheduler:
        how = replace(listed, backfill=backfill)
        return WarmUp.before(how, len(load) // 5 + 1) if warm_up else how

    warm_up = bool(g.random() < 0.2)
    how = run(listed.backfill)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert (plain.engine, fast.engine) == ("reference", "compiled")
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    without = simulate(load, replace(on, windows=()), how).schedule
    assert isinstance(listed.backfill, NoBackfill | Easy)
    with_one_head = simulate(load, on, run(replace(listed.backfill, heads="machine"))).schedule
    return Counter(
        windows=bool(difference(fast.schedule, without)), heads=bool(difference(fast.schedule, with_one_head)), studies=1
    )


@pytest.mark.parametrize("seeds", few_and_more(3700, 18, 42))
def test_random_studies(seeds: range) -> None:
    changed = sum((compare(seed) for seed in seeds), Counter[str]())
    assert min(changed.values()) > len(seeds) / 4, changed


def test_full_runs_continue_from_an_intermediate_state() -> None:
    """Some windows are over in these states."""
    compiled = 0
    for seed in range(3800, 3806):
        load, on, how = draw(seed, 60, 7)
        how = replace(how, order=NAMED[seed % 2])
        whole = simulate(load, on, how, engine="reference").schedule
        for time in instants(whole, 3, np.random.default_rng(seed)):
            several = has_heads(cut(whole, time)[0], on, how)
            check_every_engine(whole, time, how, Ideal(), None, ("reference", "compiled" if several else "auto"))
            compiled += several
    assert compiled > 8


LEFT, RIGHT = (np.arange(4) // 2 == k for k in range(2))


def starts(
    windows: list[tuple[np.ndarray, int, int]], rows: list[tuple[int, str, int, int]], filling: BackfillPolicy
) -> list[int]:
    """Return the starts (s) of jobs on four nodes of four cores in partitions `left` and `right`, the same in both engines.

    Windows are (nodes, start, end); jobs (duration, partition, nodes, cores) arrive in the first second, one after another.
    """
    on = machine(np.array([[4, 100]] * 4), np.zeros(4, dtype=np.int64), sets={"left": LEFT, "right": RIGHT})
    reserved = tuple(ReservedWindow(f"w{k}", at * SECOND, end * SECOND, nodes) for k, (nodes, at, end) in enumerate(windows))
    on = replace(on, partitions=(Partition("left"), Partition("right")), windows=reserved)
    duration, partition, nodes, cores = zip(*rows, strict=True)
    jobs = Workload.of(
        np.arange(len(rows)),
        np.array(duration) * SECOND,
        requests={"cores": np.array(cores), "nodes": np.array(nodes)},
        attributes={"partition": np.array(partition)},
    )
    how = ListScheduler(FCFS(), filling, FirstNodes())
    plain, fast = (simulate(jobs, on, how, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == ""
    return (fast.job_start // SECOND).tolist()


def test_backfilling_at_intervals_continues_from_a_state_after_a_window() -> None:
    load, on, how = draw(3805, 60, 7)
    how = replace(how, order=FCFS(), placement=FirstNodes(), backfill=at_intervals(np.random.default_rng(3805)))
    whole = simulate(load, on, how, engine="reference").schedule
    time = 414 * SECOND
    assert any(window.end < time for window in on.windows)
    check_every_engine(whole, time, how, Ideal(), None, ("reference", "compiled"))


@pytest.mark.parametrize(("filling", "expected"), [(NoBackfill(), [100, 120, 0, 120]), (Easy(), [100, 0, 0, 0])])
def test_shadow_time_of_a_head_is_the_end_of_a_window(filling: BackfillPolicy, expected: list[int]) -> None:
    """Jobs 1 and 3 end before the window begins; job 2 runs on the other nodes."""
    rows = [(20, "left", 2, 4), (5, "left", 1, 4), (30, "right", 2, 4), (8, "left", 1, 2)]
    assert starts([(LEFT, 10, 100)], rows, filling) == expected


def test_node_closed_at_the_shadow_time_does_not_hold_the_head() -> None:
    """Job 1 has to start at 30 s on the node that job 2 would use, since the window closes the idle one to it."""
    rows = [(30, "right", 1, 2), (50, "right", 1, 4), (55, "right", 1, 2)]
    rows += [(100, "left", 2, 4), (10, "left", 1, 4)]
    assert starts([(np.arange(4) == 3, 40, 200)], rows, Easy()) == [0, 30, 80, 0, 100]


@pytest.mark.long
@pytest.mark.further
def test_further_random_studies() -> None:
    for seed in range(4000, 4200):
        compare(seed, 200, nodes=30 if seed % 4 == 0 else 9)
