"""Slurm's main scheduler and backfill: against conservative and no backfilling, by hand, and against a recorded day."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Machine, Queue, Rule, Schedule, Workload
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.policies.test_backfill import NOW, State, states

ALL = {"bf_window": 10**6, "bf_max_job_test": 10**6, "bf_resolution": 1, "bf_interval": 10}


@settings(max_examples=60, deadline=None)
@given(states())
def test_a_pass_that_sees_everything_is_conservative_and_between_passes_nothing_is_backfilled(state: State) -> None:
    snapshot, jobs, priority, placement = state
    queue = Queue.of(snapshot.table, jobs)
    for begun, like in ((NOW / SECOND, Conservative()), (NOW / SECOND - 1, NoBackfill())):
        mine = [*SlurmBackfill(settings=ALL, begun=begun).select(queue, priority, snapshot, placement)]
        theirs = [*like.select(queue, priority, snapshot, placement)]
        assert {start.job for start in mine} == {start.job for start in theirs}


@settings(max_examples=60, deadline=None)
@given(states(), st.booleans(), st.sampled_from((1, 2, 100)))
def test_every_job_that_waits_is_told_why(state: State, now: bool, depth: int) -> None:
    snapshot, jobs, priority, placement = state
    queue = Queue.of(snapshot.table, jobs)
    backfill = SlurmBackfill(settings={**ALL, "bf_max_job_test": depth}, begun=NOW / SECOND - (not now))
    starts = [*backfill.select(queue, priority, snapshot, placement)]
    for job in jobs.tolist():
        if job not in {start.job for start in starts}:
            reason = backfill.why(job, queue, priority, snapshot, placement, starts)
            assert reason.rule in (Rule.SHORT, Rule.ROUND, Rule.RESERVATION) and reason.text
            assert reason.rule is not Rule.ROUND or not now or depth < len(jobs)


def day(rows: list[tuple[int, int, int, int]], backfill: SlurmBackfill, nodes: int = 4) -> dict[int, float]:
    """Jobs as (submit, nodes, runtime, limit), s; id -> start, s."""
    submit, width, runtime, limit = np.array(rows, dtype=np.int64).T
    workload = Workload.of(submit * SECOND, runtime * SECOND, requested=limit * SECOND, requests={"nodes": width})
    schedule: Schedule = simulate(Machine.flat(nodes), workload, ListScheduler(backfill=backfill)).schedule
    return dict(zip(workload.id[schedule.job].tolist(), (schedule.start / SECOND).tolist(), strict=True))


def exact(**changed: int) -> SlurmBackfill:
    return SlurmBackfill(settings={"bf_resolution": 1, **changed})


def test_a_job_is_backfilled_at_the_next_pass_not_before() -> None:
    rows = [(0, 3, 100, 100), (1, 4, 10, 10), (2, 1, 50, 50)]
    assert day(rows, exact()) == {1: 0, 2: 100, 3: 30}
    assert day(rows, SlurmBackfill(settings={"bf_resolution": 1}, begun=7.5)) == {1: 0, 2: 100, 3: 7.5}
    assert day(rows, exact(bf_interval=50)) == {1: 0, 2: 100, 3: 50}
    assert day(rows, exact(bf_interval=51)) == {1: 0, 2: 100, 3: 110}, "from 51 s on it would be in the way"


def test_the_end_of_a_reservation_is_rounded_down_to_the_resolution() -> None:
    """The second is promised 100 to 190, which counts as 180; the third is promised 180, the fourth would run into it."""
    rows = [(0, 2, 100, 100), (1, 3, 90, 90), (2, 4, 60, 60), (3, 1, 155, 155)]
    assert day(rows, exact())[4] == 30
    assert day(rows, SlurmBackfill())[4] > 180


def test_only_so_many_jobs_are_tested_and_only_so_far_ahead() -> None:
    rows = [(0, 3, 5000, 5000), (1, 4, 10, 10), (2, 4, 10, 10), (3, 1, 50, 50)]
    assert day(rows, exact(bf_max_job_test=2))[4] == 5020, "the pass ends before it"
    assert day(rows, exact(bf_max_job_test=3))[4] == 30
    late = [(0, 3, 5000, 5000), (1, 4, 10, 10), (2, 1, 9000, 9000)]
    assert day(late, exact())[3] == 5010, "it would delay the second"
    assert day(late, exact(bf_window=60))[3] == 30, "the second begins beyond an hour: no promise"


def test_the_main_scheduler_may_look_once_a_second() -> None:
    """What comes between two looks is seen together."""
    rows = [(0, 4, 3, 3), (5, 1, 9, 9), (7, 4, 1, 1)]
    assert day(rows, SlurmBackfill(every=4.0)) == {1: 0, 2: 8, 3: 20}
    assert day(rows, SlurmBackfill(every=4.0, looked=1.0))[2] == 5


@pytest.mark.parametrize(
    ("said", "line", "words"),
    [
        ("SchedulerParameters=bf_interval=10,bf_busy_nodes", 2, "bf_busy_nodes is not followed here"),
        ("SchedulerParameters=bf_interval=soon", 2, "not a whole number above 0"),
        ("SchedulerType=sched/builtin", 2, "does not backfill"),
    ],
)
def test_what_is_not_followed_is_named_by_file_and_line(tmp_path: Path, said: str, line: int, words: str) -> None:
    (tmp_path / "slurm.conf").write_text(f"ClusterName=a\n{said}\n")
    with pytest.raises(InputError, match=words) as found:
        SlurmBackfill(str(tmp_path / "slurm.conf")).open()
    assert (found.value.line, bool(found.value.remedy)) == (line, True)
    with pytest.raises(InputError, match="not followed"):
        SlurmBackfill(settings={"bf_wndow": 1}).open()
