"""What is used and what is out of reach, worked out by hand and instant by instant."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.metrics import Window
from poolwise.metrics.reach import reach
from poolwise.model import Machine, MachineBuilder, Schedule, Workload
from poolwise.report.machine_drawing import drawing
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.helpers.one_of_each import schedule_of


def workload(jobs):
    """Jobs of (second of submission, seconds, nodes, MiB a node)."""
    submit, duration, nodes, memory = (np.array(column, dtype=np.int64) for column in zip(*sorted(jobs), strict=True))
    return Workload.of(submit * SECOND, duration * SECOND, requests={"nodes": nodes, "memory": memory})


def slow(schedule, window, system):
    """Used and stranded of every owner and resource of a machine of whole nodes, second by second."""
    machine, jobs = schedule.machine, schedule.workload
    seconds = range(window.begin // SECOND, window.end // SECOND)
    nodes, memory = machine.resource("nodes"), machine.resource("memory")
    found = {}
    for second in seconds:
        now = second * SECOND
        held = np.zeros_like(machine.capacity)
        local = np.zeros(machine.n_owner)
        for row in range(len(schedule.holdings.run)):
            _, owner, resource, amount, begin, end = (column[row] for column in schedule.holdings)
            if begin <= now < end:
                held[owner, resource] += amount
                if resource == nodes:
                    asked = jobs.memory[schedule.job[schedule.holdings.run[row]]]
                    local[owner] += amount * min(asked, machine.per_node["memory"][owner])
        free = machine.capacity[:, nodes] - held[:, nodes]
        for owner in range(machine.n_owner):
            if machine.capacity[owner, nodes]:
                found.setdefault((owner, "nodes"), []).append((held[owner, nodes] / machine.capacity[owner, nodes], 0.0))
                each = machine.per_node["memory"][owner]
                if each:
                    count = machine.capacity[owner, nodes]
                    out = (each * (count - free[owner]) - local[owner]) / (each * count)
                    found.setdefault((owner, "memory"), []).append((local[owner] / (each * count), out))
            elif machine.capacity[owner, memory]:
                share = held[owner, memory] / machine.capacity[owner, memory]
                near = free.sum() if system else free[machine.rack == machine.rack[owner]].sum()
                found.setdefault((owner, "memory"), []).append((share, 0.0 if near else 1 - share))
    return {key: np.mean(values, axis=0) for key, values in found.items()}


JOB = st.tuples(st.integers(0, 20), st.integers(1, 15), st.integers(1, 3), st.integers(0, 6))


@settings(max_examples=60, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=12), st.booleans(), st.integers(0, 5))
def test_against_every_second(jobs, system, begin):
    machine = Machine.of_racks(2, 3, local=2, pool=9)
    schedule = simulate(machine, workload(jobs), ListScheduler()).schedule
    window = Window(begin * SECOND, (begin + 12) * SECOND)
    expected = slow(schedule, window, system)
    found = {(one.owner, one.resource): (one.used, one.stranded) for one in reach(schedule, window, system=system)}
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=1e-9), key
    drawn = drawing(schedule, window, system=system)
    for rack in (0, 1):
        mine = [box for box in drawn.boxes if rack <= box.left < rack + 1]
        assert sum(box.right - box.left for box in mine) == pytest.approx(3 * 0.92), "three rows, each drawn whole"


def two_tiers(held: int) -> Schedule:
    """Two racks behind links of 100 MB/s, a pool in the first and one for all; one job of 10 s, which may hold of a link."""
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


def test_two_tiers_of_pools_are_drawn_with_what_is_out_of_reach() -> None:
    """The job takes all cores of rack 0 and 12 of 16 in its pool: the rest of that pool is stranded, the far pool is not."""
    drawn = drawing(two_tiers(0), Window(0, 10 * SECOND))
    said: dict[str, list[str]] = {}
    for box in drawn.boxes:
        name, _, share = box.said.rpartition(": ")
        said.setdefault(name, []).append(share)
    assert said["near: memory in rack 0"] == ["75 % used of 16 MiB", "25 % stranded of 16 MiB"]
    assert said["far: memory of the machine"] == ["100 % free of 32 MiB"]
    assert said["node: memory in rack 0"] == ["100 % stranded of 8 MiB"] and said["node: memory in rack 1"] == [
        "100 % free of 8 MiB"
    ]
    assert said["node: cores in rack 0"] == ["100 % used of 4"]
    (far,) = [box for box in drawn.boxes if "far" in box.said]
    assert (far.left, far.right) == pytest.approx((0.04, 1.96)), "what all racks share lies across them"


@pytest.mark.parametrize("held", [0, 30])
def test_links_are_drawn_only_where_jobs_hold_them(held) -> None:
    """What goes over a link is no part of a schedule: drawn as free it would say something false."""
    drawn = drawing(two_tiers(held), Window(0, 20 * SECOND))
    links = [box.said for box in drawn.boxes if box.said.startswith("link")]
    said = ["link: bandwidth in rack 0: 15 % used of 100", "link: bandwidth in rack 0: 85 % free of 100"]
    assert links == ([*said, "link: bandwidth in rack 1: 100 % free of 100"] if held else [])
    assert ("Links are not drawn" in drawn.caption) == (not held)
