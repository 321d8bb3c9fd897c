"""Tests of the Gavel affinity table: selected values, tasks that cannot run, and errors."""

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.traces import vinesim
from poolwise.traces.affinity.gavel import Gavel, task_name
from tests.helpers.data import DATA

FILE = DATA / "affinity" / "gavel_isolated.csv"
HEADER = "gpu,consolidated,job_type,num_gpus,steps_per_s\n"


def rate(tables, unit, task):
    return float(tables.rates[tables.types.units.index(unit), tables.types.tasks.index(task)])


def test_rates_are_the_steps_per_second_of_the_file():
    tables = Gavel().read(FILE)
    assert tables.types.units[6:] == ("k80", "p100", "v100")
    assert len(tables.types.tasks) == 7 + 26 and tables.power is None
    for unit, task, steps in (
        ("k80", "resnet-18-b16", 4.795294551566172),
        ("p100", "resnet-50-b32", 4.888323684976709),
        ("v100", "resnet-50-b32", 7.787264918596293),
        ("p100", "a3c", 5.681346110543853),
        ("v100", "cyclegan", 4.426088263367452),
        ("k80", "recommendation-b512", 32.859303327562166),
    ):
        assert rate(tables, unit, task) == steps
    assert not tables.rates[:6].any() and not tables.rates[:, :7].any()
    assert (tables.rates[6:, 7:] > 0).all()


def test_several_gpus_are_one_unit_and_out_of_memory_tasks_cannot_run():
    tables = Gavel(gpus=2).read(FILE)
    assert rate(tables, "k80", "resnet-18-b16") == 8.758230831811566
    assert rate(tables, "k80", "resnet-50-b128") == 0.0
    with pytest.raises(InputError, match="no rows with 3 GPUs") as caught:
        Gavel(gpus=3).read(FILE)
    assert "1, 2, 4, 8" in caught.value.remedy


def test_task_duration_is_steps_over_rate():
    """Run a thousand steps of ResNet-50 (32) at 7.787264918596293 per second: 128.41479296... s on a V100."""
    tables = Gavel().read(FILE)
    kind, unit = tables.types.tasks.index("resnet-50-b32"), tables.types.units.index("v100")
    tasks = vinesim.TaskList.of_jobs([1], kind, 1000 * 10**6)
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(unit, 0, 0)]), tasks, tables.rates, types=tables.types)
    assert case.workload.duration[0] == pytest.approx(1000 / 7.787264918596293 * 1e9, abs=1)


def test_shipped_tables_match_conversion(tmp_path):
    for file in Gavel().read(FILE).write(tmp_path, "gavel"):
        assert file.read_bytes() == catalog.find("affinities", file.name).read_bytes()


def test_written_tables_round_trip(tmp_path):
    (tmp_path / "g.csv").write_text(HEADER + "k80,yes,LM (batch size 5),1,2.5\nv100,yes,A3C,1,0.0\nv100,no,A3C,1,9\n")
    tables = Gavel().read(tmp_path / "g.csv")
    names, rates = tables.write(tmp_path, "x")
    types = vinesim.Types.read(names)
    assert types == tables.types and types.tasks[7:] == ("lm-b5", "a3c")
    assert np.array_equal(vinesim.read_affinity(rates, types=types), tables.rates)


@pytest.mark.parametrize(
    ("rows", "line", "field"),
    [
        ("k80,yes,A3C,1,-2\n", 2, "steps_per_s"),
        ("k80,yes,A3C,1,1\nk80,yes,A3C,1,\n", 3, "steps_per_s"),
        ("k80,yes,A3C,one,1\n", 2, "num_gpus"),
        ("k80,yes,A3C,1,1\nk80,yes,a3c,1,2\n", 3, "job_type"),
    ],
)
def test_invalid_row_is_reported_with_line_and_field(tmp_path, rows, line, field):
    (tmp_path / "g.csv").write_text(HEADER + rows)
    with pytest.raises(InputError) as caught:
        Gavel().read(tmp_path / "g.csv")
    assert (caught.value.line, caught.value.field) == (line, field)


def test_task_name_is_one_word():
    assert task_name("ResNet-18 (batch size 16)") == "resnet-18-b16"
    assert task_name("CycleGAN") == "cyclegan"
