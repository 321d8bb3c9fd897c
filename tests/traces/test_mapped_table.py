import gzip
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine
from poolwise.quantities import MINUTE, SECOND
from poolwise.traces import read
from poolwise.traces.column_map import guess_columns, parse_map
from tests.helpers.make_example_ticks import text
from tests.helpers.shared_nodes import shared_nodes

MACHINE = Machine.of_racks(2, 50, local=65536, pool=2**20, cores=32)
TICKS = "submit:10s, start:10s, end:10s, duration:10s, memory:GB"


def table(folder, *lines, name="jobs.csv"):
    path = Path(folder) / name
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_shipped_example_matches_its_script():
    path = catalog.find("traces", "example-ticks.csv")
    assert path.read_text(encoding="utf-8") == text()
    workload = read(path, MACHINE, map=TICKS)
    rows = [line.split(",") for line in text().splitlines()[1:]]
    assert workload.id.tolist() == [int(row[0]) for row in rows]
    assert workload.submit.tolist() == [(int(row[1]) - int(rows[0][1])) * 10 * SECOND for row in rows]
    assert workload.duration.tolist() == [int(row[5]) * 10 * SECOND for row in rows]
    assert workload.nodes.tolist() == [int(row[4]) for row in rows]
    assert workload.memory.tolist() == [-(-int(float(row[6]) * 10**9) // 2**20) for row in rows]
    assert workload.attributes["wait_s"].tolist() == [10.0 * (int(row[2]) - int(row[1])) for row in rows]
    assert workload.notes == ('columns were guessed: --map "id=jobid, nodes=nnodes"',)


names = st.sampled_from(["t", "submit time", "a,b", "a:b", "x=y", "MemGB"])
units = {"submit": ["", "s", "10s", "date", "%d.%m.%Y, %H:%M"], "duration": ["", "ms", "0.5h", "clock"], "id": [""]}


@given(st.dictionaries(st.sampled_from([*units]), names, min_size=1), st.data())
def test_map_round_trip(columns, data):
    places = {field: (column, data.draw(st.sampled_from(units[field]))) for field, column in columns.items()}
    quote = lambda word: f'"{word}"' if any(mark in word for mark in ",:") else word  # noqa: E731
    written = " , ".join(f"{f} = {quote(c)}" + (f" : {quote(u)}" if u else "") for f, (c, u) in places.items())
    parsed = parse_map(written)
    assert {field: (*place,) for field, place in parsed.items()} == places
    assert parse_map(", ".join(f"{field}={place}" for field, place in parsed.items())) == parsed


def test_pair_without_equals_sign_maps_the_column_of_the_same_name():
    assert parse_map("submit:10s,memory : GB,") == parse_map("submit=submit:10s, memory=memory:GB")
    assert parse_map("") == {}
    assert parse_map("id=")["id"].column == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit", "is not FIELD=COLUMN:UNIT"),
        ("submit time:10s", "is not FIELD=COLUMN:UNIT"),
        ('submit="t', "is not FIELD=COLUMN:UNIT"),
        ("=t", "is not FIELD=COLUMN:UNIT"),
        ("submit=t, submit=u", "mapped twice"),
        ("submit=t:GB", "'GB' is not a valid unit for 'submit'"),
        ("submit=t:parsec", "is not a valid unit"),
        ("memory=m:s", "is not a valid unit"),
        ("nodes=n:s", "is not a valid unit"),
        ("mine=n:s", "is not a valid unit"),
        ("duration=d:date", "is not a valid unit"),
        ("submit=t:0s", "is not a valid unit"),
    ],
)
def test_invalid_map_is_reported(text, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_map(text)
    assert (caught.value.field, bool(caught.value.remedy)) == ("map", True)


@pytest.mark.parametrize(
    ("column", "field", "unit"),
    [
        ("jobid", "id", ""),
        ("Job ID", "id", ""),
        ("SubmitTime", "submit", ""),
        ("submit_time_ms", "submit", "ms"),
        ("EndTime(s)", "end", "s"),
        ("run_time", "duration", ""),
        ("elapsed_hours", "duration", "h"),
        ("wallclock_limit [min]", "requested", "min"),
        ("NNodes", "nodes", ""),
        ("num_cpus", "cores", ""),
        ("mem_gb", "memory", "GB"),
        ("memory_per_node_GiB", "memory", "GiB"),
        ("MemPerCPU_MB", "cpu_memory", "MB"),
        ("user_id", "user", ""),
        ("QOS", "qos", ""),
    ],
)
def test_common_names_are_guessed_with_their_units(column, field, unit):
    guessed, doubts = guess_columns([column, "other"], {})
    assert (guessed, doubts) == ({field: (column, unit)}, [])


@pytest.mark.parametrize("column", ["t", "nodes_requested", "submit_gb", "mem_s", "walltime", "jobname", "idle"])
def test_other_names_are_not_guessed(column):
    assert guess_columns([column], {}) == ({}, [])


def test_ambiguous_columns_are_reported_not_guessed(tmp_path):
    path = table(tmp_path, "submit,runtime,elapsed,nodes", "1,2,3,4")
    with pytest.raises(InputError, match=r"several columns match duration: runtime, elapsed") as caught:
        read(path, MACHINE)
    assert caught.value.line == 1
    assert read(path, MACHINE, map="duration=elapsed:min").duration.tolist() == [3 * MINUTE]


def test_missing_fields_error_lists_columns_and_suggestions(tmp_path):
    path = table(tmp_path, "jobno,submited_at,elapsed_secs,nodelist,hosts", "1,2,3,4,5")
    with pytest.raises(InputError) as caught:
        read(path, MACHINE)
    assert "submit or nodes" in caught.value.message
    assert "jobno, submited_at, elapsed_secs, nodelist, hosts" in caught.value.message
    assert '--map "submit=submited_at, nodes=nodelist"' in caught.value.remedy
    with pytest.raises(UnknownNameError, match="unknown column 'submitted_at'") as caught:
        read(path, MACHINE, map="submit=submitted_at")
    assert "did you mean 'submited_at'" in caught.value.remedy


rows = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 5000), st.integers(1, 10**5), st.integers(1, 100), st.floats(0.1, 500)),
    min_size=1,
    max_size=6,
)


@given(rows, st.sampled_from(["ticks", "date", "form", "ms", "clock"]), st.sampled_from([",", ";", "\t", "|"]), st.data())
@settings(max_examples=80)
def test_equivalent_formats_yield_the_same_jobs(jobs, writing, mark, data):
    zero = datetime(2024, 2, 1, tzinfo=UTC)
    point = {
        "ticks": str,
        "date": lambda t: f"{zero + timedelta(seconds=10 * t):%Y-%m-%dT%H:%M:%S}",
        "form": lambda t: f"{zero + timedelta(seconds=10 * t):%d/%m/%Y %H.%M.%S}",
        "ms": lambda t: str(t * 10_000),
        "clock": lambda t: str(t / 6),
    }[writing]
    unit = {"ticks": ":10s", "date": ":date", "form": ":%d/%m/%Y %H.%M.%S", "ms": ":ms", "clock": ":min"}[writing]
    length = (
        str if writing != "clock" else lambda t: f"{10 * t // 86400}-{10 * t // 3600 % 24:02}:{t // 6 % 60:02}:{10 * t % 60:02}"
    )
    span = {"ticks": ":10s", "clock": ""}.get(writing, ":10s")
    lines = [mark.join(["a", "b", "c", "n", "m"])]
    lines += [mark.join([point(t), point(t + w), length(d), str(n), str(m)]) for t, w, d, n, m in jobs]
    mapping = f"submit=a{unit}, start=b{unit}, duration=c{span}, nodes=n, memory=m:GiB"
    with tempfile.TemporaryDirectory() as folder:
        workload = read(table(folder, *lines, name=data.draw(st.sampled_from(["jobs.txt", "jobs.gz"]))), MACHINE, map=mapping)
    order = sorted(range(len(jobs)), key=lambda k: jobs[k][0])
    first = min(job[0] for job in jobs)
    slack = 1 if writing == "clock" else 0  # sixths of a minute have no finite decimal form
    assert np.abs(workload.submit - [(jobs[k][0] - first) * 10 * SECOND for k in order]).max() <= slack
    assert workload.duration.tolist() == [jobs[k][2] * 10 * SECOND for k in order]
    assert workload.nodes.tolist() == [jobs[k][3] for k in order]
    assert workload.attributes["wait_s"] == pytest.approx([10.0 * jobs[k][1] for k in order])
    assert workload.memory.tolist() == [int(np.ceil(jobs[k][4] * 1024 - 1e-9 * jobs[k][4] * 1024)) for k in order]


def test_parquet_types_are_read(tmp_path):
    path = tmp_path / "jobs.parquet"
    begin = datetime(2024, 2, 1, 8)
    pl.DataFrame(
        {
            "submit_time": [begin, begin + timedelta(milliseconds=1500)],
            "runtime_s": [60.5, 7.0],
            "num_nodes": [2.0, 1.0],
            "mem_gib": [1.5, None],
            "user": ["ada", None],
            "score": [0.5, None],
        }
    ).write_parquet(path)
    workload = read(path, MACHINE, map="mine=score")
    assert workload.submit.tolist() == [0, 1_500_000_000]
    assert workload.duration.tolist() == [60_500_000_000, 7 * SECOND]
    assert (workload.nodes.tolist(), workload.memory.tolist()) == ([2, 1], [1536, 0])
    assert workload.attributes["user"].tolist() == ["ada", ""]
    assert workload.attributes["mine"].tolist()[0] == 0.5
    with pytest.raises(InputError, match="row 1: 'ada' is not a finite number") as caught:
        read(path, MACHINE, map="duration=user", strict=True)
    assert caught.value.field == "user"


def test_decimal_commas_are_named_with_a_remedy(tmp_path):
    for column in range(4):
        cells = [["0", "60", "1", "8"], ["5", "7", "1", "9"]]
        for row in cells:
            row[column] = f"1.{row[column]},5"
        path = table(tmp_path, "submit;duration;nodes;memory", *(";".join(row) for row in cells))
        with pytest.raises(InputError, match=",5' has a comma") as caught:
            read(path, MACHINE, map="memory=memory:GB")
        assert caught.value.line == 2 and "decimal point" in (caught.value.remedy or "")


def test_unreadable_rows_are_skipped_and_reported_unless_strict(tmp_path):
    lines = ["submit,duration,nodes", "0,60,1", "soon,60,1", "5,-7,1", "6,60,x", "7,,1", "8,60,2,9", "9,1-00:00:00,3", "12,9,1"]
    path = table(tmp_path, *lines, "13,8,1", "14,8,1")
    workload = read(path, MACHINE)
    assert workload.submit.tolist() == [0, 9 * SECOND, 12 * SECOND, 13 * SECOND, 14 * SECOND]
    assert workload.duration.tolist()[1] == 86400 * SECOND
    assert workload.excluded == {
        "cannot be read (submit)": 1,
        "cannot be read (duration)": 1,
        "cannot be read (nodes)": 1,
        "cannot be read (cells missing or too many)": 1,
        "runtime unknown or 0": 1,
    }
    assert any("line 3: submit: 'soon' is not a time" in note for note in workload.notes)
    assert sum("skipped, for example" in note for note in workload.notes) == 4
    for bad, line in (("soon,60,1", 3), ("1,-7,1", 3), ("1,60,x", 3), ("1,60,1,1", 3)):
        with pytest.raises(InputError) as caught:
            read(table(tmp_path, lines[0], "0,60,1", bad), MACHINE, strict=True)
        assert caught.value.line == line


def test_mostly_unreadable_table_is_an_error(tmp_path):
    path = table(tmp_path, "submit,duration,nodes", "1,60,1", "x,60,1", "y,60,1")
    with pytest.raises(InputError, match="2 of 3 rows cannot be read") as caught:
        read(path, MACHINE)
    assert (caught.value.line, caught.value.field) == (3, "submit")


def test_outlier_time_is_skipped_and_not_the_other_rows(tmp_path):
    path = table(tmp_path, "submit,duration,nodes", "1901-01-01T00:00:00,60,1", *["2024-01-01T00:00:00,60,1"] * 3)
    workload = read(path, MACHINE)
    assert (len(workload), workload.excluded) == (3, {"cannot be read (submit)": 1})


def test_optional_columns(tmp_path):
    head = "start,end,wait,cpus,id"
    path = table(tmp_path, head, "100,160,10,40,1_1", "200,230,,32,1_2")
    workload = read(path, MACHINE)
    assert workload.submit.tolist() == [0]
    assert workload.duration.tolist() == [60 * SECOND]
    assert workload.nodes.tolist() == [2]
    assert workload.excluded == {"submit time unknown": 1}
    assert workload.attributes["job_name"].tolist() == ["1_1"]
    assert workload.id.tolist() == [1]
    late = read(path, MACHINE, map="wait=")
    assert late.submit.tolist() == [0, 100 * SECOND]
    assert any("submitted when they started" in note for note in late.notes)
    with pytest.raises(InputError, match="does not contain whole numbers") as caught:
        read(path, MACHINE, map="id=id")
    assert caught.value.remedy == 'add "id=" to number the jobs from 1'


def test_duplicate_ids_are_renumbered_or_reported(tmp_path):
    path = table(tmp_path, "id,submit,duration,nodes", "7,0,1,1", "7,1,1,1")
    assert read(path, MACHINE).id.tolist() == [1, 2]
    with pytest.raises(InputError, match="job 7 is already in line 2"):
        read(path, MACHINE, map="id=id")


def test_memory_without_unit_is_ignored_and_reported(tmp_path):
    path = table(tmp_path, "submit,duration,nodes,memory", "0,1,2,64")
    workload = read(path, MACHINE)
    assert workload.memory.tolist() == [0]
    assert any("'memory' was ignored" in note for note in workload.notes)
    with pytest.raises(InputError, match=r"the unit of .* is unknown") as caught:
        read(path, MACHINE, map="memory=memory")
    assert "memory=memory:GB" in caught.value.remedy
    assert read(path, MACHINE, map="memory:GiB").memory.tolist() == [64 * 1024]
    assert read(path, MACHINE, map="memory=, job_memory=memory:GiB").memory.tolist() == [32 * 1024]
    own = table(tmp_path, "submit,duration,nodes,memory", "0,1,2,64G", "0,1,2,1536MiB", "0,1,2,")
    assert read(own, MACHINE).memory.tolist() == [64 * 1024, 1536, 0]
    assert read(own, MACHINE, memory_unknown="exclude").excluded == {"memory unknown or 0": 1}


def test_jobs_request_different_nodes_on_shared_nodes(tmp_path):
    path = table(tmp_path, "submit,duration,nodes,cores,gpus,memory_gib", "0,1,2,16,4,8", "0,1,1,130,0,12")
    workload = read(path, shared_nodes(cores=64, gpu=8, memory=65536))
    assert workload.tasks.tolist() == [1, 1]
    assert {name: column.tolist() for name, column in workload.requests.items()} == {
        "nodes": [2, 3],
        "cores": [8, 44],
        "gpu": [2, 0],
        "memory": [8192, 4096],
    }
    per_cpu = read(path, shared_nodes(cores=64, memory=65536), map="memory=, cpu_memory=memory_gib:GiB")
    assert per_cpu.requests["memory"].tolist() == [16 * 8192 // 2, 130 * 12288 // 3]
    assert read(path, MACHINE).nodes.tolist() == [2, 1]
    assert read(path, MACHINE, map="nodes=").nodes.tolist() == [1, 5]


def test_inconsistent_units_are_reported(tmp_path):
    path = table(tmp_path, "submit,start,end,duration,nodes", "0,10,370,360,1", "5,10,370,360,1")
    assert not any("check the units" in note for note in read(path, MACHINE).notes)
    workload = read(path, MACHINE, map="submit:s, start:s, end:s, duration:10s")
    assert "the duration of 2 jobs is not the time between their start and end: check the units" in workload.notes


def test_unrecognized_table_is_read_by_columns_but_text_is_not(tmp_path):
    assert read(table(tmp_path, "submit;duration;nodes", "0;1;2", name="jobs"), MACHINE).nodes.tolist() == [2]
    with pytest.raises(InputError, match="no known format"):
        read(table(tmp_path, "what, is this", "1,2", name="notes"), MACHINE)
    with pytest.raises(InputError, match="map"):
        read(catalog.find("traces", "example-sacct.txt"), MACHINE, format="sacct", map="id=id")


@given(st.sampled_from(["submit", "duration", "nodes", "memory", "id", "user"]), st.text(max_size=12), st.booleans())
@settings(max_examples=150)
def test_any_cell_text_is_read_or_raises_input_error(name, word, strict):
    cells = {"submit": "3", "duration": "60", "nodes": "2", "memory": "4GB", "id": "5", "user": "ada"}
    word = word.translate({ord(mark): " " for mark in '\n\r\0,"'})
    with tempfile.TemporaryDirectory() as folder:
        path = table(folder, ",".join(cells), "0,1,1,,4,x", ",".join({**cells, name: word}.values()))
        try:
            workload = read(path, MACHINE, strict=strict)
        except InputError as error:
            assert error.file == path
        else:
            assert len(workload) + sum(workload.excluded.values()) == 2


def test_closed_loop_reads_predecessors_and_think_times(tmp_path):
    lines = "id,submit,runtime,nodes,preceding,think_min", "1,0,10,1,,", "2,1,10,1,1,2", "3,2,10,1,-1,", "4,3,10,1,2,0.5"
    workload = read(table(tmp_path, *lines), MACHINE, format="columns", closed_loop=True)
    assert workload.closed_loop
    assert workload.attributes["preceding"].tolist() == [-1, 1, -1, 2]
    assert workload.attributes["think_s"].tolist() == [0, 120, 0, 30]
    assert not read(table(tmp_path, *lines), MACHINE, format="columns").closed_loop


def test_closed_loop_requires_predecessor_column(tmp_path):
    path = table(tmp_path, "id,submit,runtime,nodes,boss", "1,0,10,1,", "2,1,10,1,1")
    with pytest.raises(InputError, match="mapped to preceding") as raised:
        read(path, MACHINE, format="columns", closed_loop=True)
    assert raised.value.line == 1
    with pytest.raises(InputError, match="'x'") as raised:
        read(
            table(tmp_path, "id,submit,runtime,nodes,preceding", "1,0,10,1,", "2,1,10,1,x"),
            MACHINE,
            closed_loop=True,
            strict=True,
        )
    assert (raised.value.line, raised.value.field) == (3, "preceding")
