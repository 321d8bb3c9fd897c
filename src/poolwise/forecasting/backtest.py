"""Backtest of start forecasts on a log: each forecast uses only what was known at its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.recalibration import LEVELS, Corrections, Recalibration, chance_within, sample_quantiles
from poolwise.forecasting.scenarios import RuntimeDistributions, horizon_of, plan, sample_starts
from poolwise.interfaces import Scheduler
from poolwise.model import InitialRun, Machine, Placement, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.presentation.answer import Answer
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_count, format_time


def pinball(quantiles: FloatArray, levels: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the pinball loss of quantiles, (m, k), averaged over their levels, (k,), in the unit of the quantiles, (m,).

    Source: Koenker, Bassett 1978.
    """
    over = truth[:, None] - quantiles
    loss: FloatArray = np.maximum(levels * over, (levels - 1.0) * over).mean(axis=1)
    return loss


def brier(chance: FloatArray, happened: BoolArray) -> FloatArray:
    """Return the squared differences between forecast probabilities and observed outcomes, (m,). Source: Brier 1950."""
    loss: FloatArray = (chance - happened) ** 2
    return loss


def covered(low: FloatArray, high: FloatArray, truth: FloatArray) -> BoolArray:
    """Return whether each true value is in its closed interval, (m,)."""
    inside: BoolArray = (low <= truth) & (truth <= high)
    return inside


ASKED = (0.1, 0.5, 0.9)
"""Levels of the scored quantiles."""
HOUR_S = 3600.0
HISTORY = 20_000
"""Number of most recent jobs whose outcomes forecasters know."""
PRIOR, LITTLE = 20.0, 2.0
"""`Recalibration.prior` of our forecasts, and of a point forecast, whose interval is certainly too narrow."""
LEAST_INSTANTS = 5
BLOCKS, RESAMPLED = 12, 200
"""Number of time blocks of the log and of bootstrap resamples of these blocks."""
NEAR_S = 600.0
"""Maximum difference (seconds) at which a replayed wait counts as equal to the recorded one."""
FAR = np.iinfo(np.int64).max // 2
"""Start (ns) of jobs that never start."""


@dataclass(frozen=True)
class BacktestSettings:
    """Settings of a backtest.

    Attributes
    ----------
    instants : number of times at which forecasts are made
    samples : number of scenarios per forecast
    jobs : maximum number of waiting jobs to forecast at each time
    first, last : shares of the log's span between which the times lie
    seed : random seed
    """

    instants: int = 60
    samples: int = 60
    jobs: int = 100
    first: float = 0.2
    last: float = 0.95
    seed: int = 0


class Scored(NamedTuple):
    """Forecasts and observed starts, one row per forecast.

    Attributes
    ----------
    now : (m,) time of the forecast, ns
    job : (m,) row of the job
    truth : (m,) seconds until the job started
    plan, calibrated, forecast, uncorrected : (m, 3) quantiles at `ASKED`: of a plan with requested times, as made by `squeue
        --start`; of a plan with mean runtimes, widened by past errors; of our forecast; and of our forecast before correction
    calibrated_chance, chance : (m,) probability of a start within one hour
    """

    now: IntArray
    job: IntArray
    truth: FloatArray
    plan: FloatArray
    calibrated: FloatArray
    forecast: FloatArray
    uncorrected: FloatArray
    calibrated_chance: FloatArray
    chance: FloatArray


def situation_at(schedule: Schedule, scheduler: Scheduler, time: int) -> tuple[KnownState, IntArray]:
    """Return the part of a schedule that is known just before a time, and the workload rows of its jobs.

    It includes the outcomes of the last `HISTORY` jobs.
    """
    workload = schedule.workload
    n = int(np.searchsorted(workload.submit, time))
    start, end = (column[:n] for column in _times(schedule))
    ended, begun = end < time, start < time
    rejected = np.zeros(n, dtype=np.bool_)
    rejected[[row for row in schedule.rejected if row < n]] = True
    recent = np.arange(n) >= n - HISTORY
    rows = np.flatnonzero((recent & ~rejected) | ~(ended | rejected))
    local = np.full(n, -1)
    local[rows] = np.arange(len(rows))
    ran = np.where(ended, end - start, np.where(begun, time - start, 0))[rows]
    runs = np.flatnonzero((schedule.start < time) & (schedule.end >= time)).tolist()
    situation = KnownState(
        schedule.machine,
        scheduler,
        Ideal(),
        workload.table.taken(rows),
        time,
        ran,
        ended[rows],
        [
            InitialRun(
                int(local[schedule.job[k]]), int(schedule.start[k]), Placement.of([(0, *r) for r in schedule.placement_of(k)])
            )
            for k in runs
        ],
        np.flatnonzero(~begun[rows]),
    )
    return situation, rows


def _times(schedule: Schedule) -> tuple[IntArray, IntArray]:
    """Return the starts and ends of jobs, (n_job,) each, `FAR` for jobs that never started."""
    far = np.full(len(schedule.workload), FAR)
    start, end = far.copy(), far.copy()
    start[schedule.job], end[schedule.job] = schedule.start, schedule.end
    return start, end


def forecasts(
    schedule: Schedule, scheduler: Scheduler, settings: BacktestSettings, ours: Recalibration, planned: Recalibration
) -> Iterator[Scored]:
    """Yield the forecasts of three forecasters at instants of a schedule, corrected by their past errors known at that time.

    `ours` and `planned` store the forecasts from scenarios and from plans with mean runtimes.
    """
    start, _ = _times(schedule)
    at = np.searchsorted(LEVELS, ASKED)
    for time in _instants(schedule, settings):
        situation, rows = situation_at(schedule, scheduler, time)
        if not len(situation.waiting):
            continue
        g = np.random.default_rng([settings.seed, time])
        sought = situation.waiting
        if len(sought) > settings.jobs:
            sought = np.sort(g.choice(sought, settings.jobs, replace=False))
        job, distributions = rows[sought], RuntimeDistributions.of(situation)
        requested = _waits(plan(distributions, sought, distributions.requests()), time)
        mean = _waits(plan(distributions, sought, distributions.means()), time)
        starts, _ = sample_starts(distributions, sought, settings.samples, settings.seed, horizon_of(float(mean.max())))
        drawn, corrections = sample_quantiles(starts, time), Corrections(ours.moves(time, start), planned.moves(time, start))
        corrected, widened = corrections.apply(drawn, mean), corrections.widened(mean)
        ours.remember(time, job, drawn)
        planned.remember(time, job, np.repeat(mean[:, None], len(LEVELS), axis=1))
        yield Scored(
            np.full(len(sought), time),
            job,
            _waits(start[job], time),
            np.repeat(requested[:, None], len(ASKED), axis=1),
            widened[:, at],
            corrected[:, at],
            drawn[:, at],
            chance_within(widened, HOUR_S),
            chance_within(corrected, HOUR_S),
        )


def _waits(starts: IntArray, now: int) -> FloatArray:
    return (np.minimum(starts, FAR) - now) / SECOND


def _instants(schedule: Schedule, settings: BacktestSettings) -> list[int]:
    """Return submission times of jobs that have to wait, spread evenly over the log."""
    submit = schedule.workload.submit
    span = int(submit[-1] - submit[0])
    edges = submit[0] + np.linspace(settings.first, settings.last, settings.instants + 1) * span
    start, _ = _times(schedule)
    waited = np.flatnonzero(start > submit)
    times = np.unique(submit[waited])
    instants = []
    g = np.random.default_rng(settings.seed)
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        here = times[np.searchsorted(times, low) : np.searchsorted(times, high)]
        if len(here):
            instants.append(int(here[g.integers(len(here))]) + 1)
    return instants


@dataclass(frozen=True, eq=False)
class Backtest:
    """Scores of start forecasts on a log.

    Attributes
    ----------
    schedule : simulated schedule of the log, whose starts are forecast
    scored : all forecasts
    corrections : corrections to apply to later forecasts
    notes : caveats of the result
    """

    schedule: Schedule
    scored: Scored
    corrections: Corrections
    notes: tuple[str, ...]

    @classmethod
    def of(cls, workload: Workload, machine: Machine, scheduler: Scheduler, settings: BacktestSettings) -> Backtest:
        """Simulate a log with its requested times as submitted, and forecast starts at several instants of the simulation.

        Raises InputError if jobs wait at too few instants.
        """
        schedule = simulate(workload, machine, scheduler).schedule
        ours, planned = Recalibration(PRIOR), Recalibration(LITTLE)
        parts = list(forecasts(schedule, scheduler, settings, ours, planned))
        if len(parts) < LEAST_INSTANTS:
            problem = f"jobs wait at only {len(parts)} of the sampled instants: there is hardly a queue to forecast"
            raise InputError(problem, field="processors", remedy="choose a smaller machine or the log of a busier one")
        scored = Scored(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        last, (start, _) = int(scored.now.max()), _times(schedule)
        corrections = Corrections(ours.moves(last, start), planned.moves(last, start))
        return cls(schedule, scored, corrections, recorded_notes(schedule))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data, with 90 % intervals from a bootstrap over blocks of time."""
        every = self.scored
        blocks = np.unique(every.now, return_inverse=True)[1] * BLOCKS // len(np.unique(every.now))
        g, size = np.random.default_rng(0), int(blocks.max()) + 1
        resampled = [
            _scores(every, np.bincount(g.integers(0, size, size), minlength=size)[blocks].astype(np.float64))
            for _ in range(RESAMPLED)
        ]
        ranges = {name: _range([scores[name] for scores in resampled]) for name in resampled[0]}
        return {
            **_scores(every, np.ones(len(blocks))),
            "intervals_90": ranges,
            "instants": len(np.unique(every.now)),
            "jobs": len(every.job),
            "corrections": {name: moves.tolist() for name, moves in self.corrections._asdict().items()},
            "mean_wait_s": float(every.truth.mean()),
            "notes": list(self.notes),
        }

    def answer(self, policy: str) -> Answer:
        """Return the scores in the form of all answers, for a scheduler with this description."""
        names = {"log": self.schedule.workload.name, "machine": self.schedule.machine.name, "policy": policy}
        content = {**names, **self.to_dict()}
        rows = []
        for name, description in _DESCRIBED.items():
            value, interval = content[name], content["intervals_90"][name]
            size, unit, digits = (100, " %", 0) if name == "coverage_80" else (1, "", 2)
            ends = [f"{size * end:.{digits}f}{unit}" for end in interval or ()]
            rows.append([description, "undefined" if value is None else f"{size * value:.{digits}f}{unit}", " to ".join(ends)])
        jobs = format_count(content["jobs"], "job")
        return Answer(
            title=f"Backtest of forecasts on {names['log']}",
            headline=f"{100 * content['coverage_80']:.0f} % of {jobs} started within their 80 % interval.",
            because=[f"{names['log']} on {names['machine']} under {policy}, forecasts at {content['instants']} times."],
            head=[Table("Scores", ["score", "value", "90 % interval"], rows, "Intervals over blocks of time.")],
            notes=self.notes,
            content=content,
        )


_DESCRIBED = {
    "pinball_ratio_plan": "pinball loss relative to `squeue --start`",
    "pinball_ratio_calibrated": "pinball loss relative to one simulation with mean run times, widened by past errors",
    "coverage_80": "starts within the 80 % interval",
    "brier_ratio_1h": "Brier score of a start within the hour, relative to that simulation",
}


def _scores(every: Scored, weight: FloatArray) -> dict[str, float | None]:
    """Return weighted scores of forecasts; a ratio is None if its reference has zero loss."""
    levels, happened = np.array(ASKED), every.truth <= HOUR_S

    def mean(values: FloatArray) -> float:
        return float((values * weight).sum() / weight.sum())

    def ratio(ours: float, theirs: float) -> float | None:
        return ours / theirs if theirs > 0 else None

    def coverage(quantiles: FloatArray) -> float:
        return mean(covered(quantiles[:, 0], quantiles[:, 2], every.truth).astype(np.float64))

    ours = mean(pinball(every.forecast, levels, every.truth))
    chances = [mean(brier(chance, happened)) for chance in (every.chance, every.calibrated_chance)]
    return {
        "pinball_ratio_plan": ratio(ours, mean(pinball(every.plan, levels, every.truth))),
        "pinball_ratio_calibrated": ratio(ours, mean(pinball(every.calibrated, levels, every.truth))),
        "coverage_80": coverage(every.forecast),
        "brier_ratio_1h": ratio(*chances),
        "pinball_s": ours,
        "brier_1h": chances[0],
        "coverage_80_uncorrected": coverage(every.uncorrected),
        "coverage_80_calibrated": coverage(every.calibrated),
    }


def _range(values: list[float | None]) -> tuple[float, float] | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    low, high = np.quantile(numbers, [0.05, 0.95]).tolist()
    return low, high


def recorded_notes(schedule: Schedule) -> tuple[str, ...]:
    """Return a note if the recorded starts of a log differ from the replayed ones; empty if it records none."""
    recorded = schedule.workload.attributes.get("wait_s")
    if recorded is None:
        return ()
    start, _ = _times(schedule)
    replayed = (start - schedule.workload.submit) / SECOND
    known = ~np.isnan(recorded.astype(np.float64)) & (start < FAR)
    if not known.any():
        return ()
    off = replayed[known] - recorded[known].astype(np.float64)
    near = float((np.abs(off) <= NEAR_S).mean())
    if near >= 0.9:
        return ()
    return (
        "the log was recorded under a policy or on a machine other than those replayed: "
        f"{100 * near:.0f} % of the recorded waits are within {format_time(NEAR_S)} of the replayed ones, and half of them are "
        f"off by more than {format_time(float(np.median(np.abs(off))))}. The scores apply to the replayed policy; "
        "recorded starts are not forecast",
    )
