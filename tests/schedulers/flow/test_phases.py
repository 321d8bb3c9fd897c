"""Each phase compared with an exhaustive matcher, and merged graphs with unmerged ones."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model import Queue, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.performance.ideal import Ideal
from poolwise.schedulers.flow import FlowScheduler
from poolwise.schedulers.flow.classes import merged, named, rank_within
from poolwise.schedulers.flow.device_phase import device_graph, place_devices
from poolwise.schedulers.flow.node_phase import node_graph, place_on_nodes
from poolwise.schedulers.flow.phases import solve_gangs, solve_phases
from tests.helpers.gpu_nodes import gpu_nodes

PROFILES = read_device_profiles("catalog:rodinia")
KINDS = tuple(PROFILES)


def round_of(workload, machine, *, taken=(), load=None, **options):
    """Return a round of all jobs of a workload; some (owner, resource, amount) of the machine are occupied."""
    queue = Queue(workload.table)
    for job in range(len(workload)):
        queue.add(job)
        queue.count_pass()
    free = machine.capacity.copy()
    for owner, resource, amount in taken:
        free[owner, resource] -= amount
    snapshot = Snapshot(0, machine, workload.table, machine.capacity, free, RunTable(free.size), Ideal())
    state = FlowScheduler(**options).open(machine, 0).state(queue, snapshot)
    return state if load is None else replace(state, load=np.array(load, dtype=np.float64))


def workload_of(kinds, *, cores=1, gpu=1, tasks=1):
    n = len(kinds)
    columns = {"cores": np.broadcast_to(cores, (n,)), "gpu": np.broadcast_to(gpu, (n,))}
    return Workload.of(np.zeros(n), np.ones(n), tasks=tasks, requests=columns, attributes={"kind": np.array(kinds)})


def cost(kind, *, remote, preferred, load=0.0, aware=False):
    """Return the cost of one task by equation 7, None if the goal is missed."""
    profile = PROFILES[kind]
    time = profile.local_s
    if remote:
        time = profile.remote_s * (1 + (profile.loaded_s / profile.remote_s - 1) * (load if aware else 0.0))
    utility = (profile.goal_s - time) / profile.goal_s  # importance 1: the same slope beyond the goal
    return None if aware and time > profile.goal_s else (1 - utility) * (0.5 if preferred else 1.0)


def cheapest(options, waits):
    """Return the least total cost of giving each task one of its {slot: cost}, each slot once, or letting it wait."""
    best = np.inf
    for choice in itertools.product(*([None, *slots] for slots in options)):
        used = [slot for slot in choice if slot is not None]
        if len(set(used)) == len(used):
            total = sum(wait if slot is None else slots[slot] for slot, slots, wait in zip(choice, options, waits, strict=True))
            best = min(best, total)
    return best


@given(data=st.data())
@settings(max_examples=40)
def test_devices_are_assigned_at_least_cost(data):
    gpus = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    machine = gpu_nodes(gpus, rack_gpus=data.draw(st.integers(0 if sum(gpus) else 1, 1)), cores=100)
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    home = np.array([data.draw(st.integers(0, len(gpus) - 1)) for _ in kinds])
    aware = data.draw(st.booleans())
    workload = workload_of(kinds)
    spots = len(gpus) + 1
    load = [data.draw(st.sampled_from([0.0, 0.3, 0.7])) for _ in range(spots)]
    options = {"settings": {"network_aware": aware}, "aggregated": data.draw(st.booleans())}
    state = round_of(workload, machine, **options)
    state = replace(state, load=np.array(load[: len(state.load)]))
    owner = place_devices(state, "gpu", np.arange(len(kinds)), home)
    slots, waits = [], []
    spot = dict(zip(state.layout.owners["gpu"].tolist(), state.layout.spot["gpu"].tolist(), strict=True))
    for job, (kind, node) in enumerate(zip(kinds, home.tolist(), strict=True)):
        far = {
            d: cost(kind, remote=True, preferred=False, load=max(load[node], load[at]), aware=aware) for d, at in spot.items()
        }
        near = {d: cost(kind, remote=False, preferred=True, aware=aware) for d, at in spot.items() if at == node}
        costs = {d: c for d, c in {**far, **near}.items() if c is not None}
        slots.append(costs)
        waits.append(
            1 + int(state.passes[job]) + max([c for c in (*far.values(), *near.values()) if c is not None], default=0.0)
        )
    paid = sum(waits[k] if d < 0 else slots[k][d] for k, d in enumerate(owner.tolist()))
    assert abs(paid - cheapest(slots, waits)) < 1e-5
    assert len(set(owner[owner >= 0].tolist())) == np.count_nonzero(owner >= 0)


@given(data=st.data())
@settings(max_examples=40)
def test_equal_tasks_are_placed_on_nodes_at_least_cost(data):
    gpus = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    machine = gpu_nodes(gpus, rack_gpus=1, cores=4)
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    taken = [(node, 0, data.draw(st.integers(0, 4))) for node in range(len(gpus))]
    state = round_of(workload_of(kinds, cores=2), machine, taken=taken, aggregated=data.draw(st.booleans()))
    node = place_on_nodes(state, np.arange(len(kinds)))
    # A node has as many slots as its cores allow; the first of them have a GPU, and only those are preferred.
    slots, waits = [], []
    for kind in kinds:
        costs = {}
        for n, count in enumerate(gpus):
            for k in range((4 - taken[n][2]) // 2):
                costs[n, k] = cost(kind, remote=k >= count, preferred=k < count)
        slots.append(costs)
        dear = [cost(kind, remote=True, preferred=False)] if costs else []
        dear += [cost(kind, remote=False, preferred=True)] if any(k < gpus[n] for n, k in costs) else []
        waits.append(max(dear, default=0.0))
    waits = [1 + int(passes) + dear for passes, dear in zip(state.passes, waits, strict=True)]
    best = cheapest(slots, waits)
    assert abs(_least_given_nodes(kinds, node, gpus, waits) - best) < 1e-5
    room = np.array([(4 - amount) // 2 for _, _, amount in taken])
    assert (np.bincount(node[node >= 0], minlength=len(gpus)) <= room).all()


def _least_given_nodes(kinds, node, gpus, waits):
    """Return the cost of a placement on nodes; on each node, the tasks that gain most have the GPUs."""
    total = sum(waits[k] for k in np.flatnonzero(node < 0).tolist())
    for n, count in enumerate(gpus):
        here = [kinds[k] for k in np.flatnonzero(node == n).tolist()]
        near = [cost(kind, remote=False, preferred=True) for kind in here]
        far = [cost(kind, remote=True, preferred=False) for kind in here]
        gains = sorted((f - m for f, m in zip(far, near, strict=True)), reverse=True)
        total += sum(far) - sum(gain for gain in gains[:count] if gain > 0)
    return total


def value(built):
    """Return the cost of a solved graph."""
    answer = built.graph.solve()
    graph = built.graph
    flows = ((answer.waiting, graph.wait), (answer.preference, graph.preference.cost), (answer.through, graph.through.cost))
    return sum(float((flow * price).sum()) for flow, price in flows)


@given(data=st.data())
@settings(max_examples=40)
def test_merging_equal_rows_does_not_change_the_cost(data):
    gpus = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    machine = gpu_nodes(gpus, rack_gpus=1, cores=6)
    n = data.draw(st.integers(1, 8))
    kinds = [data.draw(st.sampled_from(KINDS)) for _ in range(n)]
    cores = np.array([data.draw(st.integers(1, 3)) for _ in range(n)])
    workload = workload_of(kinds, cores=cores)
    costs = data.draw(st.sampled_from(["utility", "cpu_mem", "octopus", "quincy"]))
    load = [data.draw(st.sampled_from([0.0, 0.4])) for _ in range(len(gpus) + 1)]
    settings_ = {"network_aware": True} if costs == "utility" else {}
    home = np.array([data.draw(st.integers(0, len(gpus) - 1)) for _ in range(n)])
    solutions = []
    for aggregated in (True, False):
        state = round_of(workload, machine, load=load, aggregated=aggregated, costs=costs, settings=settings_)
        nodes = node_graph(state, np.arange(n), state.free[: len(gpus)].copy())
        devices = device_graph(state, "gpu", np.arange(n), home)
        solutions.append((len(nodes.graph.capacity), value(nodes), value(devices)))
    assert solutions[0][0] <= solutions[1][0]
    assert np.allclose(solutions[0][1:], solutions[1][1:], atol=1e-5)


def test_max_placed_leaves_no_task_waiting_that_could_be_placed():
    # nw gains far more from the GPU than hotspot loses by waiting, but both can be served: one of them over the network.
    machine = gpu_nodes((1, 1), cores=4)
    state = round_of(workload_of(["hotspot", "nw"]), machine, settings={"max_placed": True})
    owner = place_devices(state, "gpu", np.arange(2), np.array([0, 0]))
    assert sorted(owner.tolist()) == sorted(state.layout.owners["gpu"].tolist())


def test_gang_placed_in_part_is_withdrawn_for_one_that_fits():
    # Links are so loaded that nothing may be remote, so the two GPUs have room for the second gang only. The first one has
    # waited longer and takes both.
    state = round_of(
        workload_of(["nw", "nw"], tasks=np.array([3, 2])),
        gpu_nodes((1, 1), cores=2),
        load=[0.9, 0.9],
        settings={"network_aware": True},
    )
    first = solve_phases(state, np.arange(2))
    assert (first.whole.tolist(), first.part.tolist()) == ([False, False], [True, False])
    outcome, withdrawn = solve_gangs(state, np.arange(2))
    assert (outcome.whole.tolist(), withdrawn.tolist()) == ([False, True], [True, False])
    assert not outcome.part.any()


def test_gang_that_does_not_fit_with_an_older_one_is_withdrawn():
    state = round_of(workload_of(["nw", "nw"], tasks=np.array([3, 4])), gpu_nodes((2, 2), cores=2))
    assert solve_phases(state, np.arange(2)).part.tolist() == [False, True]
    outcome, withdrawn = solve_gangs(state, np.arange(2))
    assert (outcome.whole.tolist(), withdrawn.tolist()) == ([True, False], [False, True])
    assert outcome.job.tolist() == [0, 0, 0]


def test_without_solving_again_partly_placed_gangs_block_each_other():
    # Two nodes with a GPU and two cores each, and links so loaded that nothing may be remote. The node phase, blind to GPUs,
    # puts each gang on its own node, where only one of its tasks has a GPU; the first gang alone is spread over both.
    outcomes = {}
    for again in (True, False):
        state = round_of(
            workload_of(["nw", "nw"], tasks=2),
            gpu_nodes((1, 1), cores=2),
            load=[0.9, 0.9],
            settings={"network_aware": True},
            local_first=False,
            solve_again=again,
        )
        outcome, withdrawn = solve_gangs(state, np.arange(2))
        outcomes[again] = outcome.whole.tolist(), withdrawn.tolist()
    assert outcomes[True] == ([True, False], [False, True])
    assert outcomes[False] == ([False, False], [True, True])


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1, width=16), st.sampled_from("ab")), min_size=1, max_size=20))
def test_merged_rows_are_the_equal_ones(rows):
    of, first = merged(*(np.array(column) for column in zip(*rows, strict=True)))
    assert [rows[k] for k in first[of].tolist()] == rows
    assert len({*rows}) == len(first)
    assert rank_within(of).tolist() == [sum(of[j] == of[k] for j in range(k)) for k in range(len(rows))]


def test_names_follow_from_values_and_tag():
    integers, floats = np.arange(50).repeat(50), np.tile(np.arange(50), 50).astype(float)
    names = np.concatenate([named(tag, integers, floats) for tag in range(8)])
    assert len(np.unique(names)) == len(names)
    assert (named(3, integers, floats)[::7] == named(3, integers[::7], floats[::7])).all()
    assert (names >= 0).all()


def test_lines_list_every_arc():
    state = round_of(workload_of(["nw"]), gpu_nodes((1, 0)))
    built = device_graph(state, "gpu", np.array([0]), np.array([0]))
    lines = built.graph.lines(["nw"], ["X"], ["n0"])
    assert "nw -> n0: at most 1, cost 0.275482" in lines
    assert len(lines) == len(built.graph.arrays()[0])
