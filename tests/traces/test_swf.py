import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.swf import SWF
from poolwise.traces.swf_rows import FIELDS, SwfRows, write_swf_rows
from tests.helpers.data import LOGS, available_cases
from tests.helpers.shared_nodes import shared_nodes

MACHINE = Machine.of_racks(2, 8, local=65536, cores=12)
SHORT = dict(
    job="Job Number",
    submit="Submit Time",
    wait="Wait Time",
    run="Run Time",
    allocated="Number of Allocated Processors",
    used="Used Memory",
    processors="Requested Number of Processors",
    time="Requested Time",
    memory="Requested Memory",
    user="User ID",
    group="Group ID",
    queue="Queue Number",
    partition="Partition Number",
)


def log(tmp_path, *jobs):
    """Write a log of jobs given by short field names; other fields are unknown (-1)."""
    values = np.full((len(jobs), len(FIELDS)), -1.0)
    for k, job in enumerate(jobs):
        for name, value in {"job": k + 1, **job}.items():
            values[k, FIELDS.index(SHORT[name])] = value
    path = Path(tmp_path) / "some.log.swf"
    write_swf_rows(SwfRows(path, np.arange(len(jobs)), (), values), path)
    return path


def job(**given):
    return {"submit": 0, "run": 10, "allocated": 1, "processors": 1, "time": 10, "memory": 1024} | given


job_values = st.fixed_dictionaries(
    {
        "submit": st.sampled_from([-1, 0, 5, 1_356_996_147]),
        "run": st.sampled_from([-1359981026, -1, 0, 1, 0.25, 3600]),
        "allocated": st.sampled_from([-1, 0, 1, 5, 12, 13, 200]),
        "processors": st.sampled_from([-1, 0, 1, 12, 64]),
        "time": st.sampled_from([-1, 0, 1, 3600, 7200.5]),
        "used": st.sampled_from([-1, 0, 1, 1000]),
        "memory": st.sampled_from([-1, 0, 1024, 999_999]),
    }
)


@given(st.lists(job_values, min_size=1, max_size=12), st.sampled_from(["zero", "exclude", "3 GiB"]))
@settings(max_examples=150, deadline=None)
def test_every_row_is_kept_or_counted_under_the_first_reason(jobs, memory_unknown):
    usable, excluded, repaired = [], Counter(), Counter()
    for number, row in enumerate(jobs, start=1):
        processors = max(row["allocated"], row["processors"])
        memory = row["used"] if row["used"] > 0 else row["memory"]
        if row["submit"] == -1:
            excluded["submit time unknown"] += 1
        elif row["run"] <= 0:
            excluded["runtime unknown or 0"] += 1
        elif processors <= 0:
            excluded["processors unknown or 0"] += 1
        elif memory <= 0 and memory_unknown == "exclude":
            excluded["memory unknown or 0"] += 1
        else:
            if row["time"] == -1:
                repaired["requested time unknown, set to the runtime"] += 1
            elif row["time"] < row["run"]:
                repaired["requested time below the runtime, set to the runtime"] += 1
            if memory <= 0:
                repaired[f"memory unknown or 0, set to {memory_unknown}"] += 1
            mib = -(-memory * min(processors, 12) // 1024) if memory > 0 else {"zero": 0, "3 GiB": 3072}[memory_unknown]
            nodes = -(-processors // 12)
            usable.append((row["submit"], number, row["run"], max(row["time"], row["run"]), nodes, mib, memory > 0))
    usable.sort()
    with tempfile.TemporaryDirectory() as folder:
        path = log(folder, *jobs)
        if not usable:
            with pytest.raises(InputError, match="no usable rows"):
                SWF(memory_unknown=memory_unknown).read(path, MACHINE)
            return
        workload = SWF(memory_unknown=memory_unknown).read(path, MACHINE)
    assert len(workload) + sum(workload.excluded.values()) == len(jobs)
    assert (workload.excluded, workload.repaired) == (dict(excluded), dict(repaired))
    first = usable[0][0]
    columns = (workload.submit, workload.id, workload.duration, workload.requested, workload.nodes, workload.memory)
    got = zip(*(column.tolist() for column in (*columns, workload.attributes["memory_known"])), strict=True)
    want = [(int(s - first) * SECOND, i, int(r * SECOND), int(q * SECOND), n, m, int(k)) for s, i, r, q, n, m, k in usable]
    assert list(got) == want


@pytest.mark.parametrize(
    ("field", "expected"), [("used-then-requested", [500, 700, 600]), ("used", [500, 0, 600]), ("requested", [900, 700, 0])]
)
def test_memory_comes_from_the_selected_field(tmp_path, field, expected):
    path = log(
        tmp_path,
        job(used=500 * 1024, memory=900 * 1024),
        job(used=0, memory=700 * 1024),
        job(used=600 * 1024, memory=-1),
    )
    workload = SWF(memory_field=field).read(path, MACHINE)
    assert workload.memory.tolist() == expected
    assert workload.attributes["memory_known"].tolist() == [int(amount > 0) for amount in expected]


def test_known_memory_is_scaled_and_rounded_up_once(tmp_path):
    path = log(tmp_path, job(memory=10 * 1024), job(memory=1), job(memory=-1))
    workload = SWF(memory_scale=1.1, memory_unknown="5 MiB").read(path, MACHINE)
    assert workload.memory.tolist() == [11, 1, 5]


@pytest.mark.parametrize(
    "option",
    [
        {"memory_unknown": "4"},
        {"memory_unknown": "lots"},
        {"memory_unknown": "-1 GiB"},
        {"memory_unknown": "1e30 GiB"},
        {"memory_field": "both"},
        {"memory_scale": 0.0},
        {"memory_scale": -1.0},
        {"memory_scale": float("nan")},
        {"memory_scale": float("inf")},
        {"extra_columns": -1},
    ],
    ids=str,
)
def test_invalid_option_is_reported(tmp_path, option):
    with pytest.raises(InputError) as caught:
        SWF(**option).read(log(tmp_path, job()), MACHINE)
    assert caught.value.field in option
    assert caught.value.remedy


def test_unknown_memory_field_suggests_a_known_one(tmp_path):
    with pytest.raises(UnknownNameError, match="requested"):
        SWF(memory_field="request").read(log(tmp_path, job()), MACHINE)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"run": 2**31 + 1}, "Run Time"),
        ({"time": 2**40}, "Requested Time"),
        ({"submit": 2**33}, "Submit Time"),
        ({"allocated": 2**32}, "Number of Allocated Processors"),
        ({"processors": 2**32}, "Requested Number of Processors"),
        ({"memory": 2**45}, "Requested Memory"),
        ({"memory": 2**45, "used": 2**45}, "Used Memory"),
    ],
)
def test_value_beyond_64_bits_is_reported_with_line(tmp_path, change, field):
    path = log(tmp_path, job(), job(**change))
    with pytest.raises(InputError) as caught:
        SWF(strict=True).read(path, MACHINE)
    assert (caught.value.line, caught.value.field) == (2, field)
    workload = SWF().read(path, MACHINE)
    assert (len(workload), workload.excluded) == (1, {f"cannot be read ({field})": 1})


BAD = {
    "1 2 3": "cannot be read",
    " ".join(["7"] * 19): "cannot be read",
    "90 nan 0 10 1 -1 1024 1 10 -1 1 1 1 1 1 1 -1 -1": "cannot be read (Submit Time)",
    "91.5 0 0 10 1 -1 1024 1 10 -1 1 1 1 1 1 1 -1 -1": "cannot be read (Job Number)",
    "92 -5 0 10 1 -1 1024 1 10 -1 1 1 1 1 1 1 -1 -1": "cannot be read (Submit Time)",
    "1 0 0 10 1 -1 1024 1 10 -1 1 1 1 1 1 1 -1 -1": "cannot be read (Job Number)",
    "93 0 0 9999999999 1 -1 1024 1 10 -1 1 1 1 1 1 1 -1 -1": "cannot be read (Run Time)",
}


@settings(max_examples=40, deadline=None)
@given(bad=st.lists(st.tuples(st.integers(1, 12), st.sampled_from(sorted(BAD))), max_size=5, unique_by=lambda one: one[1]))
def test_unreadable_rows_change_only_the_counts(bad):
    with tempfile.TemporaryDirectory() as folder:
        path = log(folder, *(job(submit=k, memory=1024 + k) for k in range(12)))
        clean, lines = SWF().read(path, MACHINE), path.read_text().splitlines()
        for position, text in sorted(bad, reverse=True):
            lines.insert(position, text)
        path.write_text("\n".join(lines))
        workload = SWF().read(path, MACHINE)
        assert workload.excluded == Counter(BAD[text] for _, text in bad)
        assert len(workload.notes) <= 3 and bool(workload.notes) == bool(bad)
        for name in ("id", "submit", "duration", "requested"):
            assert np.array_equal(getattr(workload, name), getattr(clean, name))
        if bad:
            with pytest.raises(InputError):
                SWF(strict=True).read(path, MACHINE)


def test_mostly_unreadable_log_is_an_error(tmp_path):
    path = log(tmp_path, job(), job(submit=-7), job(submit=-8))
    with pytest.raises(InputError, match="2 of 3 rows cannot be read"):
        SWF().read(path, MACHINE)


def test_largest_amounts_do_not_overflow_and_the_scheduler_rejects_the_job(tmp_path):
    huge = job(submit=2**31, run=2**31, time=2**31, allocated=2**31, memory=2**31 * 1024 // 12)
    path = log(tmp_path, job(), huge)
    workload = SWF().read(path, MACHINE)
    assert not workload.excluded
    assert workload.nodes.tolist() == [1, -(-(2**31) // 12)]
    schedule = simulate(workload, MACHINE, ListScheduler()).schedule
    assert list(schedule.rejected) == [1]
    assert sum(schedule.rejections().values()) == 1
    assert schedule.job_end.tolist() == [10 * SECOND, -1]


def test_rows_are_sorted_by_submit_time_and_id_and_time_starts_at_the_first_kept(tmp_path):
    path = log(tmp_path, job(submit=50, run=-1), job(submit=120), job(submit=100.5, job=9), job(submit=100.5, job=5))
    workload = SWF().read(path, MACHINE)
    assert workload.id.tolist() == [5, 9, 2]
    assert workload.submit.tolist() == [0, 0, 19_500_000_000]


def test_known_ids_and_waits_become_attributes(tmp_path):
    path = log(tmp_path, job(user=4, group=2, wait=7), job(user=-1, group=3, queue=0))
    attributes = SWF().read(path, MACHINE).attributes
    assert set(attributes) == {"user", "group", "queue", "wait_s", "memory_known"}
    assert attributes["user"].tolist() == [4, -1]
    assert attributes["queue"].tolist() == [-1, 0]
    assert attributes["wait_s"][0] == 7
    assert np.isnan(attributes["wait_s"][1])


def test_cores_are_the_minimum_of_racks_and_required(tmp_path):
    path = log(tmp_path, job(allocated=12))
    uneven = replace(MACHINE, per_node={**MACHINE.per_node, "cores": np.array([12, 4])})
    assert SWF().read(path, uneven).nodes.tolist() == [3]
    for per_node in ({}, {"cores": np.array([12, 0])}):
        with pytest.raises(InputError, match="cores"):
            SWF().read(path, replace(MACHINE, per_node=per_node))


def test_format_recognizes_files_by_name_or_first_row(tmp_path):
    swf = SWF()
    path = log(tmp_path, job())
    assert swf.recognizes(path)
    for name, content, expected in [
        ("log", "; header\n\n" + " ".join(["1"] * 18), True),
        ("log", " ".join(["1"] * 21), True),
        ("log", " ".join(["1"] * 17), False),
        ("log", "a" + " 1" * 20, False),
        ("log", "; only a header", False),
        ("log.csv", "id,submit_ns", False),
        ("broken.swf.gz", "not a row", True),
    ]:
        other = tmp_path / name
        other.write_text(content)
        assert swf.recognizes(other) is expected, content
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08")
    assert not swf.recognizes(tmp_path / "cut.gz")


@pytest.mark.parametrize(
    ("path", "jobs", "excluded"),
    [
        (LOGS / "unilu-gaia-2014.swf.gz", 8999, 1),
        (LOGS / "nasa-ipsc-1993.swf.gz", 4_970, 30),
        (LOGS / "hpc2n-2002.swf.gz", 3_145, 25),
        *available_cases(
            ("hpc_unilu_gaia_2014/UniLu-Gaia-2014-2.swf.gz", 51_859, 128),
            ("hpc_nasa_ipsc_1993/NASA-iPSC-1993-3.1-cln.swf.gz", 18_066, 173),
        ),
        *(pytest.param(*case, marks=pytest.mark.long) for case in available_cases(("hpc_lcg_2005/LCG.swf.gz", 187_520, 521))),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_real_logs_are_read_completely(path, jobs, excluded):
    workload = SWF().read(path, Machine.flat(2004))
    assert len(workload) == jobs
    assert workload.excluded == {"runtime unknown or 0": excluded}


def test_jobs_request_cores_of_one_or_several_shared_nodes(tmp_path):
    path = log(tmp_path, *(job(allocated=p, processors=p, memory=1024) for p in (1, 16, 17, 37)))
    workload = SWF().read(path, shared_nodes(cores=16, memory=65536))
    assert {name: column.tolist() for name, column in workload.requests.items()} == {
        "nodes": [1, 1, 2, 3],
        "cores": [1, 16, 9, 13],
        "memory": [1, 16, 9, 13],
    }
    assert workload.repaired == {
        "processors rounded up to the same number on each of several nodes": 2,
        "cores of these jobs in excess of their processors": 3,
    }
    with pytest.raises(InputError, match="no cores"):
        SWF().read(path, shared_nodes(memory=65536))
