"""Heads of several partitions: compiled and reference engine produce the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import Engine, simulate
from poolwise.errors import InputError
from poolwise.model import Failures, Outage, Partition, Schedule, Workload
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.divided_machines import divided_jobs, divided_machine
from tests.helpers.mixed_machines import mixed_machine
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import OWN, UNITS, Curious, Stepped, difference, model, workload
from tests.helpers.seeds import few_and_more
from tests.helpers.shared_studies import NAMED, PLACEMENTS

BACKFILLS = ("none", "easy", "easy", "easy_no_extra")


def compare(seed: int, most: int = 100, nodes: int = 9, *, backfills: tuple[str, ...] = BACKFILLS) -> tuple[Schedule, Schedule]:
    """Run one random study in both engines, which must agree; return the schedule and that with one head."""
    g = np.random.default_rng(seed)
    on = divided_machine(g, nodes)
    load = divided_jobs(g, on, int(g.integers(most // 3, most)))
    tiered = len({part.tier for part in on.partitions}) > 1
    orders = [NAMED[0], NAMED[1], Curious(), Stepped()] if tiered else [*NAMED, *OWN]
    backfill = make("backfills", g.choice(backfills).item())
    how = ListScheduler(orders[int(g.integers(len(orders)))], backfill, make("placements", PLACEMENTS[seed % 4]))
    per_event = bool(g.random() < 0.2)
    plain, fast = (
        simulate(load, on, how, pass_per_event=per_event, engine=engine).schedule for engine in ("reference", "compiled")
    )
    assert difference(plain, fast) == "", f"seed {seed}: {on.name}, {how}"
    with_one_head = simulate(load, on, replace(how, backfill=replace(backfill, heads="machine")), pass_per_event=per_event)
    return fast, with_one_head.schedule


@pytest.mark.parametrize("seeds", few_and_more(3000, 10, 48))
def test_random_studies(seeds: range) -> None:
    schedules = [compare(seed) for seed in seeds]
    assert sum(difference(several, single) != "" for several, single in schedules) > len(seeds) / 7, (
        "the number of heads matters"
    )


def test_candidate_beyond_a_shadow_time_is_subtracted_from_the_nodes_of_the_head() -> None:
    compare(3283, 200)


@pytest.mark.parametrize("seeds", few_and_more(3100, 3, 12))
def test_many_nodes_and_deep_queues(seeds: range) -> None:
    for seed in seeds:
        compare(seed, 250, nodes=30 if seed % 2 else 5)


def test_unsupported_machines_are_named_with_a_remedy() -> None:
    """With one head for the machine, the kernels support all of them."""
    inside, none = {"a": np.array([True, False]), "b": np.array([False, True])}, np.zeros(2, dtype=np.int64)
    on = replace(machine(np.array([[4, 100]] * 2), none, sets=inside), partitions=(Partition("a"), Partition("b")))
    borrowing = machine(np.array([[4, 100]] * 2), none, pools={0: 10}, sets=inside)
    jobs = Workload.of(none, none + SECOND, requests={"cores": none + 1}, attributes={"partition": np.array(["a", "b"])})
    failing = replace(on, failures=Failures((Outage((0,), SECOND, 2 * SECOND),)))
    for what, why in ((borrowing, "memory from pools"), (failing, "nodes fail")):
        for backfill in (NoBackfill(), Easy()):
            how = ListScheduler(backfill=backfill, placement=make("placements", "first_fit"))
            with pytest.raises(InputError, match=why) as raised:
                simulate(jobs, what, how, engine="compiled")
            assert 'heads = "machine"' in str(raised.value)
            with_one_head = replace(how, backfill=replace(backfill, heads="machine"))
            assert simulate(jobs, what, with_one_head, engine="compiled").schedule.done.all()


def compare_whole_nodes(seed: int, most: int = 80) -> tuple[Schedule, Schedule]:
    """Run one random study on whole nodes that differ in both engines; return the schedule and that with one head."""
    g = np.random.default_rng(seed)
    on = mixed_machine(g, limited=False)
    groups = on.racks.nodes
    of = g.integers(0, int(g.integers(2, 5)), on.n_owner)
    overlap = float(g.choice([0.0, 0.3]))
    sets = {
        f"p{k}": np.isin(np.arange(on.n_owner), groups[(of[groups] == k) | (g.random(len(groups)) < overlap)]) for k in range(4)
    }
    on = replace(on, node_sets={**sets, "fast": g.random(on.n_owner) < 0.7}, partitions=tuple(Partition(name) for name in sets))
    load = workload(g, on, int(g.integers(most // 3, most)), UNITS)
    attributes = {"partition": g.choice([*sets, "p0,p1", ""], len(load)), "constraint": g.choice(["", "", "fast"], len(load))}
    load = replace(load, attributes={**load.attributes, **attributes, "u": g.random(len(load))})
    backfill = make("backfills", g.choice([*BACKFILLS, "easy_nodes_only"]).item())
    if isinstance(backfill, Easy) and g.random() < 0.3:
        backfill = replace(backfill, order=NAMED[1])
    orders = [*NAMED, *OWN]
    placement = make("placements", "racks", scope=g.choice(["rack", "system"]).item())
    how = ListScheduler(orders[int(g.integers(len(orders)))], backfill, placement)
    truth, estimate, per_event = model(g), model(g), bool(g.random() < 0.2)

    def run(how: ListScheduler, engine: Engine) -> Schedule:
        return simulate(load, on, how, model=truth, estimate=estimate, pass_per_event=per_event, engine=engine).schedule

    plain, fast = run(how, "reference"), run(how, "compiled")
    assert difference(plain, fast) == "", f"seed {seed}: {how}"
    return fast, run(replace(how, backfill=replace(backfill, heads="machine")), "compiled")


@pytest.mark.filterwarnings("ignore:remote latency")
@pytest.mark.parametrize("seeds", few_and_more(3500, 14, 30))
def test_random_studies_on_whole_nodes(seeds: range) -> None:
    schedules = [compare_whole_nodes(seed) for seed in seeds]
    assert sum(difference(several, single) != "" for several, single in schedules) > len(seeds) / 15, (
        "the number of heads matters"
    )


@pytest.mark.long
@pytest.mark.further
@pytest.mark.filterwarnings("ignore:remote latency")
def test_many_random_studies() -> None:
    for seed in range(3200, 3400):
        compare(seed, 200, nodes=40 if seed % 4 == 0 else 9)
    for seed in range(3530, 3600):
        compare_whole_nodes(seed)
