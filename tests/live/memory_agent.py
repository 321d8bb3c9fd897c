"""The memory agent with real control groups and swap of this computer; skipped, with the reason, without permissions."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from poolwise_agents.memory_agent.groups import WatchedGroup
from poolwise_agents.profiling.cleanup import OwnedResources, owned_resources
from poolwise_agents.profiling.control_groups import find_hierarchy
from poolwise_agents.profiling.zram import ZramSwap
from tests.live.measuring import unavailable_reason

MIB = 2**20
HOT = """
import sys, time
b = bytearray(40 << 20)
while True:
    for k in range(0, len(b), 4096): b[k] = sum(b[k : k + 100]) % 256
    open(sys.argv[1], "w").write(str(time.monotonic()))
"""
COLD = "import time; b = bytearray(40 << 20)\nwhile True: sum(range(20000))"
FILE = """
version = 1
memory = "{memory} MiB"
every = "300 ms"
clock = "cpu"
state = "{state}"

[[workload]]
name = "hot"
group = "{hot}"
tolerance = 0.3

[[workload]]
name = "cold"
group = "{cold}"
tolerance = 0.3
"""

pytestmark = pytest.mark.skipif(bool(unavailable_reason()), reason=unavailable_reason() or "available")


@dataclass
class Stage:
    """Programs in their own groups, all of which are removed at the end."""

    owned: OwnedResources
    programs: list[subprocess.Popen[bytes]]

    def start(self, name: str, program: str, *arguments: object) -> WatchedGroup:
        """Run a program in its own group."""
        group = find_hierarchy().group(f"poolwise-{os.getpid()}-{name}")
        self.owned.add(group)
        group.create()
        join = 'until [ "$1" = -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'
        command = ["/bin/sh", "-c", join, "join", *group.procs_files, "--", sys.executable, "-c", program, *arguments]
        self.programs.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        return WatchedGroup.find(group.memory.name)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Return a stage with its own swap."""
    with owned_resources(tmp_path / "records", "memory-agent-test") as owned:
        swap = ZramSwap.add()
        owned.add(swap)
        swap.enable(128 * MIB)
        opened = Stage(owned, [])
        try:
            yield opened
        finally:
            for program in opened.programs:
                program.kill()
                program.wait()


@pytest.fixture
def two(stage: Stage, tmp_path: Path) -> dict[str, WatchedGroup]:
    """Start a program that cycles through 40 MiB, and one that holds 40 MiB without using them."""
    started = {name: stage.start(name, text, tmp_path / name) for name, text in {"hot": HOT, "cold": COLD}.items()}
    until(
        lambda: all(program.read_counters()[1].local > 42 * MIB for program in started.values()),
        "both programs hold their memory",
    )
    return started


def until(condition, what: str, longest_s: float = 30) -> None:
    """Wait for a condition."""
    for _ in range(int(longest_s / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {longest_s} s: {what}")


def agent(tmp_path: Path, two: dict[str, WatchedGroup], *options: str, memory: int = 75) -> subprocess.Popen[str]:
    """Start an agent."""
    groups = {name: program.group.memory.name for name, program in two.items()}
    file = tmp_path / "agent.toml"
    file.write_text(FILE.format(memory=memory, state=tmp_path / "state", **groups))
    words = [sys.executable, "-m", "poolwise", "agent", "memory", file, *options]
    with (tmp_path / "log").open("a") as log:
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log, text=True, cwd=tmp_path)


def events(tmp_path: Path) -> list[dict]:
    """Return the logged events of all agents."""
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]


def limits(two: dict[str, WatchedGroup]) -> dict[str, int | None]:
    return {name: program.limit() for name, program in two.items()}


def settled(two: dict[str, WatchedGroup], for_s: float = 2.0) -> bool:
    """Return whether limits are set and do not change for a while."""
    before = limits(two)
    time.sleep(for_s)
    return None not in before.values() and limits(two) == before


def stop(process: subprocess.Popen[str], signal_: signal.Signals = signal.SIGTERM) -> None:
    process.send_signal(signal_)
    assert process.wait(timeout=60) == 0


NONE = {"hot": None, "cold": None}


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_memory_moves_to_the_needy_program_and_limits_are_restored(tmp_path: Path, two, signal_: signal.Signals) -> None:
    running = agent(tmp_path, two)
    try:
        until(lambda: None not in limits(two).values(), "limits are set")
        until(lambda: settled(two), "limits do not change any more")
        now, cold, hot = limits(two), two["cold"].read_counters()[1], two["hot"].read_counters()[1]
        assert sum(now.values()) <= 75 * MIB
        assert hot.local > 39 * MIB and cold.swapped > 5 * MIB
    finally:
        stop(running, signal_)
    assert limits(two) == NONE and not (tmp_path / "state" / "limits.json").exists()
    assert any("below_working_set" in event for event in events(tmp_path))


def test_successor_of_a_killed_agent_takes_over_and_restores_limits(tmp_path: Path, two) -> None:
    killed = agent(tmp_path, two)
    until(lambda: None not in limits(two).values(), "limits are set")
    killed.kill()
    killed.wait()
    assert None not in limits(two).values()
    after = agent(tmp_path, two)
    until(lambda: [event["event"] for event in events(tmp_path)].count("workload_watched") == 4, "the second agent watches")
    stop(after)
    assert limits(two) == NONE


def test_let_go_restores_limits_of_a_killed_agent(tmp_path: Path, two) -> None:
    killed = agent(tmp_path, two)
    until(lambda: None not in limits(two).values(), "limits are set")
    killed.kill()
    killed.wait()
    assert agent(tmp_path, two, "--release").wait(timeout=60) == 0
    assert limits(two) == NONE


def test_dry_run_logs_proposals_and_writes_nothing(tmp_path: Path, two) -> None:
    assert agent(tmp_path, two, "--dry-run", "--seconds", "2").wait(timeout=60) == 0
    assert limits(two) == NONE and not (tmp_path / "state").exists()
    assert {event["workload"] for event in events(tmp_path) if event["event"] == "limit_proposed"} == {"hot", "cold"}


def test_unlisted_groups_are_unchanged(tmp_path: Path, two, stage: Stage) -> None:
    other = stage.start("other", COLD)
    other.set_limit(60 * MIB)
    running = agent(tmp_path, two)
    until(lambda: None not in limits(two).values(), "limits are set")
    assert other.limit() == 60 * MIB
    stop(running)
    assert other.limit() == 60 * MIB
