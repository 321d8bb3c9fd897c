"""The agent on control groups of plain files, of version 1 and 2: limits moved, given back, taken up, left alone."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.live.logs import logger
from poolwise.live.memory_agent import limits as limits_of
from poolwise.live.memory_agent.agent import MIB
from poolwise.live.memory_agent.groups import WatchedGroup
from poolwise.live.memory_agent.saved_limits import LimitsRecord
from poolwise.performance.fitting import fit, read_measurements
from tests.helpers.fake_node import FakeNode, shown
from tests.helpers.pretended_workloads import PretendedWorkload

STREAMS, RESTS = ((0.0, 7.0), (0.97, 7.0)), ((0.0, 3.0), (0.3, 0.0))


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    """A program that needs all of its 100 MiB, and one that needs a third of its 100 MiB."""
    found = FakeNode(tmp_path, request.param)
    found.add("streams", PretendedWorkload(100 * MIB, 0.25, STREAMS))
    found.add("rests", PretendedWorkload(100 * MIB, 0.25, RESTS))
    return found


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.LogCaptureFixture]:
    """Events of the log."""
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level("INFO", logger.name):
        yield caplog


def events(said: pytest.LogCaptureFixture, event: str) -> list[dict]:
    return [record.fields for record in said.records if record.getMessage() == event]


def test_memory_goes_to_who_needs_it_in_seconds_and_then_rests(node: FakeNode, said: pytest.LogCaptureFixture) -> None:
    agent = node.agent(150)
    seen = node.play(agent, 30)
    assert seen[12:] == [seen[12]] * 18
    assert int(seen[-1]["streams"]) >= 100 * MIB and int(seen[-1]["rests"]) >= 30 * MIB
    assert all(one.within(one.local) for one in node.groups.values())
    assert all("below_working_set" in event for event in events(said, "moves") if event["limit"] < 100 * MIB)
    assert 'poolwise_memory_agent_moves_total{workload="rests"}' in shown(agent)


def test_limits_are_as_before_at_the_end(node: FakeNode) -> None:
    node.limit_file("rests").write_text(str(90 * MIB))
    agent = node.agent(150)
    node.play(agent, 10)
    if node.version == 1:
        assert (node.memory("rests") / "memory.oom_control").read_text() == "1"
    assert agent.mover.let_go() == []
    assert node.limit("streams") in ("-1", "max") and node.limit("rests") == str(90 * MIB)
    if node.version == 1:
        assert (node.memory("rests") / "memory.oom_control").read_text() == "0"
    assert not (node.folder / "limits.json").exists()


def test_a_dry_run_writes_nothing(node: FakeNode, said: pytest.LogCaptureFixture) -> None:
    before = {path: path.read_text() for path in node.root.rglob("*") if path.is_file() and "limit" in path.name}
    agent = node.agent(150, dry=True)
    node.play(agent, 10)
    assert {event["workload"] for event in events(said, "would move")} == {"streams", "rests"}
    assert before == {path: path.read_text() for path in before} and not (node.folder / "limits.json").exists()
    assert not events(said, "moves") and agent.mover.let_go() == []


def test_a_successor_takes_up_what_a_killed_agent_has_left(node: FakeNode) -> None:
    node.play(node.agent(150), 10)
    left = {name: node.limit(name) for name in node.groups}
    agent = node.agent(150)
    node.play(agent, 3)
    assert {one.section.name: one.most for one in agent.followed.values()} == {"streams": None, "rests": None}
    assert {name: node.limit(name) for name in node.groups} == left
    agent.mover.let_go()
    assert node.limit("streams") in ("-1", "max")


def test_a_successor_lets_go_of_what_its_file_does_not_name(node: FakeNode) -> None:
    node.play(node.agent(150), 10)
    del node.groups["rests"]
    agent = node.agent(150)
    assert agent.mover.let_go(but=["streams"]) == []
    assert node.limit("rests") in ("-1", "max") and node.limit("streams").isdigit()


def test_a_limit_of_somebody_else_is_left_alone(node: FakeNode, said: pytest.LogCaptureFixture) -> None:
    agent = node.agent(150)
    node.play(agent, 5)
    node.limit_file("rests").write_text(str(77 * MIB))
    node.play(agent, 10)
    assert events(said, "external_limit_change") == [{"workload": "rests", "limit": 77 * MIB}]
    assert agent.mover.let_go() == [] and node.limit("rests") == str(77 * MIB)


def test_a_group_that_goes_is_forgotten_and_one_that_comes_back_is_a_new_one(node: FakeNode) -> None:
    agent = node.agent(150)
    node.play(agent, 10)
    gone = node.memory("rests")
    gone.rename(node.folder / "gone")
    workload = node.groups.pop("rests")
    node.play(agent, 5)
    assert int(node.limit("streams")) >= 100 * MIB and LimitsRecord(node.folder).get("rests") is None
    if node.version == 1:
        (node.root / "cpuacct" / "rests").rename(node.folder / "cpuacct-gone")
    node.add("rests", PretendedWorkload(workload.total, workload.tolerance, workload.knots))
    node.play(agent, 15)
    assert all(one.within(one.local) for one in node.groups.values())


def test_a_refused_write_stops_nobody_and_sums_still_fit(
    node: FakeNode, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = WatchedGroup.set_limit

    def refuses(self: WatchedGroup, limit: int | None) -> None:
        if self.group.memory.name == "streams" and limit is not None:
            raise InputError("does not take it") from OSError(errno.EBUSY, "busy")
        works(self, limit)

    monkeypatch.setattr(WatchedGroup, "set_limit", refuses)
    agent = node.agent(150)
    node.play(agent, 10)
    assert node.limit("streams") == node.unlimited and int(node.limit("rests")) <= 50 * MIB
    assert events(said, "the limit was not taken") and 'failures_total{work="write"}' in shown(agent)


def test_what_cannot_be_given_back_stays_on_record(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = node.agent(150)
    node.play(agent, 5)

    def refuses(*_: object) -> str:
        raise InputError("no")

    monkeypatch.setattr(limits_of, "let_go", refuses)
    assert {taken.group for taken in agent.mover.let_go()} == {"streams", "rests"}
    assert (node.folder / "limits.json").exists()


def test_a_record_of_another_start_of_the_computer_is_forgotten_and_a_damaged_one_refused(node: FakeNode) -> None:
    node.play(node.agent(150), 5)
    file = node.folder / "limits.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "boot": "before"}))
    assert list(LimitsRecord(node.folder)) == []
    file.write_text("{")
    with pytest.raises(InputError, match="is no record of limits"):
        LimitsRecord(node.folder)


def test_less_is_given_out_where_the_computer_runs_short(node: FakeNode) -> None:
    agent = node.agent(150, reserve='"1 GiB"')
    node.play(agent, 5)
    node.available = 1024 * MIB - 40 * MIB
    before = sum(one.local for one in node.groups.values())
    node.play(agent, 1)
    assert agent.memory() <= before - 40 * MIB
    assert sum(int(node.limit(name)) for name in node.groups) <= before - 40 * MIB


def test_nothing_is_moved_to_swap_that_is_full(node: FakeNode) -> None:
    node.swap_free = 0
    agent = node.agent(150)
    assert set(node.play(agent, 10)[-1].values()) == {node.unlimited}


def test_profiles_are_built_in_passing(node: FakeNode, tmp_path: Path) -> None:
    agent = node.agent(130)
    node.play(agent, 20)
    file = tmp_path / "measured.csv"
    agent.passing.write(file)
    (streams,) = [one for one in read_measurements(file) if one.name == "streams"]
    assert fit(streams, pieces=1).profile.at(0.1) > 0.5
    agent.passing.read(file)
    agent.passing.write(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == file.read_text()


def test_who_cannot_go_on_is_given_more_at_once(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    node = FakeNode(tmp_path, 1)
    node.add("stands", PretendedWorkload(100 * MIB, 0.25, RESTS))
    node.add("rests", PretendedWorkload(100 * MIB, 0.25, RESTS))
    agent = node.agent(150)
    node.play(agent, 6)
    before, control = int(node.limit("stands")), node.memory("stands") / "memory.oom_control"
    control.write_text("oom_kill_disable 1\nunder_oom 1\noom_kill 0\n")
    agent.relieve()
    assert int(node.limit("stands")) > before and events(said, "workload_stalled")
