"""Memory utilization, runtime degradation by remote memory, and the price of memory.

Source: Li et al., Fair Memory, sections IV-C to IV-E, Figures 10 to 12; specs of the memory pools, "Measurement".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.throughput import throughput_per_100s
from poolwise.metrics.window import Window

DOLLARS_PER_GB = 4.9
MIB_PER_GB = 1024
"""1 GB = 1024 MB for memory (specs of the memory pools, "Units")."""


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function of time.

    Attributes
    ----------
    time : (k + 1,) int64, ns, ascending
    value : (k,) float64; value[i] applies from time[i] to time[i + 1]
    """

    time: IntArray
    value: FloatArray

    def mean(self) -> float:
        """Return the time-weighted mean; NaN for an empty time range."""
        length = np.diff(self.time)
        return float((self.value * length).sum() / length.sum()) if len(length) else float("nan")

    def means(self, parts: int) -> Steps:
        """Return time-weighted means over `parts` equal parts of the time, with bounds rounded down to whole ns."""
        if not len(self.value):
            return self
        span = int(self.time[-1] - self.time[0])
        bounds = np.unique(np.array([span * k // parts for k in range(parts + 1)], dtype=np.int64))
        since = self.time - self.time[0]
        integral = np.interp(bounds, since, np.concatenate([[0.0], np.cumsum(self.value * np.diff(since))]))
        return Steps(bounds + self.time[0], np.diff(integral) / np.diff(bounds))


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of a whole in bins of equal width.

    Attributes
    ----------
    edges : (k + 1,) float64; a bin includes its lower edge
    share : (k,) float64, sums to 1; (0,) without values
    """

    edges: FloatArray
    share: FloatArray


def memory_utilization(outcomes: Outcomes, window: Window) -> Steps:
    """Return (local + pool memory in use) / installed memory over the window.

    A job uses its requested memory per node on each node it holds, local memory first and then pool memory; unused memory of
    its nodes does not count. The result has no steps for an empty window, for a machine without memory, and if jobs share
    nodes.
    """
    if window.end <= window.begin or not outcomes.installed_memory or not outcomes.whole_nodes:
        return Steps(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.float64))
    ran = outcomes.finished
    used = outcomes.memory[ran] * outcomes.nodes_held[ran]
    begin = np.clip(outcomes.start[ran], window.begin, window.end)
    end = np.clip(outcomes.end[ran], window.begin, window.end)
    bounds = np.array([window.begin, window.end], dtype=np.int64)
    time, at = np.unique(np.concatenate([begin, end, bounds]), return_inverse=True)
    change = np.bincount(at, weights=np.concatenate([used, -used, np.zeros(2)]))
    return Steps(time, np.cumsum(change)[:-1] / outcomes.installed_memory)


def utilization_histogram(steps: Steps, bins: int = 10) -> Histogram:
    """Return the share of time that a utilization spends in each of `bins` bins of [0, 1]; the last bin includes 1."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    length = np.diff(steps.time)
    if not len(length):
        return Histogram(edges, np.zeros(0, dtype=np.float64))
    # + 1e-9: a value exactly on an edge belongs to the bin above, even if its division was rounded down
    at = np.clip(np.floor(steps.value * bins + 1e-9).astype(np.int64), 0, bins - 1)
    return Histogram(edges, np.bincount(at, weights=length, minlength=bins) / length.sum())


def degradation(outcomes: Outcomes) -> FloatArray:
    """Return runtime / r - 1, (n_job,), where r is the runtime with local memory only; NaN for jobs that did not finish.

    The runtime of a job whose tasks ran separately is the time from its first start to its last end.
    """
    return np.where(outcomes.finished, _extra_ns(outcomes) / outcomes.duration, np.nan)


def degradation_histogram(outcomes: Outcomes, population: BoolArray) -> Histogram:
    """Return the share of a population's finished jobs in each 5 % bin of degradation, from 0 (or the minimum) up."""
    bins = _degradation_bins(outcomes)[population & outcomes.finished]
    if not len(bins):
        return Histogram(np.array([0.0, 0.05]), np.zeros(0, dtype=np.float64))
    low, high = min(0, int(bins.min())), int(bins.max())
    edges = np.arange(low, high + 2) * 5 / 100
    return Histogram(edges, np.bincount(bins - low, minlength=high - low + 1) / len(bins))


def share_under_5pct(outcomes: Outcomes, population: BoolArray) -> float:
    """Return the share of a population's finished jobs with a degradation below 5 %; NaN without jobs."""
    counted = population & outcomes.finished
    return float((_degradation_bins(outcomes)[counted] < 1).mean()) if counted.any() else float("nan")


def share_remote(outcomes: Outcomes, population: BoolArray) -> float:
    """Return the share of a population's jobs that need remote memory: more per node than a node has; NaN without jobs."""
    return float(outcomes.needs_remote_memory[population].mean()) if population.any() else float("nan")


def memory_dollars(outcomes: Outcomes, dollars_per_gb: float = DOLLARS_PER_GB) -> float:
    """Return the price of the installed memory, $."""
    return outcomes.installed_memory / MIB_PER_GB * dollars_per_gb


def throughput_per_memory_dollar(outcomes: Outcomes, window: Window, dollars_per_gb: float = DOLLARS_PER_GB) -> float:
    """Return jobs per 100 s / price of the installed memory; NaN without memory and for an empty window."""
    price = memory_dollars(outcomes, dollars_per_gb)
    return throughput_per_100s(outcomes, window) / price if price else float("nan")


def throughput_per_memory_dollar_gain(outcomes: Outcomes, window: Window, baseline: Outcomes, baseline_window: Window) -> float:
    """Return throughput per memory dollar / that of a baseline (the paper: 512 GB in every node, no pools).

    The price per GB cancels out.
    """
    reference = throughput_per_memory_dollar(baseline, baseline_window)
    return throughput_per_memory_dollar(outcomes, window) / reference if reference else float("nan")


def _extra_ns(outcomes: Outcomes) -> IntArray:
    return outcomes.end - outcomes.start - outcomes.duration


def _degradation_bins(outcomes: Outcomes) -> IntArray:
    """Return floor(degradation / 5 %), (n_job,), in integer arithmetic so that a job at exactly 15 % is in the bin above.

    The products fit into int64 for runs of up to 2.9 years.
    """
    bins: IntArray = (100 * _extra_ns(outcomes)) // (5 * outcomes.duration)
    return bins
