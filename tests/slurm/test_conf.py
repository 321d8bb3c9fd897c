"""Tests of the readers of slurm.conf, durations, host lists and dumps of shares."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.slurm import durations, hostlist
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.dumps import read_priorities, read_shares

CONF = """# a comment
ClusterName=one
priorityweightAGE=1000   # keys are case-insensitive
SchedulerParameters=bf_interval=10,\\
bf_continue
NodeName=DEFAULT CPUs=16 RealMemory=1000
NodeName=n[08-11] Feature=x
NodeName=big CPUs=64
PartitionName=DEFAULT MaxTime=60
PartitionName=short Nodes=n[08-09],big PriorityJobFactor=3
PartitionName=main Nodes=ALL Default=YES MaxTime=7-0
include more.conf
"""


@pytest.fixture
def conf(tmp_path: Path) -> SlurmConf:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "more.conf").write_text("PriorityWeightAge=2000\n")
    return SlurmConf.read_file(tmp_path / "slurm.conf")


def test_keys_nodes_partitions_defaults_and_included_files_are_read(conf: SlurmConf) -> None:
    assert conf.text("clustername") == "one"
    assert conf.whole("PriorityWeightAge", 0) == 2000  # the last value applies
    assert conf.pairs("SchedulerParameters") == {"bf_interval": "10", "bf_continue": ""}
    assert conf.default_partition == "main"
    assert conf.hosts("main") == ["n08", "n09", "n10", "n11", "big"]
    assert conf.hosts("short") == ["n08", "n09", "big"]
    assert conf.amount(conf.hosts("short"), "CPUs") == 96
    assert conf.amount(conf.hosts("short"), "RealMemory") == 3000
    assert [conf.partitions[name].seconds("MaxTime", 0) for name in ("short", "main")] == [3600, 604800]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ClusterName=a\nnonsense\n", 2, "'nonsense' is not KEY=VALUE"),
        ("A=1\\\nB=2\nClusterName x\n", 3, "not KEY=VALUE"),
        ("PriorityWeightAge=many\n", 1, "'many' is not a number"),
        ("ClusterName=a\n\nPriorityWeightAge=-1\n", 3, "-1 is below 0"),
        ("include none.conf\n", 1, "cannot be read"),
    ],
)
def test_error_names_file_and_line(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    (tmp_path / "slurm.conf").write_text(text)
    with pytest.raises(InputError, match=words) as raised:
        SlurmConf.read_file(tmp_path / "slurm.conf").whole("PriorityWeightAge", 0)
    assert raised.value.line == line
    assert Path(str(raised.value.file)).parent == tmp_path
    assert raised.value.remedy


def test_file_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("include slurm.conf\n")
    with pytest.raises(InputError, match="includes itself"):
        SlurmConf.read_file((tmp_path / "slurm.conf").resolve())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 300), ("1:30", 90), ("1:00:00", 3600), ("2-0", 172800), ("1-12:30", 131400), ("1-0:0:1", 86401), ("UNLIMITED", -1)],
)
def test_durations_are_parsed(text: str, seconds: int) -> None:
    assert durations.seconds(text) == seconds


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_duration_with_days_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, seconds: int) -> None:
    assert durations.seconds(f"{days}-{hours}:{minutes}:{seconds}") == ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "1-"])
def test_invalid_duration_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        durations.seconds(text)


def test_host_lists_are_expanded() -> None:
    assert hostlist.expand("n[008-010,7],login1") == ["n008", "n009", "n010", "n7", "login1"]
    assert hostlist.expand("r[1-2]n[1-2]") == ["r1n1", "r1n2", "r2n1", "r2n2"]
    for wrong in ("n[3-1]", "n[a-b]", "n[1", "n[0-99999999]"):
        with pytest.raises(ValueError):
            hostlist.expand(wrong)


SHARES = (
    "Account|User|RawShares|RawUsage|EffectvUsage\nroot|||10|\n one||4|6|\n  one|ann|1|6|0.5\n"
    " two||6|4|\n  deep||1|4|\n   deep|bob|2|4|\n"
)


def test_tree_of_shares_is_read(tmp_path: Path) -> None:
    (tmp_path / "shares.txt").write_text(SHARES)
    tree = read_shares(tmp_path / "shares.txt")
    assert [(row.account, row.user, row.parent, row.shares, row.usage) for row in tree] == [
        ("root", "", -1, 1, 10), ("one", "", 0, 4, 6), ("one", "ann", 1, 1, 6), ("two", "", 0, 6, 4), ("deep", "", 3, 1, 4),
        ("deep", "bob", 4, 2, 4),
    ]  # fmt: skip
    assert tree[2].effective == 0.5


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("Account|User\n", "RawShares", "header lacks"),
        ("Account|User|RawShares|RawUsage\nroot|||0\n   x|u|1|0\n", "Account", "deeper than its parent"),
        ("Account|User|RawShares|RawUsage\nroot|||0\n x|u|parent|0\n", "RawShares", "not modeled"),
        ("Account|User|RawShares|RawUsage\nroot|||0\n x|u|1|much\n", "RawUsage", "not an integer"),
        ("Account|User|RawShares|RawUsage\nroot|||0\n x||1|0\n", "User", "no user has shares"),
    ],
)
def test_invalid_shares_are_an_error(tmp_path: Path, text: str, field: str, words: str) -> None:
    (tmp_path / "shares.txt").write_text(text)
    with pytest.raises(InputError, match=words) as raised:
        read_shares(tmp_path / "shares.txt")
    assert raised.value.field == field


def test_priorities_of_qos_are_read(tmp_path: Path) -> None:
    (tmp_path / "qos.txt").write_text("Name|Priority\nnormal|20\nhigh|100\n")
    assert read_priorities(tmp_path / "qos.txt") == {"normal": 20, "high": 100}


@given(st.lists(st.tuples(st.sampled_from(["n", "gpu", "a-", ""]), st.integers(0, 12), st.integers(1, 3)), max_size=30))
def test_compressed_list_expands_to_the_same_names(parts: list[tuple[str, int, int]]) -> None:
    names = [f"{before}{number:0{width}d}" for before, number, width in parts]
    assert hostlist.expand(hostlist.compress(names)) == names


def test_compressed_list_is_short() -> None:
    assert hostlist.compress(hostlist.expand("n[001-199,300],login,gpu[1-2]")) == "n[001-199,300],login,gpu[1-2]"


def test_node_sets_have_nodes_and_features(tmp_path: Path) -> None:
    text = "NodeName=a[1-2] Feature=x\nNodeName=b\nNodeSet=s Feature=x\nNodeSet=t Nodes=b,s\nPartitionName=p Nodes=t\n"
    (tmp_path / "slurm.conf").write_text(text)
    assert SlurmConf.read_file(tmp_path / "slurm.conf").hosts("p") == ["b", "a1", "a2"]


def test_missing_included_file_is_reported_with_the_line_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=one\nInclude /etc/slurm/nodes.conf.d/none.conf\n")
    with pytest.raises(InputError) as raised:
        SlurmConf.read_file(tmp_path / "slurm.conf")
    assert (raised.value.file, raised.value.line, raised.value.field) == (tmp_path / "slurm.conf", 2, "Include")
    assert "'/etc/slurm/nodes.conf.d/none.conf' cannot be read" in raised.value.message
    assert raised.value.remedy == "copy the file, and write Include none.conf with the copy in the folder of slurm.conf"


def test_misspelled_key_is_reported_as_written(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nPriorityTyp=priority/multifactor\n")
    with pytest.raises(InputError, match="unknown key 'PriorityTyp'") as error:
        SlurmConf.read_file(tmp_path / "slurm.conf")
    assert (error.value.field, error.value.line) == ("PriorityTyp", 2)
    assert error.value.remedy is not None and "did you mean PriorityType?" in error.value.remedy
