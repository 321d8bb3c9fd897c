"""Tests of workload diagnostics: every sentence and number is compared with a recount."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import poolwise
from poolwise.diagnostics import Diagnostics, few
from poolwise.diagnostics.outliers import outliers
from poolwise.metrics import Outcomes
from poolwise.metrics.outcomes import Status
from poolwise.model import Machine, Partition, Workload
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND, UNKNOWN

GIB = 1024


def workload_of(jobs: list[dict[str, int]]) -> Workload:
    columns = {name: np.array([job[name] for job in jobs]) for name in ("submit", "duration", "requested", "nodes", "memory")}
    return Workload.of(
        columns["submit"] * SECOND,
        columns["duration"] * SECOND,
        requested=columns["requested"],
        requests={"nodes": columns["nodes"], "memory": columns["memory"]},
    )


def simulated(jobs: list[dict[str, int]]) -> tuple[Diagnostics, Outcomes]:
    """Diagnose jobs simulated on four nodes of 64 GiB each."""
    machine = Machine.of_racks(1, 4, local=64 * GIB, pool=0)
    run = poolwise.simulate(workload_of(jobs), machine, model=Ideal(), engine="reference")
    return run.sanity, run.outcomes


def diagnosed(jobs: list[dict[str, int]]) -> tuple[Diagnostics, Outcomes]:
    """Diagnose jobs without simulation: jobs that never fit are rejected, and all others start at once."""
    workload, nothing = workload_of(jobs), np.full(len(jobs), -1)
    nodes, memory = workload.nodes > 4, workload.memory > 64 * GIB
    fits = ~(nodes | memory)
    outcomes = Outcomes(
        id=workload.id,
        submit=workload.submit,
        start=np.where(fits, workload.submit, nothing),
        end=np.where(fits, workload.submit + workload.duration, nothing),
        duration=workload.duration,
        requested=workload.requested,
        nodes=workload.nodes,
        memory=workload.memory,
        nodes_held=np.where(fits, workload.nodes, 0.0),
        status=np.where(fits, Status.FINISHED, Status.REJECTED).astype(np.uint8),
        reason=tuple("nodes" if n else "memory" if m else "" for n, m in zip(nodes.tolist(), memory.tolist(), strict=True)),
        n_nodes=4,
        whole_nodes=True,
        local_memory=64 * GIB,
        node_memory=256 * GIB,
        pool_memory=0,
        first_submit=int(workload.submit[0]),
    )
    return Diagnostics.of(outcomes), outcomes


def job(**asked: int) -> dict[str, int]:
    usual = {"submit": 0, "duration": 100, "nodes": 1, "memory": GIB}
    return {"requested": SECOND * asked.get("duration", usual["duration"]), **usual, **asked}


@st.composite
def workloads(draw, times=(1, 20)):
    """Draw jobs, some of which have a much larger value than the rest, and some of which never fit."""
    amount = st.sampled_from([1, 2, 3])
    usual = st.fixed_dictionaries({"submit": st.integers(0, 5000), "duration": amount, "nodes": amount, "memory": amount})
    jobs = [dict(job) for job in draw(st.lists(usual, min_size=1, max_size=12))]
    jobs = [dict(job, submit=job["submit"] + 37 * k) for k, job in enumerate(jobs * draw(st.sampled_from(times)))]
    for _ in range(draw(st.integers(0, 4))):
        jobs[draw(st.integers(0, len(jobs) - 1))][draw(st.sampled_from(["duration", "nodes", "memory"]))] = draw(
            st.sampled_from([4, 6, 7, 50, 900])
        )
    scale = draw(st.sampled_from([1, 60, 200]))
    has_limits = draw(st.booleans())
    return [
        dict(
            job,
            duration=job["duration"] * scale,
            memory=job["memory"] * 10 * GIB,
            requested=job["duration"] * scale * SECOND if has_limits or k % 2 else UNKNOWN,
        )
        for k, job in enumerate(jobs)
    ]


@settings(max_examples=60, deadline=None)
@given(workloads())
def test_numbers_match_recount(jobs):
    diagnosis, outcomes = diagnosed(jobs)
    hours = [int(n) * Fraction(int(d), 3600 * SECOND) for n, d in zip(outcomes.nodes, outcomes.duration, strict=True)]
    rejected = {int(k) for k in np.flatnonzero(outcomes.status == Status.REJECTED)}
    span = Fraction(int(outcomes.submit.max() - outcomes.submit.min()), 3600 * SECOND)
    able = sorted((hours[k] for k in range(len(outcomes)) if k not in rejected), reverse=True)
    if span:
        assert math.isclose(diagnosis.load, sum(able) / (4 * span))
        assert math.isclose(diagnosis.load_without_few, sum(able[few(len(outcomes)) :]) / (4 * span), abs_tol=1e-12)
    else:
        assert math.isnan(diagnosis.load) and diagnosis.to_dict()["load"] is None
    assert sorted(job for group in diagnosis.never for job in group.ids) == sorted(int(outcomes.id[k]) for k in rejected)
    for group in diagnosis.never:
        rows = [k for k in range(len(outcomes)) if k in rejected and outcomes.reason[k] == group.reason]
        assert group.ids == tuple(int(outcomes.id[k]) for k in rows)
        assert group.most_nodes == max(int(outcomes.nodes[k]) for k in rows)
        assert group.most_memory == max(int(outcomes.memory[k]) for k in rows)
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))["sentences"] == list(diagnosis.sentences)


def amounts_of(outcomes: Outcomes, quantity: str) -> list[float]:
    nodes = outcomes.nodes.tolist()
    return {
        "memory_mib": lambda: outcomes.memory.tolist(),
        "nodes": lambda: nodes,
        "duration_s": lambda: [d / SECOND for d in outcomes.duration.tolist()],
        "requested_s": lambda: [r / SECOND if r < UNKNOWN else 0 for r in outcomes.requested.tolist()],
        "node_hours": lambda: [n * (d / (3600 * SECOND)) for n, d in zip(nodes, outcomes.duration.tolist(), strict=True)],
    }[quantity]()


@settings(max_examples=80, deadline=None)
@given(workloads())
def test_outliers_match_exhaustive_search(jobs):
    diagnosis, outcomes = diagnosed(jobs)
    n, named = len(jobs), {group.quantity: group for group in diagnosis.outliers}
    hours = amounts_of(outcomes, "node_hours")
    for quantity in ("memory_mib", "nodes", "duration_s", "requested_s", "node_hours"):
        amounts = amounts_of(outcomes, quantity)
        order = sorted(range(n), key=lambda k: (-amounts[k], k))
        counts = range(1, min(10, n // 100) + 1)
        if quantity == "node_hours":
            heavy = [k for k in counts if sum(hours[row] for row in order[:k]) >= 0.1 * sum(hours) - 1e-12]
            count = heavy[0] if heavy else 0
        else:
            gaps = {k: amounts[order[k - 1]] / amounts[order[k]] for k in counts if amounts[order[k]] > 0}
            widest = max(gaps.values(), default=0)
            count = min(k for k in gaps if gaps[k] == widest) if widest >= 2 else 0
        group = named.get(quantity)
        assert (0 if group is None else len(group.ids)) == count
        if group is None:
            continue
        assert group.ids == tuple(int(outcomes.id[row]) for row in order[:count])
        assert (group.most, group.least, group.rest) == tuple(amounts[order[k]] for k in (0, count - 1, count))
        assert math.isclose(group.share, sum(hours[row] for row in order[:count]) / sum(hours))
        assert group.text in diagnosis.sentences and f"{count} of {n:,} jobs (job" in group.text


@settings(max_examples=25, deadline=None)
@given(workloads(times=(1,)))
def test_overload_sentence_holds_for_the_run(jobs):
    diagnosis, outcomes = simulated(jobs)
    words = " ".join(diagnosis.sentences)
    assert diagnosis.overloaded == (not math.isnan(diagnosis.load) and diagnosis.load >= 1) == ("Overloaded" in words)
    ends = outcomes.end[outcomes.finished]
    if diagnosis.overloaded and len(ends):
        assert (ends.max() - outcomes.submit.max()) / SECOND >= diagnosis.backlog_s - 1e-6
    if not diagnosis.overloaded:
        assert diagnosis.backlog_s == 0


def test_sentences_list_load_then_never_run_then_outliers():
    jobs = [job(submit=100 * k, nodes=1 + k % 2, duration=300) for k in range(300)]
    jobs[7] |= {"memory": 15 * GIB * GIB}
    jobs[8] |= {"nodes": 9}
    diagnosis, _ = simulated(jobs)
    kinds = [line.split(":")[0].split(" (")[0] for line in diagnosis.sentences]
    assert kinds == ["Load 1.12", "Overloaded", "2 of 300 jobs can never run", "1 of 300 jobs", "1 of 300 jobs"]
    load, follows, never, memory, nodes = diagnosis.sentences
    assert load == "Load 1.12: between the first and the last submission, jobs request 112 % of what 4 nodes offer."
    assert "at least 1 h of work for the whole machine is left" in follows
    assert "1 cannot fit on the empty machine: not enough free nodes (job 9; up to 9 nodes and 1 GiB per node)" in never
    assert "(job 8; up to 2 nodes and 15 TiB per node)" in never
    assert (
        "(job 8) requests 15 TiB of memory per node, no other job more than 1 GiB; it holds 0.44 % of all node-hours." in memory
    )
    assert nodes.startswith("1 of 300 jobs (job 9) requests 9 nodes, no other job more than 2;")


def test_few_or_similar_jobs_have_no_outliers():
    assert [few(n) for n in (0, 99, 100, 999, 1000, 10**6)] == [0, 0, 1, 9, 10, 10]
    assert diagnosed([job(submit=k, duration=1 if k else 10**4) for k in range(99)])[0].outliers == ()
    assert diagnosed([job(submit=50 * k) for k in range(300)])[0].outliers == ()
    twice = [job(submit=k * 50, memory=GIB * (2 if k == 3 else 1)) for k in range(100)]
    assert [group.quantity for group in diagnosed(twice)[0].outliers] == ["memory_mib"]
    twice[3]["memory"] -= 1
    assert diagnosed(twice)[0].outliers == ()


def test_load_is_also_reported_without_dominant_jobs():
    jobs = [job(submit=100 * k, duration=100) for k in range(200)]
    jobs[5] |= {"duration": 20000}
    diagnosis, _ = diagnosed(jobs)
    assert "(24.9 % without the 2 jobs with the most node-hours)" in diagnosis.sentences[0]
    assert diagnosis.sentences[1].startswith(
        "1 of 200 jobs (job 6) runs for 5 h 33 min, no other job more than 1 min 40 s; it holds 50 % of"
    )
    assert diagnosis.sentences[-1].startswith(
        "1 of 200 jobs (job 6) holds 50 % of all node-hours, no other job more than 0.0278 node-hours"
    )


def test_concentration_on_shared_nodes_has_its_unit() -> None:
    jobs = [job(submit=100 * k, duration=20000 if k == 5 else 100) for k in range(200)]
    found = outliers(replace(diagnosed(jobs)[1], whole_nodes=False))
    (sentence,) = [group.text for group in found if group.quantity == "node_hours"]
    assert sentence.endswith("(job 6) holds 50 % of all task-hours, no other job more than 0.0278 task-hours.")


def test_load_of_one_is_overloaded():
    full, room = (diagnosed([job(submit=at, nodes=4, duration=duration) for at in (0, 100)])[0] for duration in (50, 49))
    assert (full.load, full.overloaded, full.backlog_s) == (1.0, True, 0.0)
    assert (room.load, room.overloaded) == (0.98, False)


def test_memory_without_its_unit_is_noticed() -> None:
    """16 means 16 MiB, which no job of today requests; the 64 GiB of the nodes are plausible."""
    job = {"submit": 0, "duration": 10, "requested": 10, "nodes": 1}
    diagnosis, _ = diagnosed([{**job, "memory": 16}])
    (sentence,) = [text for text in diagnosis.sentences if "implausibly" in text]
    assert "jobs request at most 16 MiB" in sentence and "node has" not in sentence
    for memory in (0, 128, 16 * GIB):
        assert not diagnosed([{**job, "memory": memory}])[0].small_memory


def shared(partitioned: bool) -> Diagnostics:
    """Four shared nodes of 8 cores; jobs on two nodes each, every second one in the partition `small` of one node."""
    build = poolwise.MachineBuilder("shared", ("cores", "memory"))
    for k in range(4):
        build.node(f"n{k}", cores=8, memory=64 * GIB)
    machine = Machine.of(build)
    count = 300
    rows = np.arange(count)
    nodes = np.where(rows % 2, 1, 2)
    requests = {"nodes": nodes, "cores": np.where(rows % 2, 8, 6), "memory": np.full(count, 4 * GIB)}
    workload = Workload.of(rows * 100 * SECOND, np.where(rows % 2, 210, 150) * SECOND, requests=requests)
    if partitioned:
        sets = {"small": np.arange(4) == 0, "large": np.arange(4) > 0}
        machine = replace(machine, node_sets=sets, partitions=(Partition("small"), Partition("large")))
        workload = replace(workload, attributes={"partition": np.where(rows % 2, "small", "large")})
    run = poolwise.simulate(workload, machine, placement="first_fit")
    return run.sanity


def test_load_of_shared_nodes_is_that_of_the_scarcest_resource():
    diagnosis = shared(partitioned=False)
    span = 299 * 100
    work = 150 * (2 * 6 * 150 + 8 * 210)
    assert math.isclose(diagnosis.load, work / (4 * 8 * span)) and not diagnosis.overloaded
    content = diagnosis.to_dict()
    assert content["load_of"] == "cores" and math.isclose(content["load"], diagnosis.load)
    assert math.isclose(content["resources"]["memory"], 150 * 4 * (2 * 150 + 210) / (4 * 64 * span))
    assert diagnosis.sentences[0].startswith(
        "Load 0.546: between the first and the last submission, jobs request 54.6 % of the machine's cores"
    )
    assert "; memory 4 %" in diagnosis.sentences[0]


def test_overload_of_a_partition_is_reported_although_the_machine_is_not_overloaded():
    diagnosis = shared(partitioned=True)
    assert not diagnosis.overloaded
    small, large = diagnosis.partitions
    assert small.partition == "small" and math.isclose(small.load, 150 * 8 * 210 / (8 * 299 * 100))
    assert large.partition == "large" and math.isclose(large.load, 150 * 12 * 150 / (24 * 299 * 100))
    assert [partition["overloaded"] for partition in diagnosis.to_dict()["partitions"]] == [True, False]
    assert (
        "Overloaded partitions, counting only jobs that may not run elsewhere: small (105 % of its cores)."
        in diagnosis.sentences
    )
