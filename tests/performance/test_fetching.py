"""Fetch phase of runs over shared links, against an independent fluid model of the flows."""

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
from poolwise.model import Changes, Decisions, Fetch, JobTable, Placement, Queue, Run, Snapshot, Start, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.ideal import Ideal
from poolwise.performance.network_sharing import NetworkSharing, max_min_shares
from poolwise.performance.transfer import Transfer
from poolwise.platforms.simulated import Simulation
from poolwise.schedulers.dispatch import Dispatch

MACHINE = devices().machine  # nodes 0..3 at (0, 0) to (1, 1), ports 8..11 of 1250, 1250, 400, 1250 MB/s, trunk 12 of 1000
FABRIC = MACHINE.fabric
SHARED = Combined((NetworkSharing(), Fetching()))
MB = 10**6
MS = 10**6  # ns


class At(Scheduler, Dispatcher):
    """Starts each job at once at a given node, with a device if one is given; records the snapshots."""

    def __init__(self, nodes: Sequence[int], devices: Sequence[int] = ()) -> None:
        self.nodes, self.devices = nodes, devices
        self.seen: dict[int, list[tuple[int, int, bool, tuple[int, ...]]]] = {}

    def open(self, machine: object, seed: int) -> "At":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        self.seen[snapshot.now] = [
            (run.job, run.expected_end, run.fetch is not None, snapshot.occupants(12)) for run in snapshot.runs()
        ]
        starts = []
        for job in queue.jobs.tolist():
            rows = [(0, self.nodes[job], 0, 1)]
            if self.devices:
                rows.append((0, self.devices[job], 1, 0))
            starts.append(Start(job, (0,), Placement.of(rows)))
        return Decisions(tuple(starts))


def jobs(submit: Sequence[int], work: Sequence[int], size: Sequence[int], place: Sequence[int], **requests: int) -> Workload:
    """Build jobs with work in ns and data in bytes at the position of a node."""
    x, y = np.array([MACHINE.position[node] for node in place]).reshape(-1, 2).T
    return Workload.of(
        np.array(submit),
        np.array(work),
        requests={name: np.full(len(work), amount) for name, amount in requests.items()},
        attributes={"data_size": np.array(size), "data_x": x, "data_y": y},
    )


def ends(nodes: Sequence[int], workload: Workload, model: PerformanceModel = SHARED, **options: object) -> list[int]:
    return simulate(workload, MACHINE, At(nodes), model=model, **options).schedule.job_end.tolist()


def fluid(nodes: Sequence[int], workload: Workload) -> list[float]:
    """Return the ends of jobs: ns until the data of each have arrived, at max-min shares between events, plus its work."""
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
def test_transfers_match_a_fluid_model(entries: list[tuple[int, int, int, int, int]]) -> None:
    entries = sorted(entries)
    workload = jobs(*([entry[k] for entry in entries] for k in range(4)))
    nodes = [entry[4] for entry in entries]
    got = ends(nodes, workload)
    np.testing.assert_allclose(got, fluid(nodes, workload), rtol=0, atol=8 * len(entries))  # each speed change rounds up


@pytest.mark.parametrize("node", range(4))
@pytest.mark.parametrize("size", [0, 1, 10 * MB])
def test_exclusive_fetch_takes_the_time_of_a_transfer(node: int, size: int) -> None:
    """The difference is up to 3 ns: the bytes per nanosecond at the port are rounded up before the slowdown applies."""
    workload = jobs([5], [7], [size], [0])
    (alone,), (shared,) = ends([node], workload, Transfer()), ends([node], workload)
    assert 0 <= shared - alone <= 3
    assert shared > 12 or not (node and size)


def test_work_has_flows_only_after_the_fetch() -> None:
    """A fetches 10 MB to node 0 and then reads device 5 at 1250 MB/s over port 1 and 0; B at node 1 fetches 10 MB from node 0.

    Both fetches cross ports 0 and 1, with 625 MB/s each: 16 ms and 0.4 us of latency. If A's work already had its flow, B
    would get less. After that A is alone with B's 2 ms of work, which has no flow.
    """
    workload = jobs([0, 0], [10 * MS, 2 * MS], [10 * MB, 10 * MB], [1, 0], bandwidth=1250)
    at = At([0, 1], [5, 5])
    schedule = simulate(workload, MACHINE, at, model=SHARED).schedule
    assert schedule.job_end.tolist() == [26 * MS + 400, 18 * MS + 400]


def test_fetching_run_touches_all_links_until_its_work_begins() -> None:
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, MS, MS], [10 * MB, 0, 0], [1, 1, 1])
    at = At([0, 3, 3])
    simulate(workload, MACHINE, at, model=SHARED)
    assert at.seen[4 * MS] == [(0, 28 * MS + 400, True, (0,))]
    assert at.seen[12 * MS] == [(0, 28 * MS + 400, False, ())]


def test_no_work_is_done_during_the_fetch() -> None:
    """The fetch takes 8 ms and 400 ns of 28: at 4 ms all work is left, at 12 ms 4 ms less 400 ns are done."""
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, 1, 1], [10 * MB, 0, 0], [1] * 3)
    left = {}

    class RecordingWork(At):
        def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
            left.update({(snapshot.now, run.job): snapshot.work_left(run.id) for run in snapshot.runs()})
            return super().schedule(queue, snapshot, changes)

    simulate(workload, MACHINE, RecordingWork([0, 3, 3]), model=SHARED)
    assert left[4 * MS, 0] == 20 * MS
    assert left[12 * MS, 0] == 16 * MS + 400


def test_outdated_end_of_a_fetch_is_ignored() -> None:
    """A fetches 10 MB while B fetches 2.5, and would end at 16 ms; but B ends at 4, so A ends at 10 and works for 6 ms."""
    assert ends([0, 0], jobs([0, 0], [6 * MS, MS], [10 * MB, MB * 5 // 2], [1, 1])) == [16 * MS + 400, 5 * MS + 400]


def test_link_that_fails_during_a_transfer_is_named() -> None:
    with pytest.raises(InputError, match="link9"):
        ends([0], jobs([0], [MS], [10 * MB], [1]), disturbances=[Disturbance(MS, 9, 1, -1250)])


def test_node_with_a_link_without_bandwidth_is_named() -> None:
    capacity = MACHINE.capacity.copy()
    capacity[8, 1] = 0
    with pytest.raises(InputError, match="'link8' has no bandwidth"):
        simulate(jobs([0], [MS], [MB], [1]), MACHINE.with_capacity(capacity), At([0]), model=SHARED)


# Expected ends


def expected(model: PerformanceModel, estimate: PerformanceModel, requested: int = 20 * MS) -> dict[int, list[int]]:
    """Return the expected ends of A, 10 MB within the rack and 20 ms of work, in the passes of B and C at 4 and 12 ms."""
    workload = jobs([0, 4 * MS, 12 * MS], [20 * MS, 1, 1], [10 * MB, 0, 0], [1] * 3)
    workload = Workload.of(
        workload.submit,
        workload.duration,
        requested=np.array([requested, 1, 1]),
        requests=workload.requests,
        attributes=workload.attributes,
    )
    at = At([0, 3, 3])
    simulate(workload, MACHINE, at, model=model, estimate=estimate)
    return {ms: [end for job, end, _, _ in at.seen[ms * MS] if job == 0] for ms in (4, 12)}


def test_estimate_with_fetching_expects_both_phases() -> None:
    """The fetch takes 8 ms and 400 ns; work takes 20 ms in truth, and is expected to take as long as requested."""
    assert expected(SHARED, SHARED) == {4: [28 * MS + 400], 12: [28 * MS + 400]}
    assert expected(SHARED, SHARED, 40 * MS) == {4: [48 * MS + 400], 12: [48 * MS + 400]}


def test_fetches_of_only_the_truth_or_only_the_estimate() -> None:
    """An estimate without data expects 20 ms. An estimate with data that the truth does not have expects them forever."""
    assert expected(SHARED, Ideal()) == {4: [20 * MS], 12: [20 * MS]}
    assert expected(Ideal(), SHARED) == {4: [28 * MS + 400], 12: [28 * MS + 400]}


def test_slow_fetch_is_expected_to_remain_slow_and_its_end_starts_the_work() -> None:
    """A and B fetch 10 MB each over the ports of nodes 0 and 1; the estimate includes the data but not the sharing.

    Expected: 8 ms of fetching, then 20 of work. At 16 ms the fetches end, and the work is expected to begin then.
    """
    workload = jobs([0, 0, 12 * MS, 18 * MS], [20 * MS] * 2 + [1] * 2, [10 * MB] * 2 + [0] * 2, [1, 1, 1, 1])
    at = At([0, 0, 3, 3])
    simulate(workload, MACHINE, at, model=SHARED, estimate=Fetching())
    assert [end for job, end, _, _ in at.seen[12 * MS] if job < 2] == [28 * MS + 400] * 2
    assert [end for job, end, _, _ in at.seen[18 * MS] if job < 2] == [36 * MS + 400] * 2


def test_imagined_start_fetches_too() -> None:
    """With another fetch of 10 MB, a fetch has half of the links: 16 ms instead of 8. The same holds for imagined starts."""
    workload = jobs([0, 0], [20 * MS, 20 * MS], [10 * MB, 10 * MB], [1, 1])
    simulation = Simulation(workload, MACHINE, SHARED)
    for _ in simulation.events():
        break
    at = [Placement.of([(0, node, 0, 1)]) for node in (0, 0)]
    assert simulation.snapshot().expected_end(0, at[0]) == 28 * MS + 400
    simulation.commit(Decisions((Start(0, (0,), at[0]),)))
    view = simulation.snapshot()
    assert view.expected_end(1, at[1]) == 36 * MS + 400
    imagined = view.with_started(1, at[1])
    (run,) = (run for run in imagined.runs() if run.id < 0)
    assert run.fetch is not None and run.expected_end == 36 * MS + 400
    assert len(imagined.occupants(12)) == 2
    later = imagined.at(30 * MS)
    assert [other.fetch for other in later.runs()] == [run.fetch]


# Table of runs


def table_of(*runs: Run) -> RunTable:
    table = RunTable(4)
    for run in runs:
        table.add(run, np.array([run.placement.owner[0]]), (1,) if run.job else ())
    return table


def test_run_that_has_fetched_keeps_its_position_among_the_occupants() -> None:
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


def test_model_passes_the_conformance_checks() -> None:
    case = units()
    case = Case(case.workload, case.machine, Dispatch(), Affinity())
    for model in (SHARED, Combined((Affinity(), NetworkSharing(), Fetching()))):
        assert [str(result) for result in check_model(model, case) if not result.ok] == []


def test_workload_without_data_has_no_fetch() -> None:
    table = JobTable(*(np.array([value]) for value in (1, 0, 5, 1)), {}, {})
    free = MACHINE.capacity
    view = Snapshot(0, MACHINE, table, free, free, RunTable(free.size), SHARED)
    run = Run(-1, 0, (0,), Placement.of([(0, 0, 0, 1)]), 0, 0)
    assert Fetching().fetch(run, view) is None and Fetching().setup(run, view) == 0
