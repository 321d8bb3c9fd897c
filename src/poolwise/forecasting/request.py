"""Request for a forecast: jobs, deadline and hypothetical jobs; parsers of their text forms."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.recalibration import LEVELS, Corrections
from poolwise.model import JobTable
from poolwise.model.table_columns import Column
from poolwise.quantities import HORIZON, SECOND, Dimension, parse

_DIMENSIONS: dict[str, Dimension] = {"memory": "memory", "time": "time"}
_MOST = {"time": HORIZON}
"""Maximum time that a new job may request (ns); the maximum of any other resource is 2^40."""
_CLOCK = re.compile(r"(?:(today|tomorrow)\s+)?(\d{1,2}):(\d{2})\Z")


@dataclass(frozen=True, eq=False)
class ForecastRequest:
    """Request for a forecast.

    Attributes
    ----------
    sought : rows of the waiting jobs to forecast
    by : deadline, ns; the answer includes the probability of a start by then. None without a deadline
    samples, seed : number of scenarios, and random seed
    changes : True to also forecast the effects of changed requests, policies and pools
    corrections : quantile corrections from a backtest; None for uncorrected quantiles
    """

    sought: list[int]
    by: int | None
    samples: int
    seed: int
    changes: bool
    corrections: Corrections | None


def rows_named(situation: KnownState, names: list[str]) -> list[int]:
    """Return the rows of the waiting jobs with these names or ids, or of all if none are given; raise InputError for others."""
    jobs, waiting = situation.jobs, list[int](situation.waiting.tolist())
    if not names:
        return waiting
    row_of = {jobs.name(row): row for row in waiting} | {str(int(jobs.id[row])): row for row in waiting}
    for name in names:
        if name not in row_of:
            running = {jobs.name(run.job) for run in situation.running}
            problem = f"job {name} is already running" if name in running else f"no job {name} is waiting"
            raise InputError(problem, field="--job", remedy="choose a job of waiting.csv")
    return [row_of[name] for name in names]


def new_job(situation: KnownState, text: str) -> tuple[KnownState, int]:
    """Add a job that is submitted now, such as "nodes=2,memory=64GiB,time=4h,user=ann"; return the state and the job's row."""
    requests: dict[str, int] = {}
    attributes: dict[str, str] = {}
    jobs, machine = situation.jobs, situation.machine
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise InputError(f"'{part}' is not NAME=AMOUNT", field="--new", remedy="example: nodes=2,memory=64GiB,time=4h")
        if name in requests or name in attributes:
            raise InputError(f"{name} is given twice", field="--new", remedy="give it once")
        if name in jobs.attributes or name == "user":
            attributes[name] = value
            continue
        parts = ["time", "nodes", *machine.resources, *machine.per_node, *jobs.requests]
        if name not in parts:
            raise UnknownNameError.of("part of a new job", name, [*parts, *jobs.attributes, "user"], field="--new")
        try:
            requests[name] = parse(value, _DIMENSIONS.get(name, "count"))
        except ValueError as error:
            raise InputError(str(error), field="--new", remedy="example: nodes=2,memory=64GiB,time=4h") from error
        if requests[name] > _MOST.get(name, 2**40):
            raise InputError(f"{name}={value} is too much", field="--new", remedy="example: nodes=2,memory=64GiB,time=4h")
    if not requests.get("time"):
        raise InputError("the requested time is missing", field="--new", remedy="add a time, such as time=4h")
    requested = requests.pop("time")
    if "nodes" not in machine.resources:
        requests.setdefault("cores", 1)
    if not requests.setdefault("nodes", 1):
        raise InputError("nodes must be at least 1", field="--new", remedy="set nodes=1 or more, or omit it")
    row = len(jobs)
    added = with_job(situation, requests, requested, attributes)
    return added, row


def with_job(situation: KnownState, requests: dict[str, int], requested: int, attributes: dict[str, str]) -> KnownState:
    """Return the state with one more job, submitted now."""
    jobs = situation.jobs

    def column(values: IntArray, value: int) -> IntArray:
        return np.append(values, value).astype(np.int64)

    extended = {name: _appended(values, attributes.get(name)) for name, values in jobs.attributes.items()}
    table = JobTable(
        column(jobs.id, int(jobs.id.max(initial=0)) + 1),
        column(jobs.submit, situation.now),
        column(jobs.requested, requested),
        column(jobs.tasks, 1),
        {name: column(jobs.request(name), requests.get(name, 0)) for name in {**jobs.requests, **requests}},
        extended,
        name=[*(jobs.name(row) for row in range(len(jobs))), "new"] if jobs.named else None,
        epoch=jobs.epoch,
    )
    return replace(
        situation,
        jobs=table,
        ran=column(situation.ran, 0),
        ended=np.append(situation.ended, False),
        waiting=column(situation.waiting, len(jobs)),
    )


def _appended(values: Column, text: str | None) -> Column:
    """Return a column with one more value, parsed from `text`; a blank value if `text` is None."""
    kind = values.dtype.kind
    if text is None:
        return np.append(values, np.array(["" if kind in "UO" else -1], dtype=object if kind == "O" else None))
    return np.append(values, np.array([text if kind in "UO" else float(text)], dtype=object if kind == "O" else None))


def zone(name: str) -> tzinfo:
    """Return the time zone with this name; raise InputError if it is unknown."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(f"unknown time zone '{name}'", field="--timezone", remedy="example: Europe/Berlin") from error


def read_instant(text: str, situation: KnownState, local: tzinfo) -> int:
    """Parse "tomorrow 08:00", "18:00", "6h" or an ISO time to ns on the jobs' clock; raise InputError for other text."""
    now = datetime.fromtimestamp((situation.jobs.epoch + situation.now) / SECOND, local)
    if match := _CLOCK.match(text.strip()):
        day, hour, minute = match.groups()
        try:
            meant = now.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
        except ValueError as error:
            raise InputError(f"'{text}' is not a valid time of day", field="--by", remedy="example: 18:00") from error
        if day == "tomorrow" or (day is None and meant <= now):
            meant += timedelta(days=1)
    else:
        try:
            return situation.now + parse(text, "time")
        except ValueError:
            pass  # not a duration: parse a date
        try:
            meant = datetime.fromisoformat(text)
        except ValueError as error:
            problem = f"'{text}' is neither a time nor a duration"
            raise InputError(
                problem, field="--by", remedy='examples: "tomorrow 08:00", "18:00", 6h, 2026-11-23T08:00'
            ) from error
        meant = meant if meant.tzinfo is not None else meant.replace(tzinfo=local)
    ns = int(meant.timestamp()) * SECOND - situation.jobs.epoch
    if ns <= situation.now:
        raise InputError(f"'{text}' is in the past", field="--by", remedy="give a time after the time of the state")
    return ns


def corrections_in(path: Path) -> Corrections:
    """Read the corrections from the output of a backtest (`Backtest.to_dict`); raise InputError if the file has none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))["corrections"]
        corrections = Corrections(*(np.array(content[name], dtype=np.float64) for name in Corrections._fields))
        if any(moves.shape != LEVELS.shape for moves in corrections):
            raise ValueError("corrections of other quantiles")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "pass the output of `poolwise forecast backtest LOG --json`"
        raise InputError("the file is not the result of a backtest", file=path, field="--recalibrate", remedy=remedy) from error
    return corrections
