"""All metrics of one run under stable names, and what those names mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.metrics import fairness, memory, slowdown, throughput
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window, after_warm_up

Better = Literal["lower", "higher", "neither"]


class Metric(NamedTuple):
    """What a metric says, its unit, and which way is better."""

    description: str
    unit: str
    better: Better


_SPREAD = {"mean": "mean", "median": "median", "p90": "90th percentile of the", "p99": "99th percentile of the"}
_EXTREMES = (10, 20)


def _spread(name: str, description: str, unit: str) -> Iterator[tuple[str, Metric]]:
    for prefix, words in _SPREAD.items():
        yield f"{prefix}_{name}", Metric(f"{words} {description}", unit, "lower")


def _extreme() -> Iterator[tuple[str, Metric]]:
    for x in _EXTREMES:
        yield f"discrimination_{x}pct_s", Metric(f"discrimination of the {x} % most discriminated jobs", "s", "lower")
        yield (
            f"marginal_discrimination_{x}pct_s",
            Metric(f"that less the benefit of the {x} % most benefited", "s", "lower"),
        )


METRICS: Mapping[str, Metric] = {
    "measured_jobs": Metric("jobs measured", "jobs", "neither"),
    **dict(_spread("wait_s", "wait", "s")),
    **dict(_spread("bounded_slowdown", "bounded slowdown", "")),
    **dict(_spread("bounded_slowdown_local", "bounded slowdown over the runtime with local memory", "")),
    "throughput_per_100s": Metric("throughput", "jobs / 100 s", "higher"),
    "utilization": Metric("node utilisation", "fraction", "higher"),
    "makespan_s": Metric("first submission to last end", "s", "lower"),
    "compared_jobs": Metric("jobs compared with FCFS without backfilling", "jobs", "neither"),
    "benefit_s": Metric("benefit: wait saved, sum over the jobs that gain", "s", "higher"),
    "discrimination_s": Metric("discrimination: wait added, sum over the jobs that lose", "s", "lower"),
    "marginal_discrimination_s": Metric("discrimination less benefit", "s", "lower"),
    **dict(_extreme()),
    "mean_degradation": Metric("mean degradation by remote memory", "fraction", "lower"),
    "share_under_5pct_degradation": Metric("share of jobs degraded by less than 5 %", "fraction", "higher"),
    "share_remote_memory": Metric("share of jobs that need remote memory", "fraction", "neither"),
    "mean_memory_utilization": Metric("mean memory utilisation", "fraction", "higher"),
    "memory_dollars": Metric("price of the installed memory", "$", "lower"),
    "throughput_per_100s_per_memory_dollar": Metric("throughput per memory dollar", "jobs / 100 s / $", "higher"),
    "throughput_per_memory_dollar_gain": Metric("throughput per memory dollar over the memory baseline's", "", "higher"),
}
"""Name -> what it is; the names that `summarise` returns, in its order. Sources stand with the functions of each family."""


def summarise(
    outcomes: Outcomes,
    *,
    warm_up: int,
    population: BoolArray,
    window: Window,
    baseline: Outcomes | None = None,
    memory_baseline: Outcomes | None = None,
    tau_s: float = TAU_S,
    dollars_per_gb: float = DOLLARS_PER_GB,
) -> dict[str, float]:
    """Compute every metric of `METRICS`; NaN where one is undefined (no jobs, no baseline, an empty window).

    Parameters
    ----------
    warm_up
        The first submitted jobs up to this number are not measured, whatever the population is.
    population
        (n_job,) jobs whose waits, slowdowns, fairness and degradation are measured: `paper_population`,
        `common_population` or any other choice. Those that did not finish are left out; `measured_jobs` says how many stay.
    window
        For throughput and utilisation, to which all jobs contribute.
    baseline
        The same jobs under FCFS without backfilling with the same memory configuration; those of the population that did not
        finish there are left out of the fairness metrics, `compared_jobs` says how many stay.
    memory_baseline
        The same jobs under the same scheduler on the machine whose throughput per memory dollar is the measure (the paper:
        512 GB in every node, no pools), over a window of its own.
    tau_s
        Bound of the bounded slowdown, seconds.
    dollars_per_gb
        Price of memory.
    """
    counted = population & after_warm_up(outcomes, warm_up) & outcomes.finished
    found = {"measured_jobs": float(np.count_nonzero(counted))}
    for name, values in (
        ("wait_s", slowdown.wait_s(outcomes)),
        ("bounded_slowdown", slowdown.bounded_slowdown(outcomes, tau_s)),
        ("bounded_slowdown_local", slowdown.bounded_slowdown_local(outcomes, tau_s)),
    ):
        found.update((f"{prefix}_{name}", value) for prefix, value in slowdown.spread(values[counted]).items())
    found["throughput_per_100s"] = throughput.throughput_per_100s(outcomes, window)
    found["utilization"] = throughput.utilization(outcomes, window)
    found["makespan_s"] = throughput.makespan_s(outcomes)
    found.update(_fairness(outcomes, counted, baseline))
    found.update(_memory(outcomes, counted, window))
    found.update(_dollars(outcomes, window, dollars_per_gb, memory_baseline, warm_up))
    return {name: found[name] for name in METRICS}


def _fairness(outcomes: Outcomes, counted: BoolArray, baseline: Outcomes | None) -> dict[str, float]:
    names = [name for name in METRICS if name.endswith(("benefit_s", "discrimination_s", "pct_s"))]
    compared = counted & baseline.finished if baseline is not None else np.zeros_like(counted)
    if baseline is None or not compared.any():
        return {"compared_jobs": 0.0 if baseline is not None else np.nan, **dict.fromkeys(names, np.nan)}
    b = fairness.waiting_benefit_s(outcomes, baseline)[compared]
    found = {
        "compared_jobs": float(len(b)),
        "benefit_s": fairness.benefit(b),
        "discrimination_s": fairness.discrimination(b),
        "marginal_discrimination_s": fairness.marginal_discrimination(b),
    }
    for x in _EXTREMES:
        found[f"discrimination_{x}pct_s"] = fairness.extreme_discrimination(b, x)
        found[f"marginal_discrimination_{x}pct_s"] = fairness.extreme_marginal_discrimination(b, x)
    return found


def _memory(outcomes: Outcomes, counted: BoolArray, window: Window) -> dict[str, float]:
    lost = memory.degradation(outcomes)[counted]
    return {
        "mean_degradation": float(lost.mean()) if len(lost) else np.nan,
        "share_under_5pct_degradation": memory.share_under_5pct(outcomes, counted),
        "share_remote_memory": memory.share_remote(outcomes, counted),
        "mean_memory_utilization": memory.memory_utilization(outcomes, window).mean(),
    }


def _dollars(
    outcomes: Outcomes, window: Window, dollars_per_gb: float, baseline: Outcomes | None, warm_up: int
) -> dict[str, float]:
    gain = np.nan
    if baseline is not None:
        there = Window.of(baseline, warm_up)
        gain = memory.throughput_per_memory_dollar_gain(outcomes, window, baseline, there)
    return {
        "memory_dollars": memory.memory_dollars(outcomes, dollars_per_gb),
        "throughput_per_100s_per_memory_dollar": memory.throughput_per_memory_dollar(outcomes, window, dollars_per_gb),
        "throughput_per_memory_dollar_gain": gain,
    }
