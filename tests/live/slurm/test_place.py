"""Tests of place mode with an in-memory Slurm, including interference by users and administrators."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from poolwise.live.slurm import platform
from poolwise.live.slurm.client_calls import SlurmTimeoutError
from poolwise.live.slurm.parsing import ClusterListing
from poolwise.live.slurm.place_mode import PlacePlatform
from poolwise.live.slurm.platform import SlurmSettings
from poolwise.loop import Loop
from poolwise.model import Continuation, Event
from poolwise.quantities import DAY
from poolwise.schedulers.list import ListScheduler
from tests.helpers.fake_slurm import NODE, FakeSlurm, make_job

SETTINGS = SlurmSettings("pools", True, interval=0.0)


class SteppedRun:
    """A platform and its loop, run step by step; `start` restarts them as after a crash."""

    def __init__(self, slurm: FakeSlurm, grace: float = 0.0) -> None:
        self.slurm, self.grace = slurm, grace
        self.start()

    def start(self) -> None:
        self.platform = PlacePlatform(SETTINGS, Continuation(epoch=1), grace=self.grace, limit=400 * 365 * DAY / 10**9)
        self.loop = Loop(self.platform, ListScheduler())
        self.events = self.platform.events()
        self.loop.step(next(self.events))

    def step(self) -> None:
        self.platform.next_wakeup = self.platform.now  # so that a pass follows each poll
        self.loop.step(next(self.events))
        self.assert_consistent()

    def assert_consistent(self) -> None:
        snapshot = self.platform.snapshot()
        held = snapshot.capacity - snapshot.free
        for name, first in (("rack0.nodes", 0), ("rack1.nodes", 4)):
            here = {f"n{k}" for k in range(first, first + 4)}
            busy = {(job.name, node) for job in self.platform.listing.jobs for node in job.allocated if node in here}
            coming = {(job, node) for job, start in self.platform.released.items() for node in start.nodes if node in here}
            # a node on which Slurm started a job that was given back counts twice: for it and for the job assigned to the node
            assert sum(held[o, 0] for o, owner in enumerate(snapshot.machine.owners) if owner.startswith(name)) == len(
                busy | coming
            )
        waiting = {snapshot.table.name(job) for job in self.loop.queue.jobs.tolist()}
        assert waiting == set(self.platform.rows.waiting)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(monkeypatch)


def test_jobs_run_on_their_assigned_nodes(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": make_job("1", nodes=3, comment="memory=84GiB", licenses={"matlab": 1}), "2": make_job("2", nodes=4)}
    run = SteppedRun(slurm)
    assert slurm.jobs["1"].licenses == {"matlab": 1, "pool_rack0": 60}, "the user's own licenses are kept"
    slurm.start_released()
    run.step()
    assert slurm.ran == {"1": ("n0", "n1", "n2"), "2": ("n4", "n5", "n6", "n7")}
    free = run.platform.snapshot().free
    assert free[run.platform.layout.machine.owner("rack0.pool")].max() == 40 * 1024


def test_events_survive_a_timeout_after_the_comparison(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    run, failures = SteppedRun(slurm), [SlurmTimeoutError("no answer")]

    def fail(platform: PlacePlatform, events: list[Event]) -> None:
        for error in failures:
            failures.clear()
            raise error

    monkeypatch.setattr(PlacePlatform, "after_compare", fail)
    slurm.jobs = {"1": make_job("1")}
    run.step()
    slurm.start_released()
    assert not failures and slurm.ran == {"1": ("n0",)}


def test_job_that_never_starts_is_withdrawn_and_finally_given_back(slurm: FakeSlurm) -> None:
    slurm.jobs, slurm.stubborn = {"1": make_job("1", comment="memory=70GiB mine")}, {"1"}
    run = SteppedRun(slurm)
    for _ in range(30):
        run.step()
    assert slurm.marks["1"] == "poolwise-gave-back" and not slurm.jobs["1"].held
    assert not slurm.jobs["1"].required and not slurm.jobs["1"].licenses
    assert slurm.comments["1"].startswith("memory=70GiB mine | poolwise: released to Slurm: Slurm refused 5 starts")
    run.start()
    run.step()
    assert not slurm.jobs["1"].held, "a later run does not hold it again"


def test_unplaceable_job_is_given_back_with_the_reason(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": make_job("1", nodes=9), "2": make_job("2", comment="memory=much"), "3": make_job("3", nodes=8)}
    run = SteppedRun(slurm, 60.0)
    run.step()
    assert "not enough free nodes" in slurm.comments["1"] and "'much' is not a quantity" in slurm.comments["2"]
    assert {name for name, job in slurm.jobs.items() if job.held} == set() and slurm.jobs["3"].required


def test_nodes_that_form_no_machine_do_not_end_the_run(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Slurm lists no nodes, the old machine is kept without them."""
    logged: list[str] = []
    monkeypatch.setattr(platform, "log_event", lambda event, *_, **__: logged.append(event))
    run = SteppedRun(slurm)
    before, slurm.cpus = slurm.cpus, {}
    slurm.jobs = {str(k): make_job(str(k), nodes=3) for k in (1, 2)}
    for _ in range(3):
        run.step()
        slurm.start_released()
    assert not slurm.ran and logged.count("machine_rebuild_failed") == 1 and "machine_rebuilt" not in logged
    slurm.cpus = before
    for _ in range(3):
        run.step()
        slurm.start_released()
    assert len(slurm.ran) == 2


def test_rack_with_nodes_of_different_sizes_uses_each_by_its_size(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs with much memory get the large nodes of both racks, where they need no pool; small jobs leave these free."""
    sizes = {name: NODE * (4 if name in ("n1", "n5", "n6") else 1) for name in slurm.cpus}
    whole = slurm.read

    def read() -> ClusterListing:
        listing = whole()
        return replace(listing, nodes={name: replace(node, memory=sizes[name]) for name, node in listing.nodes.items()})

    monkeypatch.setattr(slurm, "read", read)
    run = SteppedRun(slurm)
    layout = run.platform.layout
    assert [layout.machine.owners[layout.owner[name]] for name in ("n0", "n1", "n2", "n5")] == [
        "rack0.nodes", "rack0.nodes1", "rack0.nodes", "rack1.nodes1",
    ]  # fmt: skip
    slurm.jobs = {"1": make_job("1", nodes=2, memory=2 * 3 * NODE), "2": make_job("2", nodes=3), "3": make_job("3", nodes=2)}
    for _ in range(4):
        run.step()
        slurm.start_released()
    assert slurm.ran["1"] == ("n5", "n6") and "licenses" not in slurm.jobs["1"].licenses
    assert "n1" not in {*slurm.ran["2"], *slurm.ran["3"]} and len({*slurm.ran["2"], *slurm.ran["3"]}) == 5
    slurm.down |= {"n1"}
    run.step()
    capacity = run.platform.snapshot().capacity
    assert capacity[layout.machine.owner("rack0.nodes1"), 0] == 0 and capacity[layout.machine.owner("rack0.nodes"), 0] == 3


def test_user_holds_and_other_partitions_are_unchanged(slurm: FakeSlurm) -> None:
    slurm.jobs = {
        "1": make_job("1", priority=0, reason="JobHeldUser"),
        "2": make_job("2", partition="main"),
        "3": make_job("3", priority=0, reason="JobHeldUser"),
    }
    slurm.marks["3"] = "poolwise-waits"
    before = dict(slurm.jobs)
    run = SteppedRun(slurm, 60.0)
    run.step()
    assert slurm.jobs["1"] == before["1"] and slurm.jobs["2"] == before["2"]
    assert slurm.jobs["3"].required, "a job held at submission is placed"


def test_job_changed_between_decision_and_commit_is_not_released(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SteppedRun(slurm)
    slurm.jobs = {"1": make_job("1")}
    execute = slurm.execute

    def interfere(command: str) -> str:
        reply = execute(command)
        if command.startswith("update JobId=1 ReqNodeList=n"):
            slurm.jobs["1"] = replace(slurm.jobs["1"], nodes=2)
        return reply

    monkeypatch.setattr(slurm, "execute", interfere)
    run.step()
    assert slurm.jobs["1"].held and "requests a different number of nodes" in run.loop.result.refused[0][1]
    monkeypatch.undo()


EVENTS = st.sampled_from(
    ("submit", "cancel", "finish", "release", "hold", "change", "name nodes", "drain", "repair", "kill", "start", "requeue")
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(EVENTS, st.integers(0, 10**6)), max_size=40))
@example([("submit", 1), *[("submit", 0)] * 10, ("name nodes", 0)])  # the user names fewer nodes than the job needs
def test_state_is_consistent_after_any_interference(monkeypatch: pytest.MonkeyPatch, happening: list[tuple[str, int]]) -> None:
    """After each event, free resources equal capacity minus Slurm's jobs; in the end every job can run."""
    slurm = FakeSlurm(monkeypatch)
    run = SteppedRun(slurm)
    count = 0
    for what, draw in happening:
        names = sorted(slurm.jobs)
        job = slurm.jobs[names[draw % len(names)]] if names else None
        if what == "submit":
            count += 1
            comment = f"memory={64 + draw % 50}GiB"
            slurm.jobs[str(count)] = make_job(str(count), nodes=1 + draw % 4, comment=comment, submit=count)
        elif what == "kill":
            run.start()
        elif what == "start":
            slurm.start_released()
        elif what == "drain":
            slurm.down.add(f"n{draw % 8}")
        elif what == "repair":
            slurm.down.discard(f"n{draw % 8}")
        elif job is not None:
            interfere(slurm, job, what, draw)
        run.step()
    slurm.down.clear()
    for _ in range(60 + 10 * count):
        slurm.start_released()
        run.step()
        for name, job in list(slurm.jobs.items()):
            if job.state == "RUNNING":
                del slurm.jobs[name]
            elif job.held and slurm.marks.get(name) == "poolwise-gave-back":
                slurm.execute(f"release {name}")  # as the user who held it after it was given back
    assert not slurm.jobs, "no job is held forever"


def interfere(slurm: FakeSlurm, job, what: str, draw: int) -> None:
    if what == "cancel" or (what == "finish" and job.state == "RUNNING"):
        del slurm.jobs[job.name]
    elif what == "requeue" and job.state == "RUNNING":
        slurm.jobs[job.name] = replace(job, state="PENDING", allocated=(), priority=100, restarts=1)
    elif what in ("release", "hold"):
        slurm.execute(f"{what} {job.name}")
    elif what == "change" and job.state == "PENDING":
        slurm.jobs[job.name] = replace(job, nodes=1 + draw % 4)
    elif what == "name nodes" and job.state == "PENDING":
        slurm.jobs[job.name] = replace(job, required=frozenset((f"n{draw % 8}",)))
