"""Placement on shared nodes: against exhaustive search and explicit rules, on random states."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.model import Kind, Placement, Refusal, Snapshot, Workload
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.run_table import RunTable
from poolwise.model.shared_nodes import shared_nodes
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.nodes.layout import node_layout
from poolwise.policies.placement.requests import foreign_request
from poolwise.registry import make
from tests.helpers.node_machines import machine, random_jobs, random_machine

POLICIES = {name: make("placements", name) for name in ("first_fit", "best_fit", "worst_fit", "packed", "topology_none")}


def snapshot_of(on, jobs, free=None):
    free = on.capacity if free is None else free
    return Snapshot(0, on, jobs.table, on.capacity, free, RunTable(on.capacity.size), Ideal())


def busy(g, on):
    """Free amounts in a random state; devices are free or in use."""
    free = np.floor(on.capacity * g.random(on.capacity.shape) ** 0.4 + 0.3).astype(np.int64)
    return np.minimum(free, on.capacity)


def ways(on, free, job):
    """Yield every choice of nodes that can take the parts of a job, with its total need of pool memory."""
    eligible = eligible_owners(on, *eligible_sets(on, job.table).value[int(eligible_sets(on, job.table).of[job.index])])
    nodes = shared_nodes(on).nodes
    pools = dict(zip(nodes.tolist(), shared_nodes(on).pools("memory").tolist(), strict=True))
    able, lack = [], {}
    for node in nodes.tolist():
        devices = [o for o in on.of_kind(Kind.DEVICE).tolist() if on.home[o] == node and free[o, 2] > 0]
        lack[node] = max(job.memory - int(free[node, 0]), 0)
        if not eligible[node] or free[node, 1] < job.request("cores"):
            continue
        if any(sum(on.type[o] == kind for o in devices) < job.request(kind) for kind in ("gpu", "fpga")):
            continue
        able.append(node)
    for chosen in combinations(able, job.nodes):
        need = {}
        for node in chosen:
            need[pools[node]] = need.get(pools[node], 0) + lack[node]
        if all(not amount or (pool >= 0 and amount <= free[pool, 0]) for pool, amount in need.items()):
            yield chosen, sum(need.values())


@pytest.mark.parametrize("block", range(4))
def test_job_is_placed_if_and_only_if_possible_and_with_the_least_pool_memory(block):
    for seed in range(60 * block, 60 * block + 60):
        g = np.random.default_rng(seed)
        on = random_machine(g, 7)
        jobs, free = random_jobs(g, on, 6), busy(g, on)
        state = snapshot_of(on, jobs, free)
        for row in range(len(jobs)):
            job = jobs.job(row)
            possible = list(ways(on, free, job))
            for name, policy in POLICIES.items():
                placed = policy.place(job, state)
                assert isinstance(placed, Placement) == bool(possible), (seed, name)
                if isinstance(placed, Placement):
                    check(placed, on, free, job, possible)
                    assert policy.prefilter(np.array([row]), free[None], state)[0]


def check(found, on, free, job, possible):
    taken = np.zeros_like(free)
    np.add.at(taken, (found.owner, found.resource), found.amount)
    assert (taken <= free).all()
    nodes = tuple(o for o in found.owners() if on.kind[o] == Kind.NODE)
    borrowed = {chosen: amount for chosen, amount in possible}
    pools = taken[on.of_kind(Kind.POOL), 0].sum()
    assert pools == borrowed[nodes] == min(borrowed.values())
    assert taken[:, 1].sum() == job.nodes * job.request("cores")
    assert taken[:, 0].sum() == job.nodes * job.memory
    for node in nodes:
        for kind in ("gpu", "fpga"):
            mine = [o for o in on.of_kind(Kind.DEVICE).tolist() if taken[o, 2] and on.home[o] == node and on.type[o] == kind]
            assert len(mine) == job.request(kind)


def test_node_choice_of_each_policy():
    on = machine(np.array([[8, 100]] * 6), np.array([0, 0, 0, 1, 1, 1]))
    free = on.capacity.copy()
    free[:, 1] = [1, 6, 4, 8, 4, 2]
    jobs = Workload.of(np.zeros(2), np.ones(2), requests={"cores": np.array([3, 3]), "nodes": np.array([1, 2])})
    chosen = {
        name: [policy.place(jobs.job(k), snapshot_of(on, jobs, free)).owner.tolist() for k in range(2)]
        for name, policy in POLICIES.items()
    }
    assert chosen == {
        "first_fit": [[1], [1, 2]],
        "best_fit": [[2], [2, 4]],
        "worst_fit": [[3], [3, 1]],
        "packed": [[1], [1, 2]],
        "topology_none": [[2], [1, 2]],
    }


def test_packed_uses_the_rack_with_the_fewest_able_nodes_that_holds_all_parts_else_few_racks():
    on = machine(np.array([[8, 100]] * 7), np.array([0, 0, 0, 1, 1, 2, 2]))
    jobs = Workload.of(np.zeros(4), np.ones(4), requests={"cores": np.full(4, 8), "nodes": np.array([1, 2, 3, 5])})
    nodes = [POLICIES["packed"].place(jobs.job(k), snapshot_of(on, jobs)).owner.tolist() for k in range(4)]
    assert nodes == [[3], [3, 4], [0, 1, 2], [0, 1, 2, 3, 4]]


def test_partitions_and_features_restrict_the_nodes():
    sets = {"long": np.array([1, 1, 0], dtype=bool), "short": np.array([0, 1, 1], dtype=bool)}
    on = machine(np.array([[8, 100]] * 3), np.zeros(3, dtype=np.int64), sets=sets)
    jobs = Workload.of(
        np.zeros(5),
        np.ones(5),
        requests={"cores": np.full(5, 8)},
        attributes={
            "partition": np.array(["short", "", "long,short", "long", "nights"]),
            "constraint": np.array(["", "short", "", "short & long", ""]),
        },
    )
    state = snapshot_of(on, jobs)
    owners = [POLICIES["first_fit"].place(jobs.job(k), state).owner.tolist() for k in range(4)]
    assert owners == [[1], [1], [0], [1]]
    with pytest.raises(InputError, match="unknown partition 'nights'"):
        POLICIES["first_fit"].place(jobs.job(4), state)


def test_shortages_are_stated_and_unknown_resources_rejected():
    on = machine(np.array([[8, 100]] * 3), np.zeros(3, dtype=np.int64), pools={0: 50})
    jobs = Workload.of(
        np.zeros(4),
        np.ones(4),
        requests={"cores": np.array([9, 1, 1, 1]), "nodes": np.array([1, 4, 2, 1]), "memory": np.array([1, 1, 130, 151])},
    )
    state, policy = snapshot_of(on, jobs), POLICIES["first_fit"]
    refusals = [policy.place(jobs.job(k), state) for k in range(4)]
    assert [(refusal.resource, refusal.needed) for refusal in refusals] == [
        ("cores", 9),
        ("nodes", 4),
        ("memory", 260),
        ("memory", 151),
    ]
    tape = Workload.of(np.zeros(1), np.ones(1), requests={"cores": np.ones(1), "tape": np.ones(1)})
    with pytest.raises(InputError, match="requests tape"):
        policy.check(on, tape.table)
    refusal = policy.place(tape.job(0), snapshot_of(on, tape))
    assert isinstance(refusal, Refusal) and (refusal.resource, refusal.needed) == ("tape", 1)
    many = Workload.of(np.zeros(1), np.ones(1), tasks=2, requests={"cores": np.ones(1), "nodes": np.full(1, 2)})
    with pytest.raises(InputError, match="2 tasks of 2 nodes"):
        policy.check(on, many.table)
    assert isinstance(policy.place(many.job(0), snapshot_of(on, many)), Refusal)


def test_tasks_may_share_a_node_but_parts_may_not():
    on = machine(np.array([[8, 100]] * 2), np.zeros(2, dtype=np.int64))
    tasks = Workload.of(np.zeros(1), np.ones(1), tasks=4, requests={"cores": np.full(1, 4)})
    assert POLICIES["first_fit"].place(tasks.job(0), snapshot_of(on, tasks)).rows() == [
        (0, 0, 1, 4), (1, 0, 1, 4), (2, 1, 1, 4), (3, 1, 1, 4),
    ]  # fmt: skip
    parts = Workload.of(np.zeros(1), np.ones(1), requests={"cores": np.full(1, 4), "nodes": np.full(1, 3)})
    assert isinstance(POLICIES["first_fit"].place(parts.job(0), snapshot_of(on, parts)), Refusal)


@pytest.mark.parametrize("pooled", [False, True])
def test_screen_counts_the_room_for_all_tasks(pooled):
    """The prefilter is exact if memory comes only from nodes; with pools it never rejects a job that could be placed."""
    passed, refused = 0, 0
    for seed in range(100):
        g = np.random.default_rng(seed)
        on = random_machine(g, 5)
        requests = {"cores": g.integers(0, 4, 8), "memory": g.integers(0, 40, 8) * pooled, "gpu": g.integers(0, 2, 8)}
        jobs = Workload.of(np.zeros(8), np.ones(8), tasks=g.integers(1, 9, 8), requests=requests)
        free = busy(g, on)
        state = snapshot_of(on, jobs, free)
        for row in range(8):
            prefiltered = bool(POLICIES["first_fit"].prefilter(np.array([row]), free[None], state)[0])
            for policy in POLICIES.values():
                placed = isinstance(policy.place(jobs.job(row), state), Placement)
                assert prefiltered or not placed
                assert pooled or placed == prefiltered or foreign_request(jobs.job(row), node_layout(on).known)
            passed, refused = passed + prefiltered, refused + (not prefiltered)
        several = np.stack([free, on.capacity])
        for row in range(8):
            one_by_one = [bool(POLICIES["first_fit"].prefilter(np.array([row]), each[None], state)[0]) for each in several]
            assert POLICIES["first_fit"].prefilter(np.array([row]), several, state).tolist() == one_by_one
    assert passed > 200 and refused > 200


@pytest.mark.parametrize("name", POLICIES)
def test_nodes_of_a_lower_weight_come_first_among_those_that_need_the_least_pool_memory(name):
    """No unused node that could take a part precedes a used one by its lack of memory, or by its weight at an equal lack."""
    compared = 0
    for seed in range(150):
        g = np.random.default_rng(seed)
        on = random_machine(g, 7, devices=False)
        weight = np.where(on.kind == Kind.NODE, g.choice([1.0, 2.0, 5.0, np.nan], on.n_owner), np.nan)
        on = replace(on, attributes={"weight": weight})
        jobs, free = random_jobs(g, on, 6), busy(g, on)
        for row in range(6):
            job = jobs.job(row)
            options = [chosen for chosen, _ in ways(on, free, job)]
            placed = POLICIES[name].place(job, snapshot_of(on, jobs, free))
            assert isinstance(placed, Refusal) == (not options)
            if isinstance(placed, Refusal) or job.tasks > 1 or on.of_kind(Kind.POOL).size:
                continue
            used = sorted({owner for _, owner, _, _ in placed.rows()})
            weights = np.where(np.isnan(weight), 1.0, weight)
            least = min(sorted(weights[list(chosen)].tolist()) for chosen in options)
            assert sorted(weights[used].tolist()) == least
            compared += 1
    assert compared > 100


def test_equal_weights_change_nothing():
    on = machine(np.array([[4, 100], [8, 100], [4, 100]]), np.zeros(3, dtype=np.int64))
    for weights in ([3.0, 3.0, 3.0], [np.nan, 1.0, np.nan]):
        assert not node_layout(replace(on, attributes={"weight": np.array(weights)})).weight.any()


def test_consecutive_nodes_are_used_like_slurm_does():
    """The tightest sequence is used first, and for a single part, its node with the fewest free cores."""
    on = machine(np.array([[16, 100]] * 8), np.zeros(8, dtype=np.int64))
    policy = make("placements", "topology_none")

    def chosen(free, nodes, cores, weights=None):
        here = on if weights is None else replace(on, attributes={"weight": np.array(weights, dtype=np.float64)})
        amounts = on.capacity.copy()
        amounts[:, 1] = free
        jobs = Workload.of(np.zeros(1), np.ones(1), requests={"cores": np.array([cores]), "nodes": np.array([nodes])})
        return policy.place(jobs.job(0), snapshot_of(here, jobs, amounts)).owner.tolist()

    assert chosen([0, 16, 0, 16, 16, 16, 16, 16], 1, 1) == [1]
    assert chosen([0, 16, 16, 16, 16, 0, 12, 9], 2, 4) == [6, 7]
    assert chosen([16, 0, 12, 9, 0, 16, 16, 0], 1, 4) == [0], "the 16 free cores of one node are fewer than the 21 of two"
    assert chosen([16, 16, 0, 12, 9, 0, 16, 16], 1, 4) == [4]
    assert chosen([16, 16, 0, 16, 16, 16, 0, 16], 4, 4) == [3, 4, 5, 7], "the largest sequence first, then the tightest"
    weights = [30, 30, 10, 10, 20, 20, 10, 10]
    assert chosen([16] * 8, 1, 16, weights) == [2]
    assert chosen([16, 16, 0, 16, 16, 16, 3, 3], 2, 8, weights) == [3, 4]
    assert chosen([16, 16, 0, 8, 0, 1, 0, 1], 3, 2, weights) == [3, 0, 1]
