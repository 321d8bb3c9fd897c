"""Gantt charts: boxes match the schedule and do not overlap."""

import itertools

import numpy as np
import pytest

from poolwise.explain import Explanation, explain_wait, wait_answer
from poolwise.model import Kind
from poolwise.quantities import HOUR
from poolwise.report import gantt as drawing
from poolwise.report.gantt import POOLS, gantt, longest_wait, with_wait_figures
from poolwise.studies import StudyResult
from poolwise.studies.cell_simulation import simulate_again
from poolwise.studies.cells import workload_of
from poolwise.studies.description import ConfiguredRun


@pytest.fixture(scope="module")
def explained(result: StudyResult):
    """Explain the longest wait under FCFS with small pools, and return the schedule of that run too."""
    cell, measured = result.study.cells[0], result.cells[0]
    outcomes = result.outcomes(measured)
    row = int(np.argmax(np.where(outcomes.finished, outcomes.start - outcomes.submit, -1)))
    what = ConfiguredRun.of(cell)
    explanation = explain_wait(workload_of(cell), cell.machine, what.scheduler, int(outcomes.id[row]), model=what.model,
                         estimate=what.estimate, outcomes=outcomes)  # fmt: skip
    return explanation, simulate_again(cell, outcomes)


def hours(drawn) -> float:
    """Return the hours per unit of the time axis."""
    return {"days": 24.0, "h": 1.0, "min": 1 / 60}[drawn.x_axis.label.rpartition("(")[2].rstrip(")")]


def test_boxes_match_the_allocations(explained, monkeypatch) -> None:
    explanation, schedule = explained
    monkeypatch.setattr(drawing, "MAX_BOXES", 10**6)
    drawn = gantt(explanation, schedule)
    jobs = [box for box in drawn.boxes if box.low >= 0 and box.series != POOLS]
    room = max(int(drawing.MARGIN * explanation.wait), HOUR // 60)
    begin, end = explanation.job.submit - room, explanation.until + room
    held = schedule.holdings
    nodes = held.resource == schedule.machine.resource("nodes")
    expected = (np.clip(held.end, begin, end) - np.clip(held.begin, begin, end)) * held.amount * nodes
    area = sum((box.right - box.left) * (box.high - box.low) for box in jobs)
    assert area * hours(drawn) == pytest.approx(expected.sum() / HOUR) and area > 0
    for lane in range(schedule.machine.capacity[:, 0].sum()):
        mine = sorted((box.left, box.right) for box in jobs if box.low <= lane < box.high)
        assert all(earlier[1] <= later[0] + 1e-9 for earlier, later in itertools.pairwise(mine)), "no two jobs on one node"
    own = [box for box in jobs if box.series == "this job"]
    assert sum(box.high - box.low for box in own) == explanation.job.nodes and own[0].left * hours(drawn) == pytest.approx(
        explanation.wait / HOUR
    )
    waits = [box for box in drawn.boxes if box.low < 0]
    assert len(waits) == len(explanation.episodes)
    assert sum(box.right - box.left for box in waits) * hours(drawn) == pytest.approx(
        (explanation.until - explanation.episodes[0].start) / HOUR
    )


def test_pool_bands_match_the_allocations(explained) -> None:
    """Compare the heights of the bands with a sum over the allocations at each instant."""
    explanation, schedule = explained
    drawn = gantt(explanation, schedule)
    bands = [box for box in drawn.boxes if box.series == POOLS]
    held, machine = schedule.holdings, schedule.machine
    top, memory = float(machine.capacity[:, machine.resource("nodes")].sum()), machine.resource("memory")
    pools = np.flatnonzero(machine.kind == Kind.POOL).tolist()
    assert len(pools) == 4 and {name for name in drawn.y_axis.ticks.values() if "pool" in name} == {
        f"pool {rack}" for rack in range(4)
    }
    full = 0.09 * top
    for k, owner in enumerate(pools):
        low = top * (1.025 + k * 0.115)
        mine = [box for box in bands if box.low == pytest.approx(low)]
        for box in mine[::7]:
            times = explanation.job.submit + np.linspace(box.left, box.right, 2001)[:-1] * HOUR * hours(drawn)
            rows = np.flatnonzero((held.owner == owner) & (held.resource == memory))
            used = sum(held.amount[r] * ((held.begin[r] <= times) & (times < held.end[r])).mean() for r in rows)
            share = used / machine.capacity[owner, memory]
            assert (box.high - box.low) / full == pytest.approx(share, abs=2e-3), box.description
            assert box.description.startswith(f"pool {int(machine.rack[owner])}: ")
    assert any(box.high - box.low > 0.9 * full for box in bands), "the job waited for a full pool"


def test_omitted_boxes_are_counted(explained, monkeypatch) -> None:
    explanation, schedule = explained
    monkeypatch.setattr(drawing, "MAX_BOXES", 10**6)
    every = [box for box in gantt(explanation, schedule).boxes if box.series == "other jobs"]
    others = len(every)
    monkeypatch.setattr(drawing, "MAX_BOXES", 5)
    drawn = gantt(explanation, schedule)
    assert sum(box.series == "other jobs" for box in drawn.boxes) == 5 and f"The {others - 5:,} smallest" in drawn.caption
    corners = {(box.left, box.right, box.low, box.high) for box in drawn.boxes}
    hidden = {box.description.split(":")[0] for box in every if (box.left, box.right, box.low, box.high) not in corners}
    assert f"smallest boxes, of {len(hidden):,} jobs, are omitted" in drawn.caption


def test_page_explains_the_wait(explained) -> None:
    explanation, schedule = explained
    page = with_wait_figures(wait_answer(explanation, "fcfs"), explanation, schedule)
    assert page.headline.startswith(f"Job {explanation.job.id} waited ") and page.main is not None
    assert len(page.tables[0].rows) == len(explanation.episodes) and isinstance(explanation, Explanation)


def test_study_report_shows_the_longest_wait(result: StudyResult) -> None:
    cell = result.cells[0]
    outcomes, jobs = result.outcomes(cell), result.population(cell)
    waits = np.where(jobs, outcomes.start - outcomes.submit, -1)
    drawn = longest_wait(result, cell)
    assert drawn is not None and f"job {int(outcomes.id[np.argmax(waits)])} waited" in drawn.title
    (wait,) = [box for box in drawn.boxes if box.series == "wait of this job"]
    assert wait.right * hours(drawn) == pytest.approx(waits.max() / HOUR)
