"""Dumps of reservations, associations, shares and QOS in the import of Slurm, and their errors."""

import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.model import AssociationLimits
from poolwise.quantities import SECOND
from poolwise.slurm.associations import read_associations, shares_text
from poolwise.slurm.dumps import read_shares
from poolwise.slurm.reservations import SlurmReservation, read_reservations
from tests.helpers.slurm_import import FOLDER, edited, imported

RESERVATIONS = FOLDER / "reservations.txt"


def test_reservations_become_windows_on_the_same_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "out", "--topology", FOLDER / "topology.conf", "--reservations", RESERVATIONS) == 0
    machine = tomllib.loads((tmp_path / "out/machine.toml").read_text())
    assert len(machine["window"]) == 8, "daily, until a week after the last job"
    window = machine["window"][0]
    assert window == {
        "name": "course-ml-1",
        "start": "3600 s",
        "end": "10800 s",
        "nodes": ["rack1.n0", "rack1.n-20", "rack1.gpu0"],
        "users": ["ann"],
        "accounts": ["chem"],
    }
    read = load_machine(tmp_path / "out/machine.toml")
    owners = [name for name, reserved in zip(read.owners, read.windows[0].owners.tolist(), strict=True) if reserved]
    assert owners == window["nodes"], "n04 and n05 of the second rack, and gpu2"
    assert tomllib.loads((tmp_path / "out/study.toml").read_text())["workload"]["clock"] == "trace"
    warnings = capsys.readouterr().err
    for words in (
        "reservations.txt:1: reservation maint is left out: it ended before the first job of the log",
        "reservations.txt:7: reservation course.ml: 1 of its 4 nodes is not in the machine",
        "not only jobs that match both",
        "reservation cores is left out: it reserves some cores of a node",
        "reservation lab is left out: it is for groups",
        "reservation others is left out: it excludes users",
        "reservation matlab is left out: it reserves no nodes",
        "reservation next is left out: it begins more than a week after the last job of the log",
        "reservation soon is left out: its start moves",
    ):
        assert words in warnings, words


@pytest.mark.parametrize(
    ("flags", "days", "count"),
    [("DAILY", 7, 7), ("WEEKLY", 14, 2), ("WEEKDAY", 7, 5), ("WEEKEND", 7, 2), ("HOURLY", 1, 24), ("SPEC_NODES", 7, 1)],
)
def test_repeated_reservations_cover_the_log(flags: str, days: int, count: int) -> None:
    start, begins = datetime(2026, 3, 4, 9), datetime(2026, 3, 2)
    reservation = SlurmReservation("x", 1, start, start + timedelta(minutes=30), ("n1",), (), (), (flags,), "")
    occurrences = reservation.occurrences(begins, begins + timedelta(days=days, seconds=-1))
    assert len(occurrences) == count and all(until - since == timedelta(minutes=30) for since, until in occurrences)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("StartTime=2026-03-02T06", "StartTime=now", "StartTime"),
        ("Nodes=n[01-06]", "Nodes=n[06-01]", "Nodes"),
        ("Res", "R", None),
    ],
)
def test_errors_in_reservations_name_line_and_field(tmp_path: Path, old: str, new: str, field: str | None) -> None:
    path = tmp_path / "reservations.txt"
    path.write_text(RESERVATIONS.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read_reservations(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, 1, field)


@pytest.mark.parametrize("name", ["assoc.txt", "dump.cfg"])
def test_associations_give_shares_and_their_limits_are_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(tmp_path / "out", "--assoc", FOLDER / name, "--qos", FOLDER / "qos.txt") == 0
    shares = {(share.account, share.user): share.shares for share in read_shares(tmp_path / "out/shares.txt")}
    assert shares["chem", ""] == 60 and shares["phys", ""] == 40 and shares["chem", "cyd"] == 2 and len(shares) == 8
    scheduler = load_scheduler(tmp_path / "out/slurm.toml")
    assert scheduler.order is not None and {*scheduler.order.settings} == {"conf", "shares", "qos"}
    warnings = capsys.readouterr().err
    for words in (
        "GrpTRES of 2 associations, such as cpu=128 of account chem, is left out: AccountingStorageEnforce of slurm.conf lacks",
        "MaxJobs of 2 associations, such as 20 of user",
        "GrpTRESRunMins of an association",
        "usage before the log is assumed to be 0: give it with --shares",
    ):
        assert warnings.count(words) == 1, words
    assert cli.run(["validate", str(tmp_path / "out/study.toml")]) == 0


@pytest.mark.parametrize("name", ["assoc.txt", "dump.cfg"])
def test_limits_of_associations_are_imported(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = edited(tmp_path, ("ClusterName=", "AccountingStorageEnforce=associations,limits\nClusterName="))
    assert imported(tmp_path / "out", "--assoc", FOLDER / name, "--qos", FOLDER / "qos.txt", conf=conf) == 0
    assert {*load_machine(tmp_path / "out/machine.toml").associations} == {
        AssociationLimits("chem", total=(("cores", 128),)),
        AssociationLimits("chem", "bob", max_time=2 * 86_400 * SECOND, per_user=(("jobs", 20),)),
        AssociationLimits("phys", total=(("cores", 64),)),
        AssociationLimits("phys", "ann", per_user=(("jobs", 20),)),
    }
    warnings = capsys.readouterr().err
    assert "GrpTRESRunMins of an association, such as cpu=100000 of account chem, is left out: it is not modeled" in warnings
    assert "MaxJobs" not in warnings and "AccountingStorageEnforce" not in warnings
    assert cli.run(["validate", str(tmp_path / "out/study.toml")]) == 0


def test_inherited_limits_are_listed_once_and_accounts_between_keep_the_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "assoc.txt"
    dump.write_text(
        "Account|User|Share|GrpTRES|GrpJobs|MaxJobs|MaxTRES\n"
        "root||1||||\n chem||1|cpu=100||3|\n  chem|ann|1|||3|\n  chem|bob|1|||1|node=2\n"
        "  lab||1|||3|\n   lab|cyd|1|||3|\n bio||1||||\n  bio|dan|1||2||license/x=1\n  bio|dan|1||9||\n"
    )
    conf = edited(tmp_path, ("ClusterName=", "AccountingStorageEnforce=safe\nClusterName="))
    assert imported(tmp_path / "out", "--assoc", dump, conf=conf) == 0
    assert load_machine(tmp_path / "out/machine.toml").associations == (
        AssociationLimits("chem", per_user=(("jobs", 3),), total=(("cores", 100),)),
        AssociationLimits("chem", "bob", per_job=(("nodes", 2),), per_user=(("jobs", 1),)),
        AssociationLimits("lab", parent="chem"),
        AssociationLimits("bio", "dan", total=(("jobs", 2),)),
    )
    assert "assoc.txt:10: a further association of user dan in account bio is left out" in capsys.readouterr().err


def test_dump_of_sshare_replaces_the_shares_of_associations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "out", "--assoc", FOLDER / "assoc.txt", "--shares", FOLDER / "sshare.txt") == 0
    assert not (tmp_path / "out/shares.txt").exists() and (tmp_path / "out/sshare.txt").exists()
    assert "usage before the log" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "field"),
    [
        ("assoc.txt", "phys||", "phys|||parent", None, "Share"),
        ("assoc.txt", "User", "Person", 1, "User"),
        ("dump.cfg", "Account - 'phys'", "Konto - 'phys'", 7, None),
        ("dump.cfg", "Fairshare=40", "Fairshare=parent", 7, "Share"),
        ("dump.cfg", "Parent - 'phys'", "Parent - 'bio'", None, "Account"),
    ],
)
def test_errors_in_associations_name_line_and_field(
    tmp_path: Path, name: str, old: str, new: str, line: int | None, field: str | None
) -> None:
    path = tmp_path / name
    path.write_text((FOLDER / name).read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        shares_text(read_associations(path), path)
    assert caught.value.file == path and caught.value.field == field
    assert line is None or caught.value.line == line


def test_limits_of_qos_that_are_not_applied_are_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default columns of `sacctmgr show qos` of Slurm 23.02."""
    header = (
        "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|"
        "GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|"
        "MaxTRESPA|MaxJobsPA|MaxSubmitPA|MinTRES"
    )
    names = header.split("|")
    dumped = {
        "normal": {"GraceTime": "00:00:00", "PreemptMode": "cluster", "UsageFactor": "1.000000"},
        "high": {
            "Priority": "100",
            "MaxWall": "1-00:00:00",
            "MaxTRESPA": "cpu=64",
            "UsageFactor": "2.000000",
            "Preempt": "low",
        },
        "low": {"GrpTRES": "cpu=64,mem=1T", "MaxTRESPA": "cpu=32", "UsageFactor": "1.000000", "Flags": "NoReserve"},
    }
    rows = [
        "|".join({"Name": qos, "Priority": "0", **values}.get(column, "") for column in names) for qos, values in dumped.items()
    ]
    (tmp_path / "qos.txt").write_text("\n".join([header, *rows]) + "\n")
    assert imported(tmp_path / "out", "--qos", tmp_path / "qos.txt") == 0
    machine = tomllib.loads((tmp_path / "out/machine.toml").read_text())
    assert {qos["name"]: qos.get("total") for qos in machine["qos"]}["low"] == {"cores": 64, "memory": 2**20}
    warnings = capsys.readouterr().err
    for words in (
        "qos.txt:3: MaxTRESPA of QOS high (cpu=64), low (cpu=32) is left out: limits per account are not modeled",
        "qos.txt:3: UsageFactor of QOS high (2.000000) is left out",
        "qos.txt:4: Flags of QOS low (NoReserve) is left out",
    ):
        assert warnings.count(words) == 1, words
    assert "GraceTime" not in warnings and "of QOS normal" not in warnings
