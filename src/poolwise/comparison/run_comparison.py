"""Runs side by side: every metric, paired differences with their intervals, and the jobs that changed most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.comparison.saved_run import SavedRun, read_runs
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.hashing import Json, canonical
from poolwise.metrics import Interval, Measure, Metric, Outcomes, Window, mean_interval, paired_block_bootstrap, summarise
from poolwise.metrics.measure import Better
from poolwise.metrics.memory import degradation
from poolwise.metrics.slowdown import bounded_slowdown, bounded_slowdown_local, wait_s
from poolwise.metrics.summary import STANDARD, metrics_named
from poolwise.metrics.window import after_warm_up
from poolwise.units import SECOND

MOST_RUNS = 16
ComparedOver = Literal["seeds", "jobs"]
DifferenceVerdict = Literal["better", "worse", "alike", "changed", "unknown"]
_OF_TIMES = ("measured_jobs", "wait_s", "bounded_slowdown", "throughput_per_100s", "makespan_s")
"""Metrics, or endings of such, that submissions, starts and ends are enough for."""
_PER_JOB = {
    "mean_wait_s": wait_s,
    "mean_bounded_slowdown": bounded_slowdown,
    "mean_bounded_slowdown_local": bounded_slowdown_local,
    "mean_degradation": degradation,
}
"""Metrics that are means over jobs, and what each job contributes."""


@dataclass(frozen=True)
class Difference:
    """A metric of a run against the first run.

    `interval` is the difference (run - first) with its 95 % interval; its bounds are NaN where nothing supports one. `better`
    is the way in which the metric is better.
    """

    run: int
    metric: str
    first: float
    value: float
    interval: Interval
    better: Better = "lower"

    @property
    def verdict(self) -> DifferenceVerdict:
        """What the interval says; unknown without one. A metric of which neither way is better may only have changed."""
        if math.isnan(self.interval.low):
            return "alike" if self.value == self.first else "unknown"
        if self.interval.low <= 0 <= self.interval.high:
            return "alike"
        if self.better == "neither":
            return "changed"
        return "better" if (self.interval.high < 0) == (self.better == "lower") else "worse"


@dataclass(frozen=True)
class ChangedJob:
    """A job that waited longer or shorter than under the first run; means over the seeds where they share their jobs."""

    run: int
    id: int
    submit_s: float
    nodes: int
    runtime_s: float
    first_wait_s: float
    wait_s: float

    @property
    def change_s(self) -> float:
        """Wait here less wait under the first run."""
        return self.wait_s - self.first_wait_s


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two or more runs of the same jobs; the first is what the others are compared with.

    Attributes
    ----------
    runs : as they were read
    labels : one a run, different from each other
    seeds : seeds that all runs have
    over : what intervals are over: the seeds, or the jobs
    measures : what is measured beside the standard metrics
    """

    runs: tuple[SavedRun, ...]
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    over: ComparedOver
    measures: tuple[Measure, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[SavedRun], over: ComparedOver | None = None, metrics: Sequence[Component] = ()) -> Comparison:
        """Put runs side by side, with intervals over the seeds if there are three or more and nothing else is said.

        They are compared in the standard metrics, in what any of them was asked for beside these, and in further `metrics`.

        Raises InputError unless they are at least two, of the same jobs.
        """
        if not 2 <= len(runs) <= MOST_RUNS:
            remedy = f"select with FOLDER:PATH=VALUE; at least 2, at most {MOST_RUNS}"
            raise InputError(f"{len(runs)} runs cannot be put side by side", field="RUN", remedy=remedy)
        seeds = tuple(sorted(set.intersection(*(set(run.outcomes) for run in runs))))
        if not seeds:
            raise InputError("the runs have no seed in common", field="RUN", remedy="compare runs under the same seeds")
        if over == "seeds" and len(seeds) < 2:
            raise InputError("one seed gives no interval over seeds", field="--over", remedy="take more seeds, or --over jobs")
        asked = [choice for run in runs for choice in run.metrics]
        unlike = {canonical({"name": c.name, **c.settings}): c for c in (*asked, *metrics)}
        measures = tuple(choice.make("metrics") for choice in unlike.values())
        labels = _labels(runs)
        runs = [run.whole() for run in runs] if measures else runs  # they need more of a run than its times
        comparison = cls(tuple(runs), labels, seeds, over or ("seeds" if len(seeds) > 2 else "jobs"), measures)
        for seed in seeds:
            comparison._check_jobs(seed)
        return comparison

    @cached_property
    def metrics(self) -> tuple[dict[str, FloatArray], ...]:
        """One a run: metric -> (n_seed,) values, of the metrics that all runs have."""
        found = []
        for k in range(len(self.runs)):
            rows = [self._measure(k, seed) for seed in self.seeds]
            shared = [name for name in rows[0] if all(name in row for row in rows)]
            found.append({name: np.array([row[name] for row in rows]) for name in shared})
        everywhere = [name for name in found[0] if all(name in values for values in found)]
        known = [name for name in everywhere if not any(np.isnan(values[name]).any() for values in found)]
        if any(run.times_only for run in self.runs):
            known = [name for name in known if name.endswith(_OF_TIMES)]
        return tuple({name: values[name] for name in known} for values in found)

    @cached_property
    def described(self) -> Mapping[str, Metric]:
        """Name of each of these metrics -> what it says, its unit, and which way is better."""
        return metrics_named((*STANDARD, *self.measures), self.metrics[0])

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every metric of every run against the first; over seeds if there are several, else over jobs."""
        return tuple(self._difference(k, name) for k in range(1, len(self.runs)) for name in self.metrics[0])

    def changed(self, count: int) -> list[ChangedJob]:
        """List the jobs whose wait changed most, up to `count` a run and direction, the largest change first."""
        found: list[ChangedJob] = []
        for k in range(1, len(self.runs)):
            ids, submit, nodes, runtime, first, here = self._waits(k)
            change = here - first
            order = np.lexsort((ids, -np.abs(change)))
            for longer in (True, False):
                chosen = [row for row in order.tolist() if (change[row] > 0 if longer else change[row] < 0)][:count]
                found += [
                    ChangedJob(
                        k,
                        int(ids[row]),
                        float(submit[row]) / SECOND,
                        int(nodes[row]),
                        float(runtime[row]),
                        float(first[row]),
                        float(here[row]),
                    )
                    for row in chosen
                ]
        return found

    @cached_property
    def same_jobs(self) -> bool:
        """Whether the seeds share their jobs; they do not where each draws a workload of its own."""
        first = self.runs[0].outcomes[self.seeds[0]]
        others = (self.runs[0].outcomes[seed] for seed in self.seeds[1:])
        return all(np.array_equal(first.id, o.id) and np.array_equal(first.submit, o.submit) for o in others)

    def population(self, k: int, seed: int) -> BoolArray:
        """(n_job,) jobs of a run that are measured: after the longest warm-up, finished in every run."""
        outcomes = self.runs[k].outcomes[seed]
        everywhere = np.isin(outcomes.id, self._common(seed))
        return everywhere & outcomes.finished

    def frame(self) -> pl.DataFrame:
        """One row a run and metric."""
        rows = [
            {
                "run": self.labels[d.run],
                "against": self.labels[0],
                "metric": d.metric,
                "unit": self.described[d.metric].unit,
                "first": d.first,
                "value": d.value,
                "difference": d.interval.mean,
                "ci95_low": d.interval.low,
                "ci95_high": d.interval.high,
                "verdict": d.verdict,
            }
            for d in self.differences
        ]
        return pl.DataFrame(rows)

    def to_dict(self, changed: int) -> Json:
        """Plain data, as `poolwise compare --json` prints it."""
        return {
            "runs": [
                {"label": label, "jobs": len(run.outcomes[self.seeds[0]]), **_means(metrics)}
                for label, run, metrics in zip(self.labels, self.runs, self.metrics, strict=True)
            ],
            "seeds": list(self.seeds),
            "measured_jobs": [int(self.population(0, seed).sum()) for seed in self.seeds],
            "intervals": self.interval_of,
            "differences": [{name: _plain(v) for name, v in row.items()} for row in self.frame().iter_rows(named=True)],
            "changed": [{**vars(job), "run": self.labels[job.run], "change_s": job.change_s} for job in self.changed(changed)],
        }

    @property
    def interval_of(self) -> str:
        """What the intervals cover, in words."""
        if self.over == "seeds":
            return f"Student's t over {len(self.seeds)} seeds, differences paired by seed"
        return "paired block bootstrap over the jobs in the order of submission; none for metrics that are not means over jobs"

    def _common(self, seed: int) -> IntArray:
        """Ids of the jobs that finished in every run, after the longest warm-up."""
        warm_up = max(run.warm_up for run in self.runs)
        ids = [run.outcomes[seed].id[run.outcomes[seed].finished] for run in self.runs]
        full = max((run.outcomes[seed] for run in self.runs), key=len)
        common = full.id[after_warm_up(full, warm_up)]
        for own in ids:
            common = np.intersect1d(common, own)
        return common

    def _check_jobs(self, seed: int) -> None:
        one = max((run.outcomes[seed] for run in self.runs), key=len)
        submitted = dict(zip(one.id.tolist(), one.submit.tolist(), strict=True))
        for label, run in zip(self.labels, self.runs, strict=True):
            other = run.outcomes[seed]
            if any(submitted.get(i) != s for i, s in zip(other.id.tolist(), other.submit.tolist(), strict=True)):
                message = f"{label} is not of the same jobs as the others"
                raise InputError(message, file=run.source, field="RUN", remedy="compare runs of one workload")
            if not run.times_only and len(other) != len(one):
                message = f"{label} has {len(other):,} jobs, another run {len(one):,}"
                raise InputError(message, file=run.source, field="RUN", remedy="compare runs of one workload")
        if not len(self._common(seed)):
            raise InputError("no job finished in every run", field="RUN", remedy="compare runs that share jobs")

    def _measure(self, k: int, seed: int) -> dict[str, float]:
        run, outcomes = self.runs[k], self.runs[k].outcomes[seed]
        warm_up = max(run.warm_up for run in self.runs) if not any(run.times_only for run in self.runs) else 0
        window = Window.of(outcomes, warm_up)
        return summarise(
            outcomes,
            warm_up=0,
            population=self.population(k, seed),
            window=window,
            measures=self.measures,
            workload=lambda: run.workload(seed),
            schedule=lambda: run.schedule(seed),
        )

    def _difference(self, k: int, name: str) -> Difference:
        first, here = self.metrics[0][name], self.metrics[k][name]
        if self.over == "seeds":
            interval = mean_interval(here - first)
        elif name in _PER_JOB:
            interval = paired_block_bootstrap(self._per_job(k, name) - self._per_job(0, name))
        else:
            interval = Interval(float((here - first).mean()), math.nan, math.nan, 0.95, len(self.seeds))
        return Difference(k, name, float(first.mean()), float(here.mean()), interval, self.described[name].better)

    def _per_job(self, k: int, name: str) -> FloatArray:
        """(n,) contributions of the measured jobs in the order of submission: means over seeds that share their jobs.

        Seeds with jobs of their own, or of which other jobs were measured, follow one another.
        """
        each = [_PER_JOB[name](self.runs[k].outcomes[seed])[self.population(k, seed)] for seed in self.seeds]
        first = self._common(self.seeds[0])
        alike = self.same_jobs and all(np.array_equal(first, self._common(seed)) for seed in self.seeds[1:])
        return np.mean(each, axis=0) if alike else np.concatenate(each)

    def _waits(self, k: int) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Of the jobs measured under every seed: id, submission, nodes, runtime, wait under the first run, wait here."""
        seeds = self.seeds if self.same_jobs else self.seeds[:1]
        ids = self._common(seeds[0])
        for seed in seeds[1:]:
            ids = np.intersect1d(ids, self._common(seed))

        def rows(run: SavedRun, seed: int) -> tuple[Outcomes, BoolArray]:
            return run.outcomes[seed], np.isin(run.outcomes[seed].id, ids)

        waits: list[FloatArray] = []
        for run in (self.runs[0], self.runs[k]):
            each = [wait_s(outcomes)[chosen] for outcomes, chosen in (rows(run, seed) for seed in seeds)]
            waits.append(np.mean(each, axis=0))
        outcomes, chosen = rows(self.runs[k], seeds[0])
        runtime = (outcomes.end - outcomes.start)[chosen] / SECOND
        return outcomes.id[chosen], outcomes.submit[chosen], outcomes.nodes[chosen], runtime, waits[0], waits[1]


def _labels(runs: Sequence[SavedRun]) -> tuple[str, ...]:
    """Labels that tell runs apart: the parameters that differ, then the sources, and at last numbers."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    differ = [name for name in names if len({run.parameters.get(name) for run in runs}) > 1]
    own = [" ".join(f"{name}={run.parameters[name]}" for name in differ if name in run.parameters) for run in runs]
    if len(set(own)) < len(own) or "" in own:
        own = [f"{run.source.name} {label}".strip() for run, label in zip(runs, own, strict=True)]
    return tuple(label if own.count(label) == 1 else f"{label} ({k + 1})" for k, label in enumerate(own))


def _means(metrics: dict[str, FloatArray]) -> Json:
    return {name: _plain(float(values.mean())) for name, values in metrics.items()}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def compare_runs(*references: str | Path, over: ComparedOver | None = None) -> Comparison:
    """Put runs that stand in files side by side, the others against the first.

    A reference is a folder of `poolwise run`, FOLDER:PATH=VALUE,... for some of its runs, or a file that
    `poolwise simulate --schedule` wrote. Raises InputError unless they are at least two, of the same jobs.
    """
    return Comparison.of([run for reference in references for run in read_runs(str(reference))], over)
