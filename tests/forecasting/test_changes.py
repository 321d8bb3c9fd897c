"""Changes that affect a start: another partition, fewer nodes, another order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import numpy as np

from poolwise import simulation
from poolwise.forecasting.answer import ForecastAnswer, forecast_answer
from poolwise.forecasting.known_state import situation_of
from poolwise.forecasting.request import ForecastRequest
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Partition, Placement
from poolwise.model.machine_builder import MachineBuilder
from poolwise.quantities import HOUR


def two_partitions() -> Machine:
    """Return a machine with one node of 8 cores in each of two partitions."""
    build = MachineBuilder("halves", ("cores", "memory"))
    for name in ("n0", "n1"):
        build.node(name, rack=0, cores=8, memory=1024)
    sets = {"busy": np.array([True, False]), "idle": np.array([False, True])}
    return replace(Machine.of(build), partitions=(Partition("busy", default=True), Partition("idle")), node_sets=sets)


def answer(cores: int, limit: int) -> ForecastAnswer:
    """Job 1 holds all of the busy partition for five more hours, job 2 waits for as much, and job 3 waits behind it."""
    machine = two_partitions()
    table = JobTable(
        np.array([1, 2, 3]), np.array([0, HOUR, 2 * HOUR]), np.array([10 * HOUR, HOUR, limit]), np.ones(3, dtype=np.int64),
        {"nodes": np.ones(3, dtype=np.int64), "cores": np.array([8, 8, cores])},
        {"partition": np.array(["busy", "busy", "busy"])},
        epoch=HOUR,
    )  # fmt: skip
    hold = Placement.of([(0, 0, machine.resource("cores"), 8)])
    state = MachineState(machine, table, 5 * HOUR, [InitialRun(0, 0, hold)], np.array([1, 2]), "a test", "")
    how = simulation.list_scheduler("fcfs", "easy", "first_fit")
    situation = situation_of(state, how, simulation.default_model(machine, 0))
    return forecast_answer(situation, ForecastRequest([2], 6 * HOUR, 40, 1, True, None), "fcfs", UTC)


def test_job_starts_at_once_in_the_idle_partition() -> None:
    forecast = answer(cores=8, limit=HOUR)
    (other,) = [change.forecast for change in forecast.changes if change.words == "in partition idle"]
    assert other.wait_s.tolist() == [0.0, 0.0, 0.0] and other.chance_by == 1.0
    assert float(forecast.jobs[0].wait_s[0]) > 0 and "in partition idle" in " ".join(forecast.change_sentences())
    assert not any(change.words == "in partition busy" for change in forecast.changes), "it is in that partition already"


def test_shortest_first_lets_a_shorter_job_start_earlier() -> None:
    forecast = answer(cores=8, limit=HOUR // 2)
    (other,) = [change.forecast for change in forecast.changes if "shortest job first" in change.words]
    assert float(other.wait_s[1]) < float(forecast.jobs[0].wait_s[1])
