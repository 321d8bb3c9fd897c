import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.profiling import zram
from poolwise.profiling.cleanup import belongings, take_away
from poolwise.profiling.control_groups import ControlGroup, find_hierarchy
from poolwise.profiling.zram import ZramSwap, swaps, swaps_ranked_first
from tests.helpers.fake_groups import fake_v2

DIES = """
import os, signal, sys
from pathlib import Path
from poolwise.profiling.control_groups import find_hierarchy
from poolwise.profiling.cleanup import belongings
with belongings(Path(sys.argv[1]), "measure") as mine:
    group = find_hierarchy(Path(sys.argv[2])).group("left")
    mine.add(group)
    group.make()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def make_group(tmp_path: Path, name: str = "mine") -> ControlGroup:
    return find_hierarchy(fake_v2(tmp_path / "root")).group(name)


def test_everything_goes_at_the_end_and_the_record_too(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with belongings(tmp_path / "records", "measure") as mine:
        mine.add(group)
        group.make()
        (record,) = (tmp_path / "records").iterdir()
        assert json.loads(record.read_text())["owner"]["process"] == os.getpid()
    assert not group.memory.exists() and not list((tmp_path / "records").iterdir())


def test_an_interruption_takes_everything_away(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with pytest.raises(KeyboardInterrupt), belongings(tmp_path / "records", "measure") as mine:
        mine.add(group)
        group.make()
        raise KeyboardInterrupt
    assert not group.memory.exists()


def test_what_a_killed_process_has_left_goes_at_the_next_start_and_nothing_else(tmp_path: Path) -> None:
    root = fake_v2(tmp_path / "root")
    (root / "of-others").mkdir()
    died = subprocess.run([sys.executable, "-c", DIES, tmp_path / "records", root], check=False)
    assert died.returncode == -9 and (root / "left").exists()
    with belongings(tmp_path / "records", "measure"):
        assert not (root / "left").exists() and (root / "of-others").exists()


def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    with belongings(tmp_path / "records", "measure") as mine:
        mine.add(group)
        group.make()
        assert take_away(tmp_path / "records") == []
        assert group.memory.exists()


def test_a_number_that_another_process_has_by_now_is_not_the_owner(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    group.make()
    record = tmp_path / "records" / "measure-1.json"
    record.parent.mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    things = [{"group": {"memory": str(group.memory)}, "version": 2}]
    record.write_text(json.dumps({"owner": {"process": os.getpid(), "started": 1, "boot": boot}, "things": things}))
    assert take_away(record.parent) == ["measure-1"]
    assert not group.memory.exists() and not record.exists()


def test_a_record_of_an_earlier_boot_is_only_forgotten(tmp_path: Path) -> None:
    group = make_group(tmp_path)
    group.make()
    record = tmp_path / "records" / "measure-1.json"
    record.parent.mkdir()
    things = [{"group": {"memory": str(group.memory)}, "version": 2}]
    record.write_text(json.dumps({"owner": {"process": 1, "started": 1, "boot": "before"}, "things": things}))
    take_away(record.parent)
    assert group.memory.exists() and not record.exists()


def test_a_damaged_record_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "measure-1.json").write_text("{")
    with pytest.raises(InputError, match=r"measure-1\.json: is no record"):
        take_away(tmp_path)


def test_a_device_that_is_gone_is_passed_over() -> None:
    assert not ZramSwap(987654, "00000000-0000-0000-0000-000000000000").ours
    ZramSwap(987654, "00000000-0000-0000-0000-000000000000").remove()


SWAPS = """Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/sda2                               partition\t2048\t\t1024\t\t-2
/dev/zram1                              partition\t65532\t\t0\t\t32767
"""


def test_swap_of_another_measurement_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "swaps"
    file.write_text(SWAPS)
    assert swaps(file) == [("/dev/sda2", 2**20), ("/dev/zram1", 65532 * 1024)]
    assert swaps_ranked_first(file) == ["/dev/zram1"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(zram, "swaps_ranked_first", lambda: ["/dev/zram1"])
    with pytest.raises(InputError, match=r"/dev/zram1 is swap of the highest priority too(.|\n)*has ended"):
        ZramSwap.add()
