"""Jobs that are submitted when their predecessors are over: held against the definition, and against a rerun."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Failures, Machine, Workload
from poolwise.policies.order.priorities import SJF
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read
from poolwise.units import SECOND


def chained(g: np.random.Generator, jobs: int) -> Workload:
    """Jobs that follow an earlier one or none, some too large for the machine."""
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
def test_each_job_is_submitted_when_its_predecessor_is_over_and_its_user_has_thought(seed, failing):
    g = np.random.default_rng(seed)
    jobs, on, scheduler = chained(g, 14), Machine.of_racks(1, 4), ListScheduler(SJF())
    if failing:
        on = replace(on, failures=Failures(owners=(0,), mtbf=30 * SECOND, mttr=SECOND, requeue=bool(g.random() < 0.5)))
    schedule = simulate(on, jobs, scheduler, seed=seed).schedule
    told = schedule.workload
    assert sorted(told.id.tolist()) == sorted(jobs.id.tolist()) and not schedule.waiting
    last = {int(told.id[schedule.job[run]]): int(schedule.end[run]) for run in np.argsort(schedule.end)}
    row = {int(job): k for k, job in enumerate(told.id)}
    for k, job in enumerate(jobs.id.tolist()):
        before, think = int(jobs.attributes["preceding"][k]), max(0.0, float(jobs.attributes["think_s"][k]))
        submitted = int(told.submit[row[job]])
        assert int(told.duration[row[job]]) == int(jobs.duration[k])
        if before < 0:
            assert submitted == int(jobs.submit[k])
        elif before in last or not failing:
            over = last.get(before, int(told.submit[row[before]]))  # one that is rejected is rejected on arrival
            assert submitted == over + int(think * SECOND)
    if not failing and not schedule.rejected:  # (a rejection lets a job come in the same instant, but after the pass)
        # the same jobs, submitted at these times in an open loop, run the same way
        again = simulate(on, replace(told, closed_loop=False), scheduler, engine="reference").schedule
        runs = [sorted(zip(s.job.tolist(), s.start.tolist(), s.end.tolist(), strict=True)) for s in (schedule, again)]
        assert runs[0] == runs[1] and schedule.rejected == again.rejected


SWF_ROWS = """\
1 0 0 100 2 -1 -1 2 100 -1 1 1 1 -1 -1 -1 -1 -1
2 5 0 50 2 -1 -1 2 50 -1 1 1 1 -1 -1 -1 1 10
3 6 0 50 2 -1 -1 2 50 -1 1 2 1 -1 -1 -1 2 -1
"""


def test_fields_17_and_18_of_a_log(tmp_path):
    file = tmp_path / "log.swf"
    file.write_text(SWF_ROWS)
    on = Machine.flat(4)
    jobs = read(file, on, format="swf", closed_loop=True)
    schedule = simulate(on, jobs, ListScheduler()).schedule
    assert (schedule.workload.submit // SECOND).tolist() == [0, 110, 160]
    assert simulate(on, read(file, on), ListScheduler()).schedule.workload.submit[1] == 5 * SECOND
    file.write_text(SWF_ROWS.replace("-1 1 10\n", "-1 3 10\n"))
    with pytest.raises(InputError, match="job 2 follows job 3, which is not submitted before it"):
        simulate(on, read(file, on, format="swf", closed_loop=True), ListScheduler())
