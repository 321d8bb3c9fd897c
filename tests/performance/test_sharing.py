"""Bandwidth, network and transfer models: numbers by hand, and conservation of work under sharing."""

import itertools
import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.conformance.cases import devices
from poolwise.engines import Disturbance, simulate
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.model import Changes, Decisions, Machine, Placement, Queue, Run, Snapshot, Start, Workload
from poolwise.performance.bandwidth_sharing import BandwidthSharing
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.routes import Route, homes, routes
from poolwise.performance.transfer import Transfer
from poolwise.quantities import SECOND

MACHINE = devices().machine  # nodes 0..3, devices 4..7 inside them, ports 8..11 of 1250, 1250, 400, 1250, trunk 12 of 1000


class At(Scheduler, Dispatcher):
    """Starts each job at once at given owners: the first is its node, the others are devices."""

    def __init__(self, *places: tuple[int, ...]) -> None:
        self.places = places
        self.occupants: dict[int, list[tuple[int, ...]]] = {}

    def open(self, machine: Machine, seed: int) -> "At":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        self.occupants[snapshot.now // SECOND] = [snapshot.occupants(link) for link in range(8, 13)]
        starts = []
        for job in queue.jobs.tolist():
            node, *held = self.places[job]
            starts.append(Start(job, (0,), Placement.of([(0, node, 0, 1), *((0, device, 1, 0) for device in held)])))
        return Decisions(tuple(starts))


def ends(at: At, model: PerformanceModel, submit: list[int], work: list[int], demand: list[int], **more: object) -> list[float]:
    """Return the ends of jobs in seconds, to the microsecond (each speed change may cost 2 ns)."""
    workload = Workload.of(
        np.array(submit) * SECOND,
        np.array(work) * SECOND,
        requests={"bandwidth": np.array(demand)},
        attributes={name: np.array(values) for name, values in more.pop("attributes", {}).items()},
    )
    schedule = simulate(workload, MACHINE, at, model=model, **more).schedule
    return [round(end / SECOND, 6) for end in schedule.job_end.tolist()]


def test_device_is_split_evenly_among_runs_that_request_bandwidth() -> None:
    """2000 MB/s: A requests 1500 and has them for 100 s, then 1000 with B (slowdown 0.5); C requests none."""
    at = At((0, 4), (2, 4), (1, 4))
    # A: 100 + 200 * 1.5 = 400. C: 50 + 100. B requests 1000 and is never slower: 100 + 500.
    assert ends(at, BandwidthSharing(), [0, 50, 100], [300, 100, 500], [1500, 0, 1000]) == [400, 150, 600]


def test_extra_bandwidth_helps_up_to_the_peak() -> None:
    """Requests 2000, can use 6000: three devices are three times as fast, four no faster (spec: 900 s / min(k, 3))."""
    for held, seconds in (((4,), 900), ((4, 5), 450), ((4, 5, 6), 300), ((4, 5, 6, 7), 300)):
        peak = {"peak_bandwidth": [6000]}
        assert ends(At((0, *held)), BandwidthSharing(), [0], [900], [2000], attributes=peak) == [seconds]
        assert ends(At((0, *held)), BandwidthSharing(), [0], [900], [2000]) == [900]
    peak = {"peak_bandwidth": [6000] * 2}
    assert ends(At((0, 4, 5), (1, 4, 5)), BandwidthSharing(), [0, 0], [900] * 2, [2000] * 2, attributes=peak) == [900] * 2


def test_stalled_run_stays_stalled_in_a_combination() -> None:
    @dataclass(frozen=True)
    class Stalled(Ideal):
        def slowdown(self, run: Run, snapshot: Snapshot) -> float:
            return math.inf

    run, view = cast(Run, None), cast(Snapshot, None)
    for models in ((Stalled(), Ideal()), (Ideal(), Stalled()), (Ideal(), Stalled(), Ideal())):
        assert Combined(models).slowdown(run, view) == math.inf


def test_device_without_bandwidth_is_an_error_and_not_a_stall() -> None:
    with pytest.raises(PolicyError, match="slowdown inf"):
        ends(At((0, 4)), BandwidthSharing(), [0], [9], [10], disturbances=[Disturbance(SECOND, 4, 1, -2000)])


def test_routes_start_at_the_nearest_node_of_the_task() -> None:
    placement = Placement.of([(0, 0, 0, 1), (0, 2, 0, 1), (0, 4, 1, 0), (0, 7, 1, 0), (1, 1, 0, 1), (1, 6, 1, 0)])
    assert homes(placement, MACHINE) == {0: [0, 2], 1: [1]}
    # Device 4 is at node 0. Device 7 is one switch from node 2, two from node 0.
    assert routes(placement, MACHINE) == [Route(0, 7, (2, 3)), Route(1, 6, (1, 4, 2))]
    assert routes(placement, Machine.flat(3)) == []


def test_links_are_shared_and_list_the_runs_that_depend_on_them() -> None:
    """B crosses ports 0 and 2 and the trunk, A ports 0 and 1, C ports 3 and 2.

    A alone requests 1000 and has it. From 100 B gets 400 at port 2 and A 850. From 200 C halves port 2: A has its 1000 again.
    """
    at = At((0, 5), (0, 6), (3, 6))
    got = ends(at, NetworkSharing(), [0, 100, 200], [1000, 100, 100], [1000, 1000, 400])
    # C runs at half speed until 400. B does 40 by 200, 40 more by 400 and its last 20 in 50 s. While B is unthrottled,
    # A runs at 0.85 for 100 + 50 s, which makes it 22.5 s late.
    assert got == [1022.5, 450, 400]
    assert at.occupants[100] == [(0,)] * 5  # all links that A can reach, including those it crosses
    assert at.occupants[200] == [(0, 1)] * 5
    assert at.occupants[400] == [(0, 1)] * 5


def test_run_on_several_devices_is_as_slow_as_its_slowest_flow() -> None:
    """1000 requested, 500 to each device; port 2 has 400: slowdown 0.25. A device at the node itself has no flow."""
    assert ends(At((0, 5, 6)), NetworkSharing(), [0], [100], [1000]) == [125]
    assert ends(At((0, 4)), NetworkSharing(), [0], [100], [9999]) == [100]


def test_link_that_is_down_is_named() -> None:
    with pytest.raises(InputError, match="link10"):
        ends(At((0, 6)), NetworkSharing(), [0], [9], [10], disturbances=[Disturbance(SECOND, 10, 1, -400)])


@pytest.mark.parametrize(
    ("node", "place", "size", "nanoseconds"),
    [
        (0, (0, 0), 10**6, 0),  # in place
        (1, (0, 0), 10**6, 10**9 // 1250 + 2 * 100 + 200),  # one switch, two links of 100 ns
        (2, (0, 0), 10**6, 10**9 // 400 + 3 * 100 + 2 * 200),  # the narrow port counts
        (2, (0, 0), 1, 3 + 3 * 100 + 2 * 200),  # 2.5 ns, rounded up
        (3, (0, 1), 0, 0),
    ],
)
def test_transfer_takes_size_over_bottleneck_plus_latency(
    node: int, place: tuple[int, int], size: int, nanoseconds: int
) -> None:
    columns = {"data_size": np.array([size]), "data_x": np.array([place[0]]), "data_y": np.array([place[1]])}
    workload = Workload.of(np.array([0]), np.array([50]), attributes=columns)
    schedule = simulate(workload, MACHINE, At((node,)), model=Transfer()).schedule
    assert int(schedule.job_end[0]) == nanoseconds + 50


def test_data_at_an_empty_position_is_an_input_error() -> None:
    columns = {"data_size": np.array([5]), "data_x": np.array([9]), "data_y": np.array([0])}
    with pytest.raises(InputError, match="x = 9, y = 0"):
        simulate(Workload.of(np.array([0]), np.array([5]), attributes=columns), MACHINE, At((0,)), model=Transfer())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60), st.integers(0, 3000), st.integers(0, 3), st.integers(4, 7)),
             min_size=1, max_size=7),
    st.sampled_from((BandwidthSharing(), NetworkSharing())),
)  # fmt: skip
def test_every_run_completes_exactly_its_work(jobs: list[tuple[int, int, int, int, int]], model: PerformanceModel) -> None:
    """Integrate 1 / (1 + slowdown) between events, evaluating the model in each state: the sum is the work."""
    jobs = sorted(jobs)
    done = np.zeros(len(jobs))
    present: list[tuple[int, list[tuple[int, float]]]] = []

    class Probe(At):
        def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
            decisions = super().schedule(queue, snapshot, changes)
            view = snapshot
            for start in decisions:
                view = view.with_started(start.job, start.placement, end=snapshot.now)  # imagined: no cache of the model
            present.append((snapshot.now, [(run.job, model.slowdown(run, view)) for run in view.runs()]))
            return decisions

    at = Probe(*((node, device) for *_, node, device in jobs))
    workload = Workload.of(
        np.array([j[0] for j in jobs]) * SECOND,
        np.array([j[1] for j in jobs]) * SECOND,
        requests={"bandwidth": np.array([j[2] for j in jobs])},
    )
    schedule = simulate(workload, MACHINE, at, model=model).schedule
    assert schedule.finished.all()
    for (now, speeds), (then, _) in itertools.pairwise(present):
        for job, slowdown in speeds:
            done[job] += (then - now) / (1.0 + slowdown)
    changes = 4 * len(present)  # ns: each speed change rounds up
    np.testing.assert_allclose(done, workload.duration, rtol=1e-9, atol=changes)
