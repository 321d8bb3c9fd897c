"""Scenarios of the future, with sampled runtimes and arrivals, replayed by the engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # SciPy ships no types

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.progress import Obstacle
from poolwise.engines.samples import sampler_of
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.runtimes import JobFeatures, Lifetimes, RuntimeModel, mean_of, request_seconds
from poolwise.model import Initial, JobTable, Workload
from poolwise.performance.ideal import Ideal
from poolwise.quantities import DAY, HOUR, NEVER, OVERDUE, SECOND, UNKNOWN
from poolwise.random import uniform

MOST = 4000
"""Maximum number of jobs to draw."""


class ComingJobs(NamedTuple):
    """Future jobs, each a copy of an earlier job.

    Attributes
    ----------
    like : (k,) rows of the copied jobs
    submit : (k,) submission times, ns, ascending
    """

    like: IntArray
    submit: IntArray


def draw_arrivals(submit: IntArray, now: int, horizon: int, g: np.random.Generator) -> ComingJobs:
    """Draw the arrivals in the `horizon` (ns) after now, from the ascending submissions up to now, (n_job,).

    The future consists of blocks of one day. Each block copies a stretch of the past that began a whole number of days earlier,
    to preserve the time of day. With less than two days of history, a block is a quarter of the history long.
    """
    none = np.zeros(0, dtype=np.int64)
    if not len(submit) or now <= int(submit[0]):
        return ComingJobs(none, none)
    span = now - int(submit[0])
    block = DAY if span >= 2 * DAY else max(span // 4, 1)
    shifts = span // block
    likes, times, at, count = [], [], 0, 0
    while at < horizon and count < MOST:
        first = now - int(g.integers(1, shifts + 1)) * block
        length = min(block, horizon - at)
        low, high = np.searchsorted(submit, [first, first + length], side="right")
        likes.append(np.arange(low, high))
        times.append(submit[low:high] - first + now + at)
        at, count = at + block, count + int(high - low)
    like, time = np.concatenate(likes)[:MOST], np.concatenate(times)[:MOST]
    return ComingJobs(like.astype(np.int64), np.maximum(time, now + 1))


LIKENESS = 0.9
"""Correlation of the draws of jobs with the same user, nodes and request."""
STREAMS = 10
"""Number of arrival streams; scenarios cycle through them."""
LEAST, MOST = 12 * HOUR, 21 * 24 * HOUR
"""Minimum and maximum horizon of drawn arrivals, ns."""


def horizon_of(longest_s: float) -> int:
    """Return the horizon (ns) for drawing arrivals, given the longest wait (seconds) in a plan with mean runtimes."""
    return int(min(max(1.5 * longest_s * SECOND, LEAST), MOST))


def features_of(jobs: JobTable) -> JobFeatures:
    """Return the features of jobs that are known before they run."""
    user = jobs.attributes.get("user")
    cores = jobs.request("cores") * jobs.nodes
    nodes = np.where(cores > 0, cores, jobs.nodes)
    users = np.zeros(len(jobs), dtype=np.int64) if user is None else np.unique(user, return_inverse=True)[1].reshape(-1)
    return JobFeatures(users, nodes, request_seconds(jobs.requested))


@dataclass(frozen=True, eq=False)
class RuntimeDistributions:
    """Runtime distributions of the running and waiting jobs of a known state.

    Attributes
    ----------
    situation : the known state
    rows : (k,) running jobs, then waiting jobs
    lifetimes : k distributions, seconds
    kinds : (n_job,) class numbers; jobs with the same user, nodes and request have the same number
    model : runtime model of the state
    request : (n_job,) requested times, seconds; infinite if unknown
    """

    situation: KnownState
    rows: IntArray
    lifetimes: list[Lifetimes]
    kinds: IntArray
    model: RuntimeModel
    request: FloatArray

    @classmethod
    def of(cls, situation: KnownState, features: JobFeatures | None = None) -> RuntimeDistributions:
        """Estimate the distributions for a known state."""
        features = features_of(situation.jobs) if features is None else features
        classes = features.classes()
        seen = situation.ran / SECOND
        model = RuntimeModel(classes, seen, situation.ended)
        rows = np.concatenate([situation.at_work, situation.waiting]).astype(np.int64)
        lifetimes = [model.lifetimes(row, float(features.request[row]), float(seen[row])) for row in rows.tolist()]
        return cls(situation, rows, lifetimes, classes[0], model, features.request)

    def means(self) -> IntArray:
        """Return the mean runtimes, (k,) ns."""
        return _ns(np.array([mean_of(distribution) for distribution in self.lifetimes]))

    def requests(self) -> IntArray:
        """Return the requested times, (k,) ns; for jobs that exceeded theirs, the earliest end that the scheduler expects."""
        requested, ran = self.situation.jobs.requested[self.rows], self.situation.ran[self.rows]
        return np.maximum(requested, ran + OVERDUE)

    def draws(self, seed: int, samples: int) -> IntArray:
        """Draw runtimes, (samples, k) ns, from common random numbers keyed by seed, sample and job."""
        sample = np.arange(samples)[:, None]
        own = uniform(seed, "forecast.own", self.situation.jobs.id[self.rows][None, :], sample)
        like = uniform(seed, "forecast.like", self.kinds[self.rows][None, :], sample)
        level = ndtr(np.sqrt(LIKENESS) * _normal(like) + np.sqrt(1.0 - LIKENESS) * _normal(own))
        drawn = np.empty(level.shape)
        for distribution, columns in _grouped(self.lifetimes):
            drawn[:, columns] = distribution.quantiles(level[:, columns])
        return _ns(drawn)


def _grouped(lifetimes: Sequence[Lifetimes]) -> Iterable[tuple[Lifetimes, list[int]]]:
    """Return each distinct object once, with its positions: jobs of one kind that have not started share one object."""
    groups: dict[int, tuple[Lifetimes, list[int]]] = {}
    for k, distribution in enumerate(lifetimes):
        groups.setdefault(id(distribution), (distribution, []))[1].append(k)
    return groups.values()


def _normal(level: FloatArray) -> FloatArray:
    deviates: FloatArray = ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return deviates


def _ns(seconds: FloatArray) -> IntArray:
    return np.maximum(np.ceil(np.minimum(seconds, UNKNOWN / 1e9) * 1e9), 1).astype(np.int64)


class ScenarioReplay:
    """Replays scenarios of a known state with one stream of arrivals.

    `rows` are the running jobs of the state, then its waiting jobs, (k,); `sought` are the requested jobs among them, (m,).
    """

    def __init__(self, situation: KnownState, rows: IntArray, sought: IntArray, coming: ComingJobs) -> None:
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
        parts = RunSpec(self._workload, situation.machine, situation.scheduler, Ideal(), situation.estimate, initial=initial)
        wanted = np.array([place[row] for row in sought.tolist()], dtype=np.int64)
        self._sampler, self.obstacle = sampler_of(parts, wanted, NEVER)

    def starts(self, durations: IntArray, later: IntArray) -> IntArray:
        """Return the starts of the sought jobs, (m,) ns, given the durations of the rows, (k,), and those of the arrivals."""
        duration = np.concatenate([durations[self._order], later])
        return self._sampler.starts(replace(self._workload, duration=duration))


def plan(distributions: RuntimeDistributions, sought: IntArray, durations: IntArray) -> IntArray:
    """Return the starts of the sought jobs, (m,) ns, for the given durations and without further arrivals."""
    none = np.zeros(0, dtype=np.int64)
    replay = ScenarioReplay(distributions.situation, distributions.rows, sought, ComingJobs(none, none))
    return replay.starts(durations, none)


def sample_starts(
    distributions: RuntimeDistributions, sought: IntArray, samples: int, seed: int, horizon: int
) -> tuple[IntArray, Obstacle | None]:
    """Return the starts of the sought jobs (ns), (samples, m), and why no kernel replays the scenarios, if none does.

    Arrivals are drawn for `horizon` ns.
    """
    situation = distributions.situation
    drawn = distributions.draws(seed, samples)
    out = np.empty((samples, len(sought)), dtype=np.int64)
    streams = min(STREAMS, samples)
    for stream in range(streams):
        g = np.random.default_rng([seed, stream])
        coming = draw_arrivals(situation.jobs.submit, situation.now, horizon, g)
        replay = ScenarioReplay(situation, distributions.rows, sought, coming)
        later = _durations_of(distributions, coming.like, g)
        for sample in range(stream, samples, streams):
            out[sample] = replay.starts(drawn[sample], later)
    return out, replay.obstacle


def _durations_of(distributions: RuntimeDistributions, like: IntArray, g: np.random.Generator) -> IntArray:
    """Return the runtimes of arrivals, (k,) ns: those of the copied jobs if these have ended, otherwise sampled ones."""
    situation = distributions.situation
    out = situation.ran[like].copy()
    level = g.random(len(like))
    unknown = np.flatnonzero(~situation.ended[like])
    lifetimes = [distributions.model.lifetimes(row, float(distributions.request[row])) for row in like[unknown].tolist()]
    for distribution, places in _grouped(lifetimes):
        out[unknown[places]] = _ns(distribution.quantiles(level[unknown[places]]))
    return np.maximum(out, 1)
