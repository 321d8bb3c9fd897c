"""Comparison of runs: every metric, paired differences with their intervals, and the jobs whose waits changed most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.comparison.saved_run import SavedRun
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.hashing import Json, canonical
from poolwise.metrics import Interval, Measure, Metric, Outcomes, Window, mean_interval, paired_block_bootstrap, summarize
from poolwise.metrics.measure import Better
from poolwise.metrics.memory import degradation
from poolwise.metrics.slowdown import bounded_slowdown, bounded_slowdown_local, wait_s
from poolwise.metrics.summary import STANDARD, metrics_named
from poolwise.quantities import SECOND
from poolwise.short_repr import fit_repr

MOST_RUNS = 16
ComparedOver = Literal["seeds", "jobs"]
DifferenceVerdict = Literal["better", "worse", "alike", "changed", "unknown"]
_TIME_METRICS = ("measured_jobs", "wait_s", "bounded_slowdown", "throughput_per_100s", "makespan_s")
"""Endings of metrics that need only submissions, starts and ends."""
_PER_JOB = {
    "mean_wait_s": wait_s,
    "mean_bounded_slowdown": bounded_slowdown,
    "mean_bounded_slowdown_local": bounded_slowdown_local,
    "mean_degradation": degradation,
}
"""Metrics that are means over jobs, and the function that returns each job's contribution."""


@dataclass(frozen=True)
class Difference:
    """A metric of a run compared with the first run.

    `interval` is the difference (run - first) with its 95 % interval; the bounds are NaN without an interval. `better` is the
    direction in which the metric improves.
    """

    run: int
    metric: str
    first: float
    value: float
    interval: Interval
    better: Better = "lower"

    @property
    def verdict(self) -> DifferenceVerdict:
        """Verdict from the interval; "unknown" without one. A metric without a preferred direction can only be "changed"."""
        if math.isnan(self.interval.low):
            return "alike" if self.value == self.first else "unknown"
        if self.interval.low <= 0 <= self.interval.high:
            return "alike"
        if self.better == "neither":
            return "changed"
        return "better" if (self.interval.high < 0) == (self.better == "lower") else "worse"


@dataclass(frozen=True)
class ChangedJob:
    """A job whose wait differs from that in the first run; values are means over the seeds if all seeds have the same jobs."""

    run: int
    id: int
    submit_s: float
    nodes: int
    runtime_s: float
    first_wait_s: float
    wait_s: float

    @property
    def change_s(self) -> float:
        """Wait in this run minus wait in the first run."""
        return self.wait_s - self.first_wait_s


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two or more runs of the same jobs; the first is the reference for the others. `compare` returns it.

    Attributes
    ----------
    runs : the saved runs
    labels : one unique label per run
    seeds : seeds that all runs share
    over : population of the intervals: seeds or jobs
    measures : measures in addition to the standard metrics

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["30 min", "1 min"])
    >>> fcfs, sjf = (
    ...     poolwise.simulate(workload, poolwise.Machine.flat(1), order=order, engine="reference") for order in ("fcfs", "sjf")
    ... )
    >>> poolwise.compare(fcfs, sjf).frame().columns[:4]
    ['run', 'against', 'metric', 'unit']
    """

    runs: tuple[SavedRun, ...]
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    over: ComparedOver
    measures: tuple[Measure, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[SavedRun], over: ComparedOver | None = None, metrics: Sequence[Component] = ()) -> Comparison:
        """Compare runs, by default with intervals over seeds if there are at least three, else over jobs.

        The comparison covers the standard metrics, the additional metrics of any run, and `metrics`.

        Raises InputError for fewer than two or too many runs, or runs of different jobs.
        """
        if not 2 <= len(runs) <= MOST_RUNS:
            remedy = f"select with FOLDER:PATH=VALUE; at least 2, at most {MOST_RUNS}"
            raise InputError(f"cannot compare {len(runs)} runs", field="RUN", remedy=remedy)
        seeds = tuple(sorted(set.intersection(*(set(run.outcomes) for run in runs))))
        if not seeds:
            raise InputError("the runs share no seed", field="RUN", remedy="compare runs with the same seeds")
        if over == "seeds" and len(seeds) < 2:
            raise InputError(
                "an interval over seeds needs at least two", field="--over", remedy="add seeds, or use --over jobs"
            )
        requested = [choice for run in runs for choice in run.metrics]
        distinct = {canonical({"name": c.name, **c.settings}): c for c in (*requested, *metrics)}
        measures = tuple(choice.make("metrics") for choice in distinct.values())
        labels = _labels(runs)
        runs = [run.with_full_outcomes() for run in runs] if measures else runs  # measures need more than a run's times
        comparison = cls(tuple(runs), labels, seeds, over or ("seeds" if len(seeds) > 2 else "jobs"), measures)
        for seed in seeds:
            comparison._check_jobs(seed)
        return comparison

    @cached_property
    def metrics(self) -> tuple[dict[str, FloatArray], ...]:
        """One dictionary per run: metric -> (n_seed,) values, for the metrics that all runs have."""
        values_of_runs = []
        for k in range(len(self.runs)):
            rows = [self._measure(k, seed) for seed in self.seeds]
            shared = [name for name in rows[0] if all(name in row for row in rows)]
            values_of_runs.append({name: np.array([row[name] for row in rows]) for name in shared})
        everywhere = [name for name in values_of_runs[0] if all(name in values for values in values_of_runs)]
        complete = [name for name in everywhere if not any(np.isnan(values[name]).any() for values in values_of_runs)]
        if any(run.times_only for run in self.runs):
            complete = [name for name in complete if name.endswith(_TIME_METRICS)]
        return tuple({name: values[name] for name in complete} for values in values_of_runs)

    @cached_property
    def described(self) -> Mapping[str, Metric]:
        """Name -> description, unit and preferred direction of each of these metrics."""
        return metrics_named((*STANDARD, *self.measures), self.metrics[0])

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every metric of every run compared with the first run; over seeds if there are several, else over jobs."""
        return tuple(self._difference(k, name) for k in range(1, len(self.runs)) for name in self.metrics[0])

    def changed(self, count: int) -> list[ChangedJob]:
        """Return the jobs whose wait changed most, up to `count` per run and direction, the largest change first."""
        changed_jobs: list[ChangedJob] = []
        for k in range(1, len(self.runs)):
            ids, submit, nodes, runtime, first, here = self._waits(k)
            change = here - first
            order = np.lexsort((ids, -np.abs(change)))
            for longer in (True, False):
                chosen = [row for row in order.tolist() if (change[row] > 0 if longer else change[row] < 0)][:count]
                for row in chosen:
                    waits = float(first[row]), float(here[row])
                    job = int(ids[row]), float(submit[row]) / SECOND, int(nodes[row]), float(runtime[row])
                    changed_jobs.append(ChangedJob(k, *job, *waits))
        return changed_jobs

    @cached_property
    def same_jobs(self) -> bool:
        """True if all seeds have the same jobs, False if each seed draws its own workload."""
        first = self.runs[0].outcomes[self.seeds[0]]
        others = (self.runs[0].outcomes[seed] for seed in self.seeds[1:])
        return all(np.array_equal(first.id, o.id) and np.array_equal(first.submit, o.submit) for o in others)

    def population(self, k: int, seed: int) -> BoolArray:
        """Return a mask of the measured jobs of run `k`, (n_job,): those after the longest warm-up that all runs finished."""
        outcomes = self.runs[k].outcomes[seed]
        everywhere = np.isin(outcomes.id, self._common(seed))
        return everywhere & outcomes.finished

    def __repr__(self) -> str:
        lines = [f"Comparison of {len(self.runs)} runs, intervals over {self.over}"]
        return fit_repr("\n".join([*lines, *(f"  {label}" for label in self.labels)]))

    def frame(self) -> pl.DataFrame:
        """Return a frame with one row per run and metric."""
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
        """Return plain data, as `poolwise compare --json` prints it."""
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
        """Description of how intervals are computed."""
        if self.over == "seeds":
            return f"Student's t over {len(self.seeds)} seeds, differences paired by seed"
        return "paired block bootstrap over jobs in submission order; none for metrics that are not means over jobs"

    def _common(self, seed: int) -> IntArray:
        """Return the ids of the jobs that finished in every run, after the longest warm-up."""
        common = max((run.outcomes[seed].id for run in self.runs), key=len)
        for run in self.runs:
            common = np.intersect1d(common, run.outcomes[seed].id[run.outcomes[seed].finished])
        return np.setdiff1d(common, self._warm_up[seed])

    @cached_property
    def _warm_up(self) -> dict[int, IntArray]:
        """Seed -> ids of the first jobs submitted, as many as the longest warm-up; files of times lack jobs that never ran."""
        longest = max(self.runs, key=lambda run: run.warm_up)
        full = next((run for run in self.runs if not run.times_only), None)
        if full is None and longest.warm_up:
            return {seed: longest.workload(seed).id[: longest.warm_up] for seed in self.seeds}
        return {seed: (full or longest).outcomes[seed].id[: longest.warm_up] for seed in self.seeds}

    def _check_jobs(self, seed: int) -> None:
        largest = max((run.outcomes[seed] for run in self.runs), key=len)
        submitted = dict(zip(largest.id.tolist(), largest.submit.tolist(), strict=True))
        for label, run in zip(self.labels, self.runs, strict=True):
            other = run.outcomes[seed]
            if any(submitted.get(i) != s for i, s in zip(other.id.tolist(), other.submit.tolist(), strict=True)):
                message = f"the jobs of {label} differ from those of the other runs"
                raise InputError(message, file=run.source, field="RUN", remedy="compare runs of one workload")
            if not run.times_only and len(other) != len(largest):
                message = f"{label} has {len(other):,} jobs, another run {len(largest):,}"
                raise InputError(message, file=run.source, field="RUN", remedy="compare runs of one workload")
        if not len(self._common(seed)):
            raise InputError("no job finished in every run", field="RUN", remedy="compare runs that share jobs")

    def _measure(self, k: int, seed: int) -> dict[str, float]:
        run, outcomes = self.runs[k], self.runs[k].outcomes[seed]
        window = Window.of(outcomes, int(np.isin(outcomes.id, self._warm_up[seed]).sum()))
        return summarize(
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
        """Return the contributions of the measured jobs, (n,), in submission order, averaged over seeds with the same jobs.

        If the jobs, or the measured jobs, differ between seeds, the seeds are concatenated.
        """
        each = [_PER_JOB[name](self.runs[k].outcomes[seed])[self.population(k, seed)] for seed in self.seeds]
        first = self._common(self.seeds[0])
        alike = self.same_jobs and all(np.array_equal(first, self._common(seed)) for seed in self.seeds[1:])
        return np.mean(each, axis=0) if alike else np.concatenate(each)

    def _waits(self, k: int) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Return id, submission, nodes, runtime and waits (first run, this run) of each job measured under every seed."""
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
    """Return unique labels, built from the parameters that differ, then, if needed, from the sources and from numbers."""
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
