"""Tests of Azure requests as prompt and token tasks: values computed by hand, excluded rows, and errors."""

import gzip

import numpy as np
import pytest

from poolwise import catalog
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.metrics.latency import job_latency_us
from poolwise.model import Machine
from poolwise.performance.affinity import Affinity, rates
from poolwise.quantities import SECOND, US
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import read
from poolwise.traces.azure_llm import AzureLLM
from tests.helpers.measured_units import machine

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
SHIPPED = catalog.find("traces", "azure-llm-2023-conv.csv.gz")


@pytest.fixture(scope="module")
def units():
    return machine("splitwise", a100_80gb=2, h100_80gb=2)


def log(folder, *rows):
    (folder / "llm.csv").write_text(HEADER + "\n".join(rows) + "\n")
    return folder / "llm.csv"


def test_request_becomes_prompt_and_token_tasks(units, tmp_path):
    path = log(tmp_path, "2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:46.0000001,512,1")
    workload = AzureLLM().read(path, units)
    table = rates(units)
    # the file is not sorted by time: the second row is request 0
    assert workload.submit.tolist()[:2] == [0, 680_589_900]
    assert workload.attributes["parent"].tolist() == [0, 1, 1]
    assert workload.attributes["task_type"].tolist() == [9, 9, 14]  # both prompts use the type of 512 tokens
    assert workload.attributes["operations"].tolist() == [512_000_000, 512_000_000, 43_000_000]
    prompt = 512 * SECOND / table[9, 2]
    assert abs(int(workload.submit[2]) - (680_589_900 + prompt)) <= 1
    alone = simulate(workload, units, Dispatch(), model=Affinity()).schedule
    expected = [prompt / US, (prompt + 43 * SECOND / table[14, 2]) / US]
    assert job_latency_us(alone) == pytest.approx(expected, abs=0.01)


def test_shipped_trace_is_recognized_and_complete(units):
    workload = read(SHIPPED, units)
    with gzip.open(SHIPPED, "rt") as file:
        rows = [line.split(",") for line in file.read().splitlines()[1:]]
    assert workload.excluded == {} and int(workload.attributes["parent"].max()) + 1 == len(rows) == 4420
    tokens = workload.attributes["task_type"] == 14
    assert int(workload.attributes["operations"][tokens].sum()) == sum(int(row[2]) - 1 for row in rows) * 10**6
    assert (np.diff(workload.submit) >= 0).all()


def test_requests_beyond_measurements_are_counted(units, tmp_path):
    path = log(tmp_path, "2023-11-16 18:15:46,8193,4", "2023-11-16 18:15:46,0,4", "2023-11-16 18:15:46,9,9")
    workload = AzureLLM().read(path, units)
    assert len(workload) == 2
    assert workload.excluded == {"prompt of more than 8,192 tokens": 1, "no tokens requested or generated": 1}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("yesterday,5,5", "TIMESTAMP"),
        ("2023-11-16 18:15:46.12x,5,5", "TIMESTAMP"),
        ("2023-11-16 18:15:46,five,5", "ContextTokens"),
        ("2023-11-16 18:15:46,5,-5", "GeneratedTokens"),
    ],
)
def test_invalid_row_is_reported_with_line_and_field(units, tmp_path, row, field):
    with pytest.raises(InputError) as caught:
        AzureLLM().read(log(tmp_path, "2023-11-16 18:15:46,5,5", row), units)
    assert (caught.value.line, caught.value.field) == (3, field)


def test_quantities_and_types_must_match_splitwise(tmp_path):
    with pytest.raises(InputError, match="no units for prompts"):
        AzureLLM().read(SHIPPED, Machine.flat(4))
    (tmp_path / "types.toml").write_text('version = 1\ntask_types = ["a"]\n')
    with pytest.raises(InputError, match="no task types prompt-SIZE"):
        AzureLLM(types=str(tmp_path / "types.toml")).read(SHIPPED, machine("splitwise", a100_80gb=1))
