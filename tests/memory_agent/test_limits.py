"""Limits and groups that are not what they were: refused, made again, full to the limit. On control groups of plain files."""

import errno
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.live.memory_agent.agent import MIB, MemoryAgent
from poolwise.live.memory_agent.groups import WatchedGroup
from poolwise.live.memory_agent.saved_limits import LimitsRecord, SavedLimit
from tests.helpers.fake_node import FakeNode
from tests.helpers.pretended_workloads import PretendedWorkload

FLAT = ((0.0, 0.0),)


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    found = FakeNode(tmp_path, request.param)
    for name in ("one", "two"):
        found.add(name, PretendedWorkload(100 * MIB, 0.25, FLAT))
    return found


def looking(node: FakeNode, limits: dict[str, int]) -> MemoryAgent:
    """An agent that has looked once, at groups with limits in MiB that it has set itself."""
    agent = node.agent(150)
    for section in agent.config.file.workload:
        agent._look(section)
    assert agent.mover.move([(agent.followed[name], limit * MIB) for name, limit in limits.items()], 1000 * MIB, 0.0)
    return agent


def made_again(node: FakeNode, name: str) -> None:
    """A group that goes, and another of its name and its limit."""
    kept, limit = node.groups[name], node.limit(name)
    node.memory(name).rename(node.folder / f"{name}-gone")
    if node.version == 1:
        (node.root / "cpuacct" / name).rename(node.folder / f"{name}-cpuacct-gone")
    node.add(name, kept)
    node.limit_file(name).write_text(limit)


def test_who_is_to_get_what_another_does_not_give_stays_within_the_memory(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = looking(node, {"one": 100, "two": 40})
    works = WatchedGroup.set_limit

    def refuses(self: WatchedGroup, limit: int | None) -> None:
        if self.group.memory.name == "one":
            raise InputError("does not take it") from OSError(errno.EBUSY, "busy")
        works(self, limit)

    monkeypatch.setattr(WatchedGroup, "set_limit", refuses)
    one, two = agent.followed["one"], agent.followed["two"]
    agent.mover.move([(one, 60 * MIB), (two, 90 * MIB)], 150 * MIB, 1.0)
    assert (node.limit("one"), node.limit("two")) == (str(100 * MIB), str(50 * MIB))
    assert one.curve.at(60 * MIB) > 100  # what could not be taken from it is what it needs
    agent.mover.move([(one, 60 * MIB), (two, 90 * MIB)], 120 * MIB, 2.0)
    assert node.limit("two") == str(50 * MIB)  # and nobody falls who was to rise


def test_a_group_made_again_is_begun_anew_although_it_was_never_seen_gone(node: FakeNode) -> None:
    agent = looking(node, {"one": 100, "two": 50})
    before = agent.followed["one"]
    made_again(node, "one")
    agent._look(before.section)
    after = agent.followed["one"]
    assert after is not before and after.identity == node.memory("one").stat().st_ino
    assert agent.mover.record is not None and agent.mover.record.get("one") is None
    assert after.most == 100 * MIB  # the limit that stands there is not the agent's


def test_what_is_on_record_of_a_former_group_says_nothing_of_one_made_again(node: FakeNode) -> None:
    looking(node, {"one": 100, "two": 50})
    made_again(node, "one")
    after = node.agent(150)
    watched = after.watched["one"]
    assert after.mover.limit_before("one", watched) == 100 * MIB
    assert after.mover.limit_before("two", after.watched["two"]) is None
    assert after.mover.let_go() == []
    assert node.limit("one") == str(100 * MIB) and node.limit("two") in ("-1", "max")


def test_a_group_made_again_is_followed_although_the_former_was_left_alone(node: FakeNode) -> None:
    agent = looking(node, {"one": 100, "two": 50})
    section = agent.followed["one"].section
    node.limit_file("one").write_text(str(77 * MIB))
    agent._look(section)
    agent._look(section)
    assert "one" not in agent.followed and agent.memory() == 50 * MIB
    made_again(node, "one")
    agent._look(section)
    assert agent.followed["one"].most == 77 * MIB and agent.memory() == 150 * MIB


def test_a_record_names_its_group_by_more_than_its_path(node: FakeNode) -> None:
    record = LimitsRecord(node.folder)
    number = node.memory("one").stat().st_ino
    record.save(SavedLimit("one", number + 1, None, None, (60 * MIB,)))
    node.limit_file("one").write_text(str(60 * MIB))
    agent = node.agent(150)
    assert agent.mover.let_go() == [] and node.limit("one") == str(60 * MIB)


def test_pages_of_files_that_a_limit_has_thrown_out_still_count_as_held(node: FakeNode) -> None:
    agent = looking(node, {"one": 60, "two": 90})
    node.passes()
    one = agent.followed["one"]
    one.look("cpu", 15e-6)
    stat = "total_swap 0" if node.version == 1 else "0"
    if node.version == 1:
        file = node.memory("one") / "memory.stat"
        file.write_text(file.read_text().replace(f"total_swap {40 * MIB}", stat))
    else:
        (node.memory("one") / "memory.swap.current").write_text(stat)
    one.look("cpu", 15e-6)
    assert one.squeezed and one.held.total == 60 * MIB
    one.learn(2.0, None, 600.0)
    assert one.curve.total == 100 * MIB and one.curve.phase == 0
    agent.mover.move([(one, 90 * MIB)], 1000 * MIB, 2.0)
    one.learn(3.0, None, 600.0)
    assert not one.squeezed and one.curve.total == 60 * MIB  # nothing keeps it from holding more, so it needs no more
