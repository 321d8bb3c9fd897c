"""Slurm's main scheduler and backfill by hand, and guarantees of a pass. Recorded days: `test_slurm_day.py`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.explain import explain_wait
from poolwise.interfaces import QueuePolicy, SchedulingPass
from poolwise.model import Machine, Partition, Placement, Queue, Run, Schedule, Snapshot, WaitCause, Workload
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.rules import NodeRule
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.backfill.slurm_plan import BackfillPlan, ExpectedStart
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nodes.placement import PLACEMENTS, FirstNodes, NodePlacement
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine as shared_machine
from tests.policies.test_backfill import NOW, State, states

ALL = {"bf_window": 10**6, "bf_max_job_test": 10**6, "bf_resolution": 1, "bf_interval": 10}


@settings(max_examples=60, deadline=None)
@given(states())
def test_only_backfill_passes_backfill_and_they_never_overcommit(state: State) -> None:
    snapshot, jobs, priority, placement = state
    queue = Queue.of(snapshot.table, jobs)
    this_pass = SchedulingPass(queue, priority, snapshot, placement)
    in_order = [start.job for start in NoBackfill().select(this_pass)]
    between = SlurmBackfill(settings=ALL, begun=NOW / SECOND - 1).select(this_pass)
    assert [start.job for start in between] == in_order
    starts = [*SlurmBackfill(settings=ALL, begun=NOW / SECOND).select(this_pass)]
    assert [start.job for start in starts][: len(in_order)] == in_order
    assert (snapshot.with_starts(starts).free >= 0).all()


@settings(max_examples=60, deadline=None)
@given(states())
def test_starts_leave_room_for_all_reservations(state: State) -> None:
    """If runs end as expected, every job starts when a pass expects it to: no amount is reserved twice."""
    snapshot, jobs, priority, placement = state
    queue, plan = Queue.of(snapshot.table, jobs), SlurmBackfill(settings=ALL).plan(snapshot)
    ranked = jobs[np.argsort(-priority, kind="stable")].tolist()
    starts = {job: plan.plan_job(queue.job(job), placement) for job in ranked}
    taken = [(start.start, start.start + queue.job(job).requested, start.placement) for job, start in starts.items() if start]
    runs = [(0, max(run.expected_end, snapshot.now + SECOND), run.placement) for run in snapshot.runs()]
    for time in sorted({begin for begin, _, _ in taken}):
        free = snapshot.capacity.copy()
        for begin, end, held in (*runs, *taken):
            if begin <= time < end // SECOND * SECOND:
                held.take_from(free)
        assert (free >= 0).all()


@settings(max_examples=60, deadline=None)
@given(states(), st.booleans(), st.sampled_from((1, 2, 100)))
def test_every_waiting_job_has_a_reason(state: State, now: bool, depth: int) -> None:
    snapshot, jobs, priority, placement = state
    queue = Queue.of(snapshot.table, jobs)
    backfill = SlurmBackfill(settings={**ALL, "bf_max_job_test": depth}, begun=NOW / SECOND - (not now))
    this_pass = SchedulingPass(queue, priority, snapshot, placement, frozenset(jobs.tolist()))
    starts = [*backfill.select(this_pass)]
    for job in jobs.tolist():
        if job not in {start.job for start in starts}:
            reason = this_pass.reasons[job]
            assert reason.cause in (WaitCause.SHORT, WaitCause.ROUND, WaitCause.RESERVATION) and reason.text
            assert reason.cause is not WaitCause.ROUND or not now or depth < len(jobs)


def day(
    rows: list[tuple[int, int, int, int]], backfill: SlurmBackfill, nodes: int = 4, **attributes: list[str]
) -> dict[int, float]:
    """Run jobs given as (submit, nodes, runtime, limit) in s; return id -> start in s."""
    submit, width, runtime, limit = np.array(rows, dtype=np.int64).T
    columns = {name: np.array(values) for name, values in attributes.items()}
    times = {"submit": submit * SECOND, "duration": runtime * SECOND, "requested": limit * SECOND}
    workload = Workload.of(**times, requests={"nodes": width}, attributes=columns)
    on = replace(Machine.flat(nodes), node_sets={"a": np.ones(1, dtype=np.bool_)}, partitions=(Partition("a"),))
    schedule: Schedule = simulate(workload, on, ListScheduler(backfill=backfill)).schedule
    return dict(zip(workload.id[schedule.job].tolist(), (schedule.start / SECOND).tolist(), strict=True))


def exact(**changed: int) -> SlurmBackfill:
    return SlurmBackfill(settings={"bf_resolution": 1, **changed})


def test_job_is_backfilled_at_the_next_pass_and_not_before() -> None:
    rows = [(0, 3, 100, 100), (1, 4, 10, 10), (2, 1, 50, 50)]
    assert day(rows, exact()) == {1: 0, 2: 100, 3: 30}
    assert day(rows, SlurmBackfill(settings={"bf_resolution": 1}, begun=7.5)) == {1: 0, 2: 100, 3: 7.5}
    assert day(rows, exact(bf_interval=49)) == {1: 0, 2: 100, 3: 49}
    assert day(rows, exact(bf_interval=50)) == {1: 0, 2: 100, 3: 110}, "from 50 s it would end as the other begins"


def test_end_of_a_reservation_is_rounded_down_to_the_resolution() -> None:
    """The second reserves 100 to 190, which counts as 180; the third reserves from 180, and the fourth would overlap it."""
    rows = [(0, 2, 100, 100), (1, 3, 90, 90), (2, 4, 60, 60), (3, 1, 155, 155)]
    assert day(rows, exact())[4] == 30
    assert day(rows, SlurmBackfill())[4] > 180


def test_job_test_limit_and_window_bound_a_backfill_pass() -> None:
    rows = [(0, 3, 5000, 5000), (1, 4, 10, 10), (2, 4, 10, 10), (3, 1, 50, 50)]
    assert day(rows, exact(bf_max_job_test=2))[4] == 5020, "the pass ends before it"
    assert day(rows, exact(bf_max_job_test=3))[4] == 30
    late = [(0, 3, 5000, 5000), (1, 4, 10, 10), (2, 1, 9000, 9000)]
    assert day(late, exact())[3] == 5010, "it would delay the second"
    assert day(late, exact(bf_window=60))[3] == 30, "the second begins beyond an hour: no reservation"


def test_backfill_pass_skips_jobs_beyond_the_limit_of_their_user_or_partition() -> None:
    """The third and fourth job fit at the first pass; each is the second or third tested one of its user."""
    rows = [(0, 3, 500, 500), (1, 4, 10, 10), (2, 1, 20, 20), (3, 1, 20, 20)]
    users = ["ann", "ann", "ann", "bob"]
    assert day(rows, exact(bf_max_job_user=2), user=users) == {1: 0, 2: 500, 3: 30, 4: 60}
    assert day(rows, exact(bf_max_job_user=1), user=users) == {1: 0, 2: 500, 3: 510, 4: 30}
    assert day(rows, exact(bf_max_job_part=1), partition=["a"] * 4)[4] > 500
    assert day(rows, exact(bf_max_job_user=0), user=users) == day(rows, exact(bf_max_job_user=1)) == day(rows, exact())
    times = exact(bf_max_job_user=1, bf_max_job_part=3).rule().times
    assert times is not None and times.groups == ((("user",), 1), (("partition",), 3))


def test_backfill_pass_skips_jobs_beyond_the_limit_of_their_association() -> None:
    """The third and fourth job fit at the first pass; the third has the user and the account of the second."""
    rows = [(0, 3, 500, 500), (1, 4, 10, 10), (2, 1, 20, 20), (3, 1, 20, 20)]
    columns = {"user": ["ann"] * 4, "account": ["a", "a", "a", "b"]}
    assert day(rows, exact(bf_max_job_assoc=1), **columns) == {1: 0, 2: 500, 3: 510, 4: 30}
    assert day(rows, exact(bf_max_job_assoc=1), user=columns["user"]) == day(rows, exact()), (
        "without accounts, no limit applies"
    )


def test_backfill_pass_reserves_resources_for_the_first_jobs_of_each_partition() -> None:
    """The last job fits alongside the reservation of the second job, but would overlap that of the third."""
    rows = [(0, 2, 100, 100), (1, 3, 50, 50), (2, 4, 50, 50), (3, 1, 300, 300)]
    assert day(rows, exact())[4] == 200
    assert day(rows, exact(bf_job_part_count_reserve=2)) == day(rows, exact())
    assert day(rows, exact(bf_job_part_count_reserve=1)) == {1: 0, 2: 100, 3: 330, 4: 30}
    assert day(rows, exact(bf_job_part_count_reserve=1), partition=["a"] * 4)[4] == 30


@dataclass(frozen=True)
class ByWidth(QueuePolicy):
    """Priority 10 for jobs of more than 2 nodes, 1 for others."""

    kind = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.where(queue.table.request("nodes")[queue.jobs] > 2, 10.0, 1.0)


def test_jobs_below_the_least_priority_neither_block_others_nor_have_reservations() -> None:
    """The second job needs both nodes of a run; the third and fourth fit at once, alongside it."""
    rows = [(0, 3, 100, 100), (1, 2, 50, 50), (2, 1, 200, 200)]
    rare = {"bf_interval": 1000, "bf_resolution": 1}
    on = Machine.flat(4)

    def starts(settings: dict[str, int]) -> list[float]:
        submit, width, runtime, limit = np.array([(*row,) for row in rows]).T
        times = {"submit": submit * SECOND, "duration": runtime * SECOND, "requested": limit * SECOND}
        jobs = Workload.of(**times, requests={"nodes": width})
        how = ListScheduler(ByWidth(), SlurmBackfill(settings=settings))
        return [float(at) for at in simulate(jobs, on, how).schedule.job_start / SECOND]

    assert starts(rare) == [0, 100, 100]
    assert starts({**rare, "bf_min_prio_reserve": 1}) == [0, 100, 100]
    assert starts({**rare, "bf_min_prio_reserve": 2}) == [0, 100, 2]


@pytest.mark.parametrize("base", [Machine.flat(1), shared_machine(np.array([[4, 64]]), np.zeros(1, dtype=np.int64))])
def test_least_priority_with_tiers_is_an_error(base: Machine) -> None:
    """On shared nodes, the kernel leaves the run to the reference engine, which raises the error."""
    on = replace(
        base,
        node_sets={name: np.ones(1, dtype=np.bool_) for name in "ab"},
        partitions=(Partition("a"), Partition("b", tier=2)),
    )
    requests = {"cores": 1} if "cores" in base.resources else {}
    jobs = Workload.of(["0 s"] * 2, "1 min", requests=requests, attributes={"partition": ["a", "b"]})
    placement = make("placements", "first_fit" if requests else "racks")
    with pytest.raises(InputError, match="bf_min_prio_reserve is not supported with partitions of different tiers"):
        simulate(jobs, on, ListScheduler(backfill=SlurmBackfill(settings={"bf_min_prio_reserve": 2}), placement=placement))


QUEUE = [(0, 4, 100, 100), (1, 1, 50, 50), (1, 1, 50, 50), (1, 1, 50, 50)]
"""The first holds all nodes until 100 s. Then the three others fit together."""


def test_main_scheduler_considers_one_job_more_than_its_depth() -> None:
    rare = {"bf_interval": 1000, "sched_interval": 30}
    assert day(QUEUE, exact(**rare)) == {1: 0, 2: 100, 3: 100, 4: 100}
    assert day(QUEUE, exact(**rare, default_queue_depth=1)) == {1: 0, 2: 100, 3: 100, 4: 120}, "at the next full pass"
    assert day(QUEUE, exact(**rare, default_queue_depth=0)) == {1: 0, 2: 100, 3: 120, 4: 120}
    assert day(QUEUE, exact(**rare, default_queue_depth=2)) == day(QUEUE, exact(**rare))


def test_full_passes_follow_at_their_interval() -> None:
    rare = {"bf_interval": 1000, "default_queue_depth": 1}
    assert day(QUEUE, exact(**rare))[4] == 120, "60 s by default"
    assert day(QUEUE, exact(**rare, sched_interval=70))[4] == 140
    assert day(QUEUE, exact(**rare, sched_interval=-1))[4] == 150, "no full pass: at the end of the second and third"
    assert day(QUEUE, exact(default_queue_depth=1, bf_interval=110))[4] == 110, "the backfill pass tests it"
    assert day(QUEUE, SlurmBackfill(settings={**rare, "sched_interval": 25}))[4] == 100, "the pass at 100 s is a full one"
    every = SlurmBackfill(settings={**rare, "default_queue_depth": 0, "sched_interval": 105}, every=8.0)
    assert day(QUEUE, every) == {1: 0, 2: 104, 3: 112, 4: 112}, "the first pass after 105 s"


def test_blocked_jobs_count_toward_the_depth_of_the_main_scheduler() -> None:
    """The second job blocks partition a; the third is blocked, and the fourth would start in partition b."""
    builder = MachineBuilder("partitions")
    for n in range(2):
        builder.node(f"n{n}", cores=4)
    sets = {"a": np.array([True, False]), "b": np.array([False, True])}
    on = replace(Machine.of(builder), node_sets=sets, partitions=(Partition("a"), Partition("b")))
    load = Workload.of(
        ["0 s", "1 s", "2 s", "3 s"],
        "50 s",
        requests={"cores": [4] * 4},
        attributes={"partition": np.array(["a", "a", "a", "b"])},
    )
    for depth, expected in ((1, 20), (2, 3)):
        settings = {"default_queue_depth": depth, "sched_interval": 20, "bf_interval": 1000}
        how = ListScheduler(backfill=SlurmBackfill(settings=settings), placement=FirstNodes())
        assert simulate(load, on, how).schedule.job_start[3] == expected * SECOND


def test_reason_names_the_depth_of_the_main_scheduler() -> None:
    submit, width, runtime, _ = np.array(QUEUE, dtype=np.int64).T
    load = Workload.of(submit * SECOND, runtime * SECOND, requests={"nodes": width})
    how = ListScheduler(backfill=exact(default_queue_depth=1, bf_interval=1000))
    last = explain_wait(load, Machine.flat(4), how, 4).episodes[-1]
    assert last.reason.cause is WaitCause.ROUND and (last.start, last.end) == (100 * SECOND, 120 * SECOND)
    assert "only the first 2 jobs (default_queue_depth); the next pass is in 20 s" in last.reason.text


def test_start_at_a_backfill_pass_without_an_event_is_explained() -> None:
    submit, width, runtime, _ = np.array([(0, 3, 100, 100), (1, 4, 10, 10), (2, 1, 50, 50)], dtype=np.int64).T
    load = Workload.of(submit * SECOND, runtime * SECOND, requests={"nodes": width})
    how = ListScheduler(backfill=exact())
    assert [explain_wait(load, Machine.flat(4), how, job).until // SECOND for job in (2, 3)] == [100, 30]


def test_depth_of_the_main_scheduler_has_no_default(tmp_path: Path) -> None:
    assert exact().parameters.considered is None and exact(sched_interval=5).rule() == exact().rule() is not None
    limited = exact(default_queue_depth=100).rule()
    assert limited is not None and limited.times is not None and limited.times.considered == 101
    path = tmp_path / "slurm.conf"
    path.write_text("SchedulerParameters=default_queue_depth=100,sched_interval=-1\n")
    parameters = SlurmBackfill(str(path)).parameters
    assert (parameters.considered, parameters.full_pass) == (101, 0)
    path.write_text("SchedulerParameters=default_queue_depth=many\n")
    with pytest.raises(InputError, match="default_queue_depth=many is not a whole number"):
        SlurmBackfill(str(path)).open()
    with pytest.raises(InputError, match="sched_interval=0 is not a whole number above 0"):
        exact(default_queue_depth=1, sched_interval=0).open()


def test_main_scheduler_interval_groups_events() -> None:
    """The main scheduler considers all events between two passes together."""
    rows = [(0, 4, 3, 3), (5, 1, 9, 9), (7, 4, 1, 1)]
    assert day(rows, SlurmBackfill(every=4.0)) == {1: 0, 2: 8, 3: 20}
    assert day(rows, SlurmBackfill(every=4.0, looked=1.0))[2] == 5


@pytest.mark.parametrize(
    ("setting", "line", "words"),
    [
        ("SchedulerParameters=bf_interval=10,bf_node_space_size=5", 2, "bf_node_space_size is not supported"),
        ("SchedulerParameters=bf_interval=soon", 2, "not a whole number above 0"),
        ("SchedulerType=sched/builtin", 2, "does not backfill"),
    ],
)
def test_unsupported_setting_is_named_by_file_and_line(tmp_path: Path, setting: str, line: int, words: str) -> None:
    (tmp_path / "slurm.conf").write_text(f"ClusterName=a\n{setting}\n")
    with pytest.raises(InputError, match=words) as raised:
        SlurmBackfill(str(tmp_path / "slurm.conf")).open()
    assert (raised.value.line, bool(raised.value.remedy)) == (line, True)
    with pytest.raises(InputError, match="unknown setting 'bf_wndow'"):
        SlurmBackfill(settings={"bf_wndow": 1}).open()


def test_ends_are_grouped_by_periods_that_start_at_half_a_minute_and_double() -> None:
    """The first end is at 100: the period reaches to 120 plus 30 s. All ends in it count together, with room or without."""
    rows = [(0, 2, 100, 100), (0, 1, 140, 140), (1, 3, 10, 10), (2, 1, 100, 100)]
    assert day(rows, exact())[4] == 30, "the third is expected at 140, so the fourth may run until 130"
    assert day([rows[0], (0, 1, 151, 151), *rows[2:]], exact())[4] > 30, "it is expected at 100"


@pytest.mark.parametrize(("other", "expected"), [(40, 50), (52, 60)])
def test_run_on_other_nodes_extends_the_period(other: int, expected: int) -> None:
    """Two of four nodes are reserved for a minute. A job could have the third at 50 s, and is tried then, unless a run on a
    reserved node ends between that and the last end, at 300 s. In that case it is tried when the reservation is released.
    """
    build = MachineBuilder("nodes", ("cores",))
    for n in range(4):
        build.node(f"n{n}", type="any", rack=0, cores=1)
    machine, zeros = Machine.of(build), np.zeros(5, dtype=np.int64)
    table = Workload.of(zeros, zeros + 60 * SECOND, requests={"cores": zeros + 1}).table
    runs, free = RunTable(machine.capacity.size), machine.capacity.copy()
    for node, end in enumerate((40, other, 50, 300)):
        held = Placement.of([(0, node, 0, 1)])
        held.take_from(free)
        runs.add(Run(node, node, (0,), held, 0, end * SECOND), held.owner, ())
    plan = BackfillPlan(Snapshot(0, machine, table, machine.capacity, free, runs, Ideal()), 3600 * SECOND, SECOND)
    plan._reserve(ExpectedStart(0, Placement.of([(0, 0, 0, 1), (0, 1, 0, 1)])), table.job(4))
    start = plan.find_start(table.job(4), FirstNodes())
    assert start is not None and start.start == expected * SECOND


def test_reservation_may_share_a_node_with_a_run_that_ends_later() -> None:
    """From 50 s on, a job fits on a node with another run, and ends before a reservation of the node begins."""
    machine, runs, free = nodes_with_runs({"cores": [4, 4]}, ((0, 2, 50), (0, 1, 300), (1, 4, 100)))
    table = Workload.of(np.zeros(4), np.full(4, 60 * SECOND), requests={"cores": np.array([2, 1, 4, 3])}).table
    plan = BackfillPlan(Snapshot(0, machine, table, machine.capacity, free, runs, Ideal()), 3600 * SECOND, SECOND)
    plan._reserve(ExpectedStart(110 * SECOND, Placement.of([(0, 0, 0, 4)])), table.job(3))
    assert plan.find_start(table.job(3), FirstNodes()) == ExpectedStart(50 * SECOND, Placement.of([(0, 0, 0, 3)]))


@pytest.mark.parametrize(
    ("placement", "starts", "expected"), [("topology_none", False, 2), ("topology_none", True, 0), ("first_fit", False, 0)]
)
def test_nodes_tested_for_a_job_with_gpus_are_reserved_first(placement: str, starts: bool, expected: int) -> None:
    """Of three nodes with GPUs, a job with GPUs is planned on the first. A start on the last node restores their weights."""
    amounts = {"cores": [4, 4, 4, 4, 4], "gpu": [0, 2, 2, 2, 0]}
    machine, runs, free = nodes_with_runs(amounts, [(node, 4, 50) for node in range(4 if starts else 5)])
    limits, gpus = np.array([*[60] * 7, 900]) * SECOND, np.array([0, 0, 0, 0, 0, 1, 0, 0])
    table = Workload.of(np.zeros(8), limits, requests={"cores": np.full(8, 4), "gpu": gpus}).table
    plan = BackfillPlan(Snapshot(0, machine, table, machine.capacity, free, runs, Ideal()), 3600 * SECOND, SECOND)
    planned = [plan.plan_job(table.job(row), make("placements", placement)) for row in ((5, 7, 6) if starts else (5, 6))]
    chosen = [(each.start // SECOND, *each.placement.owners()) for each in planned if each is not None]
    assert chosen == [(50, 1), *([(0, 4)] if starts else []), (50, expected)]


@pytest.mark.parametrize(("prefers", "placement"), PLACEMENTS.items())
def test_each_node_rule_names_the_placement_that_states_it(prefers: str, placement: type[NodePlacement]) -> None:
    rule = placement().rule()
    assert isinstance(rule, NodeRule) and rule.prefers == prefers


@pytest.mark.parametrize(("submitted", "expected"), [([], 0), ([5], 1), ([5, 6], 0), ([6, 5], 1)])
def test_submission_of_a_job_with_gpus_lowers_the_weights_of_its_nodes(submitted: list[int], expected: int) -> None:
    """Job 5 requests GPUs, which the second and third node have; job 6 does not."""
    machine, runs, free = nodes_with_runs({"cores": [4, 4, 4], "gpu": [0, 2, 2]}, [(node, 4, 50) for node in range(3)])
    requests = {"cores": np.full(8, 4), "gpu": np.array([0, 0, 0, 0, 0, 1, 0, 0])}
    table = Workload.of(np.zeros(8), np.full(8, 60 * SECOND), requests=requests).table
    plan = BackfillPlan(Snapshot(0, machine, table, machine.capacity, free, runs, Ideal()), 3600 * SECOND, SECOND)
    assert plan.weighs_gpus(make("placements", "topology_none")) and not plan.weighs_gpus(FirstNodes())
    for row in submitted:
        plan.submit(table.job(row))
    planned = plan.plan_job(table.job(7), make("placements", "topology_none"))
    assert planned is not None and [*planned.placement.owners()] == [expected]


@pytest.mark.parametrize(("settings", "expected"), [({"every": 10.0}, [21, 24]), ({}, [])])
def test_pass_knows_the_jobs_submitted_since_the_last_main_pass(settings: dict[str, float], expected: list[int]) -> None:
    """The main scheduler runs at 10, 20 and 30 s, or else at each event."""
    table = Workload.of(
        np.array([5, 20, 24, 21, 26]) * SECOND, np.ones(5), requests={"nodes": np.ones(5, dtype=np.int64)}
    ).table
    on = Machine.flat(4)
    snapshot = Snapshot(25 * SECOND, on, table, on.capacity, on.capacity, RunTable(on.capacity.size), Ideal())
    this_pass = SchedulingPass(Queue.of(table, np.array([0, 2])), np.zeros(2), snapshot, RackPlacement())
    submitted = SlurmBackfill(**settings)._submitted(this_pass)
    assert (table.submit[submitted] // SECOND).tolist() == expected


def nodes_with_runs(
    amounts: dict[str, list[int]], used: Iterable[tuple[int, int, int]]
) -> tuple[Machine, RunTable, np.ndarray]:
    """Return shared nodes with amounts of resources, runs on a node with cores and an end (s) each, and what is free."""
    build = MachineBuilder("nodes", (*amounts,))
    for n, values in enumerate(zip(*amounts.values(), strict=True)):
        build.node(f"n{n}", type="any", rack=0, **dict(zip(amounts, values, strict=True)))
    machine = Machine.of(build)
    runs, free = RunTable(machine.capacity.size), machine.capacity.copy()
    for row, (node, cores, end) in enumerate(used):
        held = Placement.of([(0, node, 0, cores)])
        held.take_from(free)
        cells = held.owner * len(machine.resources) + held.resource
        runs.add(Run(row, row, (0,), held, 0, end * SECOND), cells, ())
    return machine, runs, free


def test_second_period_is_twice_as_long() -> None:
    """The first end is at 10 s: a period reaches to 60. The next is 60 s long: an end at 145 is grouped with that at 100."""
    machine, zeros = Machine.flat(4), np.zeros(5, dtype=np.int64)
    table = Workload.of(zeros, zeros + 60 * SECOND, requests={"nodes": np.array([1, 1, 1, 1, 2])}).table
    runs, free = RunTable(machine.capacity.size), machine.capacity.copy()
    for row, end in enumerate((10, 100, 145, 300)):
        held = Placement.of([(0, 0, 0, 1)])
        held.take_from(free)
        runs.add(Run(row, row, (0,), held, 0, end * SECOND), held.owner, ())
    plan = BackfillPlan(Snapshot(0, machine, table, machine.capacity, free, runs, Ideal()), 3600 * SECOND, SECOND)
    start = plan.find_start(table.job(4), RackPlacement())
    assert start is not None and start.start == 145 * SECOND


def test_job_that_does_not_fit_blocks_only_the_nodes_of_its_partition() -> None:
    """Two partitions share a node: the jobs behind the head of one may use the nodes that only the other has."""
    builder = MachineBuilder("partitions")
    for n in range(4):
        builder.node(f"n{n}", cores=4)
    on = replace(
        Machine.of(builder),
        node_sets={"a": np.array([True, True, True, False]), "b": np.array([False, False, True, True])},
        partitions=(Partition("a"), Partition("b")),
    )
    seconds = np.full(6, SECOND, dtype=np.int64)
    load = Workload.of(
        np.zeros(6, dtype=np.int64),
        50 * seconds,
        requests={"cores": np.array([4, 4, 4, 4, 4, 1]), "nodes": np.array([2, 2, 1, 1, 1, 1])},
        attributes={"partition": np.array(["a", "a", "b", "b", "a", "a"])},
    )
    backfill = SlurmBackfill(begun=20.0)
    for engine in ("reference", "compiled"):
        schedule = simulate(load, on, ListScheduler(backfill=backfill, placement=FirstNodes()), engine=engine).schedule
        started = dict(zip(schedule.job.tolist(), (schedule.start // SECOND).tolist(), strict=True))
        # 0 takes n0 and n1; 1 does not fit and blocks n0 to n2; so 2 starts on n3, and 3 waits for the backfill: n2 is blocked
        assert [started[job] for job in range(4)] == [0, 50, 0, 20]


def test_unknown_select_type_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="select/linaer") as error:
        _ = SlurmBackfill(select_type="select/linaer").parameters
    assert error.value.field == "select_type" and "select/linear" in str(error.value)


def test_preference_for_nodes_in_use_requires_shared_nodes() -> None:
    with pytest.raises(InputError, match="bf_busy_nodes is not supported on whole nodes") as error:
        day([(0, 4, 9, 9), (1, 2, 9, 9)], exact(bf_busy_nodes=1))
    assert "shared" in error.value.remedy
