"""Counts of one: every command writes "1 job", not "1 jobs"."""

import re
from pathlib import Path

import pytest

import poolwise
from poolwise.cli import app as cli
from poolwise.presentation.format import rows_note
from poolwise.quantities import format_count

CONF = "ClusterName=uno\nSelectType=select/cons_tres\nNodeName=a CPUs=4 RealMemory=8192\nPartitionName=p Nodes=a Default=YES\n"
LOG = """JobID|User|Account|QOS|Partition|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|ReqMem
1001|u0|a0|normal|p|2026-03-01T00:18:37|2026-03-01T00:45:18|COMPLETED|1|4|2916|98|4G
"""
ONE_OF_SEVERAL = re.compile(
    r"(?<![\d.,] )(?<![\d.,])\b1 (?:(?:shared|whole|baseline) )?"
    r"(?:jobs|nodes|cells|runs|rows|seeds|pools|candidates|simulations|settings)\b"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("slurm.conf").write_text(CONF)
    Path("one.txt").write_text(LOG)
    return tmp_path


def test_counts_of_one_are_singular_in_every_answer_about_one_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = "uno/machine.toml"
    commands = [
        ["import", "slurm", "--conf", "slurm.conf", "--log", "one.txt", "--out", "uno"],
        ["validate", "uno/study.toml"],
        ["validate", machine],
        ["simulate", "one.txt", "--machine", machine],
        ["explain", "log", "one.txt", "1001", "--machine", machine],
        ["trace", "info", "one.txt", "--machine", machine],
        ["trace", "convert", "one.txt", "one.csv", "--machine", machine],
    ]
    for command in commands:
        assert cli.run(command) == 0, command
        printed = "".join(capsys.readouterr())
        assert not ONE_OF_SEVERAL.findall(printed), printed
    assert "1 shared node" in repr(poolwise.load_machine(folder / machine))


def test_nouns_and_verbs_agree_with_their_counts() -> None:
    assert [format_count(n, "job") for n in (0, 1, 1200)] == ["0 jobs", "1 job", "1,200 jobs"]
    assert rows_note(1, "excluded", "no end") == "1 row was excluded: no end."
    assert rows_note(2, "excluded", "no end") == "2 rows were excluded: no end."


@pytest.mark.long
def test_study_of_one_job_is_reported_without_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["import", "slurm", "--conf", "slurm.conf", "--log", "one.txt", "--out", "uno"]) == 0
    capsys.readouterr()
    assert cli.run(["run", "uno/study.toml", "--out", "results"]) == 0
    out = capsys.readouterr().out
    report = Path("results/report.html").read_text()
    assert "(no interval)" in report and "too few jobs for an interval" in report and "NaN" not in report.split("<script")[0]
    assert "wait added compared with FCFS without backfilling, summed over the compared jobs that wait longer" in report
    assert not ONE_OF_SEVERAL.findall(out)
