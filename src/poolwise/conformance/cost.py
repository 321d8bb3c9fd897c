"""Checks of a cost model of flow scheduling."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Check, Findings
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.random import uniform

SHAPE = "returns a cost for each task, place and copy"
NUMBERS = "returns finite costs, or inf where a task must not run"
WAITING = "returns a finite cost of waiting for each job"
HOPELESS = "returns for each task whether even the idle machine would miss its goal"
LOOKS = "reads only the columns of places that looks_at names"
COLUMNS = ("running", "load", "position")
KINDS = ("", "nw", "hotspot", "backprop", "no such kind")
COST_PROMISES = (RUNS, PICKLES, DETERMINISTIC, UNCHANGED, SHAPE, NUMBERS, WAITING, HOPELESS, LOOKS)
COPIES = 3
_RESOURCES = (("cores", "memory"), ("cores", "memory", "gpu"), ("gpu",), ("cores",))


def check_cost(cost: CostModel) -> tuple[Check, ...]:
    """Check a cost model with random tasks, positions and waiting jobs: near and far, idle and loaded, full and empty."""
    findings = Findings(*COST_PROMISES)
    with findings.running():
        copy = findings.pickled(cost)
        unknown = set(cost.looks_at) - set(COLUMNS)
        findings.require(LOOKS, not unknown, f"looks_at names {', '.join(sorted(unknown))}, known: {', '.join(COLUMNS)}")
        for seed in range(12):
            tasks, places = _tasks(seed), _places(seed)
            value = _placing(cost, copy, tasks, places, findings)
            _ask_waiting(cost, copy, seed, findings)
            _ask_hopeless(cost, tasks, findings)
            for column in COLUMNS:
                if column not in cost.looks_at:
                    other = replace(places, **{column: getattr(places, column)[::-1].copy()})
                    same = np.array_equal(value, cost.placing(tasks, other, COPIES), equal_nan=True)
                    findings.require(LOOKS, same, f"its costs change with the {column} of places, which looks_at does not name")
    return findings.checks()


def _placing(cost: CostModel, copy: CostModel, tasks: TaskClasses, places: Places, findings: Findings) -> FloatArray:
    before = _bytes(tasks), _bytes(places)
    value = cost.placing(tasks, places, COPIES)
    shape, expected = getattr(value, "shape", None), (len(tasks), len(places))
    problem = f"returned shape {shape} for {expected[0]} tasks at {expected[1]} places and {COPIES} copies, or not float64"
    findings.demand(SHAPE, shape in ((*expected, 1), (*expected, COPIES)) and value.dtype == np.float64, problem)
    findings.require(NUMBERS, bool((np.isfinite(value) | (value == np.inf)).all()), "a cost of placing is NaN or -inf")
    for other in (cost, copy):
        same = np.array_equal(value, other.placing(tasks, places, COPIES), equal_nan=True)
        findings.demand(DETERMINISTIC, same, "two calls with the same tasks and places returned different costs")
    findings.require(UNCHANGED, (_bytes(tasks), _bytes(places)) == before, "a call changed the tasks or the places")
    return value


def _ask_waiting(cost: CostModel, copy: CostModel, seed: int, findings: Findings) -> None:
    n = seed % 4 + 1
    waited = _draw(seed, "waited", n) * 1e5
    waiting = Waiting((waited / 10).astype(np.int64), waited, _draw(seed, "dearest", n) * 100, 3 * n)
    before = _bytes(waiting)
    value = cost.waiting(waiting)
    ok = getattr(value, "shape", None) == (n,) and bool(np.isfinite(value).all())
    findings.require(WAITING, ok, f"returned {value!r} for {n} jobs")
    for other in (cost, copy):
        same = np.array_equal(value, other.waiting(waiting), equal_nan=True)
        findings.require(DETERMINISTIC, same, "two calls with the same waiting jobs returned different costs")
    findings.require(UNCHANGED, _bytes(waiting) == before, "a call changed the waiting jobs")


def _ask_hopeless(cost: CostModel, tasks: TaskClasses, findings: Findings) -> None:
    before = _bytes(tasks)
    value = cost.hopeless(tasks)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    ok = shape == (len(tasks),) and dtype == np.bool_
    findings.require(HOPELESS, ok, f"returned shape {shape} of {dtype} for {len(tasks)} tasks, not ({len(tasks)},) of bool")
    findings.require(UNCHANGED, _bytes(tasks) == before, "a call changed the tasks")


def _tasks(seed: int) -> TaskClasses:
    n, names = seed % 5 + 1, _RESOURCES[seed % 4]
    return TaskClasses(
        names,
        (_draw(seed, "demand", n * len(names)) * 8).astype(np.int64).reshape(n, -1),
        tuple(KINDS[int(k * len(KINDS))] for k in _draw(seed, "kind", n)),
        _draw(seed, "task load", n),
        _draw(seed, "local", n) < 0.5,
        _draw(seed, "data", n) * 4e9,
        (_draw(seed, "data at", 2 * n) * 3).astype(np.int64).reshape(n, 2),
    )


def _places(seed: int) -> Places:
    n, width = seed % 6 + 2, len(_RESOURCES[seed % 4])
    capacity = (_draw(seed, "capacity", n * width) * 16).astype(np.int64).reshape(n, width)  # some have none
    free = (capacity * _draw(seed, "free", n * width).reshape(n, width)).astype(np.int64)
    running, load = (_draw(seed, "running", n) * 9).astype(np.int64), np.floor(_draw(seed, "load", n) * 5) / 4
    position = (_draw(seed, "position", 2 * n) * 3).astype(np.int64).reshape(n, 2)
    return Places(free, capacity, running, load, position, preferred=seed % 3 == 1, remote=seed % 3 == 2)


def _draw(seed: int, name: str, n: int) -> FloatArray:
    return uniform(seed, f"conformance.{name}", np.arange(n))


def _bytes(thing: TaskClasses | Places | Waiting) -> list[Any]:
    """Return the contents as bytes, to detect changes."""
    values = (getattr(thing, entry.name) for entry in fields(thing))
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]
