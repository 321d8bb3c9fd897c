"""Limits on jobs, limits on their reservations, and licenses in the import of Slurm."""

from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.files.machine import load_machine
from poolwise.slurm.conf import SlurmConf
from poolwise.studies import slow_runs
from poolwise.traces import read
from tests.helpers.slurm_import import LOG, edited, imported, printed_note


def test_limits_per_user_need_the_users_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split("|") for line in LOG.read_text().splitlines()]
    at = rows[0].index("User")
    (tmp_path / "anonymous.txt").write_text("".join("|".join([*row[:at], *row[at + 1 :]]) + "\n" for row in rows))
    assert imported(tmp_path / "out", log=tmp_path / "anonymous.txt") == 0
    assert "bf_max_job_user is left out: the log has no User" in capsys.readouterr().err
    assert "bf_max_job_user" not in (tmp_path / "out" / "slurm.conf").read_text()


RESERVING = "bf_min_prio_reserve=500,bf_job_part_count_reserve=3,bf_max_job_assoc=2,bf_busy_nodes"


def test_settings_of_reservations_are_kept_and_bf_busy_nodes_only_where_nodes_are_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = edited(tmp_path, ("bf_max_job_user=10", RESERVING), (" PriorityTier=2", ""))
    assert imported(tmp_path / "out", conf=conf) == 0
    settings = SlurmConf.read_file(tmp_path / "out" / "slurm.conf").pairs("SchedulerParameters")
    assert {name: settings[name] for name in settings if "reserve" in name or "assoc" in name} == {
        "bf_min_prio_reserve": "500", "bf_job_part_count_reserve": "3", "bf_max_job_assoc": "2",
    }  # fmt: skip
    assert settings["bf_busy_nodes"] == "" and "bf_busy_nodes" not in capsys.readouterr().err
    assert cli.run(["validate", str(tmp_path / "out" / "slurm.toml")]) == 0
    whole = tmp_path / "whole.conf"
    whole.write_text(conf.read_text().replace("SelectType=select/cons_tres", "SelectType=select/linear"))
    assert imported(tmp_path / "whole", conf=whole) == 0
    assert "bf_busy_nodes" not in (tmp_path / "whole" / "slurm.conf").read_text()
    others = printed_note(capsys.readouterr().err.splitlines(), "without effect on schedules: ")
    assert "SchedulerParameters=bf_busy_nodes" in others


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ([("PriorityType=priority/multifactor", "PriorityType=priority/basic")], "requires PriorityType=priority/multifactor"),
        ([], "partitions have different tiers"),
    ],
)
def test_least_priority_of_reservations_requires_slurms_priorities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[tuple[str, str]], why: str
) -> None:
    conf = edited(tmp_path, ("bf_max_job_user=10", "bf_min_prio_reserve=500"), *change)
    assert imported(tmp_path / "out", conf=conf) == 0
    error = " ".join(capsys.readouterr().err.split())
    assert "SchedulerParameters=bf_min_prio_reserve is left out" in error and why in error
    assert "bf_min_prio_reserve" not in (tmp_path / "out" / "slurm.conf").read_text()


def test_licenses_of_slurm_conf_limit_the_jobs_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LOG.read_text()
    (tmp_path / "licensed.txt").write_text(
        text.replace("billing=64,cpu=64,mem=100G,node=2", "cpu=64,license/matlab=2,license/ansys@host=3,node=2", 1)
    )
    assert imported(tmp_path / "out", log=tmp_path / "licensed.txt") == 0
    printed = "licensed.txt: licenses that slurm.conf lacks are not limited: ansys@host, matlab; 1 rows request them"
    assert printed in capsys.readouterr().err
    conf = edited(tmp_path, ("SelectType=", "Licenses=matlab:4,idl@host*2,star,b:many\nSelectType="))
    assert imported(tmp_path / "out", conf=conf, log=tmp_path / "licensed.txt") == 0
    printed = capsys.readouterr().err
    assert (
        "not limited: ansys@host; 1 rows" in printed and "license b:many is left out" in printed and "Licenses=" not in printed
    )
    machine = load_machine(tmp_path / "out" / "machine.toml")
    assert machine.licenses == {"matlab": 4, "idl@host": 2, "star": 1}
    jobs = read(tmp_path / "licensed.txt", machine, "sacct")
    assert {name: counts.sum() for name, counts in jobs.attributes.items() if "license" in name} == {"license/matlab": 2}
    assert jobs.repaired["license that the machine lacks, ignored"] == 1
    assert not any("license" in name for name in jobs.requests)
    monkeypatch.setattr(slow_runs, "MANY", 5)
    assert cli.run(["validate", str(tmp_path / "out" / "study.toml")]) == 0
    assert "jobs request licenses" not in "".join(capsys.readouterr()), "kernels count licenses"
    assert imported(tmp_path / "out") == 0
    assert "license" not in capsys.readouterr().err
