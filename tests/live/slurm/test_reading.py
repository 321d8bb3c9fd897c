"""What Slurm's clients print, read strictly: strange comments, jobs of all kinds, lines that are none."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.live.slurm import parsing
from poolwise.live.slurm.job_request import JobRequest
from poolwise.live.slurm.machine import SlurmLayout
from poolwise.live.slurm.parsing import JOB_FIELDS, ClusterListing, SlurmNode, licences_of, read_jobs
from poolwise.model import Placement
from poolwise.units import HOUR, SECOND
from tests.helpers.fake_slurm import a_job

ROW = {
    "JobArrayID": "12_3", "JobID": "15", "State": "PENDING", "Partition": "pools", "UserID": "7",
    "NumCPUs": "32", "tres": "cpu=32,mem=1.5G,node=2", "TimeLimit": "1-02:00:00", "SubmitTime": "1700000000",
    "StartTime": "N/A", "NodeList": "", "ReqNodes": "n[001-002]", "Licenses": "pool_rack0:16,matlab", "PriorityLong": "0",
    "Reason": "JobHeldAdmin", "Dependency": "(null)", "RestartCnt": "0", "Comment": "memory=64GiB",
}  # fmt: skip


def printed(*rows: dict[str, str]) -> str:
    ends = [parsing._FIELD] * (len(JOB_FIELDS) - 1) + [parsing._END]
    return "".join("".join(row[name] + end for name, end in zip(JOB_FIELDS, ends, strict=True)) + "\n" for row in rows)


def test_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "ask", lambda *_: printed(ROW))
    (job,) = read_jobs(16)
    assert (job.name, job.number, job.memory, job.limit, job.submit) == ("12_3", 15, 1536, 26 * HOUR, 1_700_000_000 * SECOND)
    assert job.required == {"n001", "n002"} and job.licences == {"pool_rack0": 16, "matlab": 1}
    assert (job.nodes, job.cpus) == (2, 32)
    assert job.held and not job.held_by_user and job.start is None and job.allocated == ()


@pytest.mark.parametrize(("cpus", "nodes", "needed"), [(8, 1, 1), (16, 1, 1), (40, 1, 3), (8, 2, 2)])
def test_nodes_are_those_asked_for_and_those_that_cpus_need(
    monkeypatch: pytest.MonkeyPatch, cpus: int, nodes: int, needed: int
) -> None:
    row = {**ROW, "NumCPUs": str(cpus), "tres": f"cpu={cpus},mem=100M,node={nodes},billing={cpus}"}
    monkeypatch.setattr(parsing, "ask", lambda *_: printed(row))
    assert [job.nodes for job in read_jobs(16)] == [needed]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_no_comment_hides_or_makes_a_job(monkeypatch: pytest.MonkeyPatch, comment: str) -> None:
    monkeypatch.setattr(parsing, "ask", lambda *_: printed({**ROW, "Comment": comment}, {**ROW, "JobArrayID": "16"}))
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
def test_what_is_not_understood_is_named(monkeypatch: pytest.MonkeyPatch, field: str, text: str) -> None:
    monkeypatch.setattr(parsing, "ask", lambda *_: printed({**ROW, field: text}))
    with pytest.raises(InputError) as error:
        read_jobs(16)
    assert error.value.field == field


def test_a_row_of_another_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "ask", lambda *_: f"1{parsing._FIELD}2{parsing._END}\n")
    with pytest.raises(InputError, match="2 fields, not"):
        read_jobs(16)


def test_requests_stand_in_the_comment() -> None:
    job = a_job("1", nodes=2, cpus=8, memory=3000, comment="my job, memory=70000MiB; nvme=2 xmemory=1GiB")
    whole = JobRequest.of((job,), True, 1024, ("nvme",))
    assert whole.amounts == {"nodes": 2, "memory": 70656, "nvme": 2} and whole.tasks == 1
    shared = JobRequest.of((a_job("1", nodes=2, cpus=8, memory=3000),) * 2, False, 1024, ())
    assert shared.amounts == {"nodes": 2, "cores": 4, "memory": 2048} and shared.tasks == 2
    gang = (a_job("1+0", nodes=1, comment="memory=1GiB"), a_job("1+1", nodes=3))
    assert JobRequest.of(gang, True, 1024, ()).amounts == {"nodes": 4, "memory": 1024}
    with pytest.raises(InputError, match="differ"):
        JobRequest.of(gang, False, 1024, ())
    with pytest.raises(InputError) as error:
        JobRequest.of((a_job("9", comment="memory=7"),), True, 1024, ())
    assert error.value.file == "comment of job 9" and error.value.field == "memory"


def layout(whole: bool) -> tuple[SlurmLayout, ClusterListing]:
    nodes = {f"n{k}": SlurmNode(f"n{k}", k != 1, 16, 65536, ()) for k in range(4)}
    seen = ClusterListing((), nodes, {"pool_rack0": 100, "nvme_rack1": 3, "matlab": 2})
    return SlurmLayout.of("pools", seen, {f"n{k}": f"rack{k // 2}" for k in range(4)}, whole), seen


def test_racks_pools_and_devices_are_owners() -> None:
    whole, seen = layout(True)
    machine = whole.machine
    assert machine.resources == ("nodes", "memory", "devices") and whole.types == ("nvme",)
    assert machine.owners == ("rack0.nodes", "rack1.nodes", "rack0.pool", "rack1.nvme0", "rack1.nvme1", "rack1.nvme2")
    assert whole.capacity(seen, ())[:, 0].tolist() == [1, 2, 0, 0, 0, 0], "what is drained is not there"
    assert whole.capacity(seen, ("n1",))[0, 0] == 2, "but for whom it runs"
    assert layout(False)[0].machine.owners[:4] == ("n0", "n1", "n2", "n3")


def test_placements_mean_nodes_and_licences_and_back() -> None:
    whole, _ = layout(True)
    placement = Placement.of([(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 1, 5000), (0, 3, 2, 1), (0, 5, 2, 1)])
    assert whole.choose(placement, {"n0", "n2", "n3"}) == (("n0", "n2", "n3"),)
    assert whole.choose(placement, {"n0", "n2"}) is None
    assert whole.bought(placement) == {"pool_rack0": 5, "nvme_rack1": 2}
    bought = licences_of("pool_rack0:5,nvme_rack1:2")
    job = a_job("1", state="RUNNING", allocated=("n0", "n2", "n3"), licences=bought)
    beside = a_job("2", state="RUNNING", allocated=("n0",), licences={"nvme_rack1": 1})
    found = whole.placements({"1": (job,), "2": (beside,)})
    assert found["1"].rows() == [(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 1, 5120), (0, 3, 2, 1), (0, 4, 2, 1)]
    assert found["2"].rows() == [(0, 5, 2, 1)], "a whole node counts once, and devices are given once"


def test_a_cluster_that_has_changed_is_another_machine() -> None:
    whole, seen = layout(True)
    assert whole.fits(seen)
    assert not whole.fits(ClusterListing((), {k: v for k, v in seen.nodes.items() if k != "n0"}, seen.licences))
    assert not whole.fits(ClusterListing((), seen.nodes, {**seen.licences, "pool_rack0": 101}))
    assert whole.fits(ClusterListing((), seen.nodes, {**seen.licences, "pool_rack0": 50})), (
        "a pool that shrinks is still its own"
    )
