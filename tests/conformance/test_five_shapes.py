"""Small forms of the five systems that Poolwise supports, on the common scheduling loop."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from poolwise.engines import Disturbance, simulate
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.model import (
    Changes,
    Decisions,
    Fabric,
    Kind,
    Machine,
    Outcome,
    Placement,
    Queue,
    Run,
    Schedule,
    Snapshot,
    Start,
    Workload,
)
from poolwise.performance.bandwidth_sharing import BandwidthSharing
from poolwise.performance.combined import Combined
from poolwise.performance.transfer import Transfer
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler

Decide = Callable[[Queue, Snapshot, Changes], Decisions]


@dataclass(frozen=True)
class Scripted(Scheduler, Dispatcher):
    """A scheduler that is a function of the queue, the snapshot and the changes."""

    decide: Decide

    def open(self, machine: Machine, seed: int) -> "Scripted":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        return self.decide(queue, snapshot, changes)


@dataclass
class Parts:
    """Make a small machine from a list of owners."""

    resources: tuple[str, ...]
    names: list[str] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)
    amounts: list[list[int]] = field(default_factory=list)

    def add(self, name: str, kind: Kind, place: tuple[int, int] = (0, 0), home: int = -1, **amounts: int) -> int:
        self.names.append(name)
        self.kinds.append(int(kind))
        self.places.append(place)
        self.homes.append(home)
        self.amounts.append([amounts.get(resource, 0) for resource in self.resources])
        return len(self.names) - 1

    def machine(self, fabric: Fabric | None = None, **attributes: list[float]) -> Machine:
        return Machine(
            name="test",
            owners=tuple(self.names),
            kind=np.array(self.kinds),
            type=tuple(name.rstrip("0123456789") for name in self.names),
            rack=np.array([x for x, _ in self.places]),
            position=np.array(self.places),
            home=np.array(self.homes),
            resources=self.resources,
            capacity=np.array(self.amounts, dtype=np.int64),
            attributes={name: np.array(values) for name, values in attributes.items()},
            fabric=fabric,
        )


def seconds(*values: float) -> np.ndarray:
    return np.array([round(value * SECOND) for value in values], dtype=np.int64)


def ran(schedule: Schedule, unit: int = SECOND) -> list[tuple[int, float, float, Outcome]]:
    """Return (job, start, end, outcome) of every run in the order of starts."""
    rows = zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), schedule.outcome, strict=True)
    return [(job, start / unit, end / unit, outcome) for job, start, end, outcome in rows]


# (a) Workloads that share a composed NVMe.


def test_sharers_of_a_composition_change_speed_with_their_number() -> None:
    """Two composed devices give 4000 MB/s: 4000 to one, 2000 each to two.

    Alone A does 300 s of its 900; from 300 both run at half speed; A's other 600 take 1200, to 1500. B has then done 600
    and does its last 300 alone, to 1800. C holds a core and no device and takes its 500 s.
    """
    parts = Parts(("cores", "bandwidth", "storage"))
    node = parts.add("node0", Kind.NODE, cores=25)
    devices = [parts.add(f"nvme{k}", Kind.DEVICE, bandwidth=2000, storage=600) for k in range(3)]
    machine = parts.machine()
    workload = Workload.of(
        seconds(0, 300, 400),
        seconds(900, 900, 500),
        requests={"cores": np.array([2, 2, 1]), "bandwidth": np.array([4000, 4000, 0]), "storage": np.array([43, 43, 0])},
    )
    seen: dict[int, tuple[object, ...]] = {}

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        here = tuple(snapshot.composition(d) for d in devices), snapshot.occupants(devices[1])
        seen[snapshot.now // SECOND] = (*here, [run.expected_end // SECOND for run in snapshot.runs()])
        starts = []
        for job in queue.jobs.tolist():
            rows = [(0, node, 0, workload.job(job).request("cores"))]
            if workload.job(job).request("bandwidth"):
                for device in devices[:2]:
                    rows += [(0, device, 1, 0), (0, device, 2, 43)]
            starts.append(Start(job, (0,), Placement.of(rows)))
        return Decisions(tuple(starts))

    schedule = simulate(workload, machine, Scripted(decide), model=BandwidthSharing()).schedule
    done = Outcome.FINISHED
    assert ran(schedule) == [(0, 0, 1500, done), (1, 300, 1800, done), (2, 400, 900, done)]
    composed, alone = (devices[0], devices[1]), ((devices[0],), (devices[1],), (devices[2],))
    assert seen[0] == (alone, (), [])
    assert seen[300] == ((composed, composed, (devices[2],)), (0,), [900])
    assert seen[400] == ((composed, composed, (devices[2],)), (0, 1), [1500, 2100])
    assert seen[1500] == ((composed, composed, (devices[2],)), (1,), [1800])
    assert seen[1800] == (alone, (), [])


# (b) Tasks dispatched one by one to units of different speeds, their data in another rack.


@dataclass(frozen=True)
class Speed(PerformanceModel):
    """Units have an attribute "speed"."""

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        return 0

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        return 1.0 / float(snapshot.machine.attributes["speed"][run.placement.owners()[0]]) - 1.0

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        return ()


def two_racks_of_units() -> Machine:
    """Two units in each of two racks; 1250 MB/s within a rack, 125 MB/s across; rack 1 is four times as fast."""
    parts = Parts(("slots", "bandwidth"))
    for x in (0, 1):
        for y in (0, 1):
            parts.add(f"unit{x}{y}", Kind.DEVICE, (x, y), slots=1)
    for x in (0, 1):
        for y in (0, 1):
            parts.add(f"port{x}{y}", Kind.LINK, bandwidth=1250)
    for x in (0, 1):
        parts.add(f"uplink{x}", Kind.LINK, bandwidth=125)
    fabric = Fabric(  # vertices: units 0..3, rack switches 4 and 5, core switch 6
        vertex=np.array([0, 1, 2, 3, -1, -1, -1, -1, -1, -1]),
        link=np.arange(4, 10),
        ends=np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 6], [5, 6]]),
        latency=np.zeros(6, dtype=np.int64),
    )
    return parts.machine(fabric, speed=[1, 1, 4, 4, *[1] * 6])


def test_tasks_are_dispatched_to_idle_units_after_their_transfer() -> None:
    """40 us of work and 1000 B at (0, 0): a unit holds a task 40 us there, 1 + 40 us in the same rack, 8.6 + 10 us in rack 1.

    (1000 B take 0.8 us at 10 Gb/s and 8 us at 1 Gb/s; one switch adds 0.2 us, three 0.6.) The fast units start at every
    multiple of 18.6 us, the slow ones at those of 40 and 41: when the fast ones take their tenth tasks at 167.4, the slow
    ones have taken five each, and that makes 30.
    """
    machine = two_racks_of_units()
    workload = Workload.of(
        np.array([0]),
        np.array([40_000]),
        tasks=30,
        attributes={"data_size": np.array([1000]), "data_x": np.array([0]), "data_y": np.array([0])},
    )

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        idle = [unit for unit in (2, 3, 0, 1) if snapshot.free[unit, 0]]
        tasks = queue.tasks(0) if len(queue) else ()
        return Decisions(tuple(Start(0, (t,), Placement.of([(t, u, 0, 1)])) for t, u in zip(tasks, idle, strict=False)))

    schedule = simulate(workload, machine, Scripted(decide), model=Combined((Speed(), Transfer()))).schedule
    by_unit: dict[int, list[tuple[int, int]]] = {}
    for run in range(schedule.n_run):
        by_unit.setdefault(schedule.placement_of(run)[0][0], []).append((int(schedule.start[run]), int(schedule.end[run])))
    for unit, (count, length) in {0: (5, 40_000), 1: (5, 41_000), 2: (10, 18_600), 3: (10, 18_600)}.items():
        assert by_unit[unit] == [(k * length, (k + 1) * length) for k in range(count)]
    assert int(schedule.job_end[0]) == 205_000
    assert schedule.done.all() and not schedule.refused


# (c) A gang with a GPU of another machine.


def gang_machine() -> Machine:
    parts = Parts(("cores", "gpus"))
    for k in (0, 1):
        parts.add(f"node{k}", Kind.NODE, cores=20)
    for k in (0, 1):
        parts.add(f"gpu{k}", Kind.DEVICE, home=k, gpus=1)
    return parts.machine()


GANG = Placement.of([(0, 0, 0, 10), (0, 2, 1, 1), (1, 0, 0, 10), (1, 3, 1, 1)])  # both tasks on node 0, one with node 1's GPU


def test_gang_is_refused_completely_if_one_device_is_taken() -> None:
    workload = Workload.of(seconds(0, 0, 10), seconds(50, 100, 5), tasks=np.array([1, 2, 1]))
    shown: list[tuple[int, list[int], list[int]]] = []

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        shown.append((snapshot.now // SECOND, snapshot.free[[0, 1], 0].tolist(), snapshot.free[[2, 3], 1].tolist()))
        alone = Start(0, (0,), Placement.of([(0, 1, 0, 5), (0, 3, 1, 1)])), Start(2, (0,), Placement.of([(0, 0, 0, 20)]))
        plans = {0: alone[0], 1: Start(1, (0, 1), GANG), 2: alone[1]}
        return Decisions(tuple(plans[job] for job in queue.jobs.tolist()))

    schedule = simulate(workload, gang_machine(), Scripted(decide)).schedule
    done = Outcome.FINISHED
    assert ran(schedule) == [(0, 0, 50, done), (2, 10, 15, done), (1, 50, 150, done)]
    assert schedule.refused == {"capacity is not free": 3}  # at 0, 10 and 15
    # Refused, the gang holds nothing of what was free for it; job 2 finds node 0 whole at 10. Later it starts whole.
    assert shown == [
        (0, [20, 20], [1, 1]),
        (10, [20, 15], [1, 0]),
        (15, [20, 15], [1, 0]),
        (50, [20, 20], [1, 1]),
        (150, [20, 20], [1, 1]),
    ]


def test_gang_is_requeued_completely_if_one_device_is_lost() -> None:
    workload = Workload.of(seconds(0), seconds(100), tasks=np.array([2]))
    shown: list[tuple[int, list[int], list[int], tuple[int, ...]]] = []

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        waiting = queue.tasks(0) if len(queue) else ()
        shown.append((snapshot.now // SECOND, snapshot.free[[0, 1], 0].tolist(), snapshot.free[[2, 3], 1].tolist(), waiting))
        able = len(queue) and snapshot.free[3, 1] > 0
        return Decisions((Start(0, waiting, GANG),) if able else ())

    lost = [Disturbance(30 * SECOND, 3, 1, -1), Disturbance(70 * SECOND, 3, 1, +1)]
    schedule = simulate(workload, gang_machine(), Scripted(decide), disturbances=lost).schedule
    assert ran(schedule) == [(0, 0, 30, Outcome.LOST), (0, 70, 170, Outcome.FINISHED)]
    assert shown == [
        (0, [20, 20], [1, 1], (0, 1)),
        (30, [20, 20], [1, 0], (0, 1)),  # the other GPU and all cores are free again
        (70, [20, 20], [1, 1], (0, 1)),
        (170, [20, 20], [1, 1], ()),
    ]


# (d) A batch placed in one pass.


def test_a_batch_scheduler_places_twenty_jobs_in_one_pass() -> None:
    parts = Parts(("cores",))
    for k in range(5):
        parts.add(f"module{k}", Kind.NODE, cores=8)
    workload = Workload.of(seconds(*[0] * 20), seconds(*range(10, 30)), requests={"cores": np.full(20, 2)})
    plans: list[int] = []

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        if len(queue) < 20:
            return Decisions()
        starts = tuple(Start(job, (0,), Placement.of([(0, k // 4, 0, 2)])) for k, job in enumerate(queue.jobs.tolist()))
        plans.append(len(starts))
        assert int(snapshot.free.sum()) == 40
        return Decisions(starts)

    schedule = simulate(workload, parts.machine(), Scripted(decide)).schedule
    assert plans == [20]
    assert ran(schedule) == [(job, 0, 10 + job, Outcome.FINISHED) for job in range(20)]
    assert [schedule.placement_of(run) for run in range(20)] == [[(run // 4, 0, 2)] for run in range(20)]


# (e) Rounds: decisions only at next_wakeup.


def test_scheduler_that_acts_only_at_its_wake_ups() -> None:
    """Rounds of 10 s: jobs that come at 3, 12 and 20 begin in the next round; a pass replaces the wake-up of the last pass."""
    workload = Workload.of(seconds(3, 12, 20), seconds(15, 4, 6), requests={"nodes": np.ones(3, dtype=np.int64)})
    woken: list[int] = []

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        now = snapshot.now // SECOND
        starts: list[Start] = []
        if changes.woke:
            woken.append(now)
            starts = [Start(job, (0,), Placement.of([(0, 0, 0, 1)])) for job in queue.jobs.tolist()]
        waits = len(queue) > len(starts)
        return Decisions(tuple(starts), next_wakeup=(now // 10 + 1) * 10 * SECOND if waits else None)

    schedule = simulate(workload, Machine.flat(4), Scripted(decide)).schedule
    done = Outcome.FINISHED
    assert ran(schedule) == [(0, 10, 25, done), (1, 20, 24, done), (2, 20, 26, done)]
    assert woken == [10, 20]  # the end at 24 or 25 schedules no wake-up, and none remains


# (f) Nodes lost during runs.


def test_lost_shared_node_requeues_exactly_its_runs() -> None:
    parts = Parts(("cores",))
    for k in (0, 1):
        parts.add(f"node{k}", Kind.NODE, cores=4)
    workload = Workload.of(seconds(0, 1, 2), seconds(100, 100, 100), requests={"cores": np.array([2, 2, 3])})
    back: list[tuple[int, ...]] = []

    def decide(queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        if changes.requeued:
            back.append(changes.requeued)
        starts, free = [], snapshot.free[:, 0].tolist()
        for job in queue.jobs.tolist():
            cores = workload.job(job).request("cores")
            node = next((n for n in (0, 1) if free[n] >= cores), None)
            if node is not None:
                free[node] -= cores
                starts.append(Start(job, (0,), Placement.of([(0, node, 0, cores)])))
        return Decisions(tuple(starts))

    loss = [Disturbance(40 * SECOND, 0, 0, -4)]
    schedule = simulate(workload, parts.machine(), Scripted(decide), disturbances=loss).schedule
    lost, done = Outcome.LOST, Outcome.FINISHED
    # Jobs 0 and 1 share node 0; job 2 is on node 1 and runs until 102, when the two find room there.
    assert ran(schedule) == [(0, 0, 40, lost), (1, 1, 40, lost), (2, 2, 102, done), (0, 102, 202, done), (1, 102, 202, done)]
    assert back == [(1, 0)]  # the run that started last is lost first

    over = simulate(workload, parts.machine(), Scripted(decide), disturbances=loss, requeue=False).schedule
    assert ran(over) == [(0, 0, 40, lost), (1, 1, 40, lost), (2, 2, 102, done)]
    assert over.job_end.tolist() == [-1, -1, 102 * SECOND]


def test_lost_node_of_a_rack_stops_the_run_that_started_last() -> None:
    machine = Machine.of_racks(2, 4, local=64, pool=1000)
    workload = Workload.of(
        seconds(0, 10, 20),
        seconds(100, 100, 30),
        requests={"nodes": np.array([4, 3, 1]), "memory": np.array([64, 164, 64])},
    )
    waiting: list[list[int]] = []
    scheduler = ListScheduler(make("orders", "fcfs"), make("backfills", "easy"))
    loss = [Disturbance(30 * SECOND, 1, 0, -1)]
    result = simulate(
        workload,
        machine,
        scheduler,
        disturbances=loss,
        engine="reference",
        observer=lambda batch, outcome, queue: waiting.append(queue.jobs.tolist()),
    )
    schedule = result.schedule
    lost, done = Outcome.LOST, Outcome.FINISHED
    # Rack 0 holds job 0. In rack 1 job 1 holds 3 nodes and pool memory, job 2 the fourth: job 2, the later, is lost. It
    # waits until rack 0 is free at 100, since rack 1 has 3 nodes left, all with job 1.
    assert ran(schedule) == [(0, 0, 100, done), (1, 10, 110, done), (2, 20, 30, lost), (2, 100, 130, done)]
    assert waiting == [[], [], [], [2], [], [], []]
