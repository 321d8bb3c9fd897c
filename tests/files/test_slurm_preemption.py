"""`poolwise import slurm`: preemption by partition and QOS."""

import tomllib
from pathlib import Path

import pytest

from poolwise.files.scheduler import load_scheduler
from tests.helpers.slurm_import import edited, imported


def preempting(tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, *words: object) -> tuple[dict | None, str]:
    """Import with other lines on preemption; return the table `preemption` of slurm.toml, and the messages."""
    conf = edited(
        tmp_path, ("PreemptType=preempt/qos\n", f"{lines}\n"), ("PriorityJobFactor=", "PriorityTier=3 PriorityJobFactor=")
    )
    assert imported(tmp_path / "out", *words, conf=conf) == 0
    scheduler = load_scheduler(tmp_path / "out" / "slurm.toml")
    section = tomllib.loads((tmp_path / "out" / "slurm.toml").read_text()).get("preemption")
    assert (section is None) == (scheduler.preemption is None)
    return section, capsys.readouterr().err


def test_preemption_by_partition_tier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPreemptExemptTime=00:10:00\n"
    preemption, printed = preempting(
        tmp_path, capsys, f"{lines}PreemptParameters=youngest_first,reorder_count=3,strict_order,reclaim_licenses"
    )
    expected = {"name": "tiers", "mode": "requeue", "exempt_s": 600.0, "youngest_first": True, "reorder_count": 3}
    assert preemption == {**expected, "strict_order": True, "requeue_delay_s": 121.0}
    assert "PreemptParameters=reclaim_licenses is left out" in printed and "not preempted" not in printed


@pytest.mark.parametrize(
    ("lines", "expected", "words"),
    [
        ("PreemptType=preempt/none\nPreemptMode=OFF", None, ""),
        ("PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG", None, "jobs are not suspended (PreemptMode=SUSPEND"),
        ("PreemptType=preempt/partition_prio", None, "PreemptMode is OFF, the default of Slurm"),
        ("PreemptType=preempt/none\nPreemptMode=GANG", None, "PreemptMode=GANG: jobs do not share resources in time slices"),
        ("PreemptType=preempt/site\nPreemptMode=CANCEL", None, "the type is unknown"),
        ("PreemptType=preempt/partition_prio\nPreemptMode=CANCEL", {"name": "tiers", "mode": "cancel"}, ""),
        ("PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nJobRequeue=0", {"name": "tiers", "mode": "cancel"}, ""),
        (
            "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL,GANG",
            {"name": "tiers", "mode": "cancel"},
            "PreemptMode=GANG",
        ),
    ],
)
def test_modes_of_preemption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, expected: dict | None, words: str
) -> None:
    preemption, printed = preempting(tmp_path, capsys, lines)
    assert preemption == expected and words in printed


def test_partitions_have_modes_and_grace_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL"
    changes = [("PartitionName=fat ", "PartitionName=fat PreemptMode=OFF GraceTime=60 ")]
    changes.append(("PartitionName=short ", "PartitionName=short PreemptMode=SUSPEND "))
    conf = edited(tmp_path, ("PreemptType=preempt/qos\n", f"{lines}\n"), *changes)
    assert imported(tmp_path / "out", conf=conf) == 0
    preemption = tomllib.loads((tmp_path / "out" / "slurm.toml").read_text())["preemption"]
    printed = capsys.readouterr().err
    assert preemption == {"name": "tiers", "mode": "cancel", "partitions": {"fat": "off", "short": "off"}}
    assert "GraceTime of partition fat: preempted jobs end at once" in printed
    assert "jobs of partition short are not preempted, because jobs are not suspended" in printed
    assert "jobs of partition fat are not preempted" not in printed


def test_preemption_by_qos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qos.txt").write_text(
        "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|MaxWall\n"
        "normal|0|00:00:00|||cluster|\nhigh|100|00:00:30|low,normal||cluster|\nlow|5|00:00:00||00:02:00|cancel|\n"
    )
    lines = "PreemptType=preempt/qos\nPreemptMode=REQUEUE"
    preemption, printed = preempting(tmp_path, capsys, lines, "--qos", tmp_path / "qos.txt")
    assert preemption == {
        "name": "qos",
        "mode": "requeue",
        "preempts": {"high": ["low", "normal"]},
        "priorities": {"high": 100, "low": 5},
        "modes": {"low": "cancel"},
        "exempt": {"low": 120.0},
        "requeue_delay_s": 121.0,
    }
    assert "qos.txt:3: GraceTime of QOS high: preempted jobs end at once" in printed and "not preempted" not in printed


def test_preemption_by_qos_needs_their_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preemption, printed = preempting(tmp_path, capsys, "PreemptType=preempt/qos\nPreemptMode=REQUEUE")
    assert (
        preemption is None
        and "PreemptType=preempt/qos: jobs are not preempted, because the dump of QOS is missing (--qos)" in printed
    )
    (tmp_path / "qos.txt").write_text("Name|Priority\nnormal|0\nhigh|1\nlow|2\n")
    assert imported(tmp_path / "out", "--qos", tmp_path / "qos.txt", conf=tmp_path / "slurm.conf") == 0
    assert "jobs are not preempted, because qos.txt lacks the column Preempt: write it with" in capsys.readouterr().err
