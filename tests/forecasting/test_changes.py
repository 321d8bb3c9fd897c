"""What would change a start: another partition, fewer nodes, another order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import numpy as np

from poolwise import api
from poolwise.forecasting.answer import ForecastAnswer, forecast_answer
from poolwise.forecasting.known_state import situation_of
from poolwise.forecasting.question import ForecastQuestion
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Partition, Placement
from poolwise.model.machine_builder import MachineBuilder
from poolwise.units import HOUR


def two_partitions() -> Machine:
    """A node for each of two partitions, 8 cores each."""
    build = MachineBuilder("halves", ("cores", "memory"))
    for name in ("n0", "n1"):
        build.node(name, rack=0, cores=8, memory=1024)
    sets = {"busy": np.array([True, False]), "idle": np.array([False, True])}
    return replace(Machine.of(build), partitions=(Partition("busy", default=True), Partition("idle")), node_sets=sets)


def answer(cores: int, limit: int) -> ForecastAnswer:
    """Job 1 has all of the busy partition for five more hours, job 2 waits for as much, and job 3 behind it."""
    machine = two_partitions()
    table = JobTable(
        np.array([1, 2, 3]), np.array([0, HOUR, 2 * HOUR]), np.array([10 * HOUR, HOUR, limit]), np.ones(3, dtype=np.int64),
        {"nodes": np.ones(3, dtype=np.int64), "cores": np.array([8, 8, cores])},
        {"partition": np.array(["busy", "busy", "busy"])},
        epoch=HOUR,
    )  # fmt: skip
    hold = Placement.of([(0, 0, machine.resource("cores"), 8)])
    state = MachineState(machine, table, 5 * HOUR, [InitialRun(0, 0, hold)], np.array([1, 2]), "a test", "")
    how = api.list_scheduler("fcfs", "easy", "first_fit")
    situation = situation_of(state, how, api.default_model(machine, 0))
    return forecast_answer(situation, ForecastQuestion([2], 6 * HOUR, 40, 1, True, None), "fcfs", UTC)


def test_in_the_idle_partition_a_job_starts_at_once() -> None:
    found = answer(cores=8, limit=HOUR)
    (other,) = [one.forecast for one in found.changes if one.words == "in partition idle"]
    assert other.wait_s.tolist() == [0.0, 0.0, 0.0] and other.chance_by == 1.0
    assert float(found.jobs[0].wait_s[0]) > 0 and "in partition idle" in " ".join(found.changes_said())
    assert not any(one.words == "in partition busy" for one in found.changes), "it is there already"


def test_the_order_would_let_a_shorter_job_go_first() -> None:
    found = answer(cores=8, limit=HOUR // 2)
    (other,) = [one.forecast for one in found.changes if "shortest job first" in one.words]
    assert float(other.wait_s[1]) < float(found.jobs[0].wait_s[1])
