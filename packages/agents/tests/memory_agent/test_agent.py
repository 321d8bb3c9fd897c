"""Tests of the memory agent on fake control groups of version 1 and 2: moving, restoring, taking over and keeping limits."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.live.logs import logger
from poolwise.performance.fitting import fit, read_measurements
from poolwise_agents.memory_agent import limits as limits_module
from poolwise_agents.memory_agent.agent import MIB
from poolwise_agents.memory_agent.groups import WatchedGroup
from poolwise_agents.memory_agent.limits import LimitsRecord
from tests.helpers.fake_node import FakeNode, metrics_text
from tests.helpers.pretended_workloads import SimulatedWorkload

STREAMS, RESTS = ((0.0, 7.0), (0.97, 7.0)), ((0.0, 3.0), (0.3, 0.0))


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    """A node with a workload that needs all of its 100 MiB, and one that needs a third of its 100 MiB."""
    fake_node = FakeNode(tmp_path, request.param)
    fake_node.add("streams", SimulatedWorkload(100 * MIB, 0.25, STREAMS))
    fake_node.add("rests", SimulatedWorkload(100 * MIB, 0.25, RESTS))
    return fake_node


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.LogCaptureFixture]:
    """Captured events of the log."""
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level("INFO", logger.name):
        yield caplog


def events(log: pytest.LogCaptureFixture, event: str) -> list[dict]:
    return [record.fields for record in log.records if record.getMessage() == event]


def test_memory_moves_to_the_needy_workload_and_limits_settle(node: FakeNode, log: pytest.LogCaptureFixture) -> None:
    agent = node.agent(150)
    limits = node.run(agent, 30)
    assert limits[12:] == [limits[12]] * 18
    assert int(limits[-1]["streams"]) >= 100 * MIB and int(limits[-1]["rests"]) >= 30 * MIB
    assert all(group.within(group.local) for group in node.groups.values())
    assert all("below_working_set" in event for event in events(log, "limit_moved") if event["limit"] < 100 * MIB)
    assert 'poolwise_memory_agent_moves_total{workload="rests"}' in metrics_text(agent)


def test_limits_are_restored_at_the_end(node: FakeNode) -> None:
    node.limit_file("rests").write_text(str(90 * MIB))
    agent = node.agent(150)
    node.run(agent, 10)
    if node.version == 1:
        assert (node.memory("rests") / "memory.oom_control").read_text() == "1"
    assert agent.mover.restore_all() == []
    assert node.limit("streams") in ("-1", "max") and node.limit("rests") == str(90 * MIB)
    if node.version == 1:
        assert (node.memory("rests") / "memory.oom_control").read_text() == "0"
    assert not (node.folder / "limits.json").exists()


def test_dry_run_writes_nothing(node: FakeNode, log: pytest.LogCaptureFixture) -> None:
    before = {path: path.read_text() for path in node.root.rglob("*") if path.is_file() and "limit" in path.name}
    agent = node.agent(150, dry_run=True)
    node.run(agent, 10)
    assert {event["workload"] for event in events(log, "limit_proposed")} == {"streams", "rests"}
    assert before == {path: path.read_text() for path in before} and not (node.folder / "limits.json").exists()
    assert not events(log, "limit_moved") and agent.mover.restore_all() == []


def test_successor_takes_over_the_limits_of_a_killed_agent(node: FakeNode) -> None:
    node.run(node.agent(150), 10)
    left = {name: node.limit(name) for name in node.groups}
    agent = node.agent(150)
    node.run(agent, 3)
    assert {workload.section.name: workload.max_limit for workload in agent.tracked.values()} == {
        "streams": None,
        "rests": None,
    }
    assert {name: node.limit(name) for name in node.groups} == left
    agent.mover.restore_all()
    assert node.limit("streams") in ("-1", "max")


def test_successor_restores_groups_that_its_file_does_not_list(node: FakeNode) -> None:
    node.run(node.agent(150), 10)
    del node.groups["rests"]
    agent = node.agent(150)
    assert agent.mover.restore_all(but=["streams"]) == []
    assert node.limit("rests") in ("-1", "max") and node.limit("streams").isdigit()


def test_limit_set_by_another_program_is_kept(node: FakeNode, log: pytest.LogCaptureFixture) -> None:
    agent = node.agent(150)
    node.run(agent, 5)
    node.limit_file("rests").write_text(str(77 * MIB))
    node.run(agent, 10)
    assert events(log, "external_limit_change") == [{"workload": "rests", "limit": 77 * MIB}]
    assert agent.mover.restore_all() == [] and node.limit("rests") == str(77 * MIB)


def test_recreated_group_is_tracked_as_a_new_one(node: FakeNode) -> None:
    agent = node.agent(150)
    node.run(agent, 10)
    gone = node.memory("rests")
    gone.rename(node.folder / "gone")
    workload = node.groups.pop("rests")
    node.run(agent, 5)
    assert int(node.limit("streams")) >= 100 * MIB and LimitsRecord(node.folder).get("rests") is None
    if node.version == 1:
        (node.root / "cpuacct" / "rests").rename(node.folder / "cpuacct-gone")
    node.add("rests", SimulatedWorkload(workload.total, workload.tolerance, workload.knots))
    node.run(agent, 15)
    assert all(group.within(group.local) for group in node.groups.values())


def test_rejected_write_does_not_stop_other_moves_and_limits_still_fit(
    node: FakeNode, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = WatchedGroup.set_limit

    def reject(self: WatchedGroup, limit: int | None) -> None:
        if self.group.memory.name == "streams" and limit is not None:
            raise InputError("rejected") from OSError(errno.EBUSY, "busy")
        original(self, limit)

    monkeypatch.setattr(WatchedGroup, "set_limit", reject)
    agent = node.agent(150)
    node.run(agent, 10)
    assert node.limit("streams") == node.unlimited and int(node.limit("rests")) <= 50 * MIB
    assert events(log, "limit_write_failed") and 'failures_total{work="write"}' in metrics_text(agent)


def test_limit_that_cannot_be_restored_stays_saved(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = node.agent(150)
    node.run(agent, 5)

    def reject(*_: object) -> str:
        raise InputError("no")

    monkeypatch.setattr(limits_module, "restore_limit", reject)
    assert {saved.group for saved in agent.mover.restore_all()} == {"streams", "rests"}
    assert (node.folder / "limits.json").exists()


def test_saved_limits_of_an_earlier_boot_are_ignored_and_invalid_ones_rejected(node: FakeNode) -> None:
    node.run(node.agent(150), 5)
    file = node.folder / "limits.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "boot": "before"}))
    assert list(LimitsRecord(node.folder)) == []
    file.write_text("{")
    with pytest.raises(InputError, match="is not a valid record of limits"):
        LimitsRecord(node.folder)


def test_less_memory_is_distributed_when_the_node_runs_short(node: FakeNode) -> None:
    agent = node.agent(150, reserve='"1 GiB"')
    node.run(agent, 5)
    node.available = 1024 * MIB - 40 * MIB
    before = sum(group.local for group in node.groups.values())
    node.run(agent, 1)
    assert agent.memory() <= before - 40 * MIB
    assert sum(int(node.limit(name)) for name in node.groups) <= before - 40 * MIB


def test_no_limit_is_lowered_when_swap_is_full(node: FakeNode) -> None:
    node.swap_free = 0
    agent = node.agent(150)
    assert set(node.run(agent, 10)[-1].values()) == {node.unlimited}


def test_passive_measurements_can_be_fitted_and_resumed(node: FakeNode, tmp_path: Path) -> None:
    agent = node.agent(130)
    node.run(agent, 20)
    file = tmp_path / "measured.csv"
    agent.passive_profile.write(file)
    (streams,) = [measured for measured in read_measurements(file) if measured.name == "streams"]
    assert fit(streams, pieces=1).profile.at(0.1) > 0.5
    agent.passive_profile.read(file)
    agent.passive_profile.write(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == file.read_text()


def test_stalled_workload_gets_more_memory_at_once(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    node = FakeNode(tmp_path, 1)
    node.add("stands", SimulatedWorkload(100 * MIB, 0.25, RESTS))
    node.add("rests", SimulatedWorkload(100 * MIB, 0.25, RESTS))
    agent = node.agent(150)
    node.run(agent, 6)
    before, control = int(node.limit("stands")), node.memory("stands") / "memory.oom_control"
    control.write_text("oom_kill_disable 1\nunder_oom 1\noom_kill 0\n")
    agent.relieve_stalled()
    assert int(node.limit("stands")) > before and events(log, "workload_stalled")
