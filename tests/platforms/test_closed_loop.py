"""Closed-loop submissions, checked against their definition and against an open-loop rerun."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Failures, Machine, Workload
from poolwise.policies.order.priorities import SJF
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read


def chained(g: np.random.Generator, jobs: int) -> Workload:
    """Draw jobs with or without an earlier predecessor, some too large for the machine."""
    ids = g.permutation(jobs) + 1
    open_loop = Workload.of(
        g.integers(0, 40, jobs) * SECOND,
        g.integers(1, 20, jobs) * SECOND,
        id=ids,
        requests={"nodes": g.choice([1, 2, 3, 9 if g.random() < 0.3 else 4], jobs)},
    )
    before = [int(open_loop.id[g.integers(0, row)]) if row and g.random() < 0.7 else -1 for row in range(jobs)]
    more = {"preceding": np.array(before), "think_s": g.choice([-1.0, 0.0, 1.5, 30.0], jobs)}
    return replace(open_loop, attributes=more, closed_loop=True)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_jobs_are_submitted_a_think_time_after_their_predecessor(seed, failing):
    g = np.random.default_rng(seed)
    jobs, on, scheduler = chained(g, 14), Machine.of_racks(1, 4), ListScheduler(SJF())
    if failing:
        on = replace(on, failures=Failures(owners=(0,), mtbf=30 * SECOND, mttr=SECOND, requeue=bool(g.random() < 0.5)))
    schedule = simulate(jobs, on, scheduler, seed=seed).schedule
    as_submitted = schedule.workload
    assert sorted(as_submitted.id.tolist()) == sorted(jobs.id.tolist()) and not schedule.waiting
    last = {int(as_submitted.id[schedule.job[run]]): int(schedule.end[run]) for run in np.argsort(schedule.end)}
    row = {int(job): k for k, job in enumerate(as_submitted.id)}
    for k, job in enumerate(jobs.id.tolist()):
        before, think = int(jobs.attributes["preceding"][k]), max(0.0, float(jobs.attributes["think_s"][k]))
        submitted = int(as_submitted.submit[row[job]])
        assert int(as_submitted.duration[row[job]]) == int(jobs.duration[k])
        if before < 0:
            assert submitted == int(jobs.submit[k])
        elif before in last or not failing:
            over = last.get(before, int(as_submitted.submit[row[before]]))  # rejected jobs are rejected on arrival
            assert submitted == over + int(think * SECOND)
    if not failing and not schedule.rejected:  # (a rejection submits a successor in the same instant, but after the pass)
        # the same jobs, submitted at these times in an open loop, run the same way
        again = simulate(replace(as_submitted, closed_loop=False), on, scheduler, engine="reference").schedule
        runs = [sorted(zip(s.job.tolist(), s.start.tolist(), s.end.tolist(), strict=True)) for s in (schedule, again)]
        assert runs[0] == runs[1] and schedule.rejected == again.rejected


SWF_ROWS = """\
1 0 0 100 2 -1 -1 2 100 -1 1 1 1 -1 -1 -1 -1 -1
2 5 0 50 2 -1 -1 2 50 -1 1 1 1 -1 -1 -1 1 10
3 6 0 50 2 -1 -1 2 50 -1 1 2 1 -1 -1 -1 2 -1
"""


def test_closed_loop_from_swf_fields_17_and_18(tmp_path):
    file = tmp_path / "log.swf"
    file.write_text(SWF_ROWS)
    on = Machine.flat(4)
    jobs = read(file, on, format="swf", closed_loop=True)
    schedule = simulate(jobs, on, ListScheduler()).schedule
    assert (schedule.workload.submit // SECOND).tolist() == [0, 110, 160]
    assert simulate(read(file, on), on, ListScheduler()).schedule.workload.submit[1] == 5 * SECOND
    file.write_text(SWF_ROWS.replace("-1 1 10\n", "-1 3 10\n"))
    with pytest.raises(InputError, match="job 2 follows job 3, which is not submitted before it"):
        simulate(read(file, on, format="swf", closed_loop=True), on, ListScheduler())
