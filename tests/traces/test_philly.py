import csv
import gzip
import math
from collections import Counter
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Machine
from poolwise.quantities import SECOND
from poolwise.traces import read
from poolwise.traces.philly import Philly
from tests.helpers.data import available_cases
from tests.helpers.shared_nodes import shared_nodes

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
EIGHT = replace(Machine.of_racks(1, 4, cores=48), per_node={"cores": np.array([48]), "gpu": np.array([8])})


def log(tmp_path, *rows):
    path = tmp_path / "philly.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n\n")
    return path


@pytest.mark.parametrize(
    ("path", "jobs"),
    [
        (catalog.find("traces", "philly-2017-10.csv.gz"), 6055),
        *(pytest.param(*case, marks=pytest.mark.long) for case in available_cases(("gpu_philly_2017/philly.csv.gz", 82247))),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_all_published_jobs_are_read(path, jobs):
    workload = read(path, EIGHT)
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["timestamp"]]
    assert len(workload) == len(rows) == jobs
    assert workload.excluded == {}
    assert workload.repaired == {"requested time unknown, set to the runtime": jobs}
    first = min(datetime.fromisoformat(row["timestamp"]) for row in rows)
    for k in range(0, len(rows), 97):
        row, job = rows[int(workload.id[k]) - 1], workload.job(k)
        assert job.submit == (datetime.fromisoformat(row["timestamp"]) - first).total_seconds() * SECOND
        assert job.duration == float(row["duration"]) * SECOND
        assert job.nodes == math.ceil(int(row["num_gpus"]) / 8)
        assert workload.attributes["cluster"][k] == row["cluster"]
    requested = Counter((-(-int(row["num_gpus"]) // 8)) for row in rows)
    assert Counter(workload.nodes.tolist()) == requested


def test_shared_node_gangs_have_fewest_equal_tasks(tmp_path):
    rows = [f"2017-10-09 07:0{k}:00,10.5,{gpus},1,x" for k, gpus in enumerate([1, 8, 9, 24, 128])]
    workload = read(log(tmp_path, *rows), shared_nodes(cores=48, gpu=8, memory=1))
    assert workload.tasks.tolist() == [1, 1, 2, 3, 16]
    assert {name: column.tolist() for name, column in workload.requests.items()} == {"gpu": [1, 8, 5, 8, 8]}
    assert workload.repaired["GPUs rounded up to a whole number of 'gpu' on each node"] == 1
    assert workload.duration.tolist() == [10_500_000_000] * 5


def test_machine_without_gpus_is_rejected(tmp_path):
    path = log(tmp_path, "2017-10-09 07:01:55,66.0,1,66.0,11cb48")
    for machine in (Machine.of_racks(1, 1), shared_nodes(cores=4, memory=1)):
        with pytest.raises(InputError, match="1 job requests no resource") as caught:
            read(path, machine)
        assert "gpu" in caught.value.remedy


def test_rows_without_runtime_or_gpus_are_excluded_and_ids_number_rows(tmp_path):
    path = log(tmp_path, "2017-10-09 07:00:00,0,1,0,x", "2017-10-09 07:00:00,,1,0,x", "2017-10-09 07:00:00,5,0,0,x",
               "2017-10-09 07:00:09,5,2,10,x", "2017-10-09 07:00:08,5,2,10,x")  # fmt: skip
    workload = read(path, EIGHT)
    assert workload.id.tolist() == [5, 4]
    assert workload.submit.tolist() == [0, SECOND]
    assert workload.excluded == {"runtime unknown or 0": 2, "GPUs unknown or 0": 1}


def test_repeated_hour_is_counted_in_its_zone(tmp_path):
    path = log(tmp_path, "2017-11-05 00:30:00,5,1,5,x", "2017-11-05 01:30:00,5,1,5,x", "2017-11-05 02:30:00,5,1,5,x")
    assert read(path, EIGHT).submit.tolist() == [0, 3600 * SECOND, 7200 * SECOND]
    pacific = read(path, EIGHT, timezone="America/Los_Angeles")
    assert pacific.submit.tolist() == [0, 3600 * SECOND, 10800 * SECOND]
    assert [count for reason, count in pacific.repaired.items() if "ambiguous local time" in reason] == [1]


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("2017-10-09,66,1,66,x", "timestamp", "not a time"),
        (",66,1,66,x", "timestamp", "not a time"),
        ("1930-10-09 07:01:55,66,1,66,x", "timestamp", "68 years"),
        ("2017-10-09 07:01:55,nan,1,66,x", "duration", "not a finite number"),
        ("2017-10-09 07:01:55,3e9,1,66,x", "duration", "68 years"),
        ("2017-10-09 07:01:55,66,1.5,66,x", "num_gpus", "not a whole number"),
        ("2017-10-09 07:01:55,66,-1,66,x", "num_gpus", "not between 0"),
    ],
    ids=str,
)
def test_unreadable_cell_is_reported_with_line_and_field(tmp_path, row, field, message):
    path = log(tmp_path, "2017-10-09 07:01:55,66.0,1,66.0,11cb48", row)
    with pytest.raises(InputError, match=message) as caught:
        Philly().read(path, EIGHT)
    error = caught.value
    assert (error.file, error.field, bool(error.remedy)) == (path, field, True)
    assert error.line == (2 if "1930" in row else 3)
