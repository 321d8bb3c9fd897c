"""Alternative machine formats build the same machine as their own readers."""

from pathlib import Path

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.model import Machine
from poolwise.studies import load, run
from poolwise.traces import vinesim
from poolwise.traces.vinesim.tables import count_columns
from tests.helpers.vinesim_files import FILES

UNITS = """version = 1
format = "vinesim"
deployment = "deployment.txt"
affinity = "affinity.txt"
affinity_kind = "relative"
prices = "prices.txt"
power = "power.txt"
"""
STUDY = """version = 1
machine = "units.toml"
[workload]
trace = "trace.txt"
format = "vinesim"
options = { inter_arrival = "7us" }
[scheduler]
kind = "dispatch"
placement = "high"
[performance]
model = { name = "combined", models = ["affinity", "transfer"] }
[measure]
warm_up = 0
baseline = false
metrics = ["latency"]
[vary]
"scheduler.placement" = ["high", "flat"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {**FILES, "units.toml": UNITS, "study.toml": STUDY}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def same(one: Machine, other: Machine) -> bool:
    arrays = ("kind", "rack", "position", "home", "capacity")
    texts = ("name", "owners", "type", "resources")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and all(getattr(one, name) == getattr(other, name) for name in texts)
        and one.attributes.keys() == other.attributes.keys()
        and all(np.array_equal(one.attributes[name], other.attributes[name], equal_nan=True) for name in one.attributes)
    )


def test_processors_build_a_flat_machine(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('version = 1\nformat = "processors"\ncount = 7\n')
    assert same(load_machine(tmp_path / "m.toml"), Machine.flat(7))
    (tmp_path / "m.toml").write_text('version = 1\nformat = "processors"\ncount = 7\nname = "mine"\n')
    assert load_machine(tmp_path / "m.toml").name == "mine"


def test_vinesim_machine_matches_the_vinesim_reader(folder: Path) -> None:
    case = vinesim.VineSimCase.of(
        vinesim.read_deployment(folder / "deployment.txt"),
        vinesim.read_tasks(folder / "trace.txt"),
        vinesim.read_affinity(folder / "affinity.txt", "relative"),
        prices=vinesim.read_prices(folder / "prices.txt"),
        power=vinesim.read_power(folder / "power.txt", columns=count_columns(folder / "affinity.txt")),
    )
    (folder / "units.toml").write_text(UNITS + 'data = "trace.txt"\n')
    assert same(load_machine(folder / "units.toml"), case.machine)


def test_study_accepts_the_format_and_its_key_depends_on_the_files(folder: Path) -> None:
    (folder / "trace.txt").write_text("2 0 0 0 3000000 2 0\n2 0 0 0 3000000 2 1\n")
    study = load(folder / "study.toml", {"machine.data": "trace.txt"})
    result = run(study, folder / "out", jobs=1)
    high, flat = (cell.metrics["mean_job_latency_us"] for cell in result.cells)
    assert high == 2.5 < flat
    (folder / "affinity.txt").write_text(FILES["affinity.txt"] + "# the same numbers, other bytes\n")
    assert load(folder / "study.toml", {"machine.data": "trace.txt"}).cells[0].key != study.cells[0].key


@pytest.mark.parametrize(
    ("change", "expected", "field"),
    [
        (('"vinesim"', '"vinesin"'), "did you mean 'vinesim'", "format"),
        (("prices", "prizes"), "did you mean 'prices'", "prizes"),
        (('"relative"', '"percent"'), "unknown convention 'percent'", None),
        (('"deployment.txt"', '"nowhere.txt"'), "no such file", None),
        (("version = 1\n", ""), "version", "version"),
    ],
)
def test_errors_report_the_location(folder: Path, change: tuple[str, str], expected: str, field: str | None) -> None:
    (folder / "units.toml").write_text(UNITS.replace(*change))
    with pytest.raises(InputError, match=expected) as caught:
        load_machine(folder / "units.toml")
    if field is not None:
        assert (caught.value.file, caught.value.field) == (folder / "units.toml", field)
