"""Simulations from a machine state: current runs continue, and the given scheduler starts the waiting jobs."""

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.from_state import state_run
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Placement
from poolwise.quantities import SECOND, UNKNOWN
from poolwise.simulation import list_scheduler

HOUR = 3600 * SECOND


def state(*, ids: bool = True) -> MachineState:
    """Four processors at 10 s: one job has two of them until 20 s, another one overdue since 8 s; three wait."""
    submit, requested = np.array([0, 0, 5, 6, 7]) * SECOND, np.array([20 * SECOND, 8 * SECOND, UNKNOWN, 4 * SECOND, 4 * SECOND])
    number = np.array([30, 10, 50, 20, 40]) if ids else np.zeros(5, dtype=np.int64)
    jobs = JobTable(number, submit, requested, np.ones(5, dtype=np.int64), {"nodes": np.array([2, 1, 3, 2, 1])}, {})
    running = [InitialRun(0, 0, Placement.of([(0, 0, 0, 2)])), InitialRun(1, 0, Placement.of([(0, 0, 0, 1)]))]
    return MachineState(Machine.flat(4), jobs, 10 * SECOND, running, np.array([2, 3, 4]), "a test")


@pytest.mark.parametrize("ids", [True, False])
def test_current_runs_continue_and_waiting_jobs_start(ids: bool) -> None:
    continued = state_run(state(ids=ids), HOUR)
    assert (continued.without_limit, continued.overdue) == (1, 1)
    schedule = simulate(
        continued.workload, state().machine, list_scheduler(), engine="reference", initial=continued.initial
    ).schedule
    ran = {
        int(continued.workload.id[job]): (start, end)
        for job, start, end in zip(schedule.job, schedule.start, schedule.end, strict=True)
    }
    names = [30, 10, 50, 20, 40] if ids else [1, 2, 3, 4, 5]
    seconds = {names.index(name): (int(start) / SECOND, int(end) / SECOND) for name, (start, end) in ran.items()}
    assert seconds[0] == (0, 20) and seconds[1] == (0, 11), "current runs continue, an overdue one for a second"
    assert seconds[2] == (20, 3620), "a job without a limit is assumed to run for an hour, and is not backfilled"
    assert seconds[3] == (14, 18) and seconds[4] == (10, 14), "the others fit before it"
