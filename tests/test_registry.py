"""Registry: names of the package, entry points of other distributions, and classes in files."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import poolwise
from poolwise import registry
from poolwise.cli.app import run
from poolwise.errors import InputError, UnknownNameError

MODULE = """
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Shortest:
    power: float = 1.0
    kind: ClassVar[str] = "static"

    def priority(self, queue, snapshot):
        return -queue.table.requested_s[queue.jobs] ** self.power


class FCFS:
    pass


ready = Shortest(2.0)
"""
POINTS = """[poolwise.orders]
elsewhere-shortest = poolwise_elsewhere:Shortest
elsewhere-ready = poolwise_elsewhere:ready
fcfs = poolwise_elsewhere:FCFS

[poolwise.plans]
elsewhere-gone = poolwise_elsewhere:Gone

[poolwise.backfills]
elsewhere-backfill = poolwise_elsewhere:Shortest
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a distribution as an installer does: a module and a folder of metadata."""
    (tmp_path / "poolwise_elsewhere.py").write_text(MODULE)
    info = tmp_path / "poolwise_elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poolwise-elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("poolwise_elsewhere", None)


def test_entry_points_of_other_distributions_are_listed_in_their_group() -> None:
    orders, backfills = registry.names("orders"), registry.names("backfills")
    assert {"elsewhere-shortest", "elsewhere-ready", "fcfs", "fm"} <= set(orders)
    assert {"elsewhere-backfill", "easy"} <= set(backfills)
    assert "elsewhere-backfill" not in orders and "elsewhere-shortest" not in backfills
    assert orders == sorted(set(orders))
    with pytest.raises(UnknownNameError):
        registry.find("orders", "elsewhere-backfill")


def test_entry_points_are_listed_once_for_the_same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    before = registry.names("orders")
    monkeypatch.setattr(registry, "entry_points", lambda **_: pytest.fail("listed again"))
    assert registry.names("orders") == before


def test_entry_point_is_found_configured_and_simulated() -> None:
    order_class = registry.find("orders", "elsewhere-shortest")
    assert (order_class.__module__, order_class.__name__) == ("poolwise_elsewhere", "Shortest")
    assert registry.make("orders", "elsewhere-shortest", power=3.0) == order_class(3.0)
    with pytest.raises(InputError, match="unknown setting of order 'elsewhere-shortest': 'powr'") as caught:
        registry.make("orders", "elsewhere-shortest", powr=3.0)
    assert caught.value.remedy == "did you mean 'power'? known: power"
    workload = poolwise.Workload.of(np.zeros(4, dtype=np.int64), np.array([4, 1, 3, 2]) * 10**9)
    machine = poolwise.Machine.flat(1)
    starts = [
        poolwise.simulate(workload, machine, order=order).schedule.job_start.tolist() for order in ("elsewhere-shortest", "sjf")
    ]
    assert starts[0] == starts[1] == [6 * 10**9, 0, 3 * 10**9, 10**9]


def test_configured_object_takes_no_settings() -> None:
    assert registry.make("orders", "elsewhere-ready").power == 2.0
    with pytest.raises(InputError, match="configured object and takes no settings") as caught:
        registry.make("orders", "elsewhere-ready", power=1.0)
    assert caught.value.field == "power"


def test_entry_point_does_not_replace_a_shipped_name() -> None:
    assert registry.find("orders", "fcfs").__module__.startswith("poolwise.")


def test_broken_entry_point_is_an_error_with_its_distribution() -> None:
    with pytest.raises(InputError, match=r"cannot load 'elsewhere-gone' of poolwise-elsewhere: .*Gone") as caught:
        registry.find("plans", "elsewhere-gone")
    assert (caught.value.field, caught.value.remedy) == ("poolwise.plans", "update or uninstall poolwise-elsewhere")


def test_unknown_name_error_suggests_the_closest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'elsewhere-shortest'"):
        registry.find("orders", "elsewhere-shortes")
    with pytest.raises(UnknownNameError, match="group"):
        registry.names("ordres")


def test_list_command_shows_entry_points(commands: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "orders"]) == 0
    assert "elsewhere-shortest" in capsys.readouterr().out


def test_registering_a_name_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.REGISTERED, "orders", {})
    add = registry.register("orders", "mine")
    assert add(Path) is Path and add(Path) is Path
    with pytest.raises(ValueError, match="'mine' is registered twice in orders"):
        add(str)
    assert registry.REGISTERED["orders"] == {"mine": Path}


OWN = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Base:
    power: float = 1.0
    kind = "static"

    def priority(self, queue, snapshot):
        return -queue.table.requested_s[queue.jobs] ** self.power


class Mine(Base):
    def __init__(self, steepness):
        super().__init__(power=2 * steepness)
"""


def test_settings_are_those_of_the_classs_own_initializer(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    mine = f"{tmp_path / 'own.py'}:Mine"
    assert registry.make("orders", mine, steepness=2.0).power == 4.0
    with pytest.raises(UnknownNameError, match="'power'"):
        registry.make("orders", mine, power=2.0)
    with pytest.raises(InputError, match="steepness"):
        registry.make("orders", mine)


def test_class_in_a_file_of_its_name_is_found_without_importing_the_other_files() -> None:
    find_one = "from poolwise import registry; import sys; registry.find('methods', 'first-fit')"
    code = f"{find_one}; assert 'poolwise.batch.methods.opt' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
