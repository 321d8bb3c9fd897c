"""Representations of public objects: at most 10 lines of at most 120 characters, whatever the size of the object."""

import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import poolwise
from poolwise import interfaces, performance, policies, schedulers
from poolwise.forecasting.answer import JobForecast
from poolwise.short_repr import LINES, WIDTH, fit_repr, short_repr, short_value

N = 2000
MACHINE = poolwise.Machine.of_racks(40, 48, local="64 GiB", pool="1 TiB", name="a machine with a long name " * 20)
WORKLOAD = poolwise.Workload.of(
    [f"{k} s" for k in range(N)],
    "1 h",
    requests={"nodes": [1 + k % 7 for k in range(N)], "memory": "80 GiB"},
    excluded={"a reason": 3},
    name="a workload with a long name " * 20,
)
PLACEMENT = poolwise.Placement.of([(0, k % 80, k % 2, 1) for k in range(N)])


@pytest.fixture(scope="module")
def run() -> poolwise.SimulatedRun:
    return poolwise.simulate(WORKLOAD, MACHINE, order="sjf", engine="reference")


def fits(thing: object) -> bool:
    lines = repr(thing).split("\n")
    return len(lines) <= LINES == 10 and max(map(len, lines)) <= WIDTH == 120


def small_objects() -> list[Any]:
    """Return one object of each public data class that needs no simulation."""
    table = WORKLOAD.table
    running = [poolwise.InitialRun(k, 0, PLACEMENT) for k in range(0)]
    starts = tuple(interfaces.Start(k, tuple(range(N)), PLACEMENT) for k in range(N))
    refusal = interfaces.Refusal("a long reason " * 30, "nodes", 4, 2)
    numbers = np.arange(float(N))
    return [
        MACHINE,
        poolwise.MachineBuilder("one"),
        WORKLOAD,
        table,
        table.job(3),
        WORKLOAD.job(3),
        poolwise.Queue.of(table, np.arange(N)),
        poolwise.MachineState(MACHINE, table, N * 10**9, running, np.arange(N)),
        poolwise.InitialRun(0, 0, PLACEMENT),
        PLACEMENT,
        refusal,
        interfaces.Decisions(starts),
        starts[0],
        interfaces.Stop(1, True, "preempted"),
        interfaces.Resize(1, PLACEMENT),
        interfaces.Reject(1, "never fits"),
        interfaces.Wait(1, refusal),
        interfaces.Changes(arrived=tuple(range(N))),
        interfaces.Run(0, 0, tuple(range(N)), PLACEMENT, 0, 10**9),
        interfaces.Fetch(1, 1, tuple((k,) for k in range(N)), tuple(range(N))),
        interfaces.Reason.of(interfaces.WaitCause.SHORT, "a long text " * 50, refusal),
        interfaces.FixedSlowdown(numbers, numbers, numbers),
        interfaces.BackfillRule("head"),
        interfaces.RackRule(),
        interfaces.ListRule(policies.FCFS(), policies.Easy(), policies.RackPlacement()),
        poolwise.Kind.POOL,
        poolwise.Check("is deterministic", "a long problem " * 20),
        poolwise.Metric("mean wait", "s", "lower"),
        poolwise.InputError("wrong", file="a.toml"),
        poolwise.ListScheduler(),
        poolwise.RemoteMemory(),
        poolwise.Ideal(),
        poolwise.load("cerit-pools"),
        poolwise.load_plan("gpu-share"),
        poolwise.forecast(poolwise.MachineState(MACHINE, table, N * 10**9, [], np.arange(0))),
        poolwise.ForecastAnswer(
            0,
            [JobForecast(f"job {k}", np.array([60.0, 300.0, 3600.0]), None) for k in range(N)],
            [],
            None,
            "fcfs with easy",
            ["a note " * 100],
            datetime.UTC,
        ),
    ]


def test_reprs_of_data_classes_are_short() -> None:
    assert [repr(thing) for thing in small_objects() if not fits(thing)] == []


@pytest.mark.long
def test_reprs_of_results_are_short(run: poolwise.SimulatedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"workload.jobs": 600, "scheduler.order": "fm", "machine.pool.memory.memory": "768 GiB"}
    planned = poolwise.plan("gpu-share", jobs=1, set={"plan.seeds": 2, "plan.jobs.count": 50})
    scheduler = poolwise.list_scheduler()
    results = [
        run,
        run.schedule,
        run.schedule.holdings,
        run.outcomes,
        run.plot("waiting"),
        poolwise.compare(run, run),
        poolwise.run(poolwise.load("cerit-pools", settings), jobs=1),
        planned,
        planned.answer,
        poolwise.place("batch-150x1200", method="first-fit"),
        poolwise.explain_wait(WORKLOAD, MACHINE, scheduler, job=5),
    ]
    assert [repr(result) for result in results if not fits(result)] == []


def test_repr_of_a_snapshot_is_short() -> None:
    seen: list[str] = []

    class Watch(policies.Easy):  # type: ignore[misc]
        def select(self, cycle: Any) -> Any:
            seen.extend((repr(cycle.snapshot), repr(cycle)))
            return super().select(cycle)

    poolwise.simulate(poolwise.excerpt(WORKLOAD, 0, 20), MACHINE, backfill=Watch(), engine="reference")
    assert seen and max(map(len, seen)) <= WIDTH


ARGUMENTS_OF_COST_MODELS = {"CostModel", "Places", "TaskClasses", "Waiting"}
"""The interface of cost models and its arguments, which have no default settings."""


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (package, name)
        for package in (performance, policies, schedulers)
        for name in package.__all__
        if name not in ARGUMENTS_OF_COST_MODELS
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_repr_of_a_policy_with_default_settings_is_short(package: ModuleType, name: str) -> None:
    policy = getattr(package, name)()
    assert fits(policy), repr(policy)


@pytest.mark.long
def test_notebooks_show_results_as_html(run: poolwise.SimulatedRun) -> None:
    for thing in (run, MACHINE, WORKLOAD, run.plot("slowdown")):
        assert thing._repr_html_().startswith(("<p>", "<table>", "<figure>"))


def test_values_are_abbreviated() -> None:
    assert short_value(np.arange(3)) == "[0, 1, 2]"
    assert short_value(np.zeros((50, 2))) == "<float64 array of shape (50, 2)>"
    assert short_value({"a": 1}) == "{'a': 1}"
    assert short_value((1,)) == "(1,)"
    assert short_value(list(range(1234))) == "<1,234 items>"
    assert len(short_value("x" * 1000)) < 70
    assert short_repr(poolwise.InitialRun(1, 2, poolwise.Placement.of([]))) == (
        "InitialRun(job=1, start=2, placement=Placement.of([]))"
    )


def test_text_is_wrapped_and_cut() -> None:
    text = fit_repr("\n".join(f"{k} " + "word " * 60 for k in range(20)))
    assert len(text.split("\n")) == LINES and max(map(len, text.split("\n"))) <= WIDTH
