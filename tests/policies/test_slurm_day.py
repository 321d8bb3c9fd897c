"""Slurm's priorities, schedulers and choice of nodes against days that a real one has run: `tests/live/slurm/day.py`.

`day` and `same-day` are one and the same input, run twice; `busy-day` has a queue that never empties. One backfill interval is
10 s.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from poolwise.policies.placement.nodes.placement import TreeNodes
from poolwise.units import SECOND
from tests.helpers.slurm_day import RecordedDay

DATA = Path(__file__).parents[1] / "data" / "slurm-22.05"
INTERVAL_MS = 10_000


@cache
def recorded(name: str) -> RecordedDay:
    return RecordedDay.read(DATA / name)


def late(name: str, *, close_calls: bool) -> np.ndarray:
    day = recorded(name).with_freed_nodes() if close_calls else recorded(name)
    return np.abs(day.late_ms(day.replay()))


@pytest.mark.parametrize(("name", "compared", "apart"), [("day", 301, []), ("same-day", 278, [58]), ("busy-day", 384, [])])
def test_every_priority_at_every_recalculation(name: str, compared: int, apart: list[int]) -> None:
    """Given when each job really ran, age and decaying usage give all priorities that the controller worked out.

    One job is a second older here: the log has other milliseconds than the clock.
    """
    day, told, others, second = recorded(name), 0, list[int](), 10_000 / 600  # of age
    for instant, printed in day.priorities.items():
        ours = day.priorities_at(instant, [*printed])
        others += [job for job, value in printed.items() if ours[job] != value]
        assert all(abs(ours[job] - value) <= second + 1 for job, value in printed.items())
        told += len(printed)
    assert (told, others) == (compared, apart)


@pytest.mark.parametrize(
    ("name", "tries", "others"),
    [("day", 1731, set()), ("same-day", 1660, set()), ("busy-day", 2259, {1_215_422, 1_236_337, 1_246_997})],
)
def test_every_try_of_every_backfill_pass(name: str, tries: int, others: set[int]) -> None:
    """When and where each job that a pass tried is to start, each pass in the state in which it really began.

    In three passes of `busy-day` one choice of nodes is another, for a cause that is not known, and others follow from it: 42
    tries. Expected starts may be off by the second that a pass takes.
    """
    day, told = recorded(name), 0
    rows = {int(job): row for row, job in enumerate(day.workload.table.id.tolist())}
    otherwise = set()
    for ms, found in day.passes.items():
        plan = day.backfill().plan(day.state_at(ms))
        for real in found:
            ours = plan.plan_job(day.workload.job(rows[real.job]), TreeNodes())
            told += 1
            if ours is None or abs(ours.start // SECOND - real.start_s) > 1 or {*ours.placement.owners()} != real.nodes:
                otherwise.add(ms)
    assert (told, otherwise) == (tries, others)


@pytest.mark.parametrize(("name", "exact", "soon"), [("day", 0.81, 0.95), ("same-day", 0.72, 0.83), ("busy-day", 0.95, 1.0)])
def test_the_replay_of_a_day(name: str, exact: float, soon: float) -> None:
    """Arrivals, what jobs take, and when the controller looked are given; which job starts when, and where, is not."""
    off = late(name, close_calls=False)
    assert np.mean(off < 1000) >= exact and np.mean(off <= INTERVAL_MS) >= soon


@pytest.mark.parametrize(("name", "exact"), [("day", 1.0), ("same-day", 1.0), ("busy-day", 0.96)])
def test_what_differs_comes_from_looks_that_found_nodes_completing(name: str, exact: float) -> None:
    """Nodes come free some ms after their job is done. Told which looks were too early for them, the replay has every start.

    So each start that is more than an interval off is explained by such a look before it.
    """
    off = late(name, close_calls=True)
    assert np.mean(off < 1000) >= exact and off.max() <= INTERVAL_MS
    plain, day = late(name, close_calls=False), recorded(name)
    if (plain > 1000).any() and exact == 1.0:
        first = day.decided_ms[plain > 1000].min()
        assert (day.close_calls_ms <= first).any()


def test_a_real_one_agrees_with_itself_on_three_fifths_of_the_starts() -> None:
    """The same jobs at the same times, twice: what one knows of the input alone says no more."""
    one, other = recorded("day"), recorded("same-day")
    waits = [day.columns["start_ms"] - day.columns["submit_ms"].min() for day in (one, other)]
    assert all(np.array_equal(one.columns[name], other.columns[name]) for name in ("user", "nodes", "limit_s", "nice"))
    assert np.mean(np.abs(waits[0] - waits[1]) <= INTERVAL_MS) == pytest.approx(0.595, abs=0.005)
