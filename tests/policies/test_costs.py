"""Cost models against their equations, computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise import registry
from poolwise.errors import InputError
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.policies.cost.baselines import CpuMem, Octopus, Quincy
from poolwise.policies.cost.model import Places, TaskClasses, Waiting
from poolwise.policies.cost.utility import Utility, utility

NW = read_device_profiles("catalog:rodinia")["nw"]


def tasks(kinds=("nw",), demand=((20, 64),), resources=("cores", "memory"), load=0.0, local=True, **more):
    n = len(kinds)
    data = {"data": np.zeros(n), "data_at": np.zeros((n, 2), dtype=np.int64), **more}
    return TaskClasses(resources, np.array(demand), tuple(kinds), np.full(n, load), np.full(n, local), **data)


def places(free=((160, 512),), capacity=((160, 512),), load=(0.0,), running=(0,), position=((0, 0),), **flags):
    free, capacity, running, position = (np.array(x, dtype=np.int64) for x in (free, capacity, running, position))
    return Places(free, capacity, running, np.array(load), position, **flags)


@given(st.floats(1, 1e4), st.floats(1, 1e4), st.floats(1, 10))
def test_utility_is_in_the_unit_interval_if_the_goal_is_met_and_negative_otherwise(time, goal, importance):
    value = float(utility(np.array(time), np.array(goal), np.array(importance)))
    assert (0 <= value <= 1) if time <= goal else (-1000 <= value <= 0)


def test_utility_at_points_computed_by_hand():
    value = utility(np.array([50.0, 100, 150, 150, 1e9]), np.full(5, 100.0), np.array([1.0, 1, 1, 5.5, 1]))
    assert value.tolist() == [0.5, 0, -0.5, -0.25, -1000]
    assert utility(np.array(np.nan), np.array(np.nan), np.array(np.nan)) == 0


def test_placement_costs_the_missing_utility_times_the_preference():
    local = Utility().placing(tasks(), places(preferred=True), 1)[0, 0, 0]
    remote = Utility().placing(tasks(), places(remote=True), 1)[0, 0, 0]
    assert local == pytest.approx(0.5 * 65 / 117.975)
    assert remote == pytest.approx(107.25 / 117.975)
    assert Utility().placing(tasks(kinds=("no profile",)), places(), 1)[0, 0, 0] == 1


@pytest.mark.parametrize(
    ("home", "there", "expected"), [(0.0, 0.0, True), (0.1, 0.0, True), (0.0, 0.2, False), (0.2, 0.1, False)]
)
def test_arc_remains_if_and_only_if_the_goal_is_met_at_the_greater_load(home, there, expected):
    cost = Utility(network_aware=True).placing(tasks(load=home), places(load=[there], remote=True), 1)[0, 0, 0]
    time = NW.remote_s * (1 + NW.sensitivity * max(home, there))
    assert np.isfinite(cost) == expected == (time <= NW.goal_s)
    if expected:
        assert cost == pytest.approx(time / NW.goal_s)
    slack = Utility(network_aware=True, slack=1.0).placing(tasks(load=home), places(load=[there], remote=True), 1)
    assert np.isfinite(slack).all()


def test_plain_costs_ignore_the_load():
    plain = [Utility().placing(tasks(), places(load=[load], remote=True), 1)[0, 0, 0] for load in (0.0, 1.0)]
    assert plain[0] == plain[1]
    assert not Utility().looks_at
    assert Utility(network_aware=True).looks_at == {"load"}


def test_kind_that_misses_its_goal_on_the_idle_machine_keeps_its_cheapest_arcs(tmp_path):
    profiles = tmp_path / "p.csv"
    header = (
        "kind,local_s,spread,remote_s,loaded_s,goal_s,importance,link_mb_s,cpu_sensitivity,device_sensitivity,cores,memory_gib"
    )
    profiles.write_text(f"{header},assumed,source\nslow,100,0,200,300,50,1,0,0,0,1,1,,\n")
    model = Utility(str(profiles), network_aware=True)
    two = places(
        free=((1, 1),) * 2, capacity=((1, 1),) * 2, load=(0.5, 0.1), running=(0, 0), position=((0, 0),) * 2, remote=True
    )
    near = places(
        free=((1, 1),) * 2, capacity=((1, 1),) * 2, load=(0, 0), running=(0, 0), position=((0, 0),) * 2, preferred=True
    )
    at_home, far_only = tasks(kinds=("slow",)), tasks(kinds=("slow",), local=False)
    assert model.hopeless(at_home).all()
    assert np.isfinite(model.placing(at_home, near, 1)).all()
    assert not np.isfinite(model.placing(at_home, two, 1)).any()  # local devices are its cheapest place
    assert np.isfinite(model.placing(far_only, two, 1))[0, :, 0].tolist() == [False, True]


@given(st.lists(st.tuples(st.integers(0, 20000), st.floats(0, 1001)), min_size=1, max_size=9), st.booleans())
def test_waiting_costs_more_than_any_placement_and_increases_with_the_passes(rows, max_placed):
    passes, dearest = (np.array(column) for column in zip(*rows, strict=True))
    waiting = Waiting(passes, np.zeros(len(rows)), dearest.astype(float), tasks=len(rows))
    cost = Utility(max_placed=max_placed).waiting(waiting)
    assert (cost >= 1 + np.minimum(passes, 10_000) + dearest).all() or max_placed
    assert (cost >= 1 + dearest.max() * (len(rows) if max_placed else 0)).all()
    assert (cost > dearest).all()


def test_cpu_mem_prefers_empty_and_evenly_used_machines():
    # Half of the cores and a quarter of the memory after the first copy, all and half after the second.
    cost = CpuMem().placing(tasks(demand=((80, 128),)), places(), 2)
    assert cost[0, 0].tolist() == [(500 + 250) / 2 + 15, (1000 + 500) / 2 + 62]  # var(.5, .25) = 1/64, var(1, .5) = 1/16
    assert CpuMem().placing(tasks(), places(), 80).shape == (1, 1, 50)
    assert CpuMem().waiting(Waiting(np.zeros(2), np.zeros(2), np.zeros(2), 2)).tolist() == [2_560_000.0] * 2


def test_octopus_counts_the_tasks_of_a_machine():
    cost = Octopus().placing(tasks(), places(running=(3,)), 2)
    assert cost[0, 0].tolist() == [300, 400]
    assert Octopus().waiting(Waiting(np.zeros(1), np.zeros(1), np.zeros(1), 1)).tolist() == [1_000_000.0]


def test_quincy_charges_for_remote_data_and_for_waiting():
    three = places(
        free=((1, 1),) * 3, capacity=((1, 1),) * 3, load=(0,) * 3, running=(0,) * 3, position=((1, 2), (1, 0), (0, 2))
    )
    cost = Quincy().placing(tasks(data=np.array([5e9]), data_at=np.array([[1, 2]])), three, 1)
    assert cost[0, :, 0].tolist() == [0, 5, 10]
    assert Quincy().waiting(Waiting(np.zeros(1), np.array([30.0]), np.zeros(1), 1)).tolist() == [1015.0]


@pytest.mark.parametrize("name", registry.names("costs"))
def test_every_cost_model_has_a_cost_for_each_class_at_each_place(name):
    model = registry.make("costs", name)
    two = places(free=((9, 9),) * 2, capacity=((9, 9),) * 2, load=(0, 1), running=(0, 1), position=((0, 0), (1, 1)))
    cost = model.placing(tasks(kinds=("nw", "?", "srad"), demand=((1, 1),) * 3), two, 4)
    assert cost.shape in ((3, 2, 1), (3, 2, 4))
    assert not np.isnan(cost).any()
    assert model.looks_at <= {"load", "running", "position"}


def test_unknown_settings_are_named():
    with pytest.raises(InputError, match="preference"):
        registry.make("costs", "utility", preferense=1)
