"""Tests of Philly jobs with Gavel's kinds: durations on the reference unit, drawn kinds, excluded jobs, and errors."""

import csv
import gzip

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError, UnknownNameError
from poolwise.performance.affinity import compute_times, rates
from poolwise.quantities import SECOND
from poolwise.traces.philly_tasks import PhillyTasks
from tests.helpers.measured_units import machine

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"
SHIPPED = catalog.find("traces", "philly-2017-10.csv.gz")


@pytest.fixture(scope="module")
def units():
    return machine("gavel", k80=1, p100=1, v100=1)


def test_jobs_take_recorded_time_on_reference_unit(units):
    workload = PhillyTasks().read(SHIPPED, units)
    with gzip.open(SHIPPED, "rt") as file:
        rows = list(csv.DictReader(file))
    single = [row for row in rows if row["num_gpus"] == "1"]
    assert len(workload) == len(single) and workload.excluded == {"more than one GPU": len(rows) - len(single)}
    kind, operations = (workload.attributes[name] for name in ("task_type", "operations"))
    reference = compute_times(operations.astype(np.float64), rates(units)[kind, 1])
    logged = np.array([float(rows[k - 1]["duration"]) for k in workload.attributes["parent_job_id"].tolist()])
    assert np.abs(reference / SECOND - logged).max() < 1e-3  # an operation is a millionth of a step
    assert (workload.duration <= reference).all() and (workload.tasks == 1).all()


def test_kinds_depend_on_seed_and_row(units, tmp_path):
    whole, other = PhillyTasks().read(SHIPPED, units), PhillyTasks(seed=1).read(SHIPPED, units)
    counts = np.bincount(whole.attributes["task_type"])[7:]
    assert len(counts) == 26 and counts.min() > 0.6 * len(whole) / 26 and counts.max() < 1.4 * len(whole) / 26
    assert (whole.attributes["task_type"] != other.attributes["task_type"]).mean() > 0.9
    with gzip.open(SHIPPED, "rt") as file:
        lines = file.read().splitlines()
    (tmp_path / "part.csv").write_text("\n".join(lines[:500]) + "\n")
    part = PhillyTasks().read(tmp_path / "part.csv", units)
    kind_of = dict(zip(whole.attributes["parent_job_id"].tolist(), whole.attributes["task_type"].tolist(), strict=True))
    assert all(
        kind_of[job] == kind
        for job, kind in zip(part.attributes["parent_job_id"].tolist(), part.attributes["task_type"].tolist(), strict=True)
    )


def test_only_kinds_of_the_reference_unit_are_drawn(tmp_path):
    small = machine("gavel", k80=1)
    workload = PhillyTasks(reference="k80").read(SHIPPED, small)
    assert (rates(small)[workload.attributes["task_type"], 0] > 0).all()


def test_errors_have_remedies(units, tmp_path):
    with pytest.raises(UnknownNameError, match="a100") as caught:
        PhillyTasks(reference="a100").read(SHIPPED, units)
    assert "k80, p100, v100" in caught.value.remedy
    (tmp_path / "p.csv").write_text(HEADER + "2017-10-09 07:01:55,66.0,2,66.0,x\n")
    with pytest.raises(InputError, match="no job has one GPU"):
        PhillyTasks().read(tmp_path / "p.csv", units)
    (tmp_path / "p.csv").write_text(HEADER + "2017-10-09 07:01:55,soon,1,66.0,x\n")
    with pytest.raises(InputError, match="soon") as caught:
        PhillyTasks().read(tmp_path / "p.csv", units)
    assert (caught.value.line, caught.value.field) == (2, "duration")
