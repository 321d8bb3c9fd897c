import gzip
import math
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog, load_machine, simulate
from poolwise.errors import InputError
from poolwise.model import Machine
from poolwise.quantities import MINUTE, SECOND
from poolwise.traces import read
from poolwise.traces.sacct import Sacct
from poolwise.traces.sacct_jobs import EARLIER
from poolwise.traces.sacct_rows import USED_COLUMNS, counts, gpus, lengths, requested_mib, used_mib
from tests.helpers.data import PUBLISHED
from tests.helpers.make_example_sacct import text
from tests.helpers.shared_nodes import shared_nodes

MACHINE = Machine.of_racks(2, 8, local=65536, cores=12)
DEFAULT = dict(
    JobIDRaw="1", Submit="2026-03-01T00:00:00", Start="2026-03-01T00:01:00", State="COMPLETED", NNodes="1", AllocCPUS="12",
    ElapsedRaw="100", TimelimitRaw="10", ReqMem="24G", MaxRSS="", NTasks="",
)  # fmt: skip


def export(tmp_path, *rows, name="jobs.txt", end=""):
    """Write rows that differ from the default in the given cells; the k-th row without a JobIDRaw is job k."""
    columns = [*DEFAULT, *dict.fromkeys(column for row in rows for column in row if column not in DEFAULT)]
    lines = ["|".join(columns)]
    for k, row in enumerate(rows, start=1):
        cells = {**dict.fromkeys(columns, ""), **DEFAULT, "JobIDRaw": k, **row}
        lines.append("|".join(str(cells[column]) for column in columns))
    path = Path(tmp_path) / name
    content = "".join(f"{line}{end}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


jobs = st.fixed_dictionaries(
    {
        "State": st.sampled_from(["COMPLETED", "FAILED", "CANCELLED by 17", "TIMEOUT", "NODE_FAIL", "PENDING", "RUNNING"]),
        "NNodes": st.integers(1, 4),
        "AllocCPUS": st.sampled_from([0, 1, 5, 12, 13, 48]),
        "ElapsedRaw": st.sampled_from([0, 1, 599, 3600]),
        "TimelimitRaw": st.sampled_from(["", "UNLIMITED", "Partition_Limit", "0", "10", "90"]),
        "ReqMem": st.sampled_from(["", "0", "0n", "4G", "1.50Gn", "100Mc", "16E?"]),
        "Submit": st.sampled_from(["Unknown", "2026-03-01T00:00:00", "2026-03-02T12:00:01"]),
        "used": st.sampled_from([None, ("", ""), ("0", 1), ("2048K", 4), ("1.5G", 3), ("300M", "")]),
    }
)
GIB = 1024.0


@given(st.lists(jobs, min_size=1, max_size=8), st.sampled_from(["zero", "exclude", "3 GiB"]))
@settings(max_examples=150, deadline=None)
def test_every_job_is_kept_or_counted_under_the_first_reason(rows, memory_unknown):
    usable, excluded, repaired = [], Counter(), Counter()
    lines = []
    for k, row in enumerate(rows, start=1):
        used = row["used"]
        lines.append({name: value for name, value in row.items() if name != "used"} | {"JobIDRaw": k, "Start": "Unknown"})
        if used is not None:
            lines.append({"JobIDRaw": f"{k}.0", "MaxRSS": used[0], "NTasks": used[1], "NNodes": 2, "ReqMem": ""})
        requested = {"": 0, "0": 0, "0n": 0, "16E?": 0, "4G": 4 * GIB / row["NNodes"], "1.50Gn": 1.5 * GIB}.get(row["ReqMem"])
        requested = 100 * row["AllocCPUS"] / row["NNodes"] if requested is None else requested
        taken = {None: 0, ("", ""): 0, ("0", 1): 0, ("2048K", 4): 4, ("1.5G", 3): 3 * GIB, ("300M", ""): 300}[used]
        memory = taken or requested
        if row["State"] == "PENDING":
            excluded["waiting when exported"] += 1
        elif row["State"] == "RUNNING":
            excluded["running when exported"] += 1
        elif row["Submit"] == "Unknown":
            excluded["submit time unknown"] += 1
        elif row["ElapsedRaw"] == 0:
            excluded["cancelled before it ran" if "CANCELLED" in row["State"] else "runtime unknown or 0"] += 1
        elif row["AllocCPUS"] == 0:
            excluded["no CPUs allocated"] += 1
        elif memory == 0 and memory_unknown == "exclude":
            excluded["memory unknown or 0"] += 1
        else:
            usable.append((k, row, memory))
            if not row["TimelimitRaw"].isdecimal():
                repaired[f"time limit {row['TimelimitRaw'] or 'unknown'}, set to the runtime"] += 1
            elif int(row["TimelimitRaw"]) * 60 < row["ElapsedRaw"]:
                repaired["time limit below the runtime, set to the runtime"] += 1
            if memory == 0:
                repaired[f"memory unknown or 0, set to {memory_unknown}"] += 1
    with tempfile.TemporaryDirectory() as folder:
        path = export(folder, *lines)
        if not usable:
            with pytest.raises(InputError, match="no usable rows"):
                Sacct(memory_unknown=memory_unknown).read(path, MACHINE)
            return
        workload = Sacct(memory_unknown=memory_unknown).read(path, MACHINE)
    repaired["tasks of a step unknown, assumed to be one per node"] = sum(row["used"] == ("300M", "") for _, row, _ in usable)
    assert workload.excluded == excluded
    assert workload.repaired == +repaired
    position = {int(number): k for k, number in enumerate(workload.id)}
    assert sorted(position) == [k for k, _, _ in usable]
    for number, row, memory in usable:
        job = workload.job(position[number])
        cpus = row["AllocCPUS"]
        assert job.nodes == math.ceil(cpus / 12)
        limit = int(row["TimelimitRaw"]) * 60 if row["TimelimitRaw"].isdecimal() else 0
        assert (job.duration, job.requested) == (row["ElapsedRaw"] * SECOND, max(limit, row["ElapsedRaw"]) * SECOND)
        whole = memory * row["NNodes"]
        expected = {"zero": 0, "exclude": 0, "3 GiB": 3072}[memory_unknown] if memory == 0 else whole * min(cpus, 12) / cpus
        assert job.memory == pytest.approx(math.ceil(expected - 1e-6))
        assert job.attribute("memory_known") == (memory > 0)


def test_one_row_of_each_kind(tmp_path):
    path = export(
        tmp_path,
        {"JobIDRaw": 7, "NNodes": 2, "AllocCPUS": 24, "ReqMem": "10Gn", "State": "CANCELLED by 1007", "User": "ada"},
        {"JobIDRaw": "7.batch", "MaxRSS": "1G", "NTasks": 1, "NNodes": 1},
        {"JobIDRaw": "7.extern", "MaxRSS": "0", "NTasks": 2, "NNodes": 2},
        {"JobIDRaw": "7.0", "MaxRSS": "2097152K", "NTasks": 6, "NNodes": 2},
        {"JobIDRaw": 9, "AllocCPUS": 6, "ReqMem": "500Mc", "Submit": "2026-03-01T00:00:30", "TimelimitRaw": "1"},
    )
    workload = read(path, MACHINE)
    assert workload.name == "jobs"
    assert workload.id.tolist() == [7, 9]
    assert workload.submit.tolist() == [0, 30 * SECOND]
    assert workload.requested.tolist() == [10 * MINUTE, 100 * SECOND]
    assert workload.nodes.tolist() == [2, 1]
    assert workload.memory.tolist() == [6 * 1024, 3000]
    assert workload.attributes["wait_s"].tolist() == [60.0, 30.0]
    assert workload.attributes["state"].tolist() == ["CANCELLED", "COMPLETED"]
    assert workload.attributes["user"].tolist() == ["ada", ""]
    assert read(path, MACHINE, memory_field="requested").memory.tolist() == [10 * 1024, 3000]
    assert read(path, MACHINE, memory_field="used").memory.tolist() == [6 * 1024, 0]
    assert read(path, MACHINE, memory_scale=2).memory.tolist() == [12 * 1024, 6000]


def test_steps_without_job_are_counted(tmp_path):
    path = export(tmp_path, {}, {"JobIDRaw": "6.batch", "MaxRSS": "1G"}, {"JobIDRaw": "6.0", "MaxRSS": "1G"})
    workload = read(path, MACHINE)
    assert (len(workload), workload.excluded, workload.repaired) == (1, {"step whose job is not in the export": 2}, {})


def test_memory_of_wide_jobs_follows_cpus_on_larger_nodes(tmp_path):
    path = export(tmp_path, {"NNodes": 4, "AllocCPUS": 16, "ReqMem": "3Gn"})
    for cores, nodes, memory in ((4, 4, 3072), (8, 2, 6144), (12, 2, 9216), (64, 1, 12288)):
        workload = read(path, Machine.of_racks(1, 4, local=1, cores=cores))
        assert (workload.nodes.tolist(), workload.memory.tolist()) == ([nodes], [memory])


def test_job_requests_as_many_shared_nodes_as_it_had(tmp_path):
    tres = "billing=7,cpu=7,gres/gpu:a100=4,gres/gpu=4,mem=8G,node=2"
    path = export(tmp_path, {"NNodes": 2, "AllocCPUS": 7, "ReqMem": "8G", "AllocTRES": tres}, {"AllocCPUS": 3})
    workload = read(path, shared_nodes(cores=64, gpu=8, memory=65536))
    assert workload.tasks.tolist() == [1, 1]
    assert {name: column.tolist() for name, column in workload.requests.items()} == {
        "nodes": [2, 1],
        "cores": [4, 3],
        "gpu": [2, 0],
        "memory": [4096, 24 * 1024],
    }
    assert workload.repaired == {"CPUs rounded up to a whole number of 'cores' on each node": 1}
    none = read(path, shared_nodes(cores=64, memory=65536))
    assert none.repaired["GPUs ignored, because the machine's nodes have none"] == 1
    fine = read(path, shared_nodes(cpu_milli=64000, gpu_milli=8000, memory=65536))
    assert (fine.requests["cpu_milli"].tolist(), fine.requests["gpu_milli"].tolist()) == ([3500, 3000], [2000, 0])
    with pytest.raises(InputError, match="2 jobs request no resource"):
        read(path, shared_nodes(memory=65536))


@pytest.mark.parametrize(
    ("words", "zone", "submit", "repaired"),
    [
        (["2026-03-01T00:00:00", "2026-03-01T01:00:00"], "UTC", 3600, 0),
        (["1772323200", "2026-03-01T01:00:00Z"], "UTC", 3600, 0),
        (["2026-03-01T00:00:00+0100", "2026-02-28T23:30:00+00:00"], "UTC", 1800, 0),
        (["2026-03-29T01:30:00", "2026-03-29T03:30:00"], "Europe/Berlin", 3600, 0),
        (["2026-03-29T01:30:00", "2026-03-29T03:30:00"], "UTC", 7200, 0),
        (["2026-10-25T01:30:00", "2026-10-25T02:30:00"], "Europe/Berlin", 3600, 1),
        (["2026-10-25T01:30:00", "2026-10-25T03:30:00"], "Europe/Berlin", 10800, 0),
    ],
)
def test_times_are_in_zone_unless_they_have_an_offset(tmp_path, words, zone, submit, repaired):
    path = export(tmp_path, *({"Submit": word, "Start": "Unknown"} for word in words))
    workload = read(path, MACHINE, timezone=zone)
    assert int(workload.submit[1]) == submit * SECOND
    assert sum(count for reason, count in workload.repaired.items() if "ambiguous local time" in reason) == repaired
    assert np.isnan(workload.attributes["wait_s"]).all()


def test_start_before_submission_has_unknown_wait(tmp_path):
    workload = read(export(tmp_path, {"Start": "2026-02-28T23:59:59"}, {}), MACHINE)
    assert np.isnan(workload.attributes["wait_s"]).tolist() == [True, False]
    assert workload.repaired["start before the submission, wait unknown"] == 1


@pytest.mark.parametrize(("name", "end"), [("jobs.txt", "|"), ("jobs.txt", "\r"), ("jobs.txt.gz", ""), ("jobs.gz", "|")])
def test_line_endings_and_gzip_do_not_matter(tmp_path, name, end):
    workload = read(export(tmp_path, {}, {"Submit": "2026-03-01T00:00:09"}, name=name, end=end), MACHINE)
    assert workload.submit.tolist() == [0, 9 * SECOND]


def test_concatenated_exports_may_overlap(tmp_path):
    path = export(tmp_path, {}, {"State": "FAILED"})
    again = path.read_text()
    path.write_text(again + again)
    workload = read(path, MACHINE)
    assert len(workload) == 2
    assert workload.excluded == {"identical duplicate row": 2}
    path.write_text(again + again.replace("FAILED|1|12|100", "COMPLETED|1|12|700"))
    workload = read(path, MACHINE)
    assert workload.attributes["state"].tolist() == ["COMPLETED", "COMPLETED"]
    assert workload.duration.tolist() == [100 * SECOND, 700 * SECOND]
    assert workload.excluded == {"identical duplicate row": 1, EARLIER: 1}


def test_last_run_of_requeued_job_is_kept_with_its_steps(tmp_path):
    first = {"JobIDRaw": 7, "State": "REQUEUED", "ElapsedRaw": 50}
    again = {"Submit": "2026-03-01T02:00:00", "Start": "2026-03-01T03:00:00"}
    rows = [
        first,
        {"JobIDRaw": "7.batch", "MaxRSS": "9G", "NTasks": 1, "Start": "2026-03-01T00:01:00"},
        {"JobIDRaw": "7.1", "MaxRSS": "11G", "NTasks": 1, "Start": "2026-03-01T00:01:00"},
        {"JobIDRaw": 7, **again, "ElapsedRaw": 300},
        {"JobIDRaw": "7.batch", "MaxRSS": "2G", "NTasks": 1, "Submit": again["Start"], "Start": again["Start"]},
        {"JobIDRaw": 8},
    ]
    for order in (rows, rows[::-1]):
        workload = read(export(tmp_path, *order), MACHINE)
        assert workload.id.tolist() == [8, 7]
        assert workload.duration.tolist() == [100 * SECOND, 300 * SECOND]
        assert workload.memory.tolist() == [24 * 1024, 2 * 1024]
        assert workload.excluded == {EARLIER: 3}
    for column in ("User", "Cluster"):
        path = export(tmp_path, {**first, column: "a"}, {"JobIDRaw": 7, **again, column: "b"})
        with pytest.raises(InputError, match=f"a different {column}") as caught:
            read(path, MACHINE)
        assert (caught.value.line, caught.value.field) == (3, column)


def rewritten(path, change):
    """Rewrite the columns of an export; `change` maps the cells of a row by name to new cells."""
    head, *lines = path.read_text().splitlines()
    cells = [change(dict(zip(head.split("|"), line.split("|"), strict=True))) for line in lines]
    path.write_text("\n".join(["|".join(cells[0]), *("|".join(map(str, row.values())) for row in cells)]) + "\n")
    return path


def clock(seconds):
    days, rest = divmod(int(seconds), 86400)
    return f"{days}-" * bool(days) + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def test_equivalent_columns_yield_the_same_jobs(tmp_path):
    rows = [
        {"ElapsedRaw": 100_000, "TimelimitRaw": 1700, "NNodes": 2, "AllocCPUS": 24},
        {"TimelimitRaw": "UNLIMITED"},
        {"State": "PENDING", "Start": "Unknown", "ElapsedRaw": 0, "AllocCPUS": 0},
    ]
    want = read(export(tmp_path, *rows), MACHINE)

    def other(cells):
        limit = cells.pop("TimelimitRaw")
        cells["Timelimit"] = clock(60 * int(limit)) if limit.isdecimal() else limit
        cells["Elapsed"] = clock(cells.pop("ElapsedRaw"))
        cells["NCPUS"], cells["AllocNodes"] = cells.pop("AllocCPUS"), cells.pop("NNodes")
        return cells

    def ends(cells):
        ran = int(cells.pop("ElapsedRaw"))
        begun = datetime.fromisoformat(cells["Start"]) if ran else None
        return {**cells, "End": f"{begun + timedelta(seconds=ran):%Y-%m-%dT%H:%M:%S}" if begun else "Unknown"}

    for change in (other, ends):
        workload = read(rewritten(export(tmp_path, *rows), change), MACHINE)
        assert workload.excluded == want.excluded == {"waiting when exported": 1}
        for column in ("id", "submit", "duration", "requested", "nodes", "memory"):
            assert getattr(workload, column).tolist() == getattr(want, column).tolist()
    few = {"JobIDRaw", "Submit", "State", "NNodes", "AllocCPUS", "ElapsedRaw"}
    workload = read(rewritten(export(tmp_path, *rows), lambda cells: {k: v for k, v in cells.items() if k in few}), MACHINE)
    assert workload.duration.tolist() == want.duration.tolist()
    assert workload.repaired == {"time limit unknown, set to the runtime": 2, "memory unknown or 0, set to zero": 2}
    for field, column in (("used", "MaxRSS"), ("requested", "ReqMem")):
        with pytest.raises(InputError, match=f"lacks {column}"):
            read(tmp_path / "jobs.txt", MACHINE, memory_field=field)


def test_array_tasks_and_het_parts_get_unique_numbers(tmp_path):
    ids = ["17", "18_4", "18_5", "19+1", "20_[6-9%2]", "18_4.batch"]
    rows = [{"JobIDRaw": k} for k in ids]
    rows[-1] |= {"MaxRSS": "5G", "NTasks": 1}
    path = rewritten(export(tmp_path, *rows), lambda cells: {"JobID": cells.pop("JobIDRaw"), **cells})
    workload = read(path, MACHINE)
    assert workload.id.tolist() == [17, 1800000004, 1800000005, 1950000001]
    assert workload.attributes["job_name"].tolist() == ["17", "18_4", "18_5", "19+1"]
    assert workload.memory.tolist() == [24576, 5 * 1024, 24576, 24576]
    assert workload.excluded == {"pending array tasks in one row": 1}


def test_rows_with_bars_in_text_are_skipped_and_counted(tmp_path):
    path = export(tmp_path, {"User": "ada"}, {"User": "a|b"}, {"User": "ada"})
    workload = read(path, MACHINE)
    assert (workload.id.tolist(), workload.excluded) == ([1, 3], {"cannot be read": 1})
    assert "line 3: the row has 13 fields, the header 12" in workload.notes[0]
    with pytest.raises(InputError, match="13 fields, the header 12") as caught:
        read(path, MACHINE, strict=True)
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"JobIDRaw": "12_[3-7]"}, "not the number of a job"),
        ({"JobIDRaw": "\u0663"}, "not the number of a job"),
        ({"Submit": "yesterday"}, "not a time"),
        ({"Submit": "2026-02-30T00:00:00"}, "not a time"),
        ({"Submit": "2026-03-29T02:30:00"}, "skips it"),
        ({"Submit": "1901-03-29T02:30:00"}, "34 years"),
        ({"Start": "2026-03-01"}, "not a time"),
        ({"State": "DONE"}, "unknown state 'DONE'"),
        ({"NNodes": "two"}, "not a number of nodes"),
        ({"NNodes": "0"}, "not between 1"),
        ({"NNodes": "99999999"}, "not between 1"),
        ({"AllocCPUS": "1.5"}, "not a number of nodes"),
        ({"AllocCPUS": "3000000000"}, "not between 1"),
        ({"ElapsedRaw": "00:10:00"}, "not a whole number"),
        ({"ElapsedRaw": ""}, "empty cell"),
        ({"ElapsedRaw": "3000000000"}, "68 years"),
        ({"TimelimitRaw": "1:00"}, "not a whole number"),
        ({"TimelimitRaw": "-5"}, "not a time limit"),
        ({"ReqMem": "4096"}, "not an amount of memory"),
        ({"ReqMem": "4Q"}, "not an amount of memory"),
        ({"ReqMem": "9999999T"}, "more than 2"),
        ({"MaxRSS": "12Gn"}, "not an amount of memory"),
        ({"MaxRSS": "1G", "NTasks": "many"}, "not a number of nodes"),
    ],
    ids=str,
)
def test_unreadable_cell_is_reported_with_line_and_field(tmp_path, cell, message):
    others = [{"Submit": "2026-03-28T00:00:00"}] * 2
    path = export(tmp_path, *others, cell)
    with pytest.raises(InputError, match=message) as caught:
        read(path, MACHINE, timezone="Europe/Berlin", strict=True)
    error = caught.value
    assert (error.file, error.field, error.line) == (path, list(cell)[-1], 4)
    assert error.remedy
    workload = read(path, MACHINE, timezone="Europe/Berlin")
    assert len(workload) == 2
    assert workload.excluded == {f"cannot be read ({list(cell)[-1]})": 1}
    assert [note.startswith("skipped, for example, line 4: ") for note in workload.notes] == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timezone": "Mars/Olympus"}, "unknown time zone"),
        ({"timezone": "../../etc/passwd"}, "unknown time zone"),
        ({"memory_field": "maxrss"}, "unknown memory field"),
        ({"memory_unknown": "lots"}, "not a quantity"),
        ({"memory_scale": 0}, "invalid memory scale"),
    ],
    ids=str,
)
def test_invalid_option_is_reported(tmp_path, options, message):
    with pytest.raises(InputError, match=message) as caught:
        read(export(tmp_path, {}), MACHINE, **options)
    assert (caught.value.field, bool(caught.value.remedy)) == (next(iter(options)), True)


@pytest.mark.parametrize(
    ("content", "line", "field", "message"),
    [
        (
            "JobIDRaw|State\n1|COMPLETED\n",
            1,
            "Submit",
            "lacks Submit, NNodes/AllocNodes, AllocCPUS/NCPUS, ElapsedRaw/Elapsed/End",
        ),
        ("|".join([*USED_COLUMNS, "State"]) + "\n" + "|" * len(USED_COLUMNS) + "\n", 1, "State", "appears twice"),
        ("|".join(USED_COLUMNS) + "\n1|2\n", 2, None, "2 fields, the header 19; 1 of 1 rows"),
        ("|".join(USED_COLUMNS) + "\n", None, None, "contains no jobs"),
        ("|".join(USED_COLUMNS) + "\n1.batch" + "|" * (len(USED_COLUMNS) - 1) + "\n", None, None, "contains no jobs"),
        ("JobIDRaw|Submit|State|NNodes|NCPUS|End\n", 1, "Start", "lacks Start"),
    ],
    ids=["columns", "twice", "cells", "empty", "steps", "ends"],
)
def test_file_that_is_not_an_export_is_reported(tmp_path, content, line, field, message):
    path = tmp_path / "jobs.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read(path, MACHINE)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, line, field)
    assert caught.value.remedy


@given(st.sampled_from(USED_COLUMNS), st.text(max_size=12), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_cell_text_is_read_or_raises_input_error(name, word, strict):
    with tempfile.TemporaryDirectory() as folder:
        path = export(folder, {}, {name: word.replace("\n", " ")})
        try:
            workload = Sacct(strict=strict).read(path, MACHINE)
        except InputError as error:
            assert error.file == path
        else:
            assert len(workload) + sum(workload.excluded.values()) == 2


@given(st.integers(0, 10**6), st.sampled_from("KMGT"))
def test_memory_amounts_use_binary_units(amount, unit):
    mebibytes = amount * 1024.0 ** ("KMGT".index(unit) - 1)
    assert used_mib([f"{amount}{unit}"]).tolist() == [mebibytes]
    for suffix in ("", "n", "c"):
        amounts, per = requested_mib([f"{amount}{unit}{suffix}"])
        assert (amounts.tolist(), per.tolist()) == ([mebibytes], [suffix])


@given(st.integers(0, 10**7))
def test_durations_are_parsed(seconds):
    assert lengths([clock(seconds), f"{seconds // 60 % 60:02}:{seconds % 60:02}"]).tolist() == [seconds, seconds % 3600]


def test_compound_cells_are_parsed():
    assert used_mib(["1048576", "0", ""]).tolist() == [1.0, 0.0, 0.0]
    assert counts(["7", "1K", "1.50K"]).tolist() == [7, 1024, 1536]
    assert gpus(["", "cpu=1,gres/gpu=3", "gres/gpu:a100=2,gres/gpu=2,node=1", "xgres/gpu=9"]).tolist() == [0, 3, 2, 0]
    assert gpus(["gres/gpu:a100=2,gres/gpu:h100=1", "gres/gpu=x"]).tolist() == [3, 0]


def test_only_exports_are_recognized(tmp_path):
    assert Sacct().recognizes(export(tmp_path, {}))
    assert Sacct().recognizes(export(tmp_path, {}, name="jobs.gz", end="|"))
    for other in (PUBLISHED / "pool_golden_jobs.csv", catalog.find("traces", "philly-2017-10.csv.gz")):
        assert not Sacct().recognizes(other)
    assert not Sacct().recognizes(tmp_path / "missing")


def test_shipped_example_matches_its_script():
    path = catalog.find("traces", "example-sacct.txt")
    assert path.read_text(encoding="utf-8") == text()
    workload = read(path, Machine.of_racks(2, 16, local=65536, cores=32))
    rows = sum("." not in line.partition("|")[0] for line in text().splitlines()) - 1
    assert len(workload) + sum(workload.excluded.values()) == rows == 400
    assert workload.memory.max() <= 256 * 1024


MIXED = """\
version = 1
name = "mixed"
node = [
  {{ name = "cpu", cores = 32, memory = "64 GiB", allocation = "{cpu}" }},
  {{ name = "gpu", cores = 32, memory = "64 GiB", allocation = "{gpu}", resources = {{ gpu = 4 }} }},
]
rack = [{{ count = 1, nodes = {{ cpu = 4 }} }}, {{ count = 1, nodes = {{ gpu = 2 }} }}]
"""


@pytest.mark.parametrize(("cpu", "gpu"), [("whole", "whole"), ("shared", "shared"), ("whole", "shared")])
def test_gpu_jobs_of_a_mixed_cluster_keep_their_gpus_or_are_reported(tmp_path, cpu, gpu):
    (tmp_path / "mixed.toml").write_text(MIXED.format(cpu=cpu, gpu=gpu))
    machine = load_machine(tmp_path / "mixed.toml")
    path = export(tmp_path, {"AllocCPUS": 8, "AllocTRES": "cpu=8,gres/gpu:a100=4,gres/gpu=4"}, {"AllocCPUS": 8})
    workload = read(path, machine)
    if cpu != gpu:
        assert workload.repaired["GPUs ignored, because the machine's whole nodes have none"] == 1
        assert "gpu" not in workload.requests
        return
    assert workload.requests["gpu"].tolist() == [4, 0] and not any("GPUs" in reason for reason in workload.repaired)
    schedule = simulate(workload, machine).schedule
    (run,) = np.flatnonzero(schedule.job == 0).tolist()
    nodes = [owner for owner, resource, _ in schedule.placement_of(run) if machine.resources[resource] in ("nodes", "gpu")]
    assert nodes and {int(machine.rack[owner]) for owner in nodes} == {1}, "the second rack has the GPUs"
