"""Fake control groups: a tree of plain files."""

from __future__ import annotations

from pathlib import Path

STAT = "anon 0\ninactive_file {inactive}\npgfault 9\npgmajfault 4\nworkingset_refault_anon 3\nworkingset_refault_file 2\n"


def fake_v2(root: Path, *, enabled: str = "memory cpu", available: str = "cpu memory io") -> Path:
    """Create a root of version 2 with its controllers."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in {"cgroup.controllers": available, "cgroup.subtree_control": enabled, "cgroup.procs": ""}.items():
        (root / name).write_text(text)
    return root


def fill_v2(group: Path, *, current: int, inactive: int, swapped: int, cpu_us: int) -> None:
    """Write the files of a group of version 2."""
    texts = {
        "memory.stat": STAT.format(inactive=inactive),
        "memory.current": str(current),
        "memory.swap.current": str(swapped),
        "cpu.stat": f"usage_usec {cpu_us}\nuser_usec 1\n",
        "memory.max": "max",
        "cpu.max": "max 100000",
    }
    for name, text in texts.items():
        (group / name).write_text(text)


def fake_v1(root: Path) -> Path:
    """Create a root of version 1 with the three required controllers."""
    for controller in ("memory", "cpu", "cpuacct"):
        (root / controller).mkdir(parents=True)
        (root / controller / "cgroup.procs").write_text("")
    (root / "memory" / "memory.limit_in_bytes").write_text("0")
    return root


def fill_v1(root: Path, name: str, *, usage: int, inactive: int, swapped: int, cpu_ns: int) -> None:
    """Write the files of a group of version 1; counters that include descendants start with total_."""
    memory = root / "memory" / name
    stat = "".join(f"total_{line}\n" for line in STAT.format(inactive=inactive).splitlines())
    (memory / "memory.stat").write_text(f"inactive_file 1\npgfault 1\npgmajfault 1\n{stat}total_swap {swapped}\n")
    (memory / "memory.usage_in_bytes").write_text(str(usage))
    (root / "cpuacct" / name / "cpuacct.usage").write_text(str(cpu_ns))
