"""Metrics of a run of tasks on units: the outputs of VineSim, as plain data.

Source: VineSim, section 5.2.2; specs of the accelerators, "Outputs".
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.latency import Spread, job_latency_us, response_us, task_latency_us
from poolwise.metrics.unit_use import Series, dispatch_window, energy_j, purchase, unit_series, unit_use
from poolwise.model import Schedule
from poolwise.units import US


def summarise_dispatch(schedule: Schedule, sample: int | None = None) -> dict[str, Any]:
    """Compute all outputs; plain data for JSON, None where something is undefined.

    Parameters
    ----------
    sample
        Sampling interval of the time series, ns; None for no series.

    Returns
    -------
    "jobs", "tasks" : those that finished
    "job_latency_us", "task_latency_us", "response_us" : count, mean, p50, p99, p99_9
    "makespan_us" : first arrival to last end
    "utilization" : "overall", "by_type", "units" (their spread), "per_unit"
    "purchase_cost", "energy_j" : None without prices and power
    "series" : if sampled
    """
    window = dispatch_window(schedule)
    jobs = job_latency_us(schedule)
    tasks = task_latency_us(schedule)
    content: dict[str, Any] = {
        "jobs": int((~np.isnan(jobs)).sum()),
        "tasks": len(tasks),
        "job_latency_us": _spread(jobs[~np.isnan(jobs)]),
        "task_latency_us": _spread(tasks),
        "response_us": _spread(response_us(schedule)),
        "makespan_us": (window.end - window.begin) / US,
        "utilization": _utilization(schedule),
        "purchase_cost": _number(purchase(schedule.machine)),
        "energy_j": _number(energy_j(schedule, window)),
    }
    if sample is not None:
        content["series"] = _series(unit_series(schedule, window, sample), sample)
    return content


def _utilization(schedule: Schedule) -> dict[str, Any]:
    machine = schedule.machine
    use = unit_use(schedule, dispatch_window(schedule))
    rows = zip(use.unit.tolist(), use.type, use.utilization.tolist(), strict=True)
    return {
        "overall": _number(use.overall),
        "by_type": {name: _number(value) for name, value in use.by_type().items()},
        "units": _spread(use.utilization[~np.isnan(use.utilization)]),
        "per_unit": [
            {
                "unit": machine.owners[unit],
                "type": kind,
                "x": int(machine.position[unit, 0]),
                "y": int(machine.position[unit, 1]),
                "utilization": _number(value),
            }
            for unit, kind, value in rows
        ],
    }


def _series(series: Series, interval: int) -> dict[str, Any]:
    return {
        "interval_us": interval / US,
        "begin_us": (series.begin / US).tolist(),
        "overall": series.overall.tolist(),
        "by_type": {name: column.tolist() for name, column in series.by_type.items()},
    }


def _spread(values: FloatArray) -> dict[str, float | None]:
    return {name: _number(value) for name, value in asdict(Spread.of(values)).items()}


def _number(value: float) -> float | None:
    return None if isinstance(value, float) and math.isnan(value) else value
