"""Sampled futures: runtimes of known jobs and later arrivals, replayed by the engines."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # SciPy ships no types

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.progress import Obstacle
from poolwise.engines.samples import sampler_of
from poolwise.forecasting.arrivals import ComingJobs, draw_arrivals
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.lifetimes import Lifetimes
from poolwise.forecasting.runtimes import JobFeatures, RuntimeModel, mean_of, request_seconds
from poolwise.model import Initial, JobTable, Workload
from poolwise.performance.ideal import Ideal
from poolwise.random import uniform
from poolwise.units import HOUR, NEVER, OVERDUE, SECOND, UNKNOWN

LIKENESS = 0.9
"""Correlation between draws for jobs of the same user, nodes and request."""
STREAMS = 10
"""Number of arrival streams; scenarios use them in turn."""
LEAST, MOST = 12 * HOUR, 21 * 24 * HOUR
"""Horizon for drawn arrivals."""


def horizon_of(longest_s: float) -> int:
    """Return the horizon of arrivals (ns), given the longest wait (seconds) of a plan with mean runtimes."""
    return int(min(max(1.5 * longest_s * SECOND, LEAST), MOST))


def features_of(jobs: JobTable) -> JobFeatures:
    """Attributes of jobs that are known before they run."""
    user = jobs.attributes.get("user")
    cores = jobs.request("cores") * jobs.nodes
    nodes = np.where(cores > 0, cores, jobs.nodes)
    users = np.zeros(len(jobs), dtype=np.int64) if user is None else np.unique(user, return_inverse=True)[1].reshape(-1)
    return JobFeatures(users, nodes, request_seconds(jobs.requested))


@dataclass(frozen=True, eq=False)
class Known:
    """Runtime distributions of the jobs of a known state.

    Attributes
    ----------
    situation : the known state
    rows : (k,) running jobs, then waiting jobs
    lifetimes : k distributions, seconds
    kinds : (n_job,) equal numbers for jobs of the same user, nodes and request
    """

    situation: KnownState
    rows: IntArray
    lifetimes: list[Lifetimes]
    kinds: IntArray
    model: RuntimeModel
    request: FloatArray

    @classmethod
    def of(cls, situation: KnownState, features: JobFeatures | None = None) -> Known:
        """Fit the distributions."""
        features = features_of(situation.jobs) if features is None else features
        classes = features.classes()
        seen = situation.ran / SECOND
        model = RuntimeModel(classes, seen, situation.ended)
        rows = np.concatenate([situation.at_work, situation.waiting]).astype(np.int64)
        lifetimes = [model.lifetimes(row, float(features.request[row]), float(seen[row])) for row in rows.tolist()]
        return cls(situation, rows, lifetimes, classes[0], model, features.request)

    def means(self) -> IntArray:
        """(k,) ns, mean of each distribution."""
        return _ns(np.array([mean_of(found) for found in self.lifetimes]))

    def requests(self) -> IntArray:
        """(k,) ns, requested times; longer jobs end when the scheduler expects them to."""
        asked, ran = self.situation.jobs.requested[self.rows], self.situation.ran[self.rows]
        return np.maximum(asked, ran + OVERDUE)

    def draws(self, seed: int, samples: int) -> IntArray:
        """Draw (samples, k) ns with common random numbers keyed by seed, sample and job."""
        sample = np.arange(samples)[:, None]
        own = uniform(seed, "forecast.own", self.situation.jobs.id[self.rows][None, :], sample)
        like = uniform(seed, "forecast.like", self.kinds[self.rows][None, :], sample)
        level = ndtr(np.sqrt(LIKENESS) * _normal(like) + np.sqrt(1.0 - LIKENESS) * _normal(own))
        drawn = [found.quantiles(level[:, k]) for k, found in enumerate(self.lifetimes)]
        return np.stack([_ns(column) for column in drawn], axis=1) if drawn else np.zeros((samples, 0), dtype=np.int64)


def _normal(level: FloatArray) -> FloatArray:
    found: FloatArray = ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return found


def _ns(seconds: FloatArray) -> IntArray:
    return np.maximum(np.ceil(np.minimum(seconds, UNKNOWN / 1e9) * 1e9), 1).astype(np.int64)


class ScenarioReplay:
    """Replays of scenarios with one stream of arrivals.

    Parameters
    ----------
    situation
        Known state.
    rows
        (k,) running jobs, then waiting jobs.
    sought
        (m,) rows of the waiting jobs to forecast.
    coming
        Jobs that are submitted later.
    """

    def __init__(self, situation: KnownState, rows: IntArray, sought: IntArray, coming: ComingJobs, until: int = NEVER) -> None:
        jobs = situation.jobs
        self._order = np.lexsort((jobs.id[rows], jobs.submit[rows]))
        all_rows = np.concatenate([rows[self._order], coming.like])
        submit = np.concatenate([jobs.submit[rows[self._order]], coming.submit])
        count = len(all_rows)
        self._workload = Workload(
            id=np.arange(1, count + 1),
            submit=submit,
            duration=np.ones(count, dtype=np.int64),
            requested=jobs.requested[all_rows],
            tasks=jobs.tasks[all_rows],
            requests={name: column[all_rows] for name, column in jobs.requests.items()},
            attributes={name: column[all_rows] for name, column in jobs.attributes.items()},
        )
        place = {int(row): k for k, row in enumerate(rows[self._order].tolist())}
        runs = [run._replace(job=place[run.job]) for run in situation.running]
        initial = Initial(situation.now, runs)
        parts = RunSpec(situation.machine, self._workload, situation.scheduler, Ideal(), situation.estimate, initial=initial)
        wanted = np.array([place[row] for row in sought.tolist()], dtype=np.int64)
        self._sampler, self.obstacle = sampler_of(parts, wanted, until)

    def starts(self, durations: IntArray, later: IntArray) -> IntArray:
        """Return (m,) starts (ns) of the sought jobs, given (k,) durations of the rows and those of later jobs."""
        duration = np.concatenate([durations[self._order], later])
        return self._sampler.starts(replace(self._workload, duration=duration))


def plan(known: Known, sought: IntArray, durations: IntArray) -> IntArray:
    """Return (m,) starts (ns) of the sought jobs if all jobs last as given and no more are submitted."""
    none = np.zeros(0, dtype=np.int64)
    replay = ScenarioReplay(known.situation, known.rows, sought, ComingJobs(none, none))
    return replay.starts(durations, none)


def sample_starts(known: Known, sought: IntArray, samples: int, seed: int, horizon: int) -> tuple[IntArray, Obstacle | None]:
    """Return (samples, m) starts (ns) of the sought jobs in sampled futures, and why no kernel replays them, if none does.

    `horizon` is the time for which arrivals are drawn (ns).
    """
    situation = known.situation
    drawn = known.draws(seed, samples)
    out = np.empty((samples, len(sought)), dtype=np.int64)
    streams = min(STREAMS, samples)
    for stream in range(streams):
        g = np.random.default_rng([seed, stream])
        coming = draw_arrivals(situation.jobs.submit, situation.now, horizon, g)
        replay = ScenarioReplay(situation, known.rows, sought, coming)
        later = _durations_of(known, coming.like, g)
        for sample in range(stream, samples, streams):
            out[sample] = replay.starts(drawn[sample], later)
    return out, replay.obstacle


def _durations_of(known: Known, like: IntArray, g: np.random.Generator) -> IntArray:
    """Return (k,) durations (ns) of later jobs: those of the finished jobs that they copy, otherwise drawn."""
    situation = known.situation
    out = situation.ran[like].copy()
    level = g.random(len(like))
    for k in np.flatnonzero(~situation.ended[like]).tolist():
        row = int(like[k])
        out[k] = _ns(known.model.lifetimes(row, float(known.request[row])).quantiles(level[k : k + 1]))[0]
    return np.maximum(out, 1)
