"""Measures of remote memory: degradation of jobs, utilization and price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics import memory
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.window import Window
from poolwise.registry import register


@register("metrics", "memory")
@dataclass(frozen=True)
class MemoryMeasure(Measure):
    """Runtime degradation by remote memory and memory utilization, for machines with memory."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "mean_degradation": Metric("mean runtime degradation by remote memory", "fraction", "lower"),
        "share_under_5pct_degradation": Metric("share of jobs degraded by less than 5 %", "fraction", "higher"),
        "share_remote_memory": Metric("share of jobs that need remote memory", "fraction", "neither"),
        "mean_memory_utilization": Metric("mean memory utilization", "fraction", "higher"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the machine has memory."""
        return run.outcomes.installed_memory > 0

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without jobs, or without memory utilization."""
        degradation = memory.degradation(run.outcomes)[run.counted]
        return {
            "mean_degradation": float(degradation.mean()) if len(degradation) else np.nan,
            "share_under_5pct_degradation": memory.share_under_5pct(run.outcomes, run.counted),
            "share_remote_memory": memory.share_remote(run.outcomes, run.counted),
            "mean_memory_utilization": memory.memory_utilization(run.outcomes, run.window).mean(),
        }


@register("metrics", "memory_dollars")
@dataclass(frozen=True)
class MemoryDollars(Measure):
    """Price of the memory and throughput per memory dollar, for machines with memory; the baseline has its own window."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "memory_dollars": Metric("price of the installed memory", "$", "lower"),
        "throughput_per_100s_per_memory_dollar": Metric("throughput per memory dollar", "jobs / 100 s / $", "higher"),
        "throughput_per_memory_dollar_gain": Metric("throughput per memory dollar / that of the memory baseline", "", "higher"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the machine has memory."""
        return run.outcomes.installed_memory > 0

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; the gain is NaN without a memory baseline."""
        gain = np.nan
        if run.memory_baseline is not None:
            window = Window.of(run.memory_baseline, run.warm_up)
            gain = memory.throughput_per_memory_dollar_gain(run.outcomes, run.window, run.memory_baseline, window)
        rate = memory.throughput_per_memory_dollar(run.outcomes, run.window, run.dollars_per_gb)
        return {
            "memory_dollars": memory.memory_dollars(run.outcomes, run.dollars_per_gb),
            "throughput_per_100s_per_memory_dollar": rate,
            "throughput_per_memory_dollar_gain": gain,
        }
