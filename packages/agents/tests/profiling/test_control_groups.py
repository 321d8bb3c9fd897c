from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise_agents.profiling.control_groups import GroupUsage, find_hierarchy
from tests.helpers.fake_groups import fake_v1, fake_v2, fill_v1, fill_v2

USAGE = GroupUsage(working_set=700, swapped=50, faults=9, major_faults=4, refaults=5, cpu_ns=2_000_000)


def test_version_2_limits_and_counts(tmp_path: Path) -> None:
    group = find_hierarchy(fake_v2(tmp_path / "root")).group("mine")
    group.create()
    fill_v2(group.memory, current=1000, inactive=300, swapped=50, cpu_us=2000)
    assert group.usage() == USAGE
    group.set_limit(4096)
    group.set_cpu_share(0.25)
    assert (group.memory / "memory.max").read_text() == "4096"
    assert (group.memory / "cpu.max").read_text() == "25000 100000"
    group.set_limit(None)
    assert (group.memory / "memory.max").read_text() == "max"
    assert group.procs_files == (tmp_path / "root" / "mine" / "cgroup.procs",)


def test_version_1_limits_and_counts(tmp_path: Path) -> None:
    root = fake_v1(tmp_path / "root")
    group = find_hierarchy(root).group("mine")
    group.create()
    fill_v1(root, "mine", usage=1000, inactive=300, swapped=50, cpu_ns=2_000_000)
    assert group.usage() == USAGE
    group.set_limit(4096)
    group.set_cpu_share(0.5)
    assert (root / "memory" / "mine" / "memory.limit_in_bytes").read_text() == "4096"
    assert (root / "cpu" / "mine" / "cpu.cfs_quota_us").read_text() == "50000"
    assert len(group.procs_files) == 3


def test_missing_controllers_are_enabled(tmp_path: Path) -> None:
    root = fake_v2(tmp_path / "root", enabled="io")
    find_hierarchy(root)
    assert (root / "cgroup.subtree_control").read_text() == "+memory +cpu"


def test_parent_group_replaces_the_root(tmp_path: Path) -> None:
    root = fake_v2(tmp_path / "root")
    fake_v2(root / "user.slice" / "mine")
    assert find_hierarchy(root, parent="/user.slice/mine").group("g").memory == root / "user.slice" / "mine" / "g"


def test_own_group_is_the_parent_without_write_access_to_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, own = fake_v2(tmp_path / "root"), tmp_path / "own"
    fake_v2(root / "delegated")
    own.write_text("0::/delegated\n")
    monkeypatch.setattr("poolwise_agents.profiling.control_groups.os.access", lambda *_: False)
    assert find_hierarchy(root, own).group("g").memory == root / "delegated" / "g"


def test_errors_contain_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mount -t cgroup2"):
        find_hierarchy(tmp_path)
    with pytest.raises(InputError, match=r"'memory' is not available in this group(.|\n)*Delegate=yes"):
        find_hierarchy(fake_v2(tmp_path / "root", available="cpu io"))
    with pytest.raises(InputError, match="--group"):
        find_hierarchy(fake_v2(tmp_path / "other"), parent="missing")


def test_removed_group_can_be_removed_again(tmp_path: Path) -> None:
    group = find_hierarchy(fake_v2(tmp_path / "root")).group("mine")
    group.create()
    group.remove()
    group.remove()
    assert not group.memory.exists()
