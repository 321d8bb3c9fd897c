"""Data that are fetched over shared links: a phase of the run, against a fluid of flows worked out by itself."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.conformance import check_model
from poolwise.conformance.cases import Case, devices, units
from poolwise.engines import Disturbance, simulate
from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.model import Changes, Fetch, JobTable, Placement, Plan, Queue, Run, Snapshot, Start, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.ideal import Ideal
from poolwise.performance.max_min import max_min_shares
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.transfer import Transfer
from poolwise.platforms.simulated import Simulation
from poolwise.schedulers.dispatch import Dispatch

MACHINE = devices().machine  # nodes 0..3 at (0, 0) to (1, 1), ports 8..11 of 1250, 1250, 400, 1250 MB/s, trunk 12 of 1000
FABRIC = MACHINE.fabric
SHARED = Combined((NetworkSharing(), Fetching()))
MB = 10**6
MS = 10**6  # ns


class At(Scheduler, Dispatcher):
    """Starts each job at once at a given node, beside a device if one is given; notes what it sees."""

    def __init__(self, nodes: Sequence[int], devices: Sequence[int] = ()) -> None:
        self.nodes, self.devices = nodes, devices
        self.seen: dict[int, list[tuple[int, int, bool, tuple[int, ...]]]] = {}

    def open(self, machine: object, seed: int) -> "At":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        self.seen[snapshot.now] = [
            (run.job, run.expected_end, run.fetch is not None, snapshot.occupants(12)) for run in snapshot.runs()
        ]
        starts = []
        for job in queue.jobs.tolist():
            rows = [(0, self.nodes[job], 0, 1)]
            if self.devices:
                rows.append((0, self.devices[job], 1, 0))
            starts.append(Start(job, (0,), Placement.of(rows)))
        return Plan(tuple(starts))


def jobs(submit: Sequence[int], work: Sequence[int], size: Sequence[int], place: Sequence[int], **asks: int) -> Workload:
    """Work in ns, data in bytes at the place of a node."""
    x, y = np.array([MACHINE.position[node] for node in place]).reshape(-1, 2).T
    return Workload.of(
        np.array(submit),
        np.array(work),
        requests={name: np.full(len(work), amount) for name, amount in asks.items()},
        attributes={"data_size": np.array(size), "data_x": x, "data_y": y},
    )


def ends(nodes: Sequence[int], workload: Workload, truth: PerformanceModel = SHARED, **options: object) -> list[int]:
    return simulate(MACHINE, workload, At(nodes), truth=truth, **options).schedule.job_end.tolist()


def fluid(nodes: Sequence[int], workload: Workload) -> list[float]:
    """Ends of jobs: ns by which the data of each have flowed, at max-min shares from instant to instant, and its work."""
    paths = []
    for job, node in enumerate(nodes):
        place = workload.attributes["data_x"][job], workload.attributes["data_y"][job]
        there = next(k for k in range(4) if tuple(MACHINE.position[k].tolist()) == tuple(int(v) for v in place))
        paths.append(FABRIC.path(there, node) if workload.attributes["data_size"][job] else ())
    port = [int(MACHINE.capacity[8 + node, 1]) for node in nodes]
    left = [float(size) * 1000 if path else 0.0 for size, path in zip(workload.attributes["data_size"], paths, strict=True)]
    begins = [
        int(submit) + (100 * len(path) + 200 * (len(path) - 1) if path else 0)
        for submit, path in zip(workload.submit, paths, strict=True)
    ]
    ready = [float(begin) for begin in begins]
    now = 0.0
    while True:
        flows = [k for k in range(len(nodes)) if left[k] > 0 and workload.submit[k] <= now]
        coming = [float(t) for t in [*workload.submit, *begins] if t > now]
        if not flows:
            if not coming:
                return [ready[k] + float(workload.duration[k]) for k in range(len(nodes))]
            now = min(coming)
            continue
        hops = [(f, link) for f, k in enumerate(flows) for link in paths[k]]
        flow, link = (np.array(column) for column in zip(*hops, strict=True))
        rate = max_min_shares(
            np.array([float(port[k]) for k in flows]), MACHINE.capacity[FABRIC.link, 1].astype(float), flow, link
        )
        moving = {k: rate[f] for f, k in enumerate(flows) if begins[k] <= now}
        then = min([*coming, *(now + left[k] / speed for k, speed in moving.items())])
        for k, speed in moving.items():
            left[k] -= (then - now) * speed
            if left[k] < 1e-6 * speed:
                left[k], ready[k] = 0.0, then
        now = then


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 30).map(lambda ms: ms * MS),
            st.integers(1, 40).map(lambda ms: ms * MS),
            st.sampled_from((0, 1, 3 * MB, 10 * MB, 25 * MB)),
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=8,
    )
)
@example([(0, MS, 10 * MB, 0, 2), (0, MS, 10 * MB, 0, 3), (5 * MS, MS, 1, 1, 1), (5 * MS, MS, 25 * MB, 1, 0)])
def test_transfers_are_those_of_a_fluid(entries: list[tuple[int, int, int, int, int]]) -> None:
    entries = sorted(entries)
    workload = jobs(*([entry[k] for entry in entries] for k in range(4)))
    nodes = [entry[4] for entry in entries]
    got = ends(nodes, workload)
    np.testing.assert_allclose(got, fluid(nodes, workload), rtol=0, atol=8 * len(entries))  # each change of pace rounds up


@pytest.mark.parametrize("node", range(4))
@pytest.mark.parametrize("size", [0, 1, 10 * MB])
def test_alone_it_takes_what_a_transfer_takes(node: int, size: int) -> None:
    """Up to 3 ns: the bytes of a nanosecond at the port are rounded up before they are slowed down."""
    workload = jobs([5], [7], [size], [0])
    (alone,), (shared,) = ends([node], workload, Transfer()), ends([node], workload)
    assert 0 <= shared - alone <= 3
    assert shared > 12 or not (node and size)


def test_work_has_flows_of_its_own_only_once_the_data_are_there() -> None:
    """A fetches 10 MB to node 0 and then reads device 5 at 1250 MB/s over port 1 and 0; B at node 1 fetches 10 MB from node 0.

    Both fetchings cross ports 0 and 1, which give 625 to each: 16 ms and 0.4 us of latency. Had A's work its flow already, B
    would have had less. From then on A is alone with B's 2 ms of work, which has no flow.
    """
    workload = jobs([0, 0], [10 * MS, 2 * MS], [10 * MB, 10 * MB], [1, 0], bandwidth=1250)
    at = At([0, 1], [5, 5])
    schedule = simulate(MACHINE, workload, at, truth=SHARED).schedule
    assert schedule.job_end.tolist() == [26 * MS + 400, 18 * MS + 400]


def test_who_fetches_touches_all_links_and_leaves_them_when_its_work_begins() -> None:
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, MS, MS], [10 * MB, 0, 0], [1, 1, 1])
    at = At([0, 3, 3])
    simulate(MACHINE, workload, at, truth=SHARED)
    assert at.seen[4 * MS] == [(0, 28 * MS + 400, True, (0,))]
    assert at.seen[12 * MS] == [(0, 28 * MS + 400, False, ())]


def test_no_work_is_done_while_data_are_on_their_way() -> None:
    """Fetching takes 8 ms and 400 ns of 28: at 4 ms all work is left, at 12 ms 4 ms less 400 ns are done."""
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, 1, 1], [10 * MB, 0, 0], [1] * 3)
    left = {}

    class Looking(At):
        def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
            left.update({(snapshot.now, run.job): snapshot.work_left(run.id) for run in snapshot.runs()})
            return super().schedule(queue, snapshot, changes)

    simulate(MACHINE, workload, Looking([0, 3, 3]), truth=SHARED)
    assert left[4 * MS, 0] == 20 * MS
    assert left[12 * MS, 0] == 16 * MS + 400


def test_an_end_of_fetching_that_did_not_come_true_is_not_taken_for_one() -> None:
    """A fetches 10 MB beside B's 2.5, and would be through at 16 ms; but B is at 4, so A is at 10. A works for 6 ms: to 16."""
    assert ends([0, 0], jobs([0, 0], [6 * MS, MS], [10 * MB, MB * 5 // 2], [1, 1])) == [16 * MS + 400, 5 * MS + 400]


def test_a_link_that_fails_in_mid_transfer_is_named() -> None:
    with pytest.raises(InputError, match="link9"):
        ends([0], jobs([0], [MS], [10 * MB], [1]), disturbances=[Disturbance(MS, 9, 1, -1250)])


def test_a_node_whose_link_has_no_bandwidth_is_named() -> None:
    capacity = MACHINE.capacity.copy()
    capacity[8, 1] = 0
    with pytest.raises(InputError, match="'link8' has no bandwidth"):
        simulate(MACHINE.with_capacity(capacity), jobs([0], [MS], [MB], [1]), At([0]), truth=SHARED)


# What is expected


def expected(truth: PerformanceModel, estimate: PerformanceModel, requested: int = 20 * MS) -> dict[int, list[int]]:
    """Expected ends of A, 10 MB within the rack and 20 ms of work, in the passes that B and C cause at 4 and 12 ms."""
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, 1, 1], [10 * MB, 0, 0], [1] * 3)
    workload = Workload.of(
        workload.submit,
        workload.duration,
        requested=np.array([requested, 1, 1]),
        requests=workload.requests,
        attributes=workload.attributes,
    )
    at = At([0, 3, 3])
    simulate(MACHINE, workload, at, truth=truth, estimate=estimate)
    return {ms: [end for job, end, _, _ in at.seen[ms * MS] if job == 0] for ms in (4, 12)}


def test_a_scheduler_that_believes_in_fetching_expects_both_phases() -> None:
    """Fetching takes 8 ms and 400 ns; work takes 20 ms in truth, and is thought to take as long as requested."""
    assert expected(SHARED, SHARED) == {4: [28 * MS + 400], 12: [28 * MS + 400]}
    assert expected(SHARED, SHARED, 40 * MS) == {4: [48 * MS + 400], 12: [48 * MS + 400]}


def test_what_only_truth_or_only_the_estimate_fetches() -> None:
    """Who believes in no data expects 20 ms. Who believes in data that truth knows nothing of waits for them in vain."""
    assert expected(SHARED, Ideal()) == {4: [20 * MS], 12: [20 * MS]}
    assert expected(Ideal(), SHARED) == {4: [28 * MS + 400], 12: [28 * MS + 400]}


def test_a_slow_transfer_is_expected_to_go_on_as_slowly_and_its_end_sets_the_work_going() -> None:
    """A and B fetch 10 MB each over the ports of nodes 0 and 1; the estimate knows of the data and not of the sharing.

    Believed: 8 ms of fetching, then 20 of work. At 16 ms the fetchings end, and the work is expected to begin then.
    """
    workload = jobs([0, 0, 12 * MS, 18 * MS], [20 * MS] * 2 + [1] * 2, [10 * MB] * 2 + [0] * 2, [1, 1, 1, 1])
    at = At([0, 0, 3, 3])
    simulate(MACHINE, workload, at, truth=SHARED, estimate=Fetching())
    assert [end for job, end, _, _ in at.seen[12 * MS] if job < 2] == [28 * MS + 400] * 2
    assert [end for job, end, _, _ in at.seen[18 * MS] if job < 2] == [36 * MS + 400] * 2


def test_a_start_that_is_only_imagined_fetches_too() -> None:
    """Beside a fetching of 10 MB another has half of the links: 16 ms instead of 8. So has a third beside an imagined one."""
    workload = jobs([0, 0], [20 * MS, 20 * MS], [10 * MB, 10 * MB], [1, 1])
    simulation = Simulation(MACHINE, workload, SHARED)
    for _ in simulation.events():
        break
    at = [Placement.of([(0, node, 0, 1)]) for node in (0, 0)]
    assert simulation.snapshot().expected_end(0, at[0]) == 28 * MS + 400
    simulation.commit(Plan((Start(0, (0,), at[0]),)))
    view = simulation.snapshot()
    assert view.expected_end(1, at[1]) == 36 * MS + 400
    imagined = view.with_started(1, at[1])
    (run,) = (run for run in imagined.runs() if run.id < 0)
    assert run.fetch is not None and run.expected_end == 36 * MS + 400
    assert len(imagined.occupants(12)) == 2
    later = imagined.at(30 * MS)
    assert [other.fetch for other in later.runs()] == [run.fetch]


# The table of runs


def table_of(*runs: Run) -> RunTable:
    table = RunTable(4)
    for run in runs:
        table.add(run, np.array([run.placement.owner[0]]), (1,) if run.job else ())
    return table


def test_a_run_that_has_fetched_keeps_its_place_among_those_that_started_earlier_and_later() -> None:
    here = Placement.of([(0, 0, 0, 1)])
    table = table_of(*(Run(k, k, (0,), here, 0, 9, Fetch(1, 1, ((0,),), (1, 2)) if k < 3 else None) for k in range(4)))
    assert [tuple(table.occupants(owner)) for owner in range(3)] == [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2)]
    before = table.version, table.arrangement
    assert table.fetched(0) == Run(0, 0, (0,), here, 0, 9) == table[0]
    assert table.fetched(1).fetch is None
    assert table.version > before[0] and table.arrangement > before[1]
    assert [tuple(table.occupants(owner)) for owner in range(3)] == [(0, 1, 2, 3), (1, 2, 3), (2,)]
    assert [tuple(table.sensitive(owner)) for owner in range(3)] == [(), (1, 2, 3), (2,)]
    assert [table.touched(run) for run in range(4)] == [(0,), (0, 1), (0, 1, 2), (0, 1)]
    assert [run.id for run in table] == [0, 1, 2, 3]
    for number in (2, 0, 3, 1):
        table.remove(number)
    assert not len(table) and not any(tuple(table.occupants(owner)) for owner in range(3))


def test_the_model_keeps_its_promises() -> None:
    case = units()
    case = Case(case.machine, case.workload, Dispatch(), Affinity())
    for model in (SHARED, Combined((Affinity(), NetworkSharing(), Fetching()))):
        assert [str(result) for result in check_model(model, case) if not result.ok] == []


def test_a_workload_without_data_has_nothing_to_fetch() -> None:
    table = JobTable(*(np.array([value]) for value in (1, 0, 5, 1)), {}, {})
    free = MACHINE.capacity
    view = Snapshot(0, MACHINE, table, free, free, RunTable(free.size), SHARED)
    run = Run(-1, 0, (0,), Placement.of([(0, 0, 0, 1)]), 0, 0)
    assert Fetching().fetch(run, view) is None and Fetching().setup(run, view) == 0
