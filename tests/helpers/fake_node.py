"""A fake node: control groups as plain files, with workloads that slow down as their limits fall."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import generate_latest

from poolwise_agents.memory_agent.agent import MIB, Host, MemoryAgent
from poolwise_agents.memory_agent.config import load_memory_agent
from poolwise_agents.memory_agent.limits import LimitMover, LimitsRecord
from poolwise_agents.memory_agent.metrics import MemoryAgentMetrics
from tests.helpers.pretended_workloads import SimulatedWorkload

PAGE_IN_S = 15e-6
STAT = "inactive_file 0\npgfault 0\npgmajfault {faults}\nworkingset_refault_anon 0\nworkingset_refault_file 0\n"


@dataclass
class FakeNode:
    """A node with control groups of version 1 or 2 whose time advances on request."""

    folder: Path
    version: int
    groups: dict[str, SimulatedWorkload] = field(default_factory=dict)
    now: float = 0.0
    available: int = 64 << 30
    swap_free: int = 64 << 30
    faults: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        controllers = ("memory", "cpuacct") if self.version == 1 else ("",)
        for controller in controllers:
            (self.root / controller).mkdir(parents=True)
        if self.version == 1:
            (self.root / "memory" / "memory.limit_in_bytes").write_text("0")
        else:
            (self.root / "cgroup.controllers").write_text("cpu memory")

    @property
    def root(self) -> Path:
        return self.folder / "cgroup"

    def memory(self, name: str) -> Path:
        return self.root / ("memory" if self.version == 1 else "") / name

    def limit_file(self, name: str) -> Path:
        return self.memory(name) / ("memory.limit_in_bytes" if self.version == 1 else "memory.high")

    def limit(self, name: str) -> str:
        return self.limit_file(name).read_text()

    @property
    def unlimited(self) -> str:
        return "9223372036854771712" if self.version == 1 else "max"

    def add(self, name: str, workload: SimulatedWorkload) -> None:
        """Create a group with a workload."""
        self.groups[name], self.faults[name], self.cpu_s[name] = workload, 0.0, 0.0
        self.memory(name).mkdir()
        if self.version == 1:
            (self.root / "cpuacct" / name).mkdir()
            (self.memory(name) / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
        self.limit_file(name).write_text(self.unlimited)
        self.write_counters(name)

    def advance(self, seconds: float = 1.0) -> None:
        """Advance the time."""
        self.now += seconds
        for name, group in self.groups.items():
            text = self.limit(name)
            group.limit = None if text in ("max", "-1", self.unlimited) else int(text)
            slowdown = group.slowdown(group.local)
            self.cpu_s[name] += seconds
            self.faults[name] += seconds * slowdown / (1 + slowdown) / PAGE_IN_S
            self.write_counters(name)

    def write_counters(self, name: str) -> None:
        """Write the files that the kernel would provide."""
        group, memory = self.groups[name], self.memory(name)
        stat = STAT.format(faults=int(self.faults[name]))
        swapped = group.total - group.local
        if self.version == 1:
            text = "".join(f"total_{line}\n" for line in stat.splitlines()) + f"total_swap {swapped}\n"
            (memory / "memory.stat").write_text(text)
            (memory / "memory.usage_in_bytes").write_text(str(group.local))
            (self.root / "cpuacct" / name / "cpuacct.usage").write_text(str(int(self.cpu_s[name] * 1e9)))
        else:
            (memory / "memory.stat").write_text(stat)
            (memory / "memory.current").write_text(str(group.local))
            (memory / "memory.swap.current").write_text(str(swapped))
            (memory / "cpu.stat").write_text(f"usage_usec {int(self.cpu_s[name] * 1e6)}\n")

    def agent(self, memory_mib: int, *, dry_run: bool = False, **others: str) -> MemoryAgent:
        """Return an agent of all groups."""
        lines = [f'version = 1\nmemory = "{memory_mib} MiB"\nclock = "cpu"\nstate = "{self.folder}"']
        lines += [f"{key} = {value}" for key, value in others.items()]
        for name, group in self.groups.items():
            lines.append(f'[[workload]]\nname = "{name}"\ngroup = "{name}"\ntolerance = {group.tolerance}')
        file = self.folder / "agent.toml"
        file.write_text("\n".join(lines))
        host = Host(self.root, lambda: self.available, lambda: self.swap_free, lambda: self.now)
        metrics = MemoryAgentMetrics()
        mover = LimitMover(None if dry_run else LimitsRecord(self.folder), self.root, metrics)
        return MemoryAgent(load_memory_agent(file), mover, host, metrics)

    def run(self, agent: MemoryAgent, steps: int) -> list[dict[str, str]]:
        """Run control steps of an agent and return the limits after each step."""
        limits = []
        for _ in range(steps):
            self.advance()
            agent.control_step()
            limits.append({name: self.limit(name) for name in self.groups})
            held = [int(limit) for limit in limits[-1].values() if limit.isdigit() and limit != self.unlimited]
            assert sum(held) <= agent.config.file.memory * MIB
        return limits


def metrics_text(agent: MemoryAgent) -> str:
    """Return the metrics as Prometheus reads them."""
    return generate_latest(agent.metrics.registry).decode()
