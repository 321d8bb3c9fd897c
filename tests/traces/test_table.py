import csv
import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.traces import read, write_table
from poolwise.traces.table import TableFormat
from tests.helpers.data import PUBLISHED
from tests.helpers.same_jobs import assert_same_jobs

MACHINE = Machine.of_racks(4, 16, local=65536, pool=524288)
HEADER = "id,submit_ns,nodes,duration_ns,memory_mib,u"

natural, positive = st.integers(0, 2**62), st.integers(1, 2**62)
number = st.one_of(st.floats(allow_nan=True, allow_infinity=False), st.just(3.0))
word = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


@st.composite
def workloads(draw):
    n = draw(st.integers(1, 5))

    def column(values, dtype=np.int64):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=dtype)

    requests = {"nodes": column(st.integers(1, 2**40))} if draw(st.booleans()) else {"cores": column(natural)}
    if draw(st.booleans()):
        requests |= {"memory": column(natural), "bandwidth": column(natural)}
    return Workload.of(
        column(natural),
        column(positive),
        id=np.array(draw(st.lists(natural, min_size=n, max_size=n, unique=True)), dtype=np.int64),
        requested=column(positive),
        tasks=column(st.integers(1, 9)),
        requests=requests,
        attributes={
            "u": column(number, np.float64),
            "user": column(st.integers(-(2**63), 2**63 - 1)),
            "gpu type": column(word, np.str_),
        },
        excluded=draw(st.dictionaries(word, st.integers(1, 99), max_size=2)),
        repaired=draw(st.dictionaries(word, st.integers(1, 99), max_size=2)),
        name="jobs",
    )


@given(workloads(), st.sampled_from(["jobs.csv", "jobs.csv.gz", "jobs.parquet"]))
@settings(max_examples=60, deadline=None)
def test_written_workload_round_trips(workload, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_table(workload, path)
        first = path.read_bytes()
        back = read(path, MACHINE)
        write_table(workload, path)
        assert path.read_bytes() == first
        assert [file.name for file in Path(folder).iterdir()] == [name]
    assert_same_jobs(back, workload)
    keeps_counts = name.endswith(".parquet")
    assert (dict(back.excluded), dict(back.repaired)) == ((workload.excluded, workload.repaired) if keeps_counts else ({}, {}))


def test_published_jobs_are_read_unchanged():
    path = PUBLISHED / "pool_golden_jobs.csv"
    with path.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (int(row["submit_ns"]), int(row["id"])))
    workload = read(path, MACHINE)
    assert len(workload) == len(rows) == 300
    for name, column in [("id", workload.id), ("submit_ns", workload.submit), ("duration_ns", workload.duration)]:
        assert column.tolist() == [int(row[name]) for row in rows]
    assert workload.nodes.tolist() == [int(row["nodes"]) for row in rows]
    assert workload.memory.tolist() == [int(row["memory_mib"]) for row in rows]
    assert workload.attributes["u"].tolist() == [float(row["u"]) for row in rows]
    assert np.array_equal(workload.requested, workload.duration)


def table(tmp_path, *rows, header=HEADER, name="jobs.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]))
    return path


GOOD = "1,0,1,10,5,0.5"


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("x,0,1,10,5,0.5", "id"),
        ("-1,0,1,10,5,0.5", "id"),
        ("2,-1,1,10,5,0.5", "submit_ns"),
        ("2,1.5,1,10,5,0.5", "submit_ns"),
        ("2,1e3,1,10,5,0.5", "submit_ns"),
        ("2,9223372036854775808,1,10,5,0.5", "submit_ns"),
        ("2," + "0" * 45 + "9" * 30 + ",1,10,5,0.5", "submit_ns"),
        ("2," + "9" * 6000 + ",1,10,5,0.5", "submit_ns"),
        ("2,,1,10,5,0.5", "submit_ns"),
        ("2,0,0,10,5,0.5", "nodes"),
        ("2,0,1,0,5,0.5", "duration_ns"),
        ("2,0,1,NaN,5,0.5", "duration_ns"),
        ("2,0,1,10,-5,0.5", "memory_mib"),
        ("2,0,1,10,1_0,0.5", "memory_mib"),
        ("2,0,1,10,5,nan", "u"),
        ("2,0,1,10,5,inf", "u"),
        ("2,0,1,10,5,1e999", "u"),
        ("2,0,1,10,5,high", "u"),
        ("1,0,1,10,5,0.5", "id"),
        ("2,0,1,10,5", None),
        ("2,0,1,10,5,0.5,7", None),
    ],
)
def test_invalid_cell_is_reported_with_line(tmp_path, row, field):
    path = table(tmp_path, GOOD, "", row, "3,0,1,10,5,0.25")
    with pytest.raises(InputError) as caught:
        read(path, MACHINE)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, 4, field)
    assert caught.value.remedy


def test_line_numbers_are_correct_after_multiline_cells(tmp_path):
    path = table(tmp_path, '1,0,1,10,"two\nlines"', "2,0,1,x,one", header="id,submit_ns,nodes,duration_ns,text.note")
    with pytest.raises(InputError) as caught:
        read(path, MACHINE)
    assert (caught.value.line, caught.value.field) == (4, "duration_ns")
    with pytest.raises(InputError, match="not CSV"):
        read(table(tmp_path, '1,0,1,10,"open', header="id,submit_ns,nodes,duration_ns,text.note"), MACHINE)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("id,nodes,duration_ns,a,b,c", "submit_ns"),
        ("id,submit_ns,nodes,a,b,c", "duration_ns"),
        ("id,submit_ns,duration_ns,a,b,c", "nodes"),
        ("id,submit_ns,nodes,duration_ns,u,u", "u"),
        ("id,submit_ns,nodes,duration_ns,,u", None),
        ("id,submit_ns,nodes,duration_ns,request.memory,u", "request.memory"),
    ],
)
def test_invalid_header_is_reported_with_column(tmp_path, header, field):
    with pytest.raises(InputError) as caught:
        read(table(tmp_path, "1,2,3,4,5,6", header=header), MACHINE)
    assert caught.value.field == field
    assert caught.value.remedy


def test_defaults_and_other_columns(tmp_path):
    header = "submit_ns,duration_ns,request.cores,request.gpus,deadline,text.kind"
    workload = read(table(tmp_path, "5,10,4,0,,a", "3,20,2,1,7,", header=header), MACHINE)
    assert workload.id.tolist() == [2, 1]  # numbered by row, sorted by submit time
    assert workload.submit.tolist() == [3, 5]
    assert workload.requested.tolist() == [20, 10]
    assert workload.tasks.tolist() == [1, 1]
    assert {name: column.tolist() for name, column in workload.requests.items()} == {"cores": [2, 4], "gpus": [1, 0]}
    assert workload.attributes["deadline"][0] == 7
    assert np.isnan(workload.attributes["deadline"][1])
    assert workload.attributes["kind"].tolist() == ["", "a"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"submit_ns": [0, None]}, "submit_ns"),
        ({"submit_ns": [0, -1]}, "submit_ns"),
        ({"submit_ns": [0.0, 1.0]}, "submit_ns"),
        ({"submit_ns": ["0", "1"]}, "submit_ns"),
        ({"submit_ns": pl.Series([0, 2**63], dtype=pl.UInt64)}, "submit_ns"),
        ({"nodes": [1, 0]}, "nodes"),
        ({"id": [4, 4]}, "id"),
        ({"u": [0.5, float("nan")]}, "u"),
        ({"u": [0.5, float("inf")]}, "u"),
        ({"u": ["a", "b"]}, "u"),
    ],
    ids=str,
)
def test_invalid_parquet_is_reported_with_column(tmp_path, change, field):
    path = tmp_path / "jobs.parquet"
    pl.DataFrame({"id": [1, 2], "submit_ns": [0, 1], "nodes": [1, 1], "duration_ns": [5, 5]} | change).write_parquet(path)
    with pytest.raises(InputError) as caught:
        read(path, MACHINE)
    assert (caught.value.file, caught.value.field) == (path, field)


@given(st.integers(0, 2**32), st.binary(max_size=40))
@settings(max_examples=40, deadline=None)
def test_damaged_parquet_is_read_or_raises_input_error(cut, noise):
    workload = Workload.of(np.arange(5), np.full(5, 7), requests={"nodes": np.ones(5, dtype=np.int64)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.parquet"
        write_table(workload, path)
        content = path.read_bytes()
        path.write_bytes(content[: 4 + cut % (len(content) - 4)] + noise)
        with pytest.raises(InputError):
            read(path, MACHINE)


@pytest.mark.parametrize("content", ["", HEADER, HEADER + "\n\n"])
def test_table_without_jobs_is_an_input_error(tmp_path, content):
    path = tmp_path / "jobs.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="no jobs"):
        read(path, MACHINE, format="table")


def test_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("old")
    for attributes in ({"nodes": np.ones(1)}, {"request.x": np.ones(1)}, {"deadline": np.array([np.inf])}):
        workload = Workload.of(np.zeros(1), np.ones(1), requests={"nodes": np.ones(1)}, attributes=attributes)
        with pytest.raises(InputError) as caught:
            write_table(workload, path)
        assert caught.value.field in attributes
    good = Workload.of(np.zeros(1), np.ones(1), requests={"nodes": np.ones(1)})
    for target in (tmp_path / "jobs.txt", tmp_path / "nowhere" / "jobs.csv"):
        with pytest.raises(InputError):
            write_table(good, target)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["jobs.csv"]


def test_crash_while_writing_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "jobs.parquet"
    path.write_text("old")

    def crash(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(InputError, match=r"jobs\.parquet: cannot write the file: disk full"):
        write_table(Workload.of(np.zeros(1), np.ones(1), requests={"nodes": np.ones(1)}), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["jobs.parquet"]


def test_format_recognizes_files_by_content(tmp_path):
    assert TableFormat().recognizes(table(tmp_path, GOOD))
    assert TableFormat().recognizes(table(tmp_path, "1", header='"submit_ns",other', name="odd"))
    assert not TableFormat().recognizes(table(tmp_path, "1", header="timestamp,num_gpu", name="other.csv"))
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(f"{HEADER}\n{GOOD}".encode()))
    assert TableFormat().recognizes(packed)
    assert len(read(packed, MACHINE)) == 1
