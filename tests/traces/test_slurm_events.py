"""Trace format `slurm_events`: job streams of the Slurm simulator."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.traces.read import read
from poolwise.traces.slurm_events import SlurmEvents
from tests.helpers.data import DATA
from tests.helpers.shared_nodes import shared_nodes

FILE = DATA / "slurm-events" / "invented.events"
WHOLE = Machine.of_racks(2, 16, local=2**20, cores=12)
SHARED = shared_nodes(cores=12, gpu=4, memory=2**20)
LINE = "-dt {submit} -e submit_batch_job | -J jobid_{id} {options} pseudo.job\n"


def events(tmp_path: Path, *options: str, machine: Machine = WHOLE, **settings: object) -> Workload:
    path = tmp_path / "jobs.events"
    path.write_text("".join(LINE.format(submit=k, id=k + 1, options=text) for k, text in enumerate(options)))
    return read(path, machine, **settings)


def test_sample_is_detected_and_read(tmp_path: Path) -> None:
    jobs = read(FILE, WHOLE)
    assert jobs.id.tolist() == [1001, 1002, 1003, 1004, 1005, 1009, 1008]
    assert (jobs.submit / SECOND).tolist() == [0, 1, 2.5, 16, 19, 20, 22]
    assert (jobs.duration // SECOND).tolist() == [10, 120, 5, 60, 120, 300, 60]
    assert (jobs.requested // SECOND).tolist() == [60, 120, 60, 60, 300, 300, 600]
    assert jobs.nodes.tolist() == [1, 1, 2, 2, 1, 4, 1]
    assert jobs.memory.tolist() == [0, 0, 500_000, 16 * 1024, 62 * 1024, 0, 6 * 1024]
    assert jobs.attributes["user"].tolist()[:3] == ["user1", "user2", "user3"]
    assert jobs.attributes["account"].tolist()[2:4] == ["account2", "account1"]
    assert jobs.attributes["qos"].tolist()[2] == "high"
    assert jobs.excluded == {"cancelled at a given time (-cancel-in)": 1}
    assert jobs.repaired["option --dependency, left out"] == 1
    assert jobs.repaired["option --exclusive, left out"] == 1  # --exclusive=user
    assert "exclusive" not in jobs.attributes
    assert jobs.repaired["GPU type in option --gres, left out"] == 1
    assert jobs.repaired["runtime above the time limit, set to the limit"] == 1
    packed = tmp_path / "some.gz"
    packed.write_bytes(gzip.compress(FILE.read_bytes()))
    assert np.array_equal(read(packed, WHOLE).duration, jobs.duration)


def test_exclusive_jobs_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "jobs.events"
    texts = ("-t 9 -n 2 --exclusive", "-t 9 -n 2", "-t 9 -n 2 --exclusive=user")
    path.write_text("".join(LINE.format(submit=k, id=k + 1, options=text) for k, text in enumerate(texts)))
    jobs = read(path, SHARED)
    assert jobs.attributes["exclusive"].tolist() == [1, 0, 0]
    assert jobs.repaired["option --exclusive, left out"] == 1


def test_licenses_are_requested(tmp_path: Path) -> None:
    texts = ("-L matlab:2,ansys@db", "--licenses=ansys@db:3", "-L 'matlab:1|ansys@db:1'", "-n 1")
    options = [f"-t 9 {text}" for text in texts]
    jobs = events(tmp_path, *options)
    assert jobs.attributes["license/matlab"].tolist() == [2, 0, 0, 0]
    assert jobs.attributes["license/ansys@db"].tolist() == [1, 3, 0, 0]
    assert jobs.repaired["option --licenses, left out"] == 1  # the alternatives
    limited = events(tmp_path, *options, machine=replace(WHOLE, licenses={"matlab": 2}))
    assert "license/ansys@db" not in limited.attributes and limited.attributes["license/matlab"].tolist() == [2, 0, 0, 0]
    assert limited.repaired["license that the machine lacks, ignored"] == 2


def test_gpus_of_each_node_are_requested_on_shared_nodes() -> None:
    jobs = read(FILE, SHARED)
    assert jobs.request("gpu").tolist() == [0, 0, 0, 2, 1, 0, 0]
    assert jobs.request("cores").tolist() == [12, 1, 12, 8, 8, 6, 6]
    assert jobs.nodes.tolist() == [1, 1, 2, 2, 1, 4, 1]


@pytest.mark.parametrize(
    ("options", "nodes", "cores"),
    [
        ("-n 5", 1, 5),
        ("-n5 -c 2", 1, 10),
        ("--ntasks=24 --ntasks-per-node=6", 4, 6),
        ("-N 3", 3, 1),
        ("-N3 --ntasks-per-node 4", 3, 4),
        ("--nodes=2-4 -n 8", 2, 4),
        ("-N 4 -n 2", 2, 1),
        ("--cpus-per-task=3", 1, 3),
        ("-n 30", 3, 10),
    ],
)
def test_options_determine_nodes_and_cores(tmp_path: Path, options: str, nodes: int, cores: int) -> None:
    jobs = events(tmp_path, f"{options} -sim-walltime 5 -t 1", machine=SHARED)
    assert (int(jobs.nodes[0]), int(jobs.request("cores")[0])) == (nodes, cores)


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ("--array=1-10", "array", "job arrays are not supported"),
        ("-a 1-10", "array", "job arrays are not supported"),
        ("-n 1 : -n 2", "hetjob", "heterogeneous jobs"),
        ("--ntask=3", "ntask", "unknown option"),
        ("-Z", "Z", "unknown option"),
        ("-n 0", "ntasks", "whole number of at least 1"),
        ("-t never", "time", "is not a time"),
        ("--mem=4X", "mem", "not an amount of memory"),
        ("--mem=4G --mem-per-cpu=1G", "mem", "exclude each other"),
        ("--comment='a b", None, "invalid quoting"),
    ],
)
def test_lines_that_cannot_be_represented_are_refused_by_name(tmp_path: Path, options: str, field: str, message: str) -> None:
    good = ["-n 1 -sim-walltime 5 -t 1"] * 2
    with pytest.raises(InputError, match=message) as caught:
        events(tmp_path, *good, f"{options} -sim-walltime 5", strict=True)
    assert caught.value.line == 3 and caught.value.field == field and caught.value.remedy
    jobs = events(tmp_path, *good, f"{options} -sim-walltime 5")
    assert len(jobs) == 2 and sum(jobs.excluded.values()) == 1 and len(jobs.notes) == 1


def test_other_options_are_counted_by_name(tmp_path: Path) -> None:
    jobs = events(
        tmp_path, "-t 1 -sim-walltime 5 --begin=16:00 -w n1 -o 'a b.txt' --hold --switches=1", "-t 1 -sim-walltime 5 -H"
    )
    names = ("begin", "nodelist", "output", "switches")
    assert {f"option --{name}, left out": 1 for name in names}.items() <= jobs.repaired.items()
    assert jobs.repaired["option --hold, left out"] == 2


def test_jobs_without_run_time_or_limit_are_excluded(tmp_path: Path) -> None:
    jobs = events(tmp_path, "-sim-walltime -1", "-t 1", "-sim-walltime 0 -t 1", "-sim-walltime 7")
    assert jobs.excluded == {"runs until its time limit, but has none": 1, "runtime 0": 1}
    assert (jobs.duration // SECOND).tolist() == [60, 7] and (jobs.requested // SECOND).tolist() == [60, 7]
    assert jobs.repaired["time limit unknown, set to the runtime"] == 1


def test_other_events_and_empty_files_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "jobs.events"
    path.write_text("-dt 0 -e cancel_job | -jid 3\n" + LINE.format(submit=1, id=1, options="-t 1"))
    assert SlurmEvents().recognizes(path)
    assert read(path, WHOLE).excluded == {"event cancel_job, which is not a submission": 1}
    path.write_text("# nothing\n")
    assert not SlurmEvents().recognizes(path)
    with pytest.raises(InputError, match="contains no jobs"):
        read(path, WHOLE, "slurm_events")


def test_repeated_job_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.events"
    path.write_text("".join(LINE.format(submit=k, id=7, options="-t 1") for k in range(2)))
    with pytest.raises(InputError, match="job 7 is already in line 1"):
        read(path, WHOLE, strict=True)


job = st.fixed_dictionaries(
    {
        "submit": st.integers(0, 10**6).map(lambda quarter: quarter / 4),
        "ran": st.integers(1, 10**6),
        "minutes": st.integers(1, 20_000),
        "nodes": st.integers(1, 16),
        "on_each": st.integers(1, 12),
        "gpus": st.integers(0, 4),
        "gib": st.integers(0, 512),
        "user": st.sampled_from(["ada", "bob"]),
        "long": st.booleans(),
    }
)


def written(row: dict[str, object], number: int) -> str:
    """Write a job as a line, with long or short options."""
    minutes = int(str(row["minutes"]))
    limit = f"{minutes // 1440}-{minutes % 1440 // 60:02d}:{minutes % 60:02d}:00"
    first = {"-N": "--nodes=", "-t": "--time=", "-J": "--job-name="} if row["long"] else {}
    short = {"-N": row["nodes"], "-t": limit, "-J": f"jobid_{number}"}
    words = [f"{first[name]}{value}" if first else f"{name} {value}" for name, value in short.items()]
    words += [f"--ntasks-per-node={row['on_each']}", f"-sim-walltime {row['ran']}", f"--uid={row['user']}"]
    words += [f"--gres=gpu:{row['gpus']}"] if row["gpus"] else []
    words += [f"--mem={row['gib']}G"] if row["gib"] else []
    return f"-dt {row['submit']:>12} -e submit_batch_job | {' '.join(words)} pseudo.job\n"


@settings(max_examples=60, deadline=None)
@given(st.lists(job, min_size=1, max_size=8))
def test_written_jobs_are_read_back(rows: list[dict[str, object]]) -> None:
    rows = sorted(rows, key=lambda row: float(str(row["submit"])))
    rows = sorted(rows, key=lambda row: float(str(row["submit"])))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.events"
        path.write_text("".join(written(row, k + 1) for k, row in enumerate(rows)))
        jobs = read(path, SHARED)

    def column(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows])

    limit = column("minutes") * 60
    assert jobs.id.tolist() == list(range(1, len(rows) + 1))
    assert np.array_equal(jobs.submit, ((column("submit") - column("submit").min()) * SECOND).astype(np.int64))
    assert np.array_equal(jobs.duration, np.minimum(column("ran"), limit) * SECOND)
    assert np.array_equal(jobs.requested, limit * SECOND)
    assert np.array_equal(jobs.nodes, column("nodes"))
    assert np.array_equal(jobs.request("cores"), column("on_each"))
    assert np.array_equal(jobs.memory, column("gib") * 1024)
    if column("gpus").any():
        assert np.array_equal(jobs.request("gpu"), column("gpus"))
    assert jobs.attributes["user"].tolist() == column("user").tolist()
