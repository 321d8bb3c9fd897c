"""Tests of VineSim's files: written files round-trip, and errors state their location."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import traces
from poolwise.errors import InputError
from poolwise.model import Machine
from poolwise.traces import vinesim
from poolwise.traces.vinesim.tables import count_columns
from poolwise.traces.vinesim.tasks import FIELDS
from poolwise.traces.vinesim.units import FIELDS as UNIT_FIELDS

few = settings(max_examples=20)
rates = st.one_of(st.just(0.0), st.floats(1e-9, 1e12))
BAD = ["x", "1.5.2", "--", "nan", "inf", "-1", "1e999", "\u0663", "1_0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vinesim")


def jobs() -> st.SearchStrategy[list[list[int]]]:
    """Draw the tasks of up to five jobs, numbered in any order."""
    small = st.integers(0, 9)
    task = st.tuples(st.integers(0, 2**40), small, small, st.integers(0, 2**52), st.integers(0, 5))
    job = st.tuples(st.integers(0, 6), st.lists(task, min_size=1, max_size=4))
    return st.lists(job, min_size=1, max_size=5).flatmap(
        lambda found: st.permutations(range(len(found))).map(
            lambda numbers: [
                [kind, size, x, y, operations, wanted, number]
                for (kind, tasks), number in zip(found, numbers, strict=True)
                for size, x, y, operations, wanted in tasks
            ]
        )
    )


def write_rows(rows: list, path: Path) -> None:
    path.write_text("".join(" ".join(map(repr, row)) + "\n" for row in rows), encoding="utf-8")


@few
@given(jobs())
def test_written_traces_round_trip(folder: Path, rows: list[list[int]]) -> None:
    path = folder / "trace.txt"
    write_rows(rows, path)
    assert vinesim.read_tasks(path).table.tolist() == rows


@few
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**40), st.integers(0, 99)), min_size=1, max_size=8))
def test_written_deployments_round_trip(folder: Path, units: list[tuple[int, int, int]]) -> None:
    path = folder / "deployment.txt"
    write_rows(units, path)
    deployment = vinesim.read_deployment(path)
    assert list(zip(deployment.type.tolist(), deployment.x.tolist(), deployment.y.tolist(), strict=True)) == units


@few
@given(st.lists(st.lists(rates, min_size=7, max_size=7), min_size=6, max_size=6))
def test_written_tables_round_trip(folder: Path, table: list[list[float]]) -> None:
    path, cells = folder / "table.txt", np.array(table)
    vinesim.write_affinity(cells, path)
    assert np.array_equal(vinesim.read_affinity(path), cells)
    write_rows(cells[:, :1].tolist(), path)
    assert np.array_equal(vinesim.read_prices(path), cells[:, 0])
    power = vinesim.Power(np.where(cells > 0, cells, np.nan), cells[:, 1])
    vinesim.write_power(power, path)
    again = vinesim.read_power(path)
    assert np.array_equal(again.busy, power.busy, equal_nan=True)
    assert np.array_equal(again.idle, power.idle)


def corrupted(text: str, line: int, field: int, word: str) -> str:
    lines = [row.split() for row in text.splitlines()]
    lines[line][field] = word
    return "# a comment\n\n" + "\n".join(" ".join(row) for row in lines) + "\n"


@few
@given(st.integers(0, 2), st.integers(0, 6), st.sampled_from(BAD))
def test_corrupted_word_of_trace_is_reported_with_location(folder: Path, row: int, field: int, word: str) -> None:
    path = folder / "bad-trace.txt"
    path.write_text(corrupted("2 10 0 1 30 2 7\n2 10 0 1 30 2 7\n1 0 0 0 5 5 8\n", row, field, word), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        vinesim.read_tasks(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, row + 3, FIELDS[field])
    assert caught.value.remedy


@few
@given(st.integers(0, 1), st.integers(0, 2), st.sampled_from(BAD))
def test_corrupted_word_of_deployment_is_reported_with_location(folder: Path, row: int, field: int, word: str) -> None:
    path = folder / "bad-deployment.txt"
    path.write_text(corrupted("0 0 0\ngpu 1 0\n", row, field, word), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        vinesim.read_deployment(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, row + 3, UNIT_FIELDS[field])


@few
@given(st.integers(0, 1), st.integers(0, 2), st.sampled_from([word for word in BAD if word != "--"]))
def test_corrupted_cell_of_table_is_reported_with_location(folder: Path, row: int, field: int, word: str) -> None:
    path = folder / "bad-table.txt"
    path.write_text(corrupted("1 2 3\n4 5 6\n", row, field, word), encoding="utf-8")
    names = ("int", "fp-bad", "fp-good")
    for read in (vinesim.read_affinity, lambda path: vinesim.read_affinity(path, "relative"), vinesim.read_power):
        with pytest.raises(InputError) as caught:
            read(path)
        assert (caught.value.file, caught.value.line, caught.value.field) == (path, row + 3, names[field])


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("2 0 0 0 1 2 7\n2 0 0 0 1 2 8\n2 0 0 0 1 2 7\n", 3, "parent_job_id", "not adjacent"),
        ("2 0 0 0 1 2 7\n1 0 0 0 1 2 7\n", 2, "task_type", "has tasks of type 2 and 1"),
        ("2 0 0 0 1 2\n", 1, "parent_job_id", "6 fields, expected 7"),
        ("2 0 0 0 1 2 7 9\n", 1, "parent_job_id", "8 fields, expected 7"),
        ("7 0 0 0 1 2 7\n", 1, "task_type", "unknown type 7"),
        ("fp-god 0 0 0 1 2 7\n", 1, "task_type", "unknown task_type"),
        (f"2 {2**53} 0 0 1 2 7\n", 1, "data_size", "2\\*\\*53"),
        ("# nothing\n\n", None, None, "no rows"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7\n", 2, "task_id", "7 fields, expected 9"),
        ("2 0 0 0 1 2 7\n2 0 0 0 1 2 7 0 --\n", 2, "parent_job_id", "9 fields, expected 7"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7 0 --\n", 2, "task_id", "task 0 is also in line 1"),
        ("2 0 0 0 1 2 7 x --\n", 1, "task_id", "whole number"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7 1 0,2\n", 2, "predecessors", "no task has the number 2"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7 1 0;\n", 2, "predecessors", "'0;' is not a list of task numbers"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7 1 0,\n", 2, "predecessors", "'0,' is not a list of task numbers"),
        ("2 0 0 0 1 2 7 0 --\n2 0 0 0 1 2 7 4 4\n", 2, "predecessors", "task 4 waits for itself"),
        ("# x\n2 0 0 0 1 2 7 5 6\n2 0 0 0 1 2 7 6 5\n", 2, "predecessors", "task 5 waits for 6 waits for 5: a cycle"),
    ],
)
def test_invalid_trace_is_reported(tmp_path: Path, text: str, line: int | None, field: str | None, words: str) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words) as caught:
        vinesim.read_tasks(path)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_paper_table_1_in_both_conventions(tmp_path: Path) -> None:
    """Read rows of the paper's Table 1, with its `--`; the factors are decimal numbers, so their products are exact."""
    path = tmp_path / "affinity.txt"
    path.write_text("100000 0.6 0.6 0.1 0.01 1\n500 0.1 0.1 0.01 -- 1\n1200000 0.01 1 0.001 0.001 0.3\n", encoding="utf-8")
    table = vinesim.read_affinity(path, "relative")
    assert table[0].tolist() == [100000, 60000, 60000, 10000, 1000, 100000, 0]
    assert table[1].tolist() == [500, 50, 50, 5, 0, 500, 0]
    assert table[2].tolist() == [1200000, 12000, 1200000, 1200, 1200, 360000, 0]
    assert not table[3:].any()
    assert vinesim.read_affinity(path)[2].tolist() == [1200000, 0.01, 1, 0.001, 0.001, 0.3, 0]
    vinesim.write_affinity(table, path)
    assert np.array_equal(vinesim.read_affinity(path), table)


@pytest.mark.parametrize(
    ("text", "kind", "line", "field"),
    [
        ("1\n" * 7, "absolute", 7, "unit types"),
        ("1 1 1 1 1 1 1 1\n", "absolute", 1, "task types"),
        ("1 1\n-- 0.5\n", "relative", 2, "int"),
        ("1e200 1e200\n", "relative", 1, "fp-bad"),
        ("1\n", "percent", None, "affinity-kind"),
    ],
)
def test_invalid_affinity_table_is_reported(tmp_path: Path, text: str, kind: str, line: int | None, field: str) -> None:
    path = tmp_path / "affinity.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        vinesim.read_affinity(path, kind)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_last_column_of_power_table_is_idle(tmp_path: Path) -> None:
    """Read a table for an affinity table of two columns: the third number is idle watts, 0 if omitted."""
    affinity, power = tmp_path / "affinity.txt", tmp_path / "power.txt"
    affinity.write_text("1 2\n3 4\n", encoding="utf-8")
    power.write_text("90 80 20\n250 --\n", encoding="utf-8")
    table = vinesim.read_power(power, columns=count_columns(affinity))
    assert table.busy[0, :2].tolist() == [90, 80]
    assert table.idle[:2].tolist() == [20, 0]
    assert math.isnan(table.busy[1, 1]) and math.isnan(table.idle[2])
    power.write_text("90 80 20 7\n", encoding="utf-8")
    with pytest.raises(InputError, match="4 numbers for 3 task types and idle"):
        vinesim.read_power(power, columns=count_columns(affinity))


def test_additional_types_by_name(tmp_path: Path) -> None:
    table, deployment, trace = (tmp_path / name for name in ("types.toml", "deployment.txt", "trace.txt"))
    table.write_text('version = 1\nunit_types = ["tpu"]\ntask_types = ["resnet"]\n', encoding="utf-8")
    types = vinesim.Types.read(table)
    deployment.write_text("tpu 0 0\n6 0 1\n", encoding="utf-8")
    trace.write_text("resnet 0 0 0 5 tpu 0\n7 0 0 0 5 6 0\n", encoding="utf-8")
    assert vinesim.read_deployment(deployment, types).type.tolist() == [6, 6]
    assert vinesim.read_tasks(trace, types).table[:, [0, 5]].tolist() == [[7, 6], [7, 6]]
    with pytest.raises(InputError, match="unknown type 'tpu'"):
        vinesim.read_deployment(deployment)
    for bad in (
        "version = 2\n",
        'version = 1\nunits = ["a"]\n',
        'version = 1\nunit_types = ["gpu"]\n',
        "version = 1\ntask_types = [1]\n",
    ):
        table.write_text(bad, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            vinesim.Types.read(table)
        assert caught.value.file == table and caught.value.field


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("7", [0, 7000, 14000]),
        ("7us", [0, 7000, 14000]),
        ("6.25 us", [0, 6250, 12500]),
        ("0", [0, 0, 0]),
        ("0.0003", [0, 1, 1]),  # 0.3 ns: each arrival is rounded up once
        ("2ms", [0, 2_000_000, 4_000_000]),
        ("uniform(3us,3us)", [0, 3000, 6000]),
        ("exponential(0)", [0, 0, 0]),
    ],
)
def test_inter_arrival_times(text: str, times: list[int]) -> None:
    assert vinesim.InterArrival.parse(text).times(3).tolist() == times


def test_drawn_arrivals_depend_on_seed_and_match_mean() -> None:
    gaps = vinesim.InterArrival.parse("exponential(7us)")
    times = gaps.times(20_000, seed=1)
    assert np.array_equal(times[:100], gaps.times(100, seed=1))
    assert not np.array_equal(times[:100], gaps.times(100, seed=2))
    assert (np.diff(times) >= 0).all() and times[0] == 0
    assert abs(times[-1] / 19_999 - 7000) < 4 * 7000 / math.sqrt(19_999)
    uniform = vinesim.InterArrival.parse("uniform(1us, 13us)").times(20_000, seed=1)
    assert np.diff(uniform).min() >= 999 and np.diff(uniform).max() <= 13_001
    assert abs(uniform[-1] / 19_999 - 7000) < 4 * 12_000 / math.sqrt(12 * 19_999)


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "7 parsecs", "uniform(3us)", "uniform(5, 3)", "exponential(1,2)", "gamma(1)", "nan"]
)
def test_invalid_inter_arrival_time_is_reported(text: str) -> None:
    with pytest.raises(InputError) as caught:
        vinesim.InterArrival.parse(text)
    assert caught.value.field == "inter-arrival"


def test_trace_is_recognized_and_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("# tasks\n2 0 0 0 30 2 7\n2 0 0 0 30 2 7\n2 0 0 0 0 2 8\n", encoding="utf-8")
    rates = np.zeros((6, 7))
    rates[2, 2] = 3.0
    machine = vinesim.machine_of_units(vinesim.UnitList.of([(2, 0, 0)]), rates)
    workload = traces.read(path, machine, inter_arrival="7us")
    assert (workload.name, workload.tasks.tolist(), workload.duration.tolist()) == ("trace", [2, 1], [10_000, 1])
    assert workload.submit.tolist() == [0, 7000]
    assert workload.repaired == {"task without operations, set to 1 ns": 1}
    with pytest.raises(InputError, match="have no affinities"):
        traces.read(path, Machine.flat(1))
    path.write_text("2 10 5 0 30 2 7\n", encoding="utf-8")
    with pytest.raises(InputError, match="x = 5, y = 0, which is not on"):
        traces.read(path, machine)


def test_rows_beyond_one_block_keep_line_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vinesim.rows, "_BLOCK", 2)
    path = tmp_path / "trace.txt"
    rows = [[2, 0, 0, 0, 30, 2, job] for job in range(5)]
    write_rows(rows, path)
    assert vinesim.read_tasks(path).table.tolist() == rows
    path.write_text("2 0 0 0 1 2 7\n\n2 0 0 0 1 2 8\n2 0 0 0 1 2 7\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        vinesim.read_tasks(path)
    assert caught.value.line == 4


GRAPH = "0 0 0 0 10 5 0 7 --\n0 0 0 0 10 5 0 8 7\n0 0 0 0 30 5 0 9 7\n1 0 0 0 5 5 1 3 8,9,8\n"


def test_trace_with_dependent_tasks_is_read_and_recognized(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(GRAPH, encoding="utf-8")
    tasks = vinesim.read_tasks(path)
    assert tasks.graph is not None and [tasks.graph.predecessors(k) for k in range(4)] == [[], [0], [0], [1, 2]]
    assert vinesim.VineSimFormat().recognizes(path)
    path.write_text("0 0 0 0 10 5 0 7 --\n0 0 0 0 10 5 0 8 --\n", encoding="utf-8")
    assert vinesim.read_tasks(path).graph is None, "a trace without dependencies has no graph"


def test_first_jobs_of_a_trace_keep_their_dependencies(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(GRAPH, encoding="utf-8")
    tasks = vinesim.read_tasks(path)
    first = tasks.first_jobs(1)
    assert first.graph is not None and len(first) == 3 and len(tasks.first_jobs(9)) == 4
    backwards = vinesim.TaskList.of([(0, 0, 0, 0, 1, 5, 0), (0, 0, 0, 0, 1, 5, 1)], [[1], []])
    with pytest.raises(InputError, match="a task of the first job waits for a task of a later job"):
        backwards.first_jobs(1)
