"""A plan states which few jobs decide its answer; without them, the answer is that of a trace without these jobs."""

from pathlib import Path

import pytest

from poolwise.plans import plan
from poolwise.presentation.answer import Answer

PLAN = """\
version = 1
machine = "machine.toml"

[workload]
trace = "jobs.csv"

[scheduler]
order = "fm"

[measure]
warm_up = 5

[plan]
kind = "pools"
checks = 0
sensitivity = 0

[[plan.size]]
key = "machine.pool.memory.memory"
values = ["24 GiB", "32 GiB", "48 GiB", "64 GiB", "96 GiB"]
price = "5 $/GiB"

[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 3.0

[plan.certainty]
over = "nothing"
min = 1
"""


def answer_plan(folder: Path, large: dict[int, int], settings: dict[str, object] | None = None) -> Answer:
    """Answer the plan for 220 jobs; `large` maps ids to GiB per node above the usual 34 GiB, and 0 omits a job."""
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    for k in range(1, 221):
        memory = large.get(k, (18, 26, 34)[k % 3])
        if memory:
            rows.append(f"{k},{k * 200 * 10**9},1,{(200 + 37 * (k % 11)) * 10**9},{memory * 1024}")
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "plan.toml").write_text(PLAN)
    return plan.plan(plan.load_plan(folder / "plan.toml", settings), folder / "out", jobs=1).answer


@pytest.fixture
def place(folder: Path) -> Path:
    return folder


def test_decisive_jobs_are_named_with_the_answer_without_them(place):
    answer = answer_plan(place, {50: 90, 120: 80})
    (decisive,) = answer.content["sanity"]["decisive"]
    rest = answer_plan(place, {50: 0, 120: 0})
    assert decisive["tried"] and decisive["ids"] == [50, 120] and decisive["largest_by"] == "memory per node"
    assert decisive["answer_without_them"]["sizes"] == rest.content["chosen"]["sizes"] != answer.content["chosen"]["sizes"]
    assert decisive["answer_without_them"]["cost_dollars"] == rest.content["chosen"]["cost_dollars"]
    small = rest.content["chosen"]["sizes"]["machine.pool.memory.memory"]
    assert (
        answer.first[-1]
        == decisive["text"]
        == (
            "2 of 220 jobs (jobs 50, 120) request more than 34 GiB of memory per node; without them "
            f"{small} of pool memory in each rack is enough instead of 96 GiB of pool memory in each rack."
        )
    )
    assert answer.first[0].startswith("Load ")


def test_indecisive_jobs_are_reported(place):
    answer = answer_plan(
        place,
        {50: 35},
        {"plan.size": [{"key": "machine.pool.memory.memory", "values": ["1 MiB", "96 GiB"], "price": "5 $/GiB"}]},
    )
    (decisive,) = answer.content["sanity"]["decisive"]
    assert decisive["tried"] and decisive["ids"] == [] and decisive["answer_without_them"] is None
    assert decisive["text"].endswith(
        "(job 50) requests more than 34 GiB of memory per node; without them the answer is the same."
    )


def test_skipped_check_is_reported(place, monkeypatch):
    alike = answer_plan(place, {})
    assert (
        alike.first[-1].startswith("More than 2 jobs request the most memory per node")
        or "already the cheapest" in alike.first[-1]
    )
    monkeypatch.setattr("poolwise.diagnostics.leave_out.CHEAP", 219)
    before = len(list((place / "out").rglob("*.parquet")))
    answer = answer_plan(place, {50: 90, 120: 80, 121: 70})
    assert "was not tested: it would repeat at least" in answer.first[-1]
    assert not answer.content["sanity"]["decisive"][0]["tried"]
    runs = answer.content["simulations"]["runs"]
    assert len(list((place / "out").rglob("*.parquet"))) <= before + runs, "nothing else was run"


def test_smallest_candidate_needs_no_check(place):
    answer = answer_plan(place, {50: 35}, {"plan.target": [{"metric": "mean_bounded_slowdown", "at_most": 1e9}]})
    assert answer.first[-1] == "The answer does not depend on a few jobs: it is already the cheapest candidate."
