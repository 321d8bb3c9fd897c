"""Tests of Splitwise's affinity and power tables: values computed by hand, missing measurements, and errors."""

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError, UnknownNameError
from poolwise.traces import vinesim
from poolwise.traces.affinity.splitwise import Splitwise
from tests.helpers.data import DATA

FILE = DATA / "affinity" / "perf_model.csv.gz"
HEADER = "model,hardware,prompt_size,batch_size,token_size,peak_power,average_power,prompt_time,token_time,tensor_parallel\n"


def cell(tables, table, unit, task):
    return float(table[tables.types.units.index(unit), tables.types.tasks.index(task)])


def test_rates_are_tokens_per_second():
    """Read runs on two GPUs: the five prompts of 512 tokens took 196.2532, 195.5617, ... ms; a token took 54.84 ms."""
    tables = Splitwise(tensor_parallel=2).read(FILE)
    prompts = [196.2532191537321, 195.56166394613683, 197.44017580524087, 196.86237908899784]
    assert 1000 * 512 / max(prompts) < cell(tables, tables.rates, "a100-80gb", "prompt-512") < 1000 * 512 / min(prompts)
    assert cell(tables, tables.rates, "a100-80gb", "token") == pytest.approx(1000 / 54.85, rel=1e-3)
    assert tables.types.tasks[7:] == (*[f"prompt-{size}" for size in (128, 256, 512, 1024, 2048, 4096, 8192)], "token")


def test_power_is_share_of_rated_power_and_unmeasured_hardware_is_noted():
    tables = Splitwise(tensor_parallel=2).read(FILE)
    assert cell(tables, tables.power.busy, "a100-80gb", "prompt-512") == pytest.approx(1.0000125 * 400 * 2, rel=1e-4)
    assert cell(tables, tables.power.busy, "a100-80gb", "token") == pytest.approx(0.73599375 * 400 * 2, rel=1e-4)
    shares = [tables.power.busy[row, 7:] / watts for row, watts in ((6, 800), (7, 1400))]
    assert shares[0] == pytest.approx(shares[1])
    assert any("h100-80gb was not measured" in note for note in tables.notes)
    assert tables.power.idle[6:].tolist() == [0.15 * 800, 0.15 * 1400]


def test_shipped_tables_match_conversion(tmp_path):
    for file in Splitwise().read(FILE).write(tmp_path, "splitwise"):
        assert file.read_bytes() == catalog.find("affinities", file.name).read_bytes()


def test_written_tables_round_trip(tmp_path):
    tables = Splitwise("bloom-176b").read(FILE)
    names, rates, watts = tables.write(tmp_path, "x")
    types = vinesim.Types.read(names)
    assert np.array_equal(vinesim.read_affinity(rates, types=types), tables.rates)
    power = vinesim.read_power(watts, types)
    assert np.array_equal(power.idle, tables.power.idle)
    assert np.array_equal(power.busy[6:, 7:], tables.power.busy[6:, 7:])


def test_missing_runs_and_power_are_reported(tmp_path):
    with pytest.raises(UnknownNameError, match="llama2-7b"):
        Splitwise("llama2-7b").read(FILE)
    with pytest.raises(InputError, match="no runs of bloom-176b on 2 GPUs"):
        Splitwise("bloom-176b", 2).read(FILE)
    with pytest.raises(UnknownNameError, match="b200"):
        Splitwise(gpu_watts={"b200": 1000.0}).read(FILE)
    with pytest.raises(InputError, match="no power was measured"):
        Splitwise(gpu_watts={"h100-80gb": 700.0}).read(FILE)
    (tmp_path / "p.csv").write_text(HEADER + "m,h,512,1,128,0.5,0.5,fast,50,8\n")
    with pytest.raises(InputError, match="fast") as caught:
        Splitwise("m").read(tmp_path / "p.csv")
    assert (caught.value.line, caught.value.field) == (2, "prompt_time")
