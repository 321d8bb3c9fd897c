"""`poolwise import slurm` writes files that say where each value comes from, pass validation, and give an answer."""

import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.model.exclusive import exclusive_jobs
from poolwise.slurm.associations import read_associations, shares_text
from poolwise.slurm.cluster import gpus_of, leaf_switches, node_sizes
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.dumps import read_shares
from poolwise.slurm.reservations import SlurmReservation, read_reservations
from poolwise.studies import load, run, slow_runs
from poolwise.traces import read
from tests.helpers.slurm_import import CONF, FOLDER, LOG, edited, imported

DUMPS = ["--topology", FOLDER / "topology.conf", "--shares", FOLDER / "sshare.txt", "--qos", FOLDER / "qos.txt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert imported(tmp_path / "out", *DUMPS) == 0
    return tmp_path / "out"


def test_machine_has_the_nodes_racks_partitions_and_qos(folder: Path) -> None:
    machine = tomllib.loads((folder / "machine.toml").read_text())
    sizes = [(n["name"], n["cores"], n["memory"], n.get("resources", {}), n.get("features")) for n in machine["node"]]
    assert sizes == [
        ("n", 32, "184000 MiB", {}, ["ib", "thin"]),
        ("n-2", 32, "184000 MiB", {}, ["thin"]),
        ("fat", 64, "1536000 MiB", {}, ["ib", "large"]),
        ("gpu", 64, "512000 MiB", {"gpu": 4}, ["a100"]),
    ]
    assert machine["rack"] == [
        {"name": "s0", "nodes": {"n": 3, "fat": 1, "gpu": 1}},
        {"name": "s1", "nodes": {"n": 2, "n-2": 1, "fat": 1, "gpu": 1}},
    ]
    assert machine["partition"] == [
        {"name": "batch", "nodes": ["n", "n-2"], "default": True, "max_time": "3 d"},
        {"name": "short", "nodes": ["n", "n-2", "fat"], "max_time": "1 h", "max_nodes": 2, "tier": 2},
        {"name": "fat", "nodes": ["fat"], "max_time": "7 d", "exclusive": True},
        {"name": "gpu", "nodes": ["gpu"], "max_time": "2 d"},
    ]
    assert machine["qos"] == [
        {"name": "normal", "default": True},
        {"name": "high", "max_time": "1 d", "per_user": {"cores": 256}},
        {"name": "low", "per_user": {"jobs": 4}, "total": {"cores": 64, "gpu": 4}},
        {"name": "long"},
    ]


def test_values_have_comments_with_their_lines(folder: Path) -> None:
    lines = (folder / "machine.toml").read_text().splitlines()
    assert 'max_time = "1 h"  # slurm.conf:26' in lines
    assert "exclusive = true  # slurm.conf:27" in lines
    assert 'name = "n"  # n[01-04,06]: nodes.conf:2' in lines
    assert 'name = "s1"  # topology.conf:3' in lines
    assert "# Jobs share nodes: SelectType=select/cons_tres (slurm.conf:10)." in lines
    study = (folder / "study.toml").read_text()
    assert "OverTimeLimit, slurm.conf:19" in study and "by 10 min" in study
    assert CONF.read_text().splitlines()[18] == "OverTimeLimit=10"


def test_scheduler_has_the_supported_priorities_and_backfill(folder: Path) -> None:
    conf = SlurmConf.read_file(folder / "slurm.conf")
    limits = {"bf_max_job_test": "200", "bf_max_job_user": "10"}
    assert conf.pairs("SchedulerParameters") == {"bf_interval": "60", "bf_window": "4320", **limits}
    assert conf.numbers("PriorityWeightTRES") == {"cpu": 100}
    assert conf.words("PriorityFlags") == ("CALCULATE_RUNNING",)
    original = SlurmConf.read_file(CONF)
    for name, section in conf.partitions.items():
        assert conf.hosts(name) == original.hosts(name)
        assert section.whole("PriorityJobFactor", 0) == original.partitions[name].whole("PriorityJobFactor", 1)
    assert conf.default_partition == "batch"
    scheduler = load_scheduler(folder / "slurm.toml")
    assert scheduler.order is not None and {*scheduler.order.settings} == {"conf", "shares", "qos"}


@pytest.mark.parametrize("name", ["machine.toml", "slurm.toml", "study.toml"])
def test_files_are_valid(folder: Path, name: str) -> None:
    assert cli.run(["validate", str(folder / name)]) == 0


def test_study_answers_with_todays_scheduler(folder: Path, tmp_path: Path) -> None:
    study = load(folder / "study.toml")
    result = run(study, tmp_path / "results")
    assert len(study.today) == 3 and len(result.cells) == 3
    assert all(not cell.rejected for cell in result.cells)
    described = dict(result.description())
    assert described["machine"] == "minster: 10 nodes with 179.688 GiB to 1.46484 TiB each"
    assert described["runs"] == "3, 1 under FCFS without backfilling for fairness, 1 of today's configuration"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("default_queue_depth=50,sched_interval=30", {"default_queue_depth": "50", "sched_interval": "30"}),
        ("default_queue_depth=50,sched_interval=-1", {"default_queue_depth": "50", "sched_interval": "-1"}),
        ("sched_interval=30", {}),
    ],
)
def test_depth_of_the_main_scheduler_is_imported(tmp_path: Path, given: str, kept: dict[str, str]) -> None:
    conf = edited(tmp_path, ("bf_interval=60", given))
    assert imported(tmp_path / "out", conf=conf) == 0
    found = SlurmConf.read_file(tmp_path / "out" / "slurm.conf").pairs("SchedulerParameters")
    assert {name: value for name, value in found.items() if not name.startswith("bf_")} == kept
    assert cli.run(["validate", str(tmp_path / "out" / "slurm.toml")]) == 0


def test_partitions_without_jobs_do_not_prevent_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in LOG.read_text().splitlines() if "|fat|" not in line]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    assert imported(tmp_path / "out", log=tmp_path / "log.txt") == 0
    assert 'only = { partition = ["batch", "short", "gpu"] }' in (tmp_path / "out" / "study.toml").read_text()
    assert cli.run(["validate", str(tmp_path / "out" / "study.toml")]) == 0
    (tmp_path / "log.txt").write_text(
        "\n".join(line for line in LOG.read_text().splitlines() if "|old|" in line or "JobID" in line)
    )
    assert imported(tmp_path / "none", log=tmp_path / "log.txt") == 2
    assert "use partitions that slurm.conf does not define: old" in capsys.readouterr().err


def test_validate_checks_the_log_with_machine_and_scheduler(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("only = ", "# only = "))
    assert cli.run(["validate", str(folder / "study.toml")]) == 2
    assert "unknown partition 'old'" in capsys.readouterr().err


def test_left_out_settings_are_listed_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "out") == 0
    lines = capsys.readouterr().err.splitlines()
    affecting = [line for line in lines if line.startswith("warning:")]
    for words in (
        "slurm.conf:20: PreemptType=preempt/qos: jobs are not preempted",
        "slurm.conf:28: MaxCPUsPerNode=48",
        "slurm.conf:14: PriorityWeightFairshare is taken as 0: give its dump with --shares",
        "slurm.conf:18: PriorityFlags=MAX_TRES",
        "slurm.conf:29: partition spare is left out: it has no nodes",
        "1 of 18 jobs: left out, because slurm.conf lacks their partitions (old)",
    ):
        assert any(words in line for line in affecting), words
    (others,) = (line for line in lines if "without effect" in line)
    assert "SlurmctldHost (slurm.conf:3)" in others and "bf_continue" in others and "Preempt" not in others
    assert any("unknown keys, ignored: siteownkey (slurm.conf:22)" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "whole", "reason"),
    [
        ([], False, "SelectType=select/cons_tres (slurm.conf:10)"),
        ([("select/cons_tres", "select/linear")], True, "SelectType=select/linear (slurm.conf:10)"),
        ([("SelectType=select/cons_tres\n", "\n")], False, "SelectType is not set"),
        ([("PartitionName=DEFAULT", "PartitionName=DEFAULT OverSubscribe=EXCLUSIVE")], True, "EXCLUSIVE in every partition"),
    ],
)
def test_select_type_decides_whether_jobs_take_whole_nodes(
    tmp_path: Path, changes: list[tuple[str, str]], whole: bool, reason: str
) -> None:
    assert imported(tmp_path / "out", conf=edited(tmp_path, *changes)) == 0
    machine = load_machine(tmp_path / "out" / "machine.toml")
    assert ("nodes" in machine.resources) == whole
    assert reason in (tmp_path / "out" / "machine.toml").read_text()
    assert cli.run(["validate", str(tmp_path / "out" / "study.toml")]) == 0


def test_jobs_of_an_exclusive_partition_share_no_node(folder: Path) -> None:
    machine = load_machine(folder / "machine.toml")
    assert [part.name for part in machine.partitions if part.exclusive] == ["fat"]
    workload = read(LOG, machine, only={"partition": ["batch", "short", "fat", "gpu"]})
    fat = workload.attributes["partition"] == "fat"
    assert exclusive_jobs(workload, machine).tolist() == fat.tolist() and fat.any()


def test_memory_is_left_out_if_slurm_does_not_allocate_it(tmp_path: Path) -> None:
    assert imported(tmp_path / "out", conf=edited(tmp_path, ("CR_Core_Memory", "CR_Core"))) == 0
    assert "memory" not in load_machine(tmp_path / "out" / "machine.toml").resources
    assert "Memory is left out" in (tmp_path / "out" / "machine.toml").read_text()


def test_listing_replaces_sizes_of_nodes(tmp_path: Path) -> None:
    assert imported(tmp_path / "out", "--sinfo", FOLDER / "nodes.txt") == 0
    machine = tomllib.loads((tmp_path / "out" / "machine.toml").read_text())
    assert [(node["name"], node["memory"]) for node in machine["node"]] == [
        ("n", "190000 MiB"), ("fat", "1536000 MiB"), ("fat-2", "3072000 MiB"), ("gpu", "512000 MiB"),
    ]  # fmt: skip
    assert "nodes.txt:4" in (tmp_path / "out" / "machine.toml").read_text()


def test_log_without_users_and_qos_needs_no_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.txt"
    log.write_text(LOG.read_text().replace("|User|", "|Who|", 1).replace("|QOS|", "|Quality|", 1))
    assert imported(tmp_path / "out", *DUMPS, log=log) == 0
    printed = capsys.readouterr().err
    assert "PriorityWeightFairshare is taken as 0: the log has no column User" in printed
    assert "limits per user are not applied" in printed
    assert cli.run(["validate", str(tmp_path / "out" / "study.toml")]) == 0


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ([("SchedulerParameters=", "SchedulerParamters=")], "slurm.conf, line 8", "did you mean SchedulerParameters?"),
        ([("RealMemory=512000", "RealMemroy=512000")], "nodes.conf, line 5", "did you mean RealMemory?"),
        ([("MaxTime=60", "MaxTime=soon")], "slurm.conf, line 26, field 'MaxTime'", "'soon' is not a time"),
        ([("fat[1-2] MaxTime=7", "fat[1-3] MaxTime=7")], "slurm.conf, line 27, field 'Nodes'", "node 'fat3' is not defined"),
        ([("gpu:a100:4(", "gpu:a100:x(")], "nodes.conf, line 5, field 'Gres'", "is not a number of GPUs"),
        ([("bf_interval=60", "bf_interval=0")], "slurm.conf, line 8, field 'SchedulerParameters'", "bf_interval=0"),
        ([("CoresPerSocket=16", "CoresPerSocket=zero")], "nodes.conf, line 2, field 'CoresPerSocket'", "is not a number"),
        ([("n[01-04,06]", "n[01-04,06")], "nodes.conf, line 2, field 'NodeName'", "unmatched bracket"),
    ],
)
def test_typing_errors_in_slurm_conf_name_file_line_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[str, str]], place: str, words: str
) -> None:
    assert imported(tmp_path / "out", conf=edited(tmp_path, *changes)) == 2
    printed = capsys.readouterr().err
    assert place in printed and words in printed and "remedy:" in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "name", "change", "place"),
    [
        ("--topology", "topology.conf", ("Nodes=n[01-03]", "Nodes=n[01-03"), "topology.conf, line 2, field 'SwitchName'"),
        ("--topology", "topology.conf", ("SwitchName=s0", "Switch=s0"), "topology.conf, line 2, field 'SwitchName'"),
        ("--sinfo", "nodes.txt", ("fat1|64|", "fat1|many|"), "nodes.txt, line 3, field 'cpus'"),
        ("--sinfo", "nodes.txt", ("NODELIST|", "HOST|"), "nodes.txt, line 1, field 'NODELIST'"),
        ("--sinfo", "nodes.txt", ("fat2|64|3072000|", "fat2|64|"), "nodes.txt, line 4: expected 5 cells"),
        ("--qos", "qos.txt", ("1-00:00:00", "a day"), "qos.txt, line 3, field 'MaxWall'"),
        ("--qos", "qos.txt", ("cpu=64", "cpu=x"), "qos.txt, line 4, field 'GrpTRES'"),
        ("--shares", "sshare.txt", ("chem|bob|1|", "chem|bob|one|"), "sshare.txt, line 4, field 'RawShares'"),
    ],
)
def test_errors_in_other_files_name_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, change: tuple[str, str], place: str
) -> None:
    text = (FOLDER / name).read_text()
    assert change[0] in text
    (tmp_path / name).write_text(text.replace(*change))
    assert imported(tmp_path / "out", option, tmp_path / name) == 2
    assert place in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folder_of_the_original_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = edited(tmp_path)
    before = conf.read_text()
    assert imported(tmp_path, conf=conf) == 2
    assert conf.read_text() == before and "--out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("sshare.txt", "chem|bob|1|", "chem|bob|one|", "sshare.txt, line 4"),
        ("qos.txt", "high|100", "high|much", "qos.txt, line 3"),
        ("slurm.conf", "PriorityWeightAge=1000", "PriorityWeightAge=much", "PriorityWeightAge"),
        ("study.toml", "only = ", "# only = ", "unknown partition 'old'"),
        ("sacct.txt", "JobIDRaw", "Number", "the export lacks"),
    ],
)
def test_all_files_of_a_study_are_checked_before_the_first_cell_runs(
    folder: Path, tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    (folder / "sacct.txt").write_text(LOG.read_text().replace("|JobID|", "|Name|", 1))
    text = (folder / "study.toml").read_text().splitlines()
    lines = ['trace = "sacct.txt"' if line.startswith("trace") else line for line in text]
    (folder / "study.toml").write_text("\n".join(lines))
    broken = (folder / name).read_text()
    assert old in broken
    (folder / name).write_text(broken.replace(old, new))
    done: list[object] = []
    with pytest.raises(InputError) as found:
        run(load(folder / "study.toml"), tmp_path / "results", progress=lambda *_: done.append(1))
    assert words in str(found.value) and not done


def test_nodes_of_scontrol_and_their_gpus() -> None:
    sizes = node_sizes(SlurmConf.of({}), FOLDER / "scontrol.txt")
    assert [(name, size.cpus, size.memory, size.gpus) for name, size in sizes.items()] == [
        ("n01", 32, 190000, 0), ("gpu1", 64, 510000, 4),
    ]  # fmt: skip
    assert sizes["n01"].features == ("ib", "thin") and sizes["gpu1"].source == "scontrol.txt:2"


@pytest.mark.parametrize(
    ("text", "count", "types"),
    [
        ("gpu:4", 4, ()), ("gpu", 1, ()), ("gpu:a100", 1, ("a100",)), ("gpu:a100:4(S:0-1),shard:8", 4, ("a100",)),
        ("gpu:a100:2,gpu:v100:4", 6, ("a100", "v100")), ("craynetwork:4", 0, ()), ("gpu(IDX:0,1)", 1, ()),
    ],
)  # fmt: skip
def test_gpus_in_generic_resources(text: str, count: int, types: tuple[str, ...]) -> None:
    assert gpus_of(text) == (count, types)


def test_leaf_switches_have_nodes() -> None:
    assert leaf_switches(FOLDER / "topology.conf")["n05"] == ("s1", 3)


def test_weights_of_nodes_are_attributes_of_shared_nodes_and_named_as_left_out_for_whole_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(tmp_path / "shared") == 0
    nodes = tomllib.loads((tmp_path / "shared" / "machine.toml").read_text())["node"]
    assert {node["name"]: node["attributes"]["weight"] for node in nodes} == {"n": 1, "n-2": 1, "fat": 10, "gpu": 1}
    assert "Weight=" not in capsys.readouterr().err
    conf = edited(tmp_path, ("SelectType=select/cons_tres", "SelectType=select/linear"))
    assert imported(tmp_path / "whole", conf=conf) == 0
    assert "Weight=10: the weight does not affect the choice of whole nodes" in capsys.readouterr().err
    assert "weight" not in (tmp_path / "whole" / "machine.toml").read_text()


def test_limits_per_user_need_the_users_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split("|") for line in LOG.read_text().splitlines()]
    at = rows[0].index("User")
    (tmp_path / "anonymous.txt").write_text("".join("|".join([*row[:at], *row[at + 1 :]]) + "\n" for row in rows))
    assert imported(tmp_path / "out", log=tmp_path / "anonymous.txt") == 0
    assert "bf_max_job_user is left out: the log has no User" in capsys.readouterr().err
    assert "bf_max_job_user" not in (tmp_path / "out" / "slurm.conf").read_text()


RESERVING = "bf_min_prio_reserve=500,bf_job_part_count_reserve=3,bf_max_job_assoc=2,bf_busy_nodes"


def test_limits_on_reservations_are_kept_and_bf_busy_nodes_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = edited(tmp_path, ("bf_max_job_user=10", RESERVING), (" PriorityTier=2", ""))
    assert imported(tmp_path / "out", conf=conf) == 0
    found = SlurmConf.read_file(tmp_path / "out" / "slurm.conf").pairs("SchedulerParameters")
    assert {name: found[name] for name in found if "reserve" in name or "assoc" in name} == {
        "bf_min_prio_reserve": "500", "bf_job_part_count_reserve": "3", "bf_max_job_assoc": "2",
    }  # fmt: skip
    assert "bf_busy_nodes" not in found
    assert "SchedulerParameters=bf_busy_nodes is left out" in capsys.readouterr().err
    assert cli.run(["validate", str(tmp_path / "out" / "slurm.toml")]) == 0


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
    said = "licensed.txt: licenses that slurm.conf lacks are not limited: ansys@host, matlab; 1 rows request them"
    assert said in capsys.readouterr().err
    conf = edited(tmp_path, ("SelectType=", "Licenses=matlab:4,idl@host*2,star,b:many\nSelectType="))
    assert imported(tmp_path / "out", conf=conf, log=tmp_path / "licensed.txt") == 0
    said = capsys.readouterr().err
    assert "not limited: ansys@host; 1 rows" in said and "license b:many is left out" in said and "Licenses=" not in said
    machine = load_machine(tmp_path / "out" / "machine.toml")
    assert machine.licenses == {"matlab": 4, "idl@host": 2, "star": 1}
    jobs = read(tmp_path / "licensed.txt", machine, "sacct")
    assert {name: counts.sum() for name, counts in jobs.attributes.items() if "license" in name} == {"license/matlab": 2}
    assert jobs.repaired["license that the machine lacks, left out"] == 1
    assert not any("license" in name for name in jobs.requests)
    monkeypatch.setattr(slow_runs, "MANY", 5)
    assert cli.run(["validate", str(tmp_path / "out" / "study.toml")]) == 0
    assert "jobs request licenses" not in "".join(capsys.readouterr()), "kernels count licenses"
    assert imported(tmp_path / "out") == 0
    assert "license" not in capsys.readouterr().err


def test_least_loaded_nodes_are_a_placement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("SelectTypeParameters=CR_Core_Memory", "SelectTypeParameters=CR_Core_Memory,CR_LLN")
    assert imported(tmp_path / "out", conf=edited(tmp_path, changes)) == 0
    assert tomllib.loads((tmp_path / "out" / "slurm.toml").read_text())["placement"] == "worst_fit"
    assert "CR_LLN" not in capsys.readouterr().err


def test_selection_of_nodes_and_deferred_scheduling_are_named_as_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ("SelectTypeParameters=CR_Core_Memory", "SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes")
    conf = edited(tmp_path, changes, ("SchedulerParameters=", "SchedulerParameters=defer,"))
    assert "CR_Pack_Nodes" in conf.read_text() and "defer," in conf.read_text()
    assert imported(tmp_path / "out", conf=conf) == 0
    lines = capsys.readouterr().err.splitlines()
    warned = [line for line in lines if line.startswith("warning:")]
    assert any("slurm.conf:11: SelectTypeParameters=CR_PACK_NODES: the tasks of a job are placed as" in line for line in warned)
    assert any(
        "slurm.conf:8: SchedulerParameters=defer: jobs are also tested when they are submitted" in line for line in warned
    )
    assert not any("defer" in line or "CR_PACK" in line for line in lines if line not in warned)


RESERVATIONS = FOLDER / "reservations.txt"


def test_reservations_become_windows_on_the_same_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "out", "--topology", FOLDER / "topology.conf", "--reservations", RESERVATIONS) == 0
    machine = tomllib.loads((tmp_path / "out/machine.toml").read_text())
    (window,) = machine["window"]
    assert window == {
        "name": "course-ml",
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
        "reservations.txt:7: reservation course.ml: 1 of its 4 nodes are not in the machine",
        "not only those of both",
        "reservation cores is left out: it reserves some cores of a node",
        "reservation lab is left out: it is for groups",
        "reservation others is left out: it excludes users",
        "reservation matlab is left out: it reserves no nodes",
        "reservation next is left out: it begins after the last job of the log",
        "reservation soon is left out: its start moves",
    ):
        assert words in warnings, words


@pytest.mark.parametrize(
    ("flags", "days", "count"),
    [("DAILY", 7, 7), ("WEEKLY", 14, 2), ("WEEKDAY", 7, 5), ("WEEKEND", 7, 2), ("HOURLY", 1, 24), ("SPEC_NODES", 7, 1)],
)
def test_repeated_reservations_cover_the_log(flags: str, days: int, count: int) -> None:
    start, begins = datetime(2026, 3, 4, 9), datetime(2026, 3, 2)
    one = SlurmReservation("x", 1, start, start + timedelta(minutes=30), ("n1",), (), (), (flags,), "")
    found = one.occurrences(begins, begins + timedelta(days=days, seconds=-1))
    assert len(found) == count and all(until - since == timedelta(minutes=30) for since, until in found)


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
    shares = {(one.account, one.user): one.shares for one in read_shares(tmp_path / "out/shares.txt")}
    assert shares["chem", ""] == 60 and shares["phys", ""] == 40 and shares["chem", "cyd"] == 2 and len(shares) == 8
    scheduler = load_scheduler(tmp_path / "out/slurm.toml")
    assert scheduler.order is not None and {*scheduler.order.settings} == {"conf", "shares", "qos"}
    warnings = capsys.readouterr().err
    for words in (
        "GrpTRES of 2 associations, such as cpu=128 of account chem: limits of associations are not modeled",
        "MaxJobs of 2 associations, such as 20 of user",
        "GrpTRESRunMins of an association",
        "usage before the log is taken as 0: give it with --shares",
    ):
        assert warnings.count(words) == 1, words
    assert cli.run(["validate", str(tmp_path / "out/study.toml")]) == 0


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
    given = {
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
        "|".join({"Name": qos, "Priority": "0", **values}.get(column, "") for column in names) for qos, values in given.items()
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


def test_each_setting_is_listed_once_with_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        (f"PartitionName={name} ", f"PartitionName={name} MinNodes=2 SiteKey=1 Alternate=x ")
        for name in ("batch", "short", "fat")
    ]
    assert imported(tmp_path / "out", conf=edited(tmp_path, *more, ("MaxCPUsPerNode=48", "MinNodes=2 MaxCPUsPerNode=48"))) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "warning: slurm.conf:25, 26, 27 and 1 more: MinNodes=2: jobs below it are accepted" in lines
    unknown, others = lines[-3:-1] if lines[-1].startswith("note: skipped") else lines[-2:]
    assert unknown == "note: unknown keys, ignored: siteownkey (slurm.conf:22), sitekey (slurm.conf:25, 26, 27)"
    assert others.startswith("note: without effect") and others.count("Alternate (slurm.conf:25, 26, 27)") == 1
