"""Used and unreachable shares, compared with hand computations and with counting each instant."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.metrics import Window
from poolwise.metrics.owner_average import owner_averages
from poolwise.model import Machine, MachineBuilder, Schedule, Workload
from poolwise.quantities import SECOND
from poolwise.report.machine_drawing import machine_of_schedule
from poolwise.schedulers.list import ListScheduler
from tests.helpers.one_of_each import schedule_of


def workload(jobs):
    """Return jobs from (submission s, duration s, nodes, MiB per node)."""
    submit, duration, nodes, memory = (np.array(column, dtype=np.int64) for column in zip(*sorted(jobs), strict=True))
    return Workload.of(submit * SECOND, duration * SECOND, requests={"nodes": nodes, "memory": memory})


def slow(schedule, window, system):
    """Compute used and unreachable shares of every owner and resource of a machine of whole nodes, second by second."""
    machine, jobs = schedule.machine, schedule.workload
    seconds = range(window.begin // SECOND, window.end // SECOND)
    nodes, memory = machine.resource("nodes"), machine.resource("memory")
    samples = {}
    for second in seconds:
        now = second * SECOND
        held = np.zeros_like(machine.capacity)
        local = np.zeros(machine.n_owner)
        for row in range(len(schedule.holdings.run)):
            _, owner, resource, amount, begin, end = (column[row] for column in schedule.holdings)
            if begin <= now < end:
                held[owner, resource] += amount
                if resource == nodes:
                    requested = jobs.memory[schedule.job[schedule.holdings.run[row]]]
                    local[owner] += amount * min(requested, machine.per_node["memory"][owner])
        free = machine.capacity[:, nodes] - held[:, nodes]
        for owner in range(machine.n_owner):
            if machine.capacity[owner, nodes]:
                samples.setdefault((owner, "nodes"), []).append((held[owner, nodes] / machine.capacity[owner, nodes], 0.0))
                each = machine.per_node["memory"][owner]
                if each:
                    count = machine.capacity[owner, nodes]
                    out = (each * (count - free[owner]) - local[owner]) / (each * count)
                    samples.setdefault((owner, "memory"), []).append((local[owner] / (each * count), out))
            elif machine.capacity[owner, memory]:
                share = held[owner, memory] / machine.capacity[owner, memory]
                near = free.sum() if system else free[machine.rack == machine.rack[owner]].sum()
                samples.setdefault((owner, "memory"), []).append((share, 0.0 if near else 1 - share))
    return {key: np.mean(values, axis=0) for key, values in samples.items()}


JOB = st.tuples(st.integers(0, 20), st.integers(1, 15), st.integers(1, 3), st.integers(0, 6))


@settings(max_examples=60, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=12), st.booleans(), st.integers(0, 5))
def test_shares_match_counting_each_second(jobs, system, begin):
    machine = Machine.of_racks(2, 3, local=2, pool=9)
    schedule = simulate(workload(jobs), machine, ListScheduler()).schedule
    window = Window(begin * SECOND, (begin + 12) * SECOND)
    expected = slow(schedule, window, system)
    averages = {
        (average.owner, average.resource): (average.used, average.unreachable)
        for average in owner_averages(schedule, window, system=system)
    }
    assert averages.keys() == expected.keys()
    for key, values in expected.items():
        assert averages[key] == pytest.approx(values, abs=1e-9), key
    drawn = machine_of_schedule(schedule, window, system=system)
    for rack in (0, 1):
        mine = [box for box in drawn.boxes if rack <= box.left < rack + 1]
        assert sum(box.right - box.left for box in mine) == pytest.approx(3 * 0.92), "three full rows"


def two_tiers(held: int) -> Schedule:
    """Return two racks behind links, a pool in the first and one for all, and a job that may hold link bandwidth."""
    build = MachineBuilder("two tiers", ("memory", "bandwidth", "cores"))
    first = build.node("n0", memory=8, cores=4, rack=0)
    build.pool("near", type="near", memory=16, rack=0)
    second = build.node("n1", memory=8, cores=4, rack=1)
    build.pool("far", type="far", memory=32, rack=-1)
    link = build.link("link0", first, "switch", bandwidth=100, rack=0)
    build.link("link1", second, "switch", bandwidth=100, rack=1)
    schedule = schedule_of([(0, 0, 10, 4, 12, 0)], Machine.of(build))
    rows = [(schedule.owner, link), (schedule.resource, 1), (schedule.amount, held)]
    owner, resource, amount = (np.append(column, value) for column, value in rows)
    return (
        replace(schedule, owner=owner, resource=resource, amount=amount, offset=np.array([0, len(owner)])) if held else schedule
    )


def test_drawing_shows_pools_out_of_reach_of_two_tiers() -> None:
    """The job takes all cores of rack 0 and 12 of 16 MiB of its pool, which puts out of reach the rest of that pool only."""
    drawn = machine_of_schedule(two_tiers(0), Window(0, 10 * SECOND))
    texts: dict[str, list[str]] = {}
    for box in drawn.boxes:
        name, _, share = box.description.rpartition(": ")
        texts.setdefault(name, []).append(share)
    assert texts["near: memory in rack 0"] == ["75 % used of 16 MiB", "25 % out of reach of 16 MiB"]
    assert "tranded" not in drawn.caption and drawn.series == ("used", "out of reach", "free"), "stranded is another metric"
    assert texts["far: memory of the machine"] == ["100 % free of 32 MiB"]
    assert texts["node: memory in rack 0"] == ["100 % out of reach of 8 MiB"] and texts["node: memory in rack 1"] == [
        "100 % free of 8 MiB"
    ]
    assert texts["node: cores in rack 0"] == ["100 % used of 4"]
    (far,) = [box for box in drawn.boxes if "far" in box.description]
    assert (far.left, far.right) == pytest.approx((0.04, 1.96)), "shared parts span all racks"


@pytest.mark.parametrize("held", [0, 30])
def test_links_are_drawn_only_if_jobs_hold_them(held) -> None:
    """A schedule does not record traffic over links, so drawing them as free would be wrong."""
    drawn = machine_of_schedule(two_tiers(held), Window(0, 20 * SECOND))
    links = [box.description for box in drawn.boxes if box.description.startswith("link")]
    texts = ["link: bandwidth in rack 0: 15 % used of 100", "link: bandwidth in rack 0: 85 % free of 100"]
    assert links == ([*texts, "link: bandwidth in rack 1: 100 % free of 100"] if held else [])
    assert ("Links are not drawn" in drawn.caption) == (not held)
