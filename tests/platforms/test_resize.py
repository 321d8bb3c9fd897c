"""Resizing runs: refused decisions, changes of pace, and the record."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.metrics.power import load_of
from poolwise.metrics.resource_use import resource_use
from poolwise.metrics.window import Window
from poolwise.model import (
    Changes,
    Decision,
    Decisions,
    Machine,
    Outcome,
    Placement,
    Queue,
    Resize,
    Run,
    Schedule,
    Snapshot,
    Start,
    Stop,
)
from poolwise.model.run_table import RunTable
from poolwise.performance.profiles import find_profile
from tests.helpers.holdings import check_capacity
from tests.helpers.remote_split import CORES, MEMORY, MODEL, POOL, split, split_jobs, split_machine

KMEANS = find_profile("kmeans")
HALF = float(KMEANS.at(0.5))


@dataclass
class GivenDecisions(Scheduler, Dispatcher):
    """Returns given decisions at given instants, and records the snapshots."""

    plans: dict[int, list[Decision]]
    seen: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    def open(self, machine: Machine, seed: int) -> "GivenDecisions":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        ends = tuple(run.expected_end for run in snapshot.runs())
        self.seen.append((snapshot.now, changes.resized, ends))
        later = [time for time in self.plans if time > snapshot.now]
        return Decisions(tuple(self.plans.pop(snapshot.now, [])), min(later, default=None))


def simulated(plans: dict[int, list[Decision]], memory: tuple[int, ...] = (80,)) -> tuple[Schedule, GivenDecisions]:
    scheduler = GivenDecisions(plans)
    jobs = split_jobs([0] * len(memory), [1000] * len(memory), memory)
    return simulate(jobs, split_machine(), scheduler, model=MODEL).schedule, scheduler


def test_pace_follows_the_placement() -> None:
    schedule, scheduler = simulated({0: [Start(0, (0,), split(0, 80, 0))], 100: [Resize(0, split(0, 40, 40))], 560: []})
    # 100 ns of work at full speed, then 900 ns at the slowdown of half its memory
    assert schedule.end.tolist() == [100 + 900 + int(np.ceil(900 * HALF))]
    assert schedule.resizes[0].time == 100 and schedule.resizes[0].placement == split(0, 40, 40)
    assert scheduler.seen[2][1] == (0,) and scheduler.seen[2][2] == (schedule.end[0],)


def test_regained_memory_restores_the_pace() -> None:
    there, back = Resize(0, split(0, 40, 40)), Resize(0, split(0, 80, 0))
    slow = int(1000 * (1 + HALF))  # ns in which 1000 ns of work would be done
    schedule, _ = simulated({0: [Start(0, (0,), split(0, 80, 0)), there], slow // 2: [back]})
    assert schedule.end[0] == pytest.approx(slow // 2 + 500, abs=2)


def test_released_memory_is_available_in_the_same_pass() -> None:
    plans: dict[int, list[Decision]] = {
        0: [Start(0, (0,), split(0, 80, 0))],
        100: [Resize(0, split(0, 40, 40)), Start(1, (0,), split(0, 60, 20))],
    }
    schedule, _ = simulated(plans, (80, 80))
    assert schedule.refused == {} and schedule.start.tolist() == [0, 100]


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (Resize(7, split(0, 40, 40)), "the run is over"),
        (Resize(0, split(1, 40, 40)), "only memory can be resized"),
        (Resize(0, split(0, 40, 40, cores=2)), "only memory can be resized"),
        (Resize(0, Placement.of([(0, 0, MEMORY, 80)])), "only memory can be resized"),
        (Resize(0, split(0, 101, 0)), "capacity is not free"),
        (Resize(0, split(0, 10, 151)), "capacity is not free"),
        (Resize(0, split(0, -1, 81)), "an amount is negative"),
        (Resize(0, Placement.of([(0, 0, CORES, 1), (0, 9, MEMORY, 1)])), "an owner does not exist"),
    ],
)
def test_invalid_resize_is_refused_entirely(decision: Resize, why: str) -> None:
    schedule, _ = simulated({0: [Start(0, (0,), split(0, 80, 0))], 100: [decision], 200: [Stop(0, False, "over")]})
    assert schedule.refused == {why: 1}
    assert schedule.resizes == () and schedule.end.tolist() == [200]
    assert load_of(schedule, Window(0, 200)).mean[POOL] == 0


def test_metrics_follow_resizes() -> None:
    schedule, _ = simulated(
        {0: [Start(0, (0,), split(0, 80, 0))], 100: [Resize(0, split(0, 40, 40))], 200: [Stop(0, False, "over")]}
    )
    assert schedule.outcome == (Outcome.STOPPED,)
    assert load_of(schedule, Window(0, 200)).mean[POOL] == pytest.approx(40 / 150 / 2)
    used = {use.resource: use.used for use in resource_use(schedule, Window(0, 200))}
    assert used["memory"] == pytest.approx(80 / 350) and used["cores"] == pytest.approx(1 / 8)


def test_runs_stay_in_start_order() -> None:
    table = RunTable(6)
    for number in range(3):
        place = split(0, 10, 10)
        table.add(Run(number, number, (0,), place, 0, 50 + number), place.owner * 2 + place.resource, (0, 2))
    there = split(0, 5, 15)
    table.move(Run(0, 0, (0,), there, 0, 50), there.owner * 2 + there.resource, (0, 2))
    assert [run.id for run in table] == [*table.occupants(0)] == [*table.sensitive(2)] == [0, 1, 2]
    assert table[0].placement == there and table.ends.tolist() == [50, 51, 52]
    assert table.released(table.slots)[0].reshape(3, 2).tolist() == [[1, 5], [0, 0], [0, 15]]


@dataclass
class AtRandom(Scheduler, Dispatcher):
    """Starts jobs that fit, and resizes runs by a list of random numbers, possible or not."""

    draws: list[tuple[int, int, int]]
    every: int = 37

    def open(self, machine: Machine, seed: int) -> "AtRandom":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        decisions: list[Decision] = []
        runs = list(snapshot.runs())
        if self.draws and runs:
            which, local, remote = self.draws.pop(0)
            run = runs[which % len(runs)]
            decisions.append(Resize(run.id, split(int(run.placement.owner[0]), local, remote)))
        decisions += [Start(job, (0,), split(job % 2, 30, 20)) for job in queue.jobs.tolist()]
        return Decisions(tuple(decisions), snapshot.now + self.every if runs or len(queue) else None)


@given(
    draws=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 120), st.integers(0, 170)), max_size=25),
    jobs=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 400)), min_size=1, max_size=6),
)
@settings(max_examples=150, deadline=None)
def test_work_done_equals_duration_and_capacity_is_conserved(
    draws: list[tuple[int, int, int]], jobs: list[tuple[int, int]]
) -> None:
    jobs = sorted(jobs)
    workload = split_jobs([a for a, _ in jobs], [b for _, b in jobs], [50] * len(jobs))
    machine = split_machine()
    schedule = simulate(workload, machine, AtRandom(draws), model=MODEL).schedule
    rows = schedule.holdings
    check_capacity(schedule)
    for run in range(schedule.n_run):
        done = Fraction(0)
        mine = rows.run == run
        stretches = sorted({(int(b), int(e)) for b, e in zip(rows.begin[mine], rows.end[mine], strict=True)})
        assert [b for b, _ in stretches[1:]] == [e for _, e in stretches[:-1]] or any(b == e for b, e in stretches)
        for begin, end in stretches:
            now = mine & (rows.begin == begin) & (rows.end == end) & (rows.resource == MEMORY)
            total, remote = int(rows.amount[now].sum()), int(rows.amount[now & (rows.owner == POOL)].sum())
            slowdown = float(KMEANS.at(remote / total)) if total else 0.0
            done += Fraction(end - begin) / (1 + Fraction(slowdown))
        assert schedule.outcome[run] is Outcome.FINISHED
        assert abs(float(done) - workload.duration[schedule.job[run]]) < 2 + len(stretches)
