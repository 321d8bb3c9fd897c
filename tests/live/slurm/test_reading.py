"""Tests of the strict parser for the output of Slurm's clients, of job requests and of the machine of a partition."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.live.slurm import parsing
from poolwise.live.slurm.job_rows import JobRequest, JobRows
from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import JOB_FIELDS, ClusterListing, SlurmNode, parse_licenses, read_jobs
from poolwise.model import Placement, job_table
from poolwise.quantities import HOUR, SECOND
from tests.helpers.fake_slurm import make_job

ROW = {
    "JobArrayID": "12_3", "JobID": "15", "State": "PENDING", "Partition": "pools", "UserID": "7",
    "NumCPUs": "32", "tres": "cpu=32,mem=1.5G,node=2", "TimeLimit": "1-02:00:00", "SubmitTime": "1700000000",
    "StartTime": "N/A", "NodeList": "", "ReqNodes": "n[001-002]", "Licenses": "pool_rack0:16,matlab", "PriorityLong": "0",
    "Reason": "JobHeldAdmin", "Dependency": "(null)", "RestartCnt": "0", "Comment": "memory=64GiB",
}  # fmt: skip


def printed(*rows: dict[str, str]) -> str:
    ends = [parsing._FIELD_END] * (len(JOB_FIELDS) - 1) + [parsing._RECORD_END]
    return "".join("".join(row[name] + end for name, end in zip(JOB_FIELDS, ends, strict=True)) + "\n" for row in rows)


def test_squeue_row_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "run_client", lambda *_: printed(ROW))
    (job,) = read_jobs(16)
    assert (job.name, job.number, job.memory, job.limit, job.submit) == ("12_3", 15, 1536, 26 * HOUR, 1_700_000_000 * SECOND)
    assert job.required == {"n001", "n002"} and job.licenses == {"pool_rack0": 16, "matlab": 1}
    assert (job.nodes, job.cpus) == (2, 32)
    assert job.held and not job.held_by_user and job.start is None and job.allocated == ()


@pytest.mark.parametrize(("cpus", "nodes", "needed"), [(8, 1, 1), (16, 1, 1), (40, 1, 3), (8, 2, 2)])
def test_node_count_covers_requested_nodes_and_cpus(
    monkeypatch: pytest.MonkeyPatch, cpus: int, nodes: int, needed: int
) -> None:
    row = {**ROW, "NumCPUs": str(cpus), "tres": f"cpu={cpus},mem=100M,node={nodes},billing={cpus}"}
    monkeypatch.setattr(parsing, "run_client", lambda *_: printed(row))
    assert [job.nodes for job in read_jobs(16)] == [needed]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_comments_neither_hide_nor_create_jobs(monkeypatch: pytest.MonkeyPatch, comment: str) -> None:
    monkeypatch.setattr(parsing, "run_client", lambda *_: printed({**ROW, "Comment": comment}, {**ROW, "JobArrayID": "16"}))
    assert [job.name for job in read_jobs(16)] == ["12_3", "16"]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("JobArrayID", "x"),
        ("NumCPUs", "-1"),
        ("TimeLimit", "soon"),
        ("NodeList", "n[1-"),
        ("Licenses", "a:b"),
        ("tres", "mem=x,node=1"),
    ],
)
def test_unparsable_field_is_named(monkeypatch: pytest.MonkeyPatch, field: str, text: str) -> None:
    monkeypatch.setattr(parsing, "run_client", lambda *_: printed({**ROW, field: text}))
    with pytest.raises(InputError) as error:
        read_jobs(16)
    assert error.value.field == field


def test_row_with_wrong_number_of_fields_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "run_client", lambda *_: f"1{parsing._FIELD_END}2{parsing._RECORD_END}\n")
    with pytest.raises(InputError, match=r"expected \d+ fields, got 2"):
        read_jobs(16)


def test_requests_are_read_from_options_and_comment() -> None:
    job = make_job("1", nodes=2, cpus=8, memory=3000, comment="my job, memory=70000MiB; nvme=2 xmemory=1GiB")
    whole = JobRequest.of((job,), True, 1024, ("nvme",))
    assert whole.amounts == {"nodes": 2, "memory": 70656, "nvme": 2} and whole.tasks == 1
    shared = JobRequest.of((make_job("1", nodes=2, cpus=8, memory=3000),) * 2, False, 1024, ())
    assert shared.amounts == {"nodes": 2, "cores": 4, "memory": 2048} and shared.tasks == 2
    gang = (make_job("1+0", nodes=1, comment="memory=1GiB"), make_job("1+1", nodes=3))
    assert JobRequest.of(gang, True, 1024, ()).amounts == {"nodes": 4, "memory": 1024}
    with pytest.raises(InputError, match="different requests"):
        JobRequest.of(gang, False, 1024, ())
    with pytest.raises(InputError) as error:
        JobRequest.of((make_job("9", comment="memory=7"),), True, 1024, ())
    assert error.value.file == "comment of job 9" and error.value.field == "memory"


def layout(whole: bool) -> tuple[SlurmLayout, ClusterListing]:
    nodes = {f"n{k}": SlurmNode(f"n{k}", k != 1, 16, 65536, ()) for k in range(4)}
    listing = ClusterListing((), nodes, {"pool_rack0": 100, "nvme_rack1": 3, "matlab": 2})
    return SlurmLayout.of("pools", listing, {f"n{k}": f"rack{k // 2}" for k in range(4)}, whole), listing


def test_racks_pools_and_devices_become_owners() -> None:
    whole, listing = layout(True)
    machine = whole.machine
    assert machine.resources == ("nodes", "memory", "devices") and whole.types == ("nvme",)
    assert machine.owners == ("rack0.nodes", "rack1.nodes", "rack0.pool", "rack1.nvme0", "rack1.nvme1", "rack1.nvme2")
    assert whole.capacity(listing, ())[:, 0].tolist() == [1, 2, 0, 0, 0, 0], "drained nodes have no capacity"
    assert whole.capacity(listing, ("n1",))[0, 0] == 2, "except while jobs run on them"
    assert layout(False)[0].machine.owners[:4] == ("n0", "n1", "n2", "n3")


def test_placements_convert_to_nodes_and_licenses_and_back() -> None:
    whole, _ = layout(True)
    placement = Placement.of([(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 1, 5000), (0, 3, 2, 1), (0, 5, 2, 1)])
    assert whole.choose_nodes(placement, {"n0", "n2", "n3"}) == (("n0", "n2", "n3"),)
    assert whole.choose_nodes(placement, {"n0", "n2"}) is None
    assert whole.licenses_for(placement) == {"pool_rack0": 5, "nvme_rack1": 2}
    held = parse_licenses("pool_rack0:5,nvme_rack1:2")
    job = make_job("1", state="RUNNING", allocated=("n0", "n2", "n3"), licenses=held)
    other = make_job("2", state="RUNNING", allocated=("n0",), licenses={"nvme_rack1": 1})
    placements = whole.placements({"1": (job,), "2": (other,)})
    assert placements["1"].rows() == [(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 1, 5120), (0, 3, 2, 1), (0, 4, 2, 1)]
    assert placements["2"].rows() == [(0, 5, 2, 1)], "a whole node counts once, and each device is assigned once"


def test_changed_cluster_requires_a_new_machine() -> None:
    whole, listing = layout(True)
    assert whole.matches(listing)
    assert not whole.matches(ClusterListing((), {k: v for k, v in listing.nodes.items() if k != "n0"}, listing.licenses))
    assert not whole.matches(ClusterListing((), listing.nodes, {**listing.licenses, "pool_rack0": 101}))
    assert whole.matches(ClusterListing((), listing.nodes, {**listing.licenses, "pool_rack0": 50})), (
        "a pool that shrinks keeps the machine"
    )


def test_rows_of_finished_jobs_are_given_to_later_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting and running jobs keep their rows, and a refused start returns with its request."""
    monkeypatch.setattr(job_table, "SPARE_ROWS", 2)
    rows, request = JobRows(("nodes", "memory"), 0, None), JobRequest(1, 60, 0, 7, {"nodes": 2, "memory": 1024})
    rows.waiting = {str(k): rows.append(str(k), request) for k in range(6)}
    assert [*rows.waiting.values()] == [*range(6)]
    for k in range(5):
        del rows.waiting[str(k)]
    rows.recycle([3])
    assert [rows.append(name, request) for name in ("7", "8", "9", "10")] == [0, 1, 2, 4]
    assert [rows.table.name(row) for row in range(6)] == ["7", "8", "9", "3", "10", "5"]
    rows.waiting["3"] = 3
    assert rows.request("3") == request and len(rows.table) == 6
