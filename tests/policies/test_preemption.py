"""Preemption by hand and on random cases: the runs that stop, their jobs, and the jobs that start in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poolwise
from poolwise import studies
from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import BackfillPolicy, Dispatcher, PreemptionPolicy, SchedulingPass, Stop
from poolwise.model import (
    Changes,
    Decisions,
    Machine,
    Outcome,
    Partition,
    QualityOfService,
    Queue,
    Refusal,
    Schedule,
    Snapshot,
    Start,
    Workload,
)
from poolwise.model.eligibility import tiers
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.policies.preemption.qos import QosPreemption
from poolwise.policies.preemption.stopping import Mode
from poolwise.policies.preemption.tiers import TierPreemption
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.node_machines import machine

Row = tuple[int, int, int, str]
"""Submission (s), duration (s), whole nodes, and partition or QOS."""


def tiered(nodes: int, **levels: int) -> Machine:
    """Return nodes of four cores in partitions of all nodes, with given tiers."""
    everywhere = np.ones(nodes, dtype=np.bool_)
    on = machine(np.array([[4, 100]] * nodes), np.zeros(nodes, dtype=np.int64), sets=dict.fromkeys(levels, everywhere))
    return replace(on, partitions=tuple(Partition(name, tier=tier) for name, tier in levels.items()))


def workload(rows: Sequence[Row], attribute: str = "partition", cores: Sequence[int] = ()) -> Workload:
    submit, duration, nodes, names = (np.array(column) for column in zip(*rows, strict=True))
    requests = {"cores": np.array(cores or [4] * len(rows)), "nodes": nodes}
    return Workload.of(submit * SECOND, duration * SECOND, requests=requests, attributes={attribute: names})


def run(on: Machine, jobs: Workload, preemption: PreemptionPolicy | None, backfill: BackfillPolicy | None = None) -> Schedule:
    how = ListScheduler(backfill=backfill or NoBackfill(), placement=FirstNodes(), preemption=preemption)
    return simulate(jobs, on, how).schedule


def runs(schedule: Schedule) -> list[tuple[int, int, int, str]]:
    """Return the job, start (s), end (s) and outcome of each run."""
    times = zip(schedule.job, schedule.start // SECOND, schedule.end // SECOND, schedule.outcome, strict=True)
    return [(int(job), int(start), int(end), outcome.value) for job, start, end, outcome in times]


LEVELS = tiered(2, low=1, high=2)
BOTH_NODES: list[Row] = [(0, 100, 2, "low"), (30, 50, 1, "high")]


def test_requeued_job_runs_again_from_its_beginning() -> None:
    schedule = run(LEVELS, workload(BOTH_NODES), TierPreemption())
    assert runs(schedule) == [(0, 0, 30, "stopped"), (1, 30, 80, "finished"), (0, 80, 180, "finished")]
    assert schedule.stops == (Stop(0, True, "preempted"),) and not schedule.cancellations()


def test_canceled_job_is_counted_under_its_reason() -> None:
    jobs = workload(BOTH_NODES)
    schedule = run(LEVELS, jobs, TierPreemption("cancel"))
    assert runs(schedule) == [(0, 0, 30, "stopped"), (1, 30, 80, "finished")]
    assert schedule.canceled == {0: "preempted"} and not schedule.waiting and not schedule.rejected
    how = ListScheduler(placement=FirstNodes(), preemption=TierPreemption("cancel"))
    shown = poolwise.simulate(jobs, LEVELS, scheduler=how)
    assert shown.jobs == 1 and shown.to_dict()["canceled"] == {"preempted": 1}
    assert "jobs canceled (preempted): 1" in shown.notes
    assert "canceled: preempted" in str(shown.answer().head)


def test_equal_tier_and_lower_tier_do_not_preempt() -> None:
    equal = run(tiered(2, low=1, high=1), workload(BOTH_NODES), TierPreemption())
    assert runs(equal) == [(0, 0, 100, "finished"), (1, 100, 150, "finished")]
    lower = run(tiered(2, low=2, high=1), workload(BOTH_NODES), TierPreemption())
    assert lower.job_start.tolist() == equal.job_start.tolist()
    assert run(LEVELS, workload(BOTH_NODES), None).job_start.tolist() == equal.job_start.tolist()


def test_partition_may_be_exempt_or_canceled() -> None:
    off = run(LEVELS, workload(BOTH_NODES), TierPreemption(partitions={"low": "off"}))
    assert off.job_start.tolist() == [0, 100 * SECOND]
    cancel = run(LEVELS, workload(BOTH_NODES), TierPreemption(partitions={"low": "cancel"}))
    assert cancel.canceled == {0: "preempted"}


def test_exempt_time_delays_preemption_to_its_end() -> None:
    schedule = run(LEVELS, workload(BOTH_NODES), TierPreemption(exempt_s=70))
    assert runs(schedule)[:2] == [(0, 0, 70, "stopped"), (1, 70, 120, "finished")]


def test_requeued_job_waits_for_the_delay() -> None:
    schedule = run(LEVELS, workload(BOTH_NODES), TierPreemption(requeue_delay_s=121))
    assert runs(schedule) == [(0, 0, 30, "stopped"), (1, 30, 80, "finished"), (0, 151, 251, "finished")]


FOUR = tiered(4, low=1, middle=2, high=3)


def test_lowest_tier_stops_first_and_smallest_run_first() -> None:
    rows: list[Row] = [(0, 100, 1, "middle"), (0, 100, 2, "low"), (0, 100, 1, "low"), (10, 10, 1, "high")]
    schedule = run(FOUR, workload(rows), TierPreemption())
    assert [schedule.job[stop.run] for stop in schedule.stops] == [2]
    youngest: list[Row] = [(0, 100, 1, "middle"), (0, 100, 2, "low"), (1, 100, 1, "middle"), (10, 10, 1, "high")]
    schedule = run(FOUR, workload(youngest), TierPreemption(youngest_first=True))
    assert [schedule.job[stop.run] for stop in schedule.stops] == [2, 1]  # the requeued job stops a run of the lowest tier


def test_small_runs_stop_first_unless_a_large_one_suffices_alone() -> None:
    rows: list[Row] = [(0, 100, 1, "low"), (0, 100, 2, "low"), (0, 100, 1, "low"), (10, 10, 2, "high")]
    both = run(FOUR, workload(rows), TierPreemption())
    assert [int(both.job[stop.run]) for stop in both.stops] == [0, 2]
    rows = [(0, 100, 1, "low"), (0, 100, 3, "low"), (10, 10, 3, "high")]
    large = run(FOUR, workload(rows), TierPreemption())
    assert [int(large.job[stop.run]) for stop in large.stops] == [1]
    strict = run(FOUR, workload(rows), TierPreemption(strict_order=True))
    assert [int(strict.job[stop.run]) for stop in strict.stops] == [1]


def test_only_runs_on_nodes_of_the_partition_stop() -> None:
    on = machine(
        np.array([[4, 100]] * 2),
        np.zeros(2, dtype=np.int64),
        sets={"low": np.ones(2, dtype=np.bool_), "high": np.arange(2) == 1},
    )
    on = replace(on, partitions=(Partition("low"), Partition("high", tier=2)))
    rows: list[Row] = [(0, 100, 1, "low"), (0, 100, 1, "low"), (10, 10, 1, "high")]
    schedule = run(on, workload(rows), TierPreemption())
    assert [int(schedule.job[stop.run]) for stop in schedule.stops] == [1]


def test_runs_on_shared_nodes_stop_only_if_their_resources_are_needed() -> None:
    rows: list[Row] = [(0, 100, 1, "low"), (0, 100, 1, "low"), (10, 10, 1, "high")]
    schedule = run(tiered(1, low=1, high=2), workload(rows, cores=[1, 3, 2]), TierPreemption())
    assert [int(schedule.job[stop.run]) for stop in schedule.stops] == [1]


def test_whole_nodes_in_racks_are_preempted() -> None:
    plain = Machine.of_racks(2, 2)
    sets = dict.fromkeys(("low", "high"), np.ones(plain.n_owner, dtype=np.bool_))
    on = replace(plain, node_sets=sets, partitions=(Partition("low"), Partition("high", tier=2)))
    jobs = Workload.of(
        ["0 s", "0 s", "10 s"], "100 s", requests={"nodes": [1, 3, 3]}, attributes={"partition": ["low", "low", "high"]}
    )
    schedule = simulate(jobs, on, ListScheduler(preemption=TierPreemption())).schedule
    assert [int(schedule.job[stop.run]) for stop in schedule.stops] == [1]
    assert (schedule.job_start // SECOND).tolist() == [0, 110, 10]


def test_qos_preempts_those_in_its_list() -> None:
    on = replace(tiered(1, all=1), qos=(QualityOfService("normal", default=True), QualityOfService("urgent")))
    rows: list[Row] = [(0, 100, 1, ""), (10, 10, 1, "urgent"), (12, 5, 1, "urgent")]
    jobs = workload(rows, "qos")
    schedule = run(on, jobs, QosPreemption(preempts={"urgent": ("normal",)}), Easy())
    assert runs(schedule)[:2] == [(0, 0, 10, "stopped"), (1, 10, 20, "finished")]
    exempt = run(on, jobs, QosPreemption(preempts={"urgent": ("normal",)}, exempt={"normal": 50}, exempt_s=1), Easy())
    assert exempt.job_start.tolist()[1] == 50 * SECOND
    cancel = run(on, jobs, QosPreemption(preempts={"urgent": ("normal",)}, modes={"normal": "cancel"}), Easy())
    assert cancel.canceled == {0: "preempted"}
    other = run(on, jobs, QosPreemption(preempts={"normal": ("urgent",)}), Easy())
    assert not other.stops


def test_waiting_jobs_precede_those_of_the_qos_that_they_preempt() -> None:
    on = replace(tiered(1, all=1), qos=tuple(map(QualityOfService, ("low", "normal", "urgent", "other"))))
    rows: list[Row] = [(0, 100, 1, "urgent"), (1, 5, 1, "other"), (2, 5, 1, "low"), (3, 5, 1, "normal"), (4, 5, 1, "urgent")]
    preempts = {"urgent": ("normal", "low"), "normal": ("low",)}
    schedule = run(on, workload(rows, "qos"), QosPreemption(preempts=preempts, mode="off"))
    assert (schedule.job_start // SECOND).tolist() == [0, 100, 115, 110, 105]
    alone = run(on, workload(rows, "qos"), QosPreemption(preempts={"urgent": ("other",)}, mode="off"))
    assert (alone.job_start // SECOND).tolist() == [0, 105, 110, 115, 100]


def test_mutual_preemption_ends() -> None:
    on = replace(tiered(1, all=1), qos=(QualityOfService("a"), QualityOfService("b")))
    rows: list[Row] = [(0, 100, 1, "a"), (10, 10, 1, "b")]
    schedule = run(on, workload(rows, "qos"), QosPreemption(preempts={"a": ("b",), "b": ("a",)}))
    assert schedule.done.all()


@pytest.mark.parametrize("backfill", [NoBackfill(), Easy(), Conservative(), Skip(), SlurmBackfill()], ids=str)
def test_every_backfill_starts_the_job_at_once(backfill: BackfillPolicy) -> None:
    schedule = run(LEVELS, workload(BOTH_NODES), TierPreemption(), backfill)
    assert (schedule.job_start // SECOND).tolist()[1] == 30


def test_slurm_backfill_pass_preempts_behind_a_head() -> None:
    """The head of the high tier needs both nodes, of which another job of its tier uses one; the job behind it stops a run."""
    rows: list[Row] = [(0, 100, 1, "high"), (0, 300, 1, "low"), (5, 50, 2, "high"), (6, 40, 1, "high")]
    schedule = run(LEVELS, workload(rows), TierPreemption(), SlurmBackfill(settings={"bf_interval": 30, "bf_resolution": 1}))
    assert (schedule.job_start // SECOND).tolist()[2:] == [100, 30]


def test_compiled_engines_name_the_reason() -> None:
    how = ListScheduler(placement=FirstNodes(), preemption=TierPreemption())
    for scheduler in (how, WarmUp.before(how, 1)):
        with pytest.raises(InputError, match="the scheduler preempts running jobs"):
            simulate(workload(BOTH_NODES), LEVELS, scheduler, engine="compiled")
        assert simulate(workload(BOTH_NODES), LEVELS, scheduler).engine == "reference"
    assert WarmUp.before(how, 1).first.preempts is False


def test_invalid_settings_are_errors() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"mode": "suspend"}, "unknown mode 'suspend'"),
        ({"partitions": {"low": "x"}}, "unknown mode 'x' of 'low'"),
        ({"exempt_s": -1}, "exempt_s is negative"),
        ({"reorder_count": -1}, "reorder_count is negative"),
    ]
    for given_settings, words in wrong:
        with pytest.raises(InputError, match=words):
            TierPreemption(**given_settings)
    with pytest.raises(InputError, match="lov"):
        run(LEVELS, workload(BOTH_NODES), TierPreemption(partitions={"lov": "off"}))
    with pytest.raises(InputError, match="the jobs have no QOS"):
        run(LEVELS, workload(BOTH_NODES), QosPreemption(preempts={"a": ("b",)}))


class Unranked(PreemptionPolicy):
    def stops(self, job: int, cycle: SchedulingPass) -> list[Stop]:
        return []

    def reprioritize(self, priority: np.ndarray, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.full(len(queue), np.nan)


def test_invalid_priorities_are_an_error() -> None:
    with pytest.raises(PolicyError, match="Unranked must return 1 priorities without NaN"):
        run(LEVELS, workload(BOTH_NODES), Unranked())


class Wrong(PreemptionPolicy):
    def stops(self, job: int, cycle: SchedulingPass) -> list[Stop]:
        return [Stop(99, True, "no such run")]


def test_stop_of_a_run_that_does_not_run_is_an_error() -> None:
    with pytest.raises(PolicyError, match="Wrong stops run 99, which is not running"):
        run(LEVELS, workload(BOTH_NODES), Wrong())


class _Witness(ListScheduler):
    """List scheduler that checks after each pass that the first waiting job cannot start by stopping runs of lower tiers."""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        inner = super().open(machine, seed)

        class Checked(Dispatcher):
            def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
                decisions = inner.schedule(queue, snapshot, changes)
                check_head(queue, snapshot, decisions)
                return decisions

        return Checked()


def check_head(queue: Queue, snapshot: Snapshot, decisions: Decisions) -> None:
    """Stop all runs of lower tiers, except those that started now: the head must not fit."""
    if decisions.rejected:
        return
    started = {decision.job for decision in decisions if isinstance(decision, Start)}
    stopped = [decision.run for decision in decisions if isinstance(decision, Stop)]
    level = tiers(snapshot.machine, queue.table)
    for stop in stopped:
        assert any(level[job] > level[snapshot.run(stop).job] for job in started)
    waiting = [job for job in queue.jobs.tolist() if job not in started]
    if not waiting:
        return
    head = min(waiting, key=lambda job: (-level[job], job))
    lower = [run.id for run in snapshot.runs() if level[run.job] < level[head] and run.start < snapshot.now]
    after = snapshot.without(stopped).with_starts(decisions.starts)
    assert (after.free >= 0).all()
    without = after.without(set(lower) - set(stopped))
    assert isinstance(FirstNodes().place(queue.job(head), without), Refusal)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 60),
            st.integers(1, 40),
            st.integers(1, 3),
            st.sampled_from(["low", "middle", "high"]),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=16,
    ),
    mode=st.sampled_from(["requeue", "cancel"]),
    backfill=st.sampled_from([NoBackfill(), Easy(), Conservative(), Skip()]),
    youngest=st.booleans(),
    strict=st.booleans(),
)
def test_head_never_waits_for_lower_tiers(
    rows: list[tuple[int, int, int, str, int]], mode: Mode, backfill: BackfillPolicy, youngest: bool, strict: bool
) -> None:
    rows = sorted(rows)
    on = tiered(3, low=1, middle=2, high=3)
    jobs = workload([row[:4] for row in rows], cores=[row[4] for row in rows])
    policy = TierPreemption(mode, youngest_first=youngest, strict_order=strict)
    how = _Witness(backfill=backfill, placement=FirstNodes(), preemption=policy)
    schedule = simulate(jobs, on, how).schedule
    assert not schedule.refused
    ended = schedule.done | np.isin(np.arange(len(jobs)), list(schedule.canceled))
    assert ended.all() and not schedule.waiting
    assert mode == "cancel" or schedule.done.all()
    assert len(schedule.stops) == sum(outcome is Outcome.STOPPED for outcome in schedule.outcome)
    held = schedule.holdings
    for at in np.unique(held.begin):
        now = (held.begin <= at) & (at < held.end)
        used = np.zeros_like(on.capacity)
        np.add.at(used, (held.owner[now], held.resource[now]), held.amount[now])
        assert (used <= on.capacity).all()


STUDY = """\
version = 1
machine = "m.toml"
[workload]
trace = "jobs.csv"
[scheduler]
placement = "first_fit"
preemption = { name = "tiers", mode = "cancel" }
[performance]
model = "ideal"
[measure]
warm_up = 0
"""
MACHINE = """\
version = 1
node = [{ name = "n", allocation = "shared", cores = 4 }]
rack = [{ nodes = { n = 2 } }]
partition = [{ name = "low", nodes = ["n"], default = true }, { name = "high", nodes = ["n"], tier = 2 }]
"""


@pytest.mark.long
def test_study_counts_canceled_jobs(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "jobs.csv").write_text("id,submit,duration,nodes,cores,partition\n1,0,100,2,8,low\n2,30,50,1,4,high\n")
    (tmp_path / "study.toml").write_text(STUDY)
    result = studies.run(studies.load(tmp_path / "study.toml"), tmp_path / "out")
    assert "At most 1 job was canceled in any run: preempted." in result.notes()
