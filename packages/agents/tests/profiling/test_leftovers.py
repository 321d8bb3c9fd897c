import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise_agents.profiling import zram
from poolwise_agents.profiling.cleanup import owned_resources, remove_stale
from poolwise_agents.profiling.control_groups import ControlGroup, find_hierarchy
from poolwise_agents.profiling.zram import ZramSwap, swaps, top_priority_swaps
from tests.helpers.fake_groups import fake_v2

DIES = """
import os, signal, sys
from pathlib import Path
from poolwise_agents.profiling.control_groups import find_hierarchy
from poolwise_agents.profiling.cleanup import owned_resources
with owned_resources(Path(sys.argv[1]), "measure") as owned:
    group = find_hierarchy(Path(sys.argv[2])).group("left")
    owned.add(group)
    group.create()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def make_group(tmp_path: Path, name: str = "mine") -> ControlGroup:
    return find_hierarchy(fake_v2(tmp_path / "root")).group(name)


def test_resources_and_record_are_removed_at_the_end(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with owned_resources(tmp_path / "records", "measure") as owned:
        owned.add(group)
        group.create()
        (record,) = (tmp_path / "records").iterdir()
        assert json.loads(record.read_text())["owner"]["process"] == os.getpid()
    assert not group.memory.exists() and not list((tmp_path / "records").iterdir())


def test_resources_are_removed_after_an_interrupt(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with pytest.raises(KeyboardInterrupt), owned_resources(tmp_path / "records", "measure") as owned:
        owned.add(group)
        group.create()
        raise KeyboardInterrupt
    assert not group.memory.exists()


def test_next_start_removes_only_resources_of_a_killed_process(tmp_path: Path) -> None:
    root = fake_v2(tmp_path / "root")
    (root / "of-others").mkdir()
    died = subprocess.run([sys.executable, "-c", DIES, tmp_path / "records", root], check=False)
    assert died.returncode == -9 and (root / "left").exists()
    with owned_resources(tmp_path / "records", "measure"):
        assert not (root / "left").exists() and (root / "of-others").exists()


def test_resources_of_a_living_process_are_kept(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with owned_resources(tmp_path / "records", "measure") as owned:
        owned.add(group)
        group.create()
        assert remove_stale(tmp_path / "records") == []
        assert group.memory.exists()


def test_process_that_reuses_the_id_is_not_the_owner(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    group.create()
    record = tmp_path / "records" / "measure-1.json"
    record.parent.mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    things = [{"group": {"memory": str(group.memory)}, "version": 2}]
    record.write_text(json.dumps({"owner": {"process": os.getpid(), "started": 1, "boot": boot}, "things": things}))
    assert remove_stale(record.parent) == ["measure-1"]
    assert not group.memory.exists() and not record.exists()


def test_record_of_an_earlier_boot_is_only_deleted(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    group.create()
    record = tmp_path / "records" / "measure-1.json"
    record.parent.mkdir()
    things = [{"group": {"memory": str(group.memory)}, "version": 2}]
    record.write_text(json.dumps({"owner": {"process": 1, "started": 1, "boot": "before"}, "things": things}))
    remove_stale(record.parent)
    assert group.memory.exists() and not record.exists()


def test_damaged_record_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "measure-1.json").write_text("{")
    with pytest.raises(InputError, match=r"measure-1\.json: is not a valid record"):
        remove_stale(tmp_path)


def test_missing_device_is_skipped() -> None:
    assert not ZramSwap(987654, "00000000-0000-0000-0000-000000000000").is_present
    ZramSwap(987654, "00000000-0000-0000-0000-000000000000").remove()


SWAPS = """Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/sda2                               partition\t2048\t\t1024\t\t-2
/dev/zram1                              partition\t65532\t\t0\t\t32767
"""


def test_swap_of_another_measurement_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "swaps"
    file.write_text(SWAPS)
    assert swaps(file) == [("/dev/sda2", 2**20), ("/dev/zram1", 65532 * 1024)]
    assert top_priority_swaps(file) == ["/dev/zram1"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(zram, "top_priority_swaps", lambda: ["/dev/zram1"])
    with pytest.raises(InputError, match=r"/dev/zram1 also has the highest swap priority(.|\n)*has ended"):
        ZramSwap.add()
