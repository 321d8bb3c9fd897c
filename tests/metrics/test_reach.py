"""What is used and what is out of reach, worked out by hand and instant by instant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.metrics import Window
from poolwise.metrics.reach import reach
from poolwise.model import Machine, Workload
from poolwise.report.machine_drawn import drawing
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND


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
