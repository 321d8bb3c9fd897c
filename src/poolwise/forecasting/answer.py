"""Forecasts of job starts, as numbers, sentences and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.progress import Obstacle
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.recalibration import LEVELS, chance_within, sample_quantiles
from poolwise.forecasting.request import ForecastRequest
from poolwise.forecasting.scenarios import RuntimeDistributions, horizon_of, plan, sample_starts
from poolwise.forecasting.what_if import request_changes
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Axis, Figure, Scatter
from poolwise.presentation.format import capitalize
from poolwise.presentation.table import Table
from poolwise.quantities import NEVER, SECOND, format_count, format_time, shared_time_unit
from poolwise.short_repr import fit_repr

ASKED = (0.1, 0.5, 0.9)
"""Levels of the reported quantiles."""
SHOWN = 30
"""Maximum number of jobs listed in the text and drawn in the figure; the earliest starts come first."""


class JobForecast(NamedTuple):
    """Forecast of the start of one job.

    Attributes
    ----------
    name : name of the job
    wait_s : (3,) seconds within which the job starts with a probability of 10, 50 and 90 %; infinite if it never starts
    chance_by : probability of a start by the requested time; None if no time was requested
    """

    name: str
    wait_s: FloatArray
    chance_by: float | None


class ChangedForecast(NamedTuple):
    """Forecast of a job's start after one change."""

    words: str
    forecast: JobForecast


@dataclass(frozen=True, eq=False)
class ForecastAnswer:
    """Forecasts of job starts, as numbers, sentences and a figure; `forecast` returns it.

    Attributes
    ----------
    now : time at which the state was read, ns since 1970
    jobs : requested jobs, ordered by median start
    changes : effects of changes on the start of the requested job
    by : requested time in ns since 1970; None if no time was requested
    policy : description of the scheduler
    notes : caveats of the forecast
    local : time zone of the text

    Examples
    --------
    >>> import datetime, numpy as np, poolwise
    >>> from poolwise.forecasting.answer import JobForecast
    >>> jobs = [JobForecast("job 7", np.array([60.0, 300.0, 3600.0]), None)]
    >>> answer = poolwise.ForecastAnswer(0, jobs, [], None, "fcfs with easy", [], datetime.timezone.utc)
    >>> answer.sentences()
    ['job 7 starts between 1970-01-01 00:01 +0000 and 1970-01-01 01:00 +0000 (80 %), median 1970-01-01 00:05 +0000']
    """

    now: int
    jobs: list[JobForecast]
    changes: list[ChangedForecast]
    by: int | None
    policy: str
    notes: list[str]
    local: tzinfo

    def __repr__(self) -> str:
        head = f"ForecastAnswer at {self.time(0.0)} under {self.policy}"
        return fit_repr("\n".join([head, *(f"  {line}" for line in self.sentences())]))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data; times are seconds from now, None if a job never starts."""
        return {
            "now": self.time(0.0),
            "by": None if self.by is None else self.time((self.by - self.now) / SECOND),
            "policy": self.policy,
            "jobs": [self._plain(job) for job in self.jobs],
            "changes": [{"change": change.words, **self._plain(change.forecast)} for change in self.changes],
            "notes": self.notes,
        }

    def _plain(self, job: JobForecast) -> dict[str, Any]:
        waits = {f"wait_p{round(100 * level)}_s": _finite(wait) for level, wait in zip(ASKED, job.wait_s.tolist(), strict=True)}
        starts = {
            f"start_p{round(100 * level)}": None if _finite(wait) is None else self.time(wait)
            for level, wait in zip(ASKED, job.wait_s.tolist(), strict=True)
        }
        return {"job": job.name, **waits, **starts, "chance_by": job.chance_by}

    def time(self, seconds: float) -> str:
        """Return the time a number of seconds from now in ISO format."""
        return self._moment(seconds).isoformat(timespec="seconds")

    def time_with_zone(self, seconds: float) -> str:
        """Return the date, time and UTC offset a number of seconds from now, for readers."""
        return f"{self._moment(seconds):%Y-%m-%d %H:%M %z}"

    def _moment(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.now / SECOND + seconds, self.local)

    def sentences(self) -> list[str]:
        """Return the answer as lines of text."""
        lines = self.start_sentences()
        if self.changes:
            lines += ["What would change the start:", *(f"  {line}" for line in self.change_sentences())]
        return [*lines, *(f"note: {text}" for text in self.notes)]

    def start_sentences(self) -> list[str]:
        """Return one sentence for each of the first `SHOWN` jobs, and a line that counts the others."""
        lines = [self._sentence(job) for job in self.jobs[:SHOWN]]
        if len(self.jobs) > SHOWN:
            more = len(self.jobs) - SHOWN
            starts = f"{format_count(more, 'more job')} {'starts' if more == 1 else 'start'}"
            lines.append(f"{starts} later: use --json to list all, or --job to select one")
        return lines or ["no job is waiting"]

    def change_sentences(self) -> list[str]:
        """Return one line per change, with its effect on the start of the requested job."""
        return [f"{change.words}: {self._against(change.forecast)}" for change in self.changes]

    def _sentence(self, job: JobForecast) -> str:
        low, middle, high = job.wait_s.tolist()
        if _finite(middle) is None:
            return f"{job.name} is not expected to start"
        until = "and perhaps never" if _finite(high) is None else f"and {self.time_with_zone(high)}"
        chance = ""
        if job.chance_by is not None:
            chance = f"; by {self.time_with_zone(self._by_s)} with a chance of {100 * job.chance_by:.0f} %"
        if self.time_with_zone(low) == until.removeprefix("and "):
            return f"{job.name} starts at {self.time_with_zone(low)}{chance}"
        between = f"{job.name} starts between {self.time_with_zone(low)} {until} (80 %)"
        return f"{between}, median {self.time_with_zone(middle)}{chance}"

    @property
    def _by_s(self) -> float:
        return 0.0 if self.by is None else (self.by - self.now) / SECOND

    def _against(self, job: JobForecast) -> str:
        was, now = float(self.jobs[0].wait_s[1]), float(job.wait_s[1])
        chance = "" if job.chance_by is None else f", by the requested time with a chance of {100 * job.chance_by:.0f} %"
        if _finite(now) is None:
            return f"it would not start{chance}"
        if _finite(was) is None:
            return f"{self.time_with_zone(now)} at the median{chance}"
        off = was - now
        word = "about the same" if abs(off) < 60 else f"{format_time(abs(off))} {'earlier' if off > 0 else 'later'}"
        return f"{self.time_with_zone(now)} at the median, {word}{chance}"

    def answer(self) -> Answer:
        """Return the forecast in the form of all answers."""
        first = self.start_sentences()[0]
        return Answer(
            title="Start times of waiting jobs" if len(self.jobs) != 1 else f"Start time of {self.jobs[0].name}",
            headline=f"{capitalize(first)}." if len(self.jobs) < 2 else f"{len(self.jobs):,} jobs wait; {first}.",
            because=[f"Forecast at {self.time_with_zone(0.0)} under {self.policy}."],
            main=self.figure() if any(_finite(float(job.wait_s[2])) is not None for job in self.jobs) else None,
            sections={"Effect of changes": self.change_sentences()},
            notes=[f"{capitalize(text)}." for text in self.notes],
            tables=[self._starts()] if len(self.jobs) > 1 else [],
            content=self.to_dict(),
        )

    def _starts(self) -> Table:
        """Return a table of all jobs, with the times before which they start with a chance of 10, 50 and 90 %."""
        columns = ["job", "10 %", "50 %", "90 %", *([] if self.by is None else ["chance of a start by the requested time"])]
        rows = [
            [
                job.name,
                *("never" if _finite(wait) is None else self.time_with_zone(wait) for wait in job.wait_s.tolist()),
                *([] if job.chance_by is None else [f"{100 * job.chance_by:.0f} %"]),
            ]
            for job in self.jobs
        ]
        return Table("Starts", columns, rows, "Times before which a job starts with the given chance.", text=True)

    def figure(self) -> Figure:
        """Return a chart of the jobs, earliest first, with median starts and 80 % intervals."""
        shown = [job for job in self.jobs if _finite(float(job.wait_s[2])) is not None][:SHOWN]
        waits = np.array([job.wait_s for job in shown]).reshape(-1, 3)
        size, unit = shared_time_unit(float(waits.max(initial=0.0)))
        low, middle, high = (waits / size).T.tolist()
        rows = [float(k) for k in range(len(shown))]
        return Scatter(
            "forecast",
            "When waiting jobs start",
            "Median starts with 80 % intervals.",
            series={"start": (middle, rows)},
            spread={"start": (low, high, rows, rows)},
            descriptions={"start": [self._sentence(job) for job in shown]},
            x_axis=Axis(f"{unit} from now", limits=(0.0, None)),
            y_axis=Axis("job", ticks=dict(zip(rows, (job.name for job in shown), strict=True)), limits=(len(shown), -1.0)),
        )


def _finite(wait: float) -> float | None:
    return wait if np.isfinite(wait) else None


def forecast_answer(
    situation: KnownState, request: ForecastRequest, policy: str, local: tzinfo, called: str | None = None
) -> ForecastAnswer:
    """Forecast the requested starts; `called` is the display name of a job that has not been submitted yet."""
    sought = np.array(request.sought, dtype=np.int64)
    epoch, notes = situation.jobs.epoch, []
    if not situation.ended.any():
        notes.append(
            "no completed jobs are known: run times are estimated from requests and running jobs; add a log with --history"
        )
    if request.corrections is None:
        notes.append("intervals are not calibrated and are too narrow on most logs; --recalibrate corrects them by a backtest")
    if situation.scheduler.keeps_state:
        notes.append(f"the scheduler keeps {situation.scheduler.keeps_state}, which the cluster state does not include")
    if not len(sought):
        return ForecastAnswer(epoch + situation.now, [], [], request.by, policy, notes, local)
    distributions = RuntimeDistributions.of(situation)
    mean = plan(distributions, sought, distributions.means())
    horizon = horizon_of(float(((mean[mean < NEVER] - situation.now) / SECOND).max(initial=0.0)))
    forecasts, obstacle = _forecast(distributions, sought, request, horizon, called)
    if obstacle is not None:
        notes.append(f"replayed on the reference engine: {obstacle}")
    changed = []
    if request.changes:
        for change in request_changes(situation, int(sought[0])):
            (other,), _ = _forecast(RuntimeDistributions.of(change.situation), sought, request, horizon, called)
            changed.append(ChangedForecast(change.words, other))
    forecasts.sort(key=lambda job: float(job.wait_s[1]))
    by = None if request.by is None else epoch + request.by
    return ForecastAnswer(epoch + situation.now, forecasts, changed, by, policy, notes, local)


def _forecast(
    distributions: RuntimeDistributions, sought: IntArray, request: ForecastRequest, horizon: int, called: str | None
) -> tuple[list[JobForecast], Obstacle | None]:
    situation = distributions.situation
    starts, obstacle = sample_starts(distributions, sought, request.samples, request.seed, horizon)
    quantiles = sample_quantiles(starts, situation.now)
    if request.corrections is not None:
        mean = (plan(distributions, sought, distributions.means()) - situation.now) / SECOND
        quantiles = request.corrections.apply(quantiles, mean)
    at = np.searchsorted(LEVELS, ASKED)
    chances: FloatArray | None = None
    if request.by is not None:
        chances = chance_within(quantiles, (request.by - situation.now) / SECOND)
    jobs = situation.jobs
    names = [called or f"job {jobs.name(row)}" for row in sought.tolist()]
    return [
        JobForecast(name, quantiles[k, at], None if chances is None else float(chances[k])) for k, name in enumerate(names)
    ], obstacle
