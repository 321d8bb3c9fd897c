"""Tests of the memory agent's configuration, whose errors name line and remedy, and of its command."""

import json
from pathlib import Path

import pytest

from poolwise.cli import app
from poolwise.errors import InputError
from poolwise_agents.memory_agent import serve
from poolwise_agents.memory_agent.agent import MIB, Host
from poolwise_agents.memory_agent.config import load_memory_agent
from tests.helpers.fake_node import FakeNode
from tests.helpers.pretended_workloads import SimulatedWorkload
from tests.helpers.waiting import longest_s

ROOT = Path(__file__).parents[4]
FILE = """version = 1
memory = "150 MiB"
every = "100 ms"
state = "STATE"
measurements = "STATE/in-passing.csv"

[[workload]]
name = "one"
group = "a/one"
tolerance = 0.25
profile = "kmeans"

[[workload]]
name = "two"
group = "/a/two"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"150 MiB"', "150", "is not a quantity; write a string with a number and a unit"),
        ('"150 MiB"', '"0 MiB"', "memory"),
        ('"100 ms"', '"1 ms"', "every"),
        ('name = "two"', 'name = "one"', "duplicate name 'one'"),
        ('"/a/two"', '"a/one"', "duplicate group 'a/one'"),
        ('"/a/two"', '"a/one/inside"', "is inside 'a/one'"),
        ('"/a/two"', '"a/../../etc"', "is not a control group"),
        ('"/a/two"', '"/"', "group"),
        ("0.25", "-1", "tolerance"),
        ('"kmeans"', '"kmean"', "did you mean 'kmeans'"),
        ("tolerance", "tolerence", "unknown key 'tolerence'"),
        ("version = 1", "version = 2", "unsupported version 2"),
    ],
)
def test_mistake_is_reported_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in FILE
    file = tmp_path / "agent.toml"
    file.write_text(FILE.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        load_memory_agent(file)
    assert str(file) in str(caught.value) and "line" in str(caught.value)


def test_shipped_example_is_valid() -> None:
    config = load_memory_agent(ROOT / "deploy" / "linux" / "memory-agent.toml")
    assert [section.name for section in config.file.workload] == ["database", "cache", "solver"]
    assert set(config.profiles) == {"cache"}


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    fake_node = FakeNode(tmp_path / "node", 2)
    (fake_node.root / "a").mkdir()
    for name in ("a/one", "a/two"):
        fake_node.add(name, SimulatedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.3, 0.0))))
    return fake_node


def config_of(tmp_path: Path) -> Path:
    file = tmp_path / "agent.toml"
    file.write_text(FILE.replace("STATE", str(tmp_path / "state")))
    return file


def serve_for(node: FakeNode, file: Path, **others: object) -> None:
    host = Host(node.root, lambda: node.available, lambda: node.swap_free)
    serve.serve_memory_agent(load_memory_agent(file), port=0, host=host, **{"seconds": 0.5, **others})


def test_limits_are_restored_and_measurements_saved_at_the_end(node: FakeNode, tmp_path: Path) -> None:
    serve_for(node, config_of(tmp_path))
    assert {node.limit(name) for name in node.groups} == {"max"}
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["in-passing.csv", "lock"]
    assert (tmp_path / "state" / "in-passing.csv").read_text().startswith("workload,remote,frequency,seconds")


def test_limits_are_restored_after_a_failure(node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def fail(self: object, *_: object) -> int:
        limits.append(node.limit("a/one"))
        if len(limits) > 4:
            raise RuntimeError("a fault of the agent itself")
        return 64 << 30

    host = Host(node.root, lambda: node.available, lambda: fail(None))
    with pytest.raises(RuntimeError):
        serve.serve_memory_agent(load_memory_agent(config_of(tmp_path)), port=None, host=host, seconds=longest_s())
    assert limits[-1] != "max" and {node.limit(name) for name in node.groups} == {"max"}


def test_missing_memory_or_swap_is_an_error_before_anything_is_written(node: FakeNode, tmp_path: Path) -> None:
    node.available = 900 * MIB
    with pytest.raises(InputError, match="1100 MiB are free or held by the workloads, but memory and reserve need 1174 MiB"):
        serve_for(node, config_of(tmp_path))
    node.available, node.swap_free = 8192 * MIB, 0
    with pytest.raises(InputError, match="no free swap"):
        serve_for(node, config_of(tmp_path))
    serve_for(node, config_of(tmp_path), dry_run=True)
    assert {node.limit(name) for name in node.groups} == {"max"}


def test_limits_of_a_killed_agent_are_restored_on_request(node: FakeNode, tmp_path: Path) -> None:
    file = config_of(tmp_path)
    host = Host(node.root, lambda: node.available, lambda: node.swap_free)
    (tmp_path / "state").mkdir()
    group = node.memory("a/one")
    saved = {"group": "a/one", "identity": group.stat().st_ino, "before": None, "kills": None, "ours": [60 * MIB]}
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (tmp_path / "state" / "limits.json").write_text(json.dumps({"version": 1, "boot": boot, "groups": [saved]}))
    node.limit_file("a/one").write_text(str(60 * MIB))
    serve.restore_all_limits(load_memory_agent(file), host)
    assert node.limit("a/one") == "max"


def test_command_reports_an_invalid_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], commands: None) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("version = 1\n")
    assert app.run(["agent", "memory", str(file), "--dry-run"]) == 2
    assert "memory" in capsys.readouterr().err
