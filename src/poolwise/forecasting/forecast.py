"""Forecasts of when waiting jobs start, from the state of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from poolwise import catalog, traces
from poolwise.files.state import read_state
from poolwise.forecasting.answer import ForecastAnswer, forecast_answer
from poolwise.forecasting.known_state import situation_of, with_limits
from poolwise.forecasting.request import ForecastRequest, corrections_in, new_job, read_instant, rows_named, zone
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Machine, MachineState, Workload
from poolwise.simulation import choose_scheduler, default_model
from poolwise.traces.only import Filter


def forecast(
    state: str | Path | MachineState,
    jobs: Sequence[str | int] = (),
    *,
    new: str | None = None,
    by: str | None = None,
    history: str | Path | Workload | None = None,
    recalibrate: str | Path | None = None,
    scheduler: str | Path | Scheduler | None = None,
    order: str | QueuePolicy | None = None,
    backfill: str | BackfillPolicy | None = None,
    placement: str | PlacementPolicy | None = None,
    samples: int = 200,
    timezone: str = "UTC",
    changes: bool = True,
    seed: int = 0,
) -> ForecastAnswer:
    """Forecast when waiting jobs start, as a distribution over replays of possible futures.

    Parameters
    ----------
    state
        Folder that `poolwise snapshot --out` wrote, or a state.
    jobs
        Ids or names of waiting jobs; all of them if empty.
    new
        Job that is not submitted yet, such as "nodes=2,memory=64GiB,time=4h,user=ann"; it is forecast instead of `jobs`.
    by
        Time for which the chance of a start by then is computed: "tomorrow 08:00", "18:00", "6h" or an ISO time.
    history
        Log of earlier jobs, as a workload or a file, from which runtimes and arrivals are learned.
    recalibrate
        Output of `poolwise forecast backtest LOG --json`, which corrects the quantiles.
    scheduler
        Scheduler, or SCHEDULER.toml or "catalog:NAME". By default the one that the state names, else FCFS with EASY.
    order, backfill, placement
        Parts of a list scheduler, as in `simulate`, instead of `scheduler`.
    samples
        Number of replays.
    timezone
        Time zone in which times are read and written, such as "Europe/Berlin".
    changes
        If only one job is forecast, also forecast how changes of its request would change its start.
    seed
        Random seed.

    Returns
    -------
    ForecastAnswer

    Raises
    ------
    InputError
        The state, the log or an argument cannot be read, or a job does not wait.

    Examples
    --------
    >>> import numpy as np, poolwise
    >>> machine = poolwise.Machine.flat(4)
    >>> second = 10**9
    >>> table = poolwise.Workload.of(
    ...     submit=["0 s", "10 s"], duration=["1 h", "1 h"], requests={"nodes": [4, 2]}
    ... ).table
    >>> running = poolwise.InitialRun(0, 0, poolwise.Placement.of([(0, 0, machine.resource("nodes"), 4)]))
    >>> state = poolwise.MachineState(machine, table, 60 * second, [running], np.array([1]))
    >>> answer = poolwise.forecast(state, samples=20, changes=False)
    >>> [job.name for job in answer.jobs]
    ['job 2']
    """
    local = zone(timezone)
    seen = state if isinstance(state, MachineState) else read_state(Path(state))
    log = history if isinstance(history, Workload) or history is None else read_log(Path(history), seen.machine)
    deciding, name = choose_scheduler(seen.machine, scheduler, order, backfill, placement, seen.scheduler)
    past = None if log is None else with_limits(log)[0]
    situation = situation_of(seen, deciding, default_model(seen.machine, seed), past)
    if new is not None:
        situation, row = new_job(situation, new)
        sought = [row]
    else:
        sought = rows_named(situation, [str(job) for job in jobs])
    corrections = None if recalibrate is None else corrections_in(Path(recalibrate))
    until = None if by is None else read_instant(by, situation, local)
    request = ForecastRequest(sought, until, samples, seed, changes and len(sought) == 1, corrections)
    return forecast_answer(situation, request, name, local, "the new job" if new is not None else None)


def read_log(
    path: Path, machine: Machine, format: str = "auto", only: Mapping[str, Filter] | None = None, **options: Any
) -> Workload:
    """Read a log, with the requests as users wrote them if its format supports that."""
    chosen = traces.choose_format(catalog.resolve("traces", path), format, **options)
    if is_dataclass(chosen) and any(field.name == "keep_requests" for field in fields(chosen)):
        options["keep_requests"] = True
    return traces.read(path, machine, format, only=only, **options)
