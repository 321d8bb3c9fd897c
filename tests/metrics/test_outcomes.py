import io

import numpy as np
import polars as pl
import pytest

from poolwise.errors import InputError
from poolwise.metrics import Outcomes, Status, Window, summarize
from poolwise.model import Kind, Machine, Outcome, Schedule, Workload
from poolwise.quantities import SECOND


def shared_nodes() -> Machine:
    """Return two shared nodes of 8 and 4 cores with 100 and 60 MiB, a pool of 50 MiB and a device."""
    n = 4
    return Machine(
        name="shared",
        owners=("a", "b", "pool", "gpu"),
        kind=np.array([Kind.NODE, Kind.NODE, Kind.POOL, Kind.DEVICE], dtype=np.int64),
        type=("node", "node", "pool", "gpu"),
        rack=np.zeros(n, dtype=np.int64),
        position=np.zeros((n, 2), dtype=np.int64),
        home=np.array([-1, -1, -1, 0], dtype=np.int64),
        resources=("cores", "memory"),
        capacity=np.array([[8, 100], [4, 60], [0, 50], [0, 999]], dtype=np.int64),
    )


def schedule_of(workload, machine, runs, rejected=None, waiting=()) -> Schedule:
    """Build a schedule from runs (job, start s, end s, outcome, [(owner, resource, amount), ...])."""
    rows = [row for run in runs for row in run[4]]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Schedule(
        machine=machine,
        workload=workload,
        job=np.array([run[0] for run in runs], dtype=np.int64),
        start=np.array([run[1] for run in runs], dtype=np.int64) * SECOND,
        end=np.array([run[2] for run in runs], dtype=np.int64) * SECOND,
        tasks=np.ones(len(runs), dtype=np.int64),
        outcome=tuple(run[3] for run in runs),
        offset=np.cumsum([0, *(len(run[4]) for run in runs)]),
        owner=columns[:, 0],
        resource=columns[:, 1],
        amount=columns[:, 2],
        rejected=rejected or {},
        waiting=waiting,
        passes=0,
        refused={},
    )


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    """Return five jobs on two racks of four nodes: lost once, in two parts, rejected, waiting, and lost without a rerun."""
    machine = Machine.of_racks(2, 4, local=100, pool=300)
    workload = Workload.of(
        np.array([3, 4, 5, 6, 7]) * SECOND,
        np.array([10, 20, 30, 40, 50]) * SECOND,
        id=np.array([11, 12, 13, 14, 15]),
        tasks=np.array([1, 2, 1, 1, 1]),
        requests={"nodes": np.array([2, 1, 9, 1, 1]), "memory": np.array([150, 50, 0, 0, 0])},
    )
    done, lost = Outcome.FINISHED, Outcome.LOST
    runs = [
        (0, 3, 5, lost, [(0, 0, 2), (2, 1, 100)]),
        (1, 4, 24, done, [(0, 0, 1)]),
        (0, 10, 22, done, [(0, 0, 1), (1, 0, 1), (2, 1, 50), (3, 1, 50)]),
        (4, 11, 12, lost, [(1, 0, 1)]),
        (1, 30, 44, done, [(1, 0, 1)]),
    ]
    return schedule_of(workload, machine, runs, rejected={2: "nine nodes"}, waiting=(3,))


def test_columns_match_a_hand_computation(schedule):
    outcomes = Outcomes.of(schedule)
    assert outcomes.id.tolist() == [11, 12, 13, 14, 15]
    assert (outcomes.start // SECOND).tolist() == [
        10,
        4,
        -1,
        -1,
        -1,
    ]  # start of the finished run, and of the first of two parts
    assert (outcomes.end // SECOND).tolist() == [22, 44, -1, -1, -1]
    assert (outcomes.duration // SECOND).tolist() == [10, 20, 30, 40, 50]
    assert outcomes.nodes.tolist() == [2, 2, 9, 1, 1]
    assert outcomes.memory.tolist() == [150, 50, 0, 0, 0]
    # two nodes in two racks throughout; one node for 20 s and for 14 s of 40 s
    np.testing.assert_allclose(outcomes.nodes_held, [2, 34 / 40, 0, 0, 0])
    assert [Status(s).name for s in outcomes.status] == ["FINISHED", "FINISHED", "REJECTED", "WAITING", "LOST"]
    assert outcomes.reason == ("", "", "nine nodes", "", "")
    assert outcomes.rejections() == {"nine nodes": 1}


def test_facts_of_racks(schedule):
    assert Outcomes.of(schedule).facts == {
        "n_nodes": 8,
        "whole_nodes": True,
        "local_memory": 100,
        "node_memory": 800,
        "pool_memory": 600,
        "first_submit": 3 * SECOND,
    }
    assert Outcomes.of(schedule).installed_memory == 1400


def test_facts_of_shared_nodes():
    workload = Workload.of(np.array([0]), np.array([5 * SECOND]), requests={"cores": np.array([2])})
    run = (0, 1, 6, Outcome.FINISHED, [(1, 0, 2)])
    outcomes = Outcomes.of(schedule_of(workload, shared_nodes(), [run]))
    assert outcomes.facts == {
        "n_nodes": 2,
        "whole_nodes": False,
        "local_memory": 60,
        "node_memory": 160,
        "pool_memory": 50,
        "first_submit": 0,
        "most_local_memory": 100,
    }
    metrics = summarize(outcomes, warm_up=0, population=outcomes.finished, window=Window.whole(outcomes))
    assert metrics["mean_wait_s"] == 1 and metrics["throughput_per_100s"] == pytest.approx(100 / 6)
    assert np.isnan(metrics["utilization"]) and np.isnan(metrics["mean_memory_utilization"])


def test_every_machine_has_facts():
    no_nodes = Machine(
        name="links",
        owners=("link",),
        kind=np.array([Kind.LINK], dtype=np.int64),
        type=("link",),
        rack=np.array([-1]),
        position=np.zeros((1, 2), dtype=np.int64),
        home=np.array([-1]),
        resources=("bandwidth",),
        capacity=np.array([[7]]),
        fabric=None,
    )
    nothing = Workload.of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    outcomes = Outcomes.of(schedule_of(nothing, no_nodes, []))
    assert set(outcomes.facts.values()) == {0} and len(outcomes) == 0


def test_round_trip(schedule, example):
    for outcomes in (Outcomes.of(schedule), example):
        frame = outcomes.to_frame()
        parquet, csv = io.BytesIO(), io.BytesIO()
        frame.write_parquet(parquet)
        frame.write_csv(csv)
        parquet.seek(0)
        csv.seek(0)
        for again in (frame, pl.read_parquet(parquet), pl.read_csv(csv)):
            back = Outcomes.from_frame(again, outcomes.facts)
            assert back.to_frame().equals(frame)
            assert back.facts == outcomes.facts and back.reason == outcomes.reason


def test_round_trip_of_an_empty_run(outcomes_of):
    empty = outcomes_of([])
    assert len(Outcomes.from_frame(empty.to_frame(), empty.facts)) == 0


def test_damaged_frames_are_rejected(example):
    frame, facts = example.to_frame(), example.facts
    damaged = {
        "end": frame.drop("end"),
        "status": frame.with_columns(status=pl.lit("gone")),
        "start": frame.with_columns(start=pl.lit("noon")),
        "duration": frame.with_columns(duration=pl.lit(1.5)),
        "nodes_held": frame.with_columns(nodes_held=pl.lit("two")),
        "memory": frame.with_columns(memory=pl.lit(None, dtype=pl.Int64)),
    }
    for field, bad in damaged.items():
        with pytest.raises(InputError) as error:
            Outcomes.from_frame(bad, facts)
        assert error.value.field == field and error.value.remedy
    with pytest.raises(InputError, match="n_nodes"):
        Outcomes.from_frame(frame, {name: value for name, value in facts.items() if name != "n_nodes"})


def test_inconsistent_columns_are_rejected(example):
    with pytest.raises(ValueError, match="shape"):
        Outcomes(**{**vars_of(example), "end": example.end[:-1]})
    with pytest.raises(ValueError, match="reasons"):
        Outcomes(**{**vars_of(example), "reason": ()})
    with pytest.raises(ValueError, match="order"):
        Outcomes(**{**vars_of(example), "id": example.id[::-1].copy(), "submit": np.zeros(6, dtype=np.int64)})


def vars_of(outcomes: Outcomes) -> dict[str, object]:
    return {name: getattr(outcomes, name) for name in Outcomes.__dataclass_fields__}


def test_job_with_a_lost_task_is_not_finished():
    machine = Machine.of_racks(1, 4, local=100, pool=300)
    workload = Workload.of(
        np.array([0]), np.array([SECOND]), tasks=2, requests={"nodes": np.array([1]), "memory": np.array([10])}
    )
    whole = [(0, 0, 1, Outcome.FINISHED, [(0, 0, 1)]), (0, 0, 1, Outcome.FINISHED, [(0, 0, 1)])]
    half = [whole[0], (0, 0, 1, Outcome.LOST, [(0, 0, 1)])]
    assert schedule_of(workload, machine, whole).done.tolist() == [True]
    assert schedule_of(workload, machine, half).done.tolist() == [False]


def test_jobs_that_fit_the_largest_shared_node_need_no_remote_memory() -> None:
    workload = Workload.of([0, 0, 0], [SECOND] * 3, requests={"memory": np.array([60, 100, 101])})
    outcomes = Outcomes.of(schedule_of(workload, shared_nodes(), []))
    assert (outcomes.local_memory, outcomes.most_local_memory) == (60, 100)
    assert outcomes.needs_remote_memory.tolist() == [False, False, True]
