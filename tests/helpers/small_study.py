"""Small input files: a machine, a study and its jobs."""

from pathlib import Path

MACHINE = """\
version = 1
title = "two racks"
name = "small"

[[node]]
name = "thin"
cores = 4
memory = "16 GiB"

[[rack]]
count = 2
nodes = { thin = 4 }

[[pool]]
name = "memory"
memory = "32 GiB"
"""

STUDY = """\
version = 1
title = "a small study"
machine = "machine.toml"

[workload]
trace = "jobs.csv"

[scheduler]
order = "fm"

[measure]
warm_up = 5

[vary]
"scheduler.order" = ["fcfs", "fm"]
"machine.pool.memory.memory" = ["32 GiB", "64 GiB"]
"""


def jobs(count: int = 60) -> str:
    """Return a job table in which three jobs queue per running one, and every third needs remote memory."""
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    for k in range(count):
        memory = 30 * 1024 if k % 3 == 0 else 8 * 1024
        rows.append(f"{k + 1},{k * 60 * 10**9},{1 + k % 3},{(200 + 37 * (k % 11)) * 10**9},{memory}")
    return "\n".join(rows) + "\n"


def write(folder: Path) -> Path:
    """Write machine.toml, study.toml and jobs.csv to a folder."""
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "study.toml").write_text(STUDY)
    (folder / "jobs.csv").write_text(jobs())
    return folder
