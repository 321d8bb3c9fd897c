"""Tests of limits under adverse conditions, on fake control groups: rejected writes, recreated groups, binding limits."""

import errno
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise_agents.memory_agent.agent import MIB, MemoryAgent
from poolwise_agents.memory_agent.groups import WatchedGroup
from poolwise_agents.memory_agent.limits import LimitsRecord, SavedLimit
from tests.helpers.fake_node import FakeNode
from tests.helpers.pretended_workloads import SimulatedWorkload

FLAT = ((0.0, 0.0),)


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    fake_node = FakeNode(tmp_path, request.param)
    for name in ("one", "two"):
        fake_node.add(name, SimulatedWorkload(100 * MIB, 0.25, FLAT))
    return fake_node


def sampled_agent(node: FakeNode, limits: dict[str, int]) -> MemoryAgent:
    """Return an agent that has sampled all groups once and set the given limits (MiB)."""
    agent = node.agent(150)
    for section in agent.config.file.workload:
        agent._observe(section)
    assert agent.mover.move([(agent.tracked[name], limit * MIB) for name, limit in limits.items()], 1000 * MIB, 0.0)
    return agent


def recreate(node: FakeNode, name: str) -> None:
    """Replace a group with a new one of the same name and limit."""
    workload, limit = node.groups[name], node.limit(name)
    node.memory(name).rename(node.folder / f"{name}-gone")
    if node.version == 1:
        (node.root / "cpuacct" / name).rename(node.folder / f"{name}-cpuacct-gone")
    node.add(name, workload)
    node.limit_file(name).write_text(limit)


def test_increase_stays_within_memory_that_another_workload_did_not_give_up(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = sampled_agent(node, {"one": 100, "two": 40})
    original = WatchedGroup.set_limit

    def reject(self: WatchedGroup, limit: int | None) -> None:
        if self.group.memory.name == "one":
            raise InputError("rejected") from OSError(errno.EBUSY, "busy")
        original(self, limit)

    monkeypatch.setattr(WatchedGroup, "set_limit", reject)
    first, second = agent.tracked["one"], agent.tracked["two"]
    agent.mover.move([(first, 60 * MIB), (second, 90 * MIB)], 150 * MIB, 1.0)
    assert (node.limit("one"), node.limit("two")) == (str(100 * MIB), str(50 * MIB))
    assert first.curve.at(60 * MIB) > 100  # memory that could not be reclaimed is needed
    agent.mover.move([(first, 60 * MIB), (second, 90 * MIB)], 120 * MIB, 2.0)
    assert node.limit("two") == str(50 * MIB)  # a workload that was to get more loses nothing


def test_recreated_group_is_tracked_again_although_it_was_never_missing(node: FakeNode) -> None:
    agent = sampled_agent(node, {"one": 100, "two": 50})
    before = agent.tracked["one"]
    recreate(node, "one")
    agent._observe(before.section)
    after = agent.tracked["one"]
    assert after is not before and after.identity == node.memory("one").stat().st_ino
    assert agent.mover.record is not None and agent.mover.record.get("one") is None
    assert after.max_limit == 100 * MIB  # the agent has not set the limit of the new group


def test_saved_limit_of_a_former_group_does_not_apply_to_a_recreated_one(node: FakeNode) -> None:
    sampled_agent(node, {"one": 100, "two": 50})
    recreate(node, "one")
    after = node.agent(150)
    watched = after.watched["one"]
    assert after.mover.limit_before("one", watched) == 100 * MIB
    assert after.mover.limit_before("two", after.watched["two"]) is None
    assert after.mover.restore_all() == []
    assert node.limit("one") == str(100 * MIB) and node.limit("two") in ("-1", "max")


def test_recreated_group_is_managed_although_the_former_was_unmanaged(node: FakeNode) -> None:
    agent = sampled_agent(node, {"one": 100, "two": 50})
    section = agent.tracked["one"].section
    node.limit_file("one").write_text(str(77 * MIB))
    agent._observe(section)
    agent._observe(section)
    assert "one" not in agent.tracked and agent.memory() == 50 * MIB
    recreate(node, "one")
    agent._observe(section)
    assert agent.tracked["one"].max_limit == 77 * MIB and agent.memory() == 150 * MIB


def test_saved_limit_identifies_its_group_by_inode(node: FakeNode) -> None:
    record = LimitsRecord(node.folder)
    number = node.memory("one").stat().st_ino
    record.save(SavedLimit("one", number + 1, None, None, (60 * MIB,)))
    node.limit_file("one").write_text(str(60 * MIB))
    agent = node.agent(150)
    assert agent.mover.restore_all() == [] and node.limit("one") == str(60 * MIB)


def test_evicted_file_pages_still_count_as_held(node: FakeNode) -> None:
    agent = sampled_agent(node, {"one": 60, "two": 90})
    node.advance()
    workload = agent.tracked["one"]
    workload.sample("cpu", 15e-6)
    stat = "total_swap 0" if node.version == 1 else "0"
    if node.version == 1:
        file = node.memory("one") / "memory.stat"
        file.write_text(file.read_text().replace(f"total_swap {40 * MIB}", stat))
    else:
        (node.memory("one") / "memory.swap.current").write_text(stat)
    workload.sample("cpu", 15e-6)
    assert workload.squeezed and workload.held.total == 60 * MIB
    workload.update_curve(2.0, None, 600.0)
    assert workload.curve.total == 100 * MIB and workload.curve.phase == 0
    agent.mover.move([(workload, 90 * MIB)], 1000 * MIB, 2.0)
    workload.update_curve(3.0, None, 600.0)
    assert not workload.squeezed and workload.curve.total == 60 * MIB  # without a binding limit it needs no more
