"""`poolwise import slurm` writes files that say where each value comes from, pass validation, and give an answer."""

import tomllib
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.factory import scheduler_of
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.model.exclusive import exclusive_jobs
from poolwise.slurm.cluster import gpus_of, node_sizes
from poolwise.slurm.conf import SlurmConf
from poolwise.studies import load, run
from poolwise.traces import read
from tests.helpers.slurm_import import CONF, FOLDER, LOG, edited, imported, printed_note

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
    limits = {"default_queue_depth": "100", "bf_max_job_test": "200", "bf_max_job_user": "10"}
    assert conf.pairs("SchedulerParameters") == {"bf_interval": "60", "bf_window": "4320", **limits}
    assert conf.numbers("PriorityWeightTRES") == {"cpu": 100, "gres/gpu": 500}
    assert [node.text("Gres") for node in conf.nodes] == ["", "", "", "gpu:4"]
    assert conf.words("PriorityFlags") == ("CALCULATE_RUNNING",)
    original = SlurmConf.read_file(CONF)
    for name, section in conf.partitions.items():
        assert conf.hosts(name) == original.hosts(name)
        assert section.whole("PriorityJobFactor", 0) == original.partitions[name].whole("PriorityJobFactor", 1)
    assert conf.default_partition == "batch"
    scheduler = load_scheduler(folder / "slurm.toml")
    assert scheduler.order is not None and {*scheduler.order.settings} == {"conf", "shares", "qos"}


def test_weights_of_licenses_are_imported_and_those_of_other_resources_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = "cpu=2500000.5,license/Matlab=20,license/none=30,gres/gpu:a100=40,gres/shard=50"
    conf = edited(tmp_path, ("cpu=100,gres/gpu=500", weights), ("GresTypes=gpu", "GresTypes=gpu\nLicenses=matlab:3"))
    assert imported(tmp_path / "out", conf=conf) == 0
    written = SlurmConf.read_file(tmp_path / "out" / "slurm.conf")
    assert written.text("PriorityWeightTRES") == "cpu=2500000.5,license/matlab=20"
    assert {node.text("Gres") for node in written.nodes} == {""}  # without the weight of GPUs, the file is as before
    lines = capsys.readouterr().err
    for name in ("gres/gpu:a100", "gres/shard", "license/none"):
        assert f"slurm.conf:17: the weight of {name} is left out" in lines
    assert cli.run(["validate", str(tmp_path / "out" / "slurm.toml")]) == 0


@pytest.mark.parametrize("name", ["machine.toml", "slurm.toml", "study.toml"])
def test_files_are_valid(folder: Path, name: str) -> None:
    assert cli.run(["validate", str(folder / name)]) == 0


@pytest.mark.long
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
        ("sched_interval=30", {"default_queue_depth": "100", "sched_interval": "30"}),
        ("bf_interval=30", {"default_queue_depth": "100"}),
    ],
)
def test_depth_of_the_main_scheduler_is_imported(tmp_path: Path, given: str, kept: dict[str, str]) -> None:
    conf = edited(tmp_path, ("bf_interval=60", given))
    assert imported(tmp_path / "out", conf=conf) == 0
    settings = SlurmConf.read_file(tmp_path / "out" / "slurm.conf").pairs("SchedulerParameters")
    assert {name: value for name, value in settings.items() if not name.startswith("bf_")} == kept
    assert cli.run(["validate", str(tmp_path / "out" / "slurm.toml")]) == 0


def test_depth_is_imported_without_scheduler_parameters(tmp_path: Path) -> None:
    text = CONF.read_text().splitlines(keepends=True)
    conf = edited(tmp_path)
    conf.write_text("".join(line for line in text if not line.startswith("SchedulerParameters")))
    assert imported(tmp_path / "out", conf=conf) == 0
    assert "# not set\nSchedulerParameters=default_queue_depth=100\n" in (tmp_path / "out" / "slurm.conf").read_text()


@pytest.mark.parametrize(("microseconds", "every"), [("2", None), ("999999", None), ("1000000", 1), ("2500000", 2.5)])
def test_interval_of_the_main_scheduler_is_imported_from_one_second(
    microseconds: str, every: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = edited(tmp_path, ("bf_interval=60", f"sched_min_interval={microseconds}"))
    assert imported(tmp_path / "out", conf=conf) == 0
    backfill = tomllib.loads((tmp_path / "out" / "slurm.toml").read_text())["backfill"]
    assert backfill.get("every") == every
    assert ("sched_min_interval (slurm.conf:8)" in " ".join(capsys.readouterr().err.split())) == (every is None)
    source = f"sched_min_interval={microseconds} (slurm.conf:8)"
    assert (source in (tmp_path / "out" / "slurm.toml").read_text()) == (every is not None)


@pytest.mark.parametrize("key", ["Priority=4", "Priority=4 PriorityTier=2", "PriorityJobFactor=7 Priority=4"])
def test_priority_of_a_partition_is_its_tier_and_factor(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slurmctld 22.05 prints PriorityJobFactor=4 and PriorityTier=4 for each of these partitions."""
    conf = edited(tmp_path, ("MaxTime=3-0 PriorityJobFactor=5", f"MaxTime=3-0 {key}"))
    assert imported(tmp_path / "out", conf=conf) == 0
    machine = tomllib.loads((tmp_path / "out" / "machine.toml").read_text())
    assert [partition.get("tier") for partition in machine["partition"]] == [4, 2, None, None]
    assert "tier = 4  # slurm.conf:25" in (tmp_path / "out" / "machine.toml").read_text()
    batch = SlurmConf.read_file(tmp_path / "out" / "slurm.conf").partitions["batch"]
    assert batch.whole("PriorityJobFactor", 0) == 4
    assert "Priority (" not in capsys.readouterr().err


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
    assert "use partitions that are not imported from slurm.conf: old (not defined)" in capsys.readouterr().err


def test_partitions_with_unusable_names_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = "ClusterName=c\nNodeName=n[01-09] CPUs=32 RealMemory=262144\n"
    (tmp_path / "slurm.conf").write_text(f"{nodes}PartitionName=gpu.small Nodes=n[01-09]\n")
    assert imported(tmp_path / "out", conf=tmp_path / "slurm.conf") == 2
    assert "no partition can be imported: gpu.small (its name contains characters" in capsys.readouterr().err
    (tmp_path / "slurm.conf").write_text(f"{nodes}PartitionName=größe Nodes=n[02-09]\nPartitionName=batch Nodes=n01\n")
    assert imported(tmp_path / "my site", conf=tmp_path / "slurm.conf") == 0
    out, err = capsys.readouterr()
    assert f"next: poolwise run '{tmp_path / 'my site' / 'study.toml'}'" in out.replace("\n", "")
    assert "partition größe is left out" in err
    assert "slurm.conf:2: nodes n[02-09] are left out: no imported partition contains them" in err


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
        "slurm.conf:14: PriorityWeightFairshare is set to 0: give its dump with --shares",
        "slurm.conf:18: PriorityFlags=MAX_TRES",
        "slurm.conf:29: partition spare is left out: it has no nodes",
        "1 of 18 jobs: left out, because their partitions are not imported (old)",
    ):
        assert any(words in line for line in affecting), words
    others = printed_note(lines, "without effect on schedules: ")
    assert "SlurmctldHost (slurm.conf:3)" in others and "bf_continue" in others and "Preempt" not in others
    assert printed_note(lines, "unknown keys, ignored: ") == "SiteOwnKey (slurm.conf:22)"
    parts = [line for line in lines if line in f"note: without effect on schedules: {others}"]
    assert len(parts) > 1 and max(map(len, parts)) <= 80


@pytest.mark.parametrize(
    ("changes", "whole", "reason"),
    [
        ([], False, "SelectType=select/cons_tres (slurm.conf:10)"),
        ([("select/cons_tres", "select/linear")], True, "SelectType=select/linear (slurm.conf:10)"),
        ([("SelectType=select/cons_tres\n", "\n")], False, "SelectType is not set"),
        ([("PartitionName=DEFAULT", "PartitionName=DEFAULT OverSubscribe=EXCLUSIVE")], True, "EXCLUSIVE in every partition"),
    ],
)
def test_select_type_decides_whether_jobs_share_nodes(
    tmp_path: Path, changes: list[tuple[str, str]], whole: bool, reason: str
) -> None:
    assert imported(tmp_path / "out", conf=edited(tmp_path, *changes)) == 0
    machine = load_machine(tmp_path / "out" / "machine.toml")
    assert "nodes" not in machine.resources
    assert all(part.exclusive for part in machine.partitions) == whole
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
    assert "PriorityWeightFairshare is set to 0: the log has no column User" in printed
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
        ([("bf_interval=60", "sched_min_interval=2s")], "slurm.conf, line 8", "sched_min_interval=2s is not a whole number"),
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
    with pytest.raises(InputError) as raised:
        run(load(folder / "study.toml"), tmp_path / "results", progress=lambda *_: done.append(1))
    assert words in str(raised.value) and not done


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


def test_todays_scheduler_is_compiled_on_whole_nodes_of_several_sizes(tmp_path: Path) -> None:
    conf = edited(tmp_path, ("SelectType=select/cons_tres", "SelectType=select/linear"))
    assert imported(tmp_path / "out", *DUMPS[:2], *DUMPS[4:], conf=conf) == 0
    assert "SelectType=select/linear" in (tmp_path / "out" / "slurm.conf").read_text().splitlines()
    machine, today = load_machine(tmp_path / "out" / "machine.toml"), load_scheduler(tmp_path / "out" / "slurm.toml")
    jobs = read(LOG, machine, only={"partition": ["batch", "short", "fat", "gpu"]})
    result = simulate(jobs, machine, scheduler_of(today))
    assert result.engine == "compiled"
    nodes = [{owner for owner, _, _ in result.schedule.placement_of(run)} for run in range(result.schedule.n_run)]
    begin, end = result.schedule.start, result.schedule.end
    for one in range(len(nodes)):
        assert not any(nodes[one] & nodes[k] for k in range(one) if begin[k] < end[one] and begin[one] < end[k])


def test_each_setting_is_listed_once_with_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        (f"PartitionName={name} ", f"PartitionName={name} MinNodes=2 SiteKey=1 Alternate=x ")
        for name in ("batch", "short", "fat")
    ]
    assert imported(tmp_path / "out", conf=edited(tmp_path, *more, ("MaxCPUsPerNode=48", "MinNodes=2 MaxCPUsPerNode=48"))) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "warning: slurm.conf:25, 26, 27 and 1 more: MinNodes=2: jobs below it are accepted" in lines
    unknown = printed_note(lines, "unknown keys, ignored: ")
    assert unknown == "SiteOwnKey (slurm.conf:22), SiteKey (slurm.conf:25, 26, 27)"
    assert printed_note(lines, "without effect on schedules: ").count("Alternate (slurm.conf:25, 26, 27)") == 1
