"""Incremental minimum-cost flow: after any changes the cost equals that of a cold solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.optimize.min_cost_flow import min_cost_flow
from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow
from poolwise.optimize.min_cost_flow.named import NamedFlow
from tests.helpers.flow_problems import assert_optimal

capacities, costs = st.integers(0, 6), st.integers(-9, 15)


class Twin:
    """An incremental network with a plain list of its expected content."""

    def __init__(self):
        self.network = IncrementalFlow()
        self.supply, self.arcs = {}, {}
        self.flow = None

    def add_nodes(self, supply):
        for node, amount in zip(self.network.add_nodes(supply).tolist(), supply, strict=True):
            assert node not in self.supply
            self.supply[node] = amount

    def add_arcs(self, arcs):
        for arc, what in zip(self.network.add_arcs(*np.array(arcs).reshape(-1, 4).T).tolist(), arcs, strict=True):
            assert arc not in self.arcs
            self.arcs[arc] = list(what)

    def remove_nodes(self, nodes):
        self.network.remove_nodes(nodes)
        for node in nodes:
            del self.supply[node]
        self.arcs = {arc: what for arc, what in self.arcs.items() if not {what[0], what[1]} & set(nodes)}

    def remove_arcs(self, arcs):
        self.network.remove_arcs(arcs)
        for arc in arcs:
            del self.arcs[arc]

    def set(self, what, arcs, values):
        getattr(self.network, f"set_{what}")(arcs, values)
        for arc, value in zip(arcs, values, strict=True):
            self.arcs[arc][2 if what == "capacity" else 3] = value

    def set_supply(self, nodes, values):
        self.network.set_supply(nodes, values)
        self.supply.update(zip(nodes, values, strict=True))

    def check(self):
        answer = self.network.solve()
        rows = {node: row for row, node in enumerate(self.supply)}
        tail, head, capacity, cost = np.array(list(self.arcs.values()), dtype=np.int64).reshape(-1, 4).T
        problem = (
            np.array([rows[node] for node in tail.tolist()], dtype=np.int64),
            np.array([rows[node] for node in head.tolist()], dtype=np.int64),
            np.zeros_like(capacity), capacity, cost, np.array(list(self.supply.values()), dtype=np.int64),
        )  # fmt: skip
        cold = min_cost_flow(*problem)
        assert (answer.status, answer.cost) == (cold.status, cold.cost)
        self.flow = dict(zip(self.arcs, answer.flow[list(self.arcs)].tolist(), strict=True)) if answer.optimal else None
        if answer.optimal:
            assert_optimal(problem, answer.flow[list(self.arcs)], answer.cost)
            assert answer.flow.sum() == sum(self.flow.values())

    def realize(self, share):
        """Withdraw a part of each arc's flow, and the supplies that it met."""
        if self.flow:
            arcs = list(self.flow)
            amounts = [int(self.flow[arc] * share) for arc in arcs]
            self.network.withdraw(arcs, amounts)
            for arc, amount in zip(arcs, amounts, strict=True):
                tail, head, _, _ = self.arcs[arc]
                self.supply[tail] -= amount
                self.supply[head] += amount
                self.arcs[arc][2] -= amount
            self.network.set_supply(list(self.supply), list(self.supply.values()))
            self.flow = None


def some(data, numbers):
    """Draw distinct numbers in any order."""
    return data.draw(st.lists(st.sampled_from(sorted(numbers)), unique=True, max_size=4)) if numbers else []


def change(data, twin):
    nodes, arcs = some(data, twin.supply), some(data, twin.arcs)
    match data.draw(st.integers(0, 7)):
        case 0:
            twin.add_nodes(data.draw(st.lists(st.integers(-3, 3), max_size=3)))
        case 1 | 2:
            if len(twin.supply) > 1:
                ends = st.lists(st.sampled_from(sorted(twin.supply)), unique=True, min_size=2, max_size=2)
                drawn = data.draw(st.lists(st.tuples(ends, capacities, costs), max_size=5))
                twin.add_arcs([(*pair, capacity, cost) for pair, capacity, cost in drawn])
        case 3:
            twin.remove_nodes(nodes[:1])
        case 4:
            twin.remove_arcs(arcs)
        case 5:
            twin.set("capacity", arcs, [data.draw(capacities) for _ in arcs])
        case 6:
            twin.set("cost", arcs, [data.draw(costs) for _ in arcs])
        case 7:
            twin.set_supply(nodes, [data.draw(st.integers(-3, 3)) for _ in nodes])


def balance(twin):
    if twin.supply:
        node = min(twin.supply)
        twin.set_supply([node], [twin.supply[node] - sum(twin.supply.values())])


@settings(max_examples=80)
@given(st.data())
def test_cost_matches_a_cold_solver_after_any_changes(data):
    twin = Twin()
    twin.add_nodes([2, 0, 0, -2])
    nodes = list(twin.supply)
    twin.add_arcs([(nodes[u], nodes[v], 3, c) for u, v, c in ((0, 1, 1), (0, 2, 2), (1, 3, 4), (2, 3, 1), (0, 3, 9))])
    twin.check()
    for _ in range(data.draw(st.integers(1, 5))):
        twin.realize(data.draw(st.sampled_from([0.0, 0.5, 1.0])))
        for _ in range(data.draw(st.integers(1, 3))):
            change(data, twin)
        if data.draw(st.integers(0, 9)):
            balance(twin)
        twin.check()


@pytest.mark.parametrize(("arrivals", "departures"), [(12, 6), (6, 12), (9, 9)])
def test_cost_matches_a_cold_solver_over_scheduling_rounds(arrivals, departures):
    rng = np.random.default_rng(arrivals)
    twin = Twin()
    sink, *machines = range(31)
    twin.add_nodes([0] * 31)
    twin.add_arcs([(machine, sink, 0, 0) for machine in machines])
    slot, waiting = list(twin.arcs), {}
    for _ in range(12):
        before = set(twin.supply)
        twin.add_nodes([1] * arrivals)
        for task in sorted(set(twin.supply) - before):
            preferred = rng.choice(machines, 8, replace=False)
            arcs = set(twin.arcs)
            twin.add_arcs([(task, sink, 1, 100), *((task, int(m), 1, int(rng.integers(0, 99))) for m in preferred)])
            waiting[task] = min(set(twin.arcs) - arcs)
        twin.set("cost", list(waiting.values()), [twin.arcs[arc][3] + 10 for arc in waiting.values()])
        freed = rng.integers(0, 30, departures)
        for k, count in zip(*np.unique(freed, return_counts=True), strict=True):
            twin.set("capacity", [slot[k]], [twin.arcs[slot[k]][2] + int(count)])
        twin.set_supply([sink], [-len(waiting)])
        twin.check()
        placed = [task for task, arc in waiting.items() if not twin.flow[arc]]
        used = [arc for arc in slot if twin.flow[arc]]
        twin.set("capacity", used, [twin.arcs[arc][2] - twin.flow[arc] for arc in used])
        if placed:
            twin.remove_nodes(placed)
            for task in placed:
                del waiting[task]


def test_infeasible_network_may_become_feasible_again():
    network = IncrementalFlow()
    a, b = network.add_nodes([3, -3])
    (arc,) = network.add_arcs([a], [b], [2], [5])
    assert network.solve().status == "infeasible"
    network.set_capacity([arc], [4])
    assert network.solve().cost == 15
    network.set_supply([a], [4])
    assert network.solve().status == "unbalanced"
    network.set_supply([b], [-4])
    assert network.solve().flow[arc] == 4


def test_withdrawn_flow_is_removed_with_its_capacity():
    network = IncrementalFlow()
    a, b = network.add_nodes([3, -3])
    (arc,) = network.add_arcs([a], [b], [4], [5])
    assert network.solve().flow[arc] == 3
    network.withdraw([arc], [3])
    network.set_supply([a, b], [1, -1])
    assert network.solve().flow[arc] == 1
    network.set_supply([a, b], [2, -2])
    assert network.solve().status == "infeasible"


def test_prices_out_of_range_are_reset():
    network = IncrementalFlow()
    a, b, c = network.add_nodes([3, 0, -3])
    network.add_arcs([a, a, b], [b, c, c], [2, 4, 2], [1, 5, 1])
    assert network.solve().cost == 9
    network._graph.price[:] = np.array([-1, 0, 1]) * (1 << 62)  # as after many rounds; sums exceed 64 bits
    network.set_supply([a, c], [4, -4])
    assert network.solve().cost == 14


def test_invalid_changes_are_rejected_without_effect():
    network = IncrementalFlow()
    a, b = network.add_nodes([3, -3]).tolist()
    (arc,) = network.add_arcs([a], [b], [4], [5]).tolist()
    network.solve()
    for field, act in (
        ("tail", lambda: network.add_arcs([7], [b], [1], [1])),
        ("head", lambda: network.add_arcs([a], [a], [1], [1])),
        ("capacity", lambda: network.add_arcs([a], [b], [-1], [1])),
        ("capacity", lambda: network.set_capacity([arc], [-1])),
        ("cost", lambda: network.set_cost([arc], [0.5])),
        ("arcs", lambda: network.set_cost([arc + 1], [1])),
        ("arcs", lambda: network.set_cost([arc, arc], [1, 2])),
        ("nodes", lambda: network.set_supply([-1], [1])),
        ("nodes", lambda: network.remove_nodes([a, a])),
        ("amount", lambda: network.withdraw([arc], [4])),
        ("supply", lambda: network.set_supply([a, b], [1])),
    ):
        with pytest.raises(InputError) as problem:
            act()
        assert problem.value.field == field
        assert problem.value.remedy
        assert network.solve().flow[arc] == 3
    network.remove_nodes([a])
    network.set_supply([b], [0])
    assert network.solve().cost == 0
    with pytest.raises(InputError, match="not an arc"):
        network.set_cost([arc], [1])


def test_same_changes_give_identical_flows():
    def run():
        rng = np.random.default_rng(5)
        network = IncrementalFlow()
        nodes = network.add_nodes([0] * 40)
        network.add_arcs(rng.integers(0, 20, 300), rng.integers(20, 40, 300), [3] * 300, rng.integers(0, 5, 300))
        flows = []
        for _ in range(5):
            supply = rng.integers(0, 4, 20)
            network.set_supply(nodes, np.concatenate((supply, -rng.permutation(supply))))
            flows.append(network.solve().flow.tobytes())
        return flows

    assert run() == run()


@st.composite
def statements(draw):
    """Named problems without parallel arcs; names recur from statement to statement."""
    names = draw(st.lists(st.integers(-3, 6), unique=True, min_size=1, max_size=7))
    ends = [(u, v) for u in range(len(names)) for v in range(len(names)) if u != v]
    arcs = draw(st.lists(st.sampled_from(ends), unique=True, max_size=12)) if ends else []
    capacity, cost = (draw(st.lists(values, min_size=len(arcs), max_size=len(arcs))) for values in (capacities, costs))
    supply = draw(st.lists(st.integers(-2, 2), min_size=len(names), max_size=len(names)))
    if draw(st.integers(0, 9)):
        supply[0] -= sum(supply)
    tail, head = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    return names, tail, head, *(np.array(values, dtype=np.int64) for values in (capacity, cost, supply))


@settings(max_examples=60)
@given(st.lists(statements(), min_size=1, max_size=5), st.sampled_from([0.0, 0.5, 1.0]))
def test_restated_problems_are_solved_like_new_ones(rounds, share):
    named = NamedFlow()
    for names, tail, head, capacity, cost, supply in rounds:
        answer = named.solve(names, tail, head, capacity, cost, supply)
        cold = min_cost_flow(tail, head, 0, capacity, cost, supply)
        assert (answer.status, answer.cost) == (cold.status, cold.cost)
        if answer.optimal:
            assert_optimal((tail, head, np.zeros_like(capacity), capacity, cost, supply), answer.flow, answer.cost)
            named.withdraw((answer.flow * share).astype(np.int64))


def test_restatement_may_change_every_number_and_the_order_of_nodes():
    named = NamedFlow()
    assert named.solve([1, 2, 3], [0, 1, 0], [1, 2, 2], [5, 5, 2], [1, 1, 5], [3, 0, -3]).flow.tolist() == [3, 3, 0]
    assert named.solve([1, 2, 3], [0, 1, 0], [1, 2, 2], [5, 5, 2], [4, 4, 5], [3, 0, -3]).flow.tolist() == [1, 1, 2]
    assert named.solve([1, 2, 3], [0, 1, 0], [1, 2, 2], [5, 5, 3], [4, 4, 5], [3, 0, -3]).flow.tolist() == [0, 0, 3]
    assert named.solve([3, 2, 1], [2, 2, 1], [0, 1, 0], [3, 5, 5], [5, 4, 4], [-4, 0, 4]).flow.tolist() == [3, 1, 1]


def test_invalid_statements_are_rejected_without_effect():
    named = NamedFlow()
    good = [7, 8], [0], [1], [4], [5], [3, -3]
    assert named.solve(*good).flow.tolist() == [3]
    for place, wrong, field in (
        (0, [7, 7], "names"),
        (1, [2], "tail"),
        (2, [0], "head"),
        (3, [-1], "capacity"),
        (4, [0.5], "cost"),
        (5, [1], "supply"),
    ):
        with pytest.raises(InputError) as problem:
            named.solve(*good[:place], wrong, *good[place + 1 :])
        assert problem.value.field == field
        assert problem.value.remedy
    with pytest.raises(InputError, match="share both ends"):
        named.solve([7, 8], [0, 0], [1, 1], 4, 5, [3, -3])
    assert named.solve(*good).flow.tolist() == [3]
