"""Jobs over time: the boxes are what the schedule says, no two of them on one another."""

import itertools

import numpy as np
import pytest

from poolwise.explain import Explanation, explain_wait
from poolwise.report import gantt as drawing
from poolwise.report.gantt import gantt, longest_wait, wait_page
from poolwise.studies import StudyResult
from poolwise.studies.cells import workload_of
from poolwise.studies.description import Configured
from poolwise.studies.simulation import simulate_again
from poolwise.units import HOUR


@pytest.fixture(scope="module")
def explained(result: StudyResult):
    """The job that waits longest under FCFS with small pools, and the schedule of that run."""
    cell, measured = result.study.cells[0], result.cells[0]
    outcomes = result.outcomes(measured)
    row = int(np.argmax(np.where(outcomes.finished, outcomes.start - outcomes.submit, -1)))
    what = Configured.of(cell)
    found = explain_wait(cell.machine, workload_of(cell), what.scheduler, int(outcomes.id[row]), truth=what.truth,
                         estimate=what.estimate, outcomes=outcomes)  # fmt: skip
    return found, simulate_again(cell, outcomes)


def test_boxes_are_what_jobs_held(explained, monkeypatch) -> None:
    found, schedule = explained
    monkeypatch.setattr(drawing, "MOST", 10**6)
    drawn = gantt(found, schedule)
    jobs = [box for box in drawn.boxes if box.low >= 0]
    room = max(int(drawing.MARGIN * found.wait), HOUR // 60)
    begin, end = found.job.submit - room, found.until + room
    held = schedule.holdings
    nodes = held.resource == schedule.machine.resource("nodes")
    expected = (np.clip(held.end, begin, end) - np.clip(held.begin, begin, end)) * held.amount * nodes
    area = sum((box.right - box.left) * (box.high - box.low) for box in jobs)
    assert area == pytest.approx(expected.sum() / HOUR) and area > 0
    for lane in range(schedule.machine.capacity[:, 0].sum()):
        mine = sorted((box.left, box.right) for box in jobs if box.low <= lane < box.high)
        assert all(one[1] <= two[0] + 1e-9 for one, two in itertools.pairwise(mine)), "no two jobs on one node"
    own = [box for box in jobs if box.series == "this job"]
    assert sum(box.high - box.low for box in own) == found.job.nodes and own[0].left == pytest.approx(found.wait / HOUR)
    waits = [box for box in drawn.boxes if box.low < 0]
    assert len(waits) == len(found.episodes)
    assert sum(box.right - box.left for box in waits) == pytest.approx((found.until - found.episodes[0].start) / HOUR)


def test_what_is_left_out_is_counted(explained, monkeypatch) -> None:
    found, schedule = explained
    monkeypatch.setattr(drawing, "MOST", 10**6)
    others = sum(box.series == "other jobs" for box in gantt(found, schedule).boxes)
    monkeypatch.setattr(drawing, "MOST", 5)
    drawn = gantt(found, schedule)
    assert sum(box.series == "other jobs" for box in drawn.boxes) == 5 and f"The {others - 5:,} smallest" in drawn.caption


def test_the_page_says_why(explained) -> None:
    found, schedule = explained
    page = wait_page(found, schedule, "fcfs")
    assert page.lead.startswith(f"Job {found.job.id} waited ") and page.main is not None
    assert len(page.tables[0].rows) == len(found.episodes) and isinstance(found, Explanation)


def test_the_study_shows_its_longest_wait(result: StudyResult) -> None:
    cell = result.cells[0]
    outcomes, jobs = result.outcomes(cell), result.population(cell)
    waits = np.where(jobs, outcomes.start - outcomes.submit, -1)
    drawn = longest_wait(result, cell)
    assert drawn is not None and f"job {int(outcomes.id[np.argmax(waits)])} waited" in drawn.title
    (wait,) = [box for box in drawn.boxes if box.series == "its wait"]
    assert wait.right == pytest.approx(waits.max() / HOUR)
