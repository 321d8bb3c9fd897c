"""Jobs that ran longer than their limit, as Slurm lets them until it terminates them, keep the limit that they requested."""

from pathlib import Path

import numpy as np
import pytest

import poolwise
from poolwise.metrics.outcomes import Status
from poolwise.quantities import SECOND, UNKNOWN

MACHINE = """version = 1
[[node]]
name = "node"
memory = "8 GiB"
cores = 1
[[rack]]
count = 1
nodes = { node = 4 }
[[partition]]
name = "hour"
nodes = ["node"]
default = true
max_time = "1 h"
"""
SACCT = """JobIDRaw|Submit|Start|End|State|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqMem|MaxRSS|Partition
1|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T01:00:20|TIMEOUT|3620|60|1|1|1G|1G|hour
2|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T01:00:20|TIMEOUT|3620|Partition_Limit|1|1|1G|1G|hour
3|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T02:00:00|COMPLETED|7200|120|1|1|1G|1G|hour
"""
TABLE = (
    "id,submit,duration,requested,nodes,memory,partition\n1,0,3620,3600,1,1,hour\n2,0,3620,,1,1,hour\n3,0,7200,7200,1,1,hour\n"
)
SWF = "1 0 0 3620 1 -1 1024 1 3600 -1 1 1 1 -1 -1 hour -1 -1\n".replace("hour", "-1")


@pytest.fixture
def machine(tmp_path: Path) -> poolwise.Machine:
    (tmp_path / "machine.toml").write_text(MACHINE)
    return poolwise.load_machine(tmp_path / "machine.toml")


@pytest.mark.parametrize(
    ("name", "text", "options"), [("log.txt", SACCT, {}), ("log.csv", TABLE, {"map": "memory=memory:GiB"})]
)
def test_job_within_its_limit_runs_though_it_was_terminated_later(
    machine: poolwise.Machine, tmp_path: Path, name: str, text: str, options: dict[str, str]
) -> None:
    (tmp_path / name).write_text(text)
    workload = poolwise.read(tmp_path / name, machine, **options)
    run = poolwise.simulate(workload, machine)
    assert run.outcomes.status.tolist() == [Status.FINISHED, Status.FINISHED, Status.REJECTED]
    assert "allows 1 h per job" in run.outcomes.reason[2]
    assert (workload.requested >= workload.duration).all()


def test_swf_keeps_the_requested_time_as_limit(machine: poolwise.Machine, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    workload = poolwise.read(tmp_path / "log.swf", machine)
    assert workload.attributes["time_limit_s"].tolist() == [3600.0]
    assert not poolwise.simulate(workload, machine).outcomes.rejections()


def test_machines_without_limits_need_no_recorded_limits(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    workload = poolwise.read(tmp_path / "log.swf", poolwise.Machine.of_racks(1, 4, local="8 GiB"))
    assert "time_limit_s" not in workload.attributes
    assert np.array_equal(workload.requested, workload.duration)


def test_partition_limit_is_the_longest_time_of_the_partition(machine: poolwise.Machine, tmp_path: Path) -> None:
    rows = [line for line in SACCT.splitlines() if not line.startswith(("1|", "3|"))]
    rows += [rows[1].replace("2|", "4|", 1).replace("|3620|", "|600|"), rows[1].replace("2|", "5|", 1).replace("|hour", "|")]
    rows[0] = rows[0].replace("TimelimitRaw", "Timelimit")
    (tmp_path / "log.txt").write_text("\n".join(rows) + "\n")
    workload = poolwise.read(tmp_path / "log.txt", machine)
    assert workload.requested.tolist() == [3620 * SECOND, 3600 * SECOND, 3620 * SECOND]
    assert np.isnan(workload.attributes["time_limit_s"]).all()
    limits = poolwise.read(tmp_path / "log.txt", machine, keep_requests=True).requested
    assert limits.tolist() == [3600 * SECOND, 3600 * SECOND, UNKNOWN]
    assert {reason: count for reason, count in workload.repaired.items() if "time limit" in reason} == {
        "time limit Partition_Limit, set to the maximum time of the partition": 2,
        "time limit Partition_Limit, set to the runtime": 1,
        "time limit below the runtime, set to the runtime": 1,
    }
    unlimited = poolwise.read(tmp_path / "log.txt", poolwise.Machine.of_racks(1, 4, local="8 GiB"))
    assert unlimited.requested.tolist() == [3620 * SECOND, 600 * SECOND, 3620 * SECOND]
