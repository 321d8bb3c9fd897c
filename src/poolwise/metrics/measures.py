"""Registered measures; `poolwise.metrics.summary` selects those that every run gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics import fairness, memory, memory_use, slowdown, throughput
from poolwise.metrics.deadlines import late
from poolwise.metrics.devices import device_use
from poolwise.metrics.latency import PERCENTILES, LatencySummary, parents, response_us, task_latency_us
from poolwise.metrics.measure import Better, Measure, MeasuredRun, Metric
from poolwise.metrics.power import load_of, mean_watts, price
from poolwise.metrics.resource_use import resource_use
from poolwise.metrics.unit_use import energy_j, unit_use, units_of
from poolwise.metrics.window import Window
from poolwise.model import Kind
from poolwise.quantities import US
from poolwise.registry import register

_WORDS = {
    "mean": "mean",
    "median": "median",
    "p50": "median",
    "p90": "90th percentile of the",
    "p99": "99th percentile of the",
    "p99_9": "99.9th percentile of the",
}
_SPREAD = ("mean", "median", "p90", "p99")
_LATENCY = ("mean", *PERCENTILES)


def _statistics(
    kinds: Iterable[str], name: str, description: str, unit: str = "", better: Better = "lower"
) -> dict[str, Metric]:
    """Return the metrics KIND_NAME of a quantity, such as its mean and its percentiles."""
    return {f"{kind}_{name}": Metric(f"{_WORDS[kind]} {description}", unit, better) for kind in kinds}


@register("metrics", "waits")
@dataclass(frozen=True)
class Waits(Measure):
    """Waits and bounded slowdowns of the measured jobs: mean, median, 90th and 99th percentile."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "measured_jobs": Metric("measured jobs", "jobs", "neither"),
        **_statistics(_SPREAD, "wait_s", "wait", "s"),
        **_statistics(_SPREAD, "bounded_slowdown", "bounded slowdown"),
        **_statistics(_SPREAD, "bounded_slowdown_local", "bounded slowdown relative to the runtime with local memory"),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without jobs."""
        metrics = {"measured_jobs": float(np.count_nonzero(run.counted))}
        for name, values in (
            ("wait_s", slowdown.wait_s(run.outcomes)),
            ("bounded_slowdown", slowdown.bounded_slowdown(run.outcomes, run.tau_s)),
            ("bounded_slowdown_local", slowdown.bounded_slowdown_local(run.outcomes, run.tau_s)),
        ):
            metrics.update((f"{prefix}_{name}", value) for prefix, value in slowdown.spread(values[run.counted]).items())
        return metrics


@register("metrics", "load")
@dataclass(frozen=True)
class OfferedLoad(Measure):
    """Load that jobs offer to the machine, for machines whose nodes are taken whole; above 1 the machine is overloaded."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "offered_load": Metric("offered load while jobs arrive (overloaded above 1)", "", "neither")
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether jobs take whole nodes."""
        return run.outcomes.whole_nodes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the load; NaN if all jobs are submitted at once."""
        return {"offered_load": throughput.offered_load(run.outcomes)}


@register("metrics", "throughput")
@dataclass(frozen=True)
class Throughput(Measure):
    """Throughput, node utilization and makespan of a run."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "throughput_per_100s": Metric("throughput", "jobs / 100 s", "higher"),
        "utilization": Metric("node utilization", "fraction", "higher"),
        "makespan_s": Metric("makespan (first submission to last end)", "s", "lower"),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics."""
        return {
            "throughput_per_100s": throughput.throughput_per_100s(run.outcomes, run.window),
            "utilization": throughput.utilization(run.outcomes, run.window),
            "makespan_s": throughput.makespan_s(run.outcomes),
        }


@register("metrics", "fairness")
@dataclass(frozen=True)
class Fairness(Measure):
    """Job waits compared with FCFS without backfilling; jobs that did not finish under that baseline are excluded."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "compared_jobs": Metric(
            "measured jobs that also finished under FCFS without backfilling (compared jobs)", "jobs", "neither"
        ),
        "benefit_s": Metric("benefit: wait saved, summed over the compared jobs that wait less", "s", "higher"),
        "discrimination_s": Metric("discrimination: wait added, summed over the compared jobs that wait longer", "s", "lower"),
        "marginal_discrimination_s": Metric("discrimination minus benefit", "s", "lower"),
        "discrimination_10pct_s": Metric("wait added, summed over the most delayed 10 % of all compared jobs", "s", "lower"),
        "marginal_discrimination_10pct_s": Metric(
            "wait added to the most delayed 10 % of all compared jobs minus wait saved by the most favored 10 %, summed",
            "s",
            "lower",
        ),
        "discrimination_20pct_s": Metric("wait added, summed over the most delayed 20 % of all compared jobs", "s", "lower"),
        "marginal_discrimination_20pct_s": Metric(
            "wait added to the most delayed 20 % of all compared jobs minus wait saved by the most favored 20 %, summed",
            "s",
            "lower",
        ),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without a baseline."""
        baseline = run.baseline
        if baseline is None or not (compared := run.counted & baseline.finished).any():
            none = dict.fromkeys(self.metrics, np.nan)
            return none if baseline is None else {**none, "compared_jobs": 0.0}
        b = fairness.waiting_benefit_s(run.outcomes, baseline)[compared]
        return {
            "compared_jobs": float(len(b)),
            "benefit_s": fairness.benefit(b),
            "discrimination_s": fairness.discrimination(b),
            "marginal_discrimination_s": fairness.marginal_discrimination(b),
            "discrimination_10pct_s": fairness.extreme_discrimination(b, 10),
            "marginal_discrimination_10pct_s": fairness.extreme_marginal_discrimination(b, 10),
            "discrimination_20pct_s": fairness.extreme_discrimination(b, 20),
            "marginal_discrimination_20pct_s": fairness.extreme_marginal_discrimination(b, 20),
        }


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
        "memory_dollars": Metric("assumed price of the installed memory", "$", "lower"),
        "throughput_per_100s_per_memory_dollar": Metric("throughput per memory dollar", "jobs / 100 s / $", "higher"),
        "throughput_per_memory_dollar_gain": Metric(
            "throughput per memory dollar, relative to the memory baseline", "", "higher"
        ),
    }

    applies = MemoryMeasure.applies

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


@register("metrics", "memory_use")
@dataclass(frozen=True)
class MemoryUseMeasure(Measure):
    """Pool memory held and needed, and runs that ran out of memory, for workloads with memory use over time."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "pool_memory_held": Metric("share of pool memory that runs hold", "fraction", "neither"),
        "pool_memory_needed": Metric("share of pool memory that runs need beyond node memory", "fraction", "higher"),
        "resizes": Metric("resizes of memory allocations", "", "neither"),
        "runs_out_of_memory": Metric("runs terminated for lack of memory", "", "lower"),
        "lost_node_hours": Metric("work lost in runs terminated for lack of memory", "node hours", "lower"),
        "stalled_node_hours": Metric("time that runs stalled for lack of memory", "node hours", "lower"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the workload has memory use over time."""
        return run.schedule.workload.memory_use is not None

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics: terminations and stalls over the whole run, memory held and needed over the window."""
        held, needed = memory_use.pool_memory(run.schedule, run.window)
        return {
            "pool_memory_held": held,
            "pool_memory_needed": needed,
            "resizes": float(len(run.schedule.resizes)),
            "runs_out_of_memory": float(memory_use.ran_out_of_memory(run.schedule).sum()),
            "lost_node_hours": memory_use.lost_node_hours(run.schedule),
            "stalled_node_hours": memory_use.stalled_node_hours(run.schedule),
        }


@register("metrics", "deadlines")
@dataclass(frozen=True)
class Deadlines(Measure):
    """Percentage of the population that misses its deadline, for workloads with deadlines; jobs that never ran count."""

    metrics: ClassVar[Mapping[str, Metric]] = {"missed_deadlines_pct": Metric("jobs that miss their deadline", "%", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the workload has deadlines."""
        return "deadline" in run.workload.attributes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the percentage; NaN for an empty population. Raises InputError if the workload has no deadlines."""
        missed = late(run.workload, run.outcomes.end, run.outcomes.finished)[run.population]
        return {"missed_deadlines_pct": 100 * float(missed.mean()) if len(missed) else float("nan")}


def _spread(name: str, values: FloatArray) -> dict[str, float]:
    spread = LatencySummary.of(values)
    return {f"{kind}_{name}_us": getattr(spread, kind) for kind in _LATENCY}


@register("metrics", "latency")
@dataclass(frozen=True)
class LatencyMeasure(Measure):
    """Time from the arrival of a job to the end of its last task, over the jobs whose tasks are all measured."""

    metrics: ClassVar[Mapping[str, Metric]] = _statistics(_LATENCY, "job_latency_us", "job latency", "us")

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without such jobs."""
        outcomes = run.outcomes
        job, count = parents(run.workload)
        last, arrival = np.full(count, -1, dtype=np.int64), np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        np.maximum.at(last, job, outcomes.end)
        np.minimum.at(arrival, job, outcomes.submit)
        whole = np.ones(count, dtype=np.bool_)
        np.logical_and.at(whole, job, run.counted)
        return _spread("job_latency", (last - arrival)[whole] / US)


@register("metrics", "task_latency")
@dataclass(frozen=True)
class TaskLatency(Measure):
    """Task end minus job arrival, and task end minus task start, for jobs that are sets of tasks."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "measured_tasks": Metric("measured tasks", "tasks", "neither"),
        **_statistics(_LATENCY, "task_latency_us", "task latency", "us"),
        **_statistics(_LATENCY, "response_us", "task response time (transfer and computation)", "us"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether any job has several tasks, or the workload has a column with the parent job of each row."""
        return "parent" in run.workload.attributes or bool((run.workload.tasks > 1).any())

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics over the tasks of the measured jobs."""
        schedule = run.schedule
        chosen = run.counted[schedule.job[schedule.finished]]
        return {
            "measured_tasks": float(np.count_nonzero(chosen)),
            **_spread("task_latency", task_latency_us(schedule)[chosen]),
            **_spread("response", response_us(schedule)[chosen]),
        }


@register("metrics", "units")
@dataclass(frozen=True)
class UnitMeasure(Measure):
    """Busy share of processing units, transfers included, for machines that have such units."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "unit_utilization": Metric("mean utilization of processing units", "fraction", "higher"),
        "unit_utilization_by_type": Metric("mean utilization of processing units", "fraction", "higher", per="unit type"),
        **_statistics(PERCENTILES, "unit_utilization", "utilization of a processing unit", "fraction", "neither"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the machine has processing units."""
        return bool(len(units_of(run.machine)))

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN for an empty window."""
        use = unit_use(run.schedule, run.window)
        spread = np.percentile(use.utilization, list(PERCENTILES.values())).tolist()
        return {
            "unit_utilization": use.overall,
            **{f"unit_utilization_by_type.{name}": share for name, share in use.by_type().items()},
            **{f"{name}_unit_utilization": value for name, value in zip(PERCENTILES, spread, strict=True)},
        }


@register("metrics", "resources")
@dataclass(frozen=True)
class ResourceMeasure(Measure):
    """Share of each resource in use, and share that is free while jobs wait for it, for nodes that jobs share."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "resource_used": Metric("mean share in use", "fraction", "higher", per="resource"),
        "resource_stranded": Metric(
            "mean share that is free while jobs wait for the resource", "fraction", "lower", per="resource"
        ),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether jobs share nodes: whole nodes and processing units have their own measures."""
        return "nodes" not in run.machine.resources and not len(units_of(run.machine))

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; no values for an empty window."""
        uses = resource_use(run.schedule, run.window)
        used = {f"resource_used.{use.resource}": use.used for use in uses}
        return {**used, **{f"resource_stranded.{use.resource}": use.stranded for use in uses}}


@register("metrics", "devices")
@dataclass(frozen=True)
class DeviceMeasure(Measure):
    """Load of shared NVMe devices, devices per composition, and workloads per composition (Call et al.)."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "cpu_load": Metric("core demand / installed cores", "fraction", "neither"),
        "bandwidth_load": Metric("bandwidth demand / installed bandwidth", "fraction", "neither"),
        "capacity_load": Metric("storage demand / installed storage", "fraction", "neither"),
        "device_usage_pct": Metric("devices that belong to a composition", "%", "neither"),
        "composition_size": Metric("devices per composition", "devices", "neither"),
        "sharing_ratio": Metric("workloads per composition", "workloads", "neither"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the machine has devices with shared bandwidth."""
        machine = run.machine
        if "bandwidth" not in machine.resources:
            return False
        return bool(machine.capacity[machine.of_kind(Kind.DEVICE), machine.resource("bandwidth")].any())

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics."""
        use = device_use(run.schedule, run.window)
        names = {name: "usage_pct" if name == "device_usage_pct" else name for name in self.metrics}
        return {name: getattr(use, attribute) for name, attribute in names.items()}


@register("metrics", "energy")
@dataclass(frozen=True)
class Energy(Measure):
    """Energy of nodes, pools, devices and processing units, including idle ones, for machines with known watts."""

    metrics: ClassVar[Mapping[str, Metric]] = {"energy_j": Metric("energy of the machine", "J", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether all watts are known, or the machine has a power table of unit and task types."""
        machine = run.machine
        idle, busy = machine.attributes.get("idle_watts"), machine.attributes.get("busy_watts")
        if idle is None or len(units_of(machine)):
            return idle is not None
        return busy is not None and not bool(np.isnan(idle + busy)[machine.kind != Kind.LINK].any())

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the energy; NaN for an empty window. Raises InputError if a task ran on a unit of unknown power."""
        schedule, window = run.schedule, run.window
        if len(units_of(run.machine)):
            return {"energy_j": energy_j(schedule, window)}
        return {"energy_j": mean_watts(run.machine, load_of(schedule, window)) * window.length_s}


@register("metrics", "purchase")
@dataclass(frozen=True)
class Purchase(Measure):
    """Price of all nodes, pools, devices and processing units, for machines with known prices."""

    metrics: ClassVar[Mapping[str, Metric]] = {"purchase_cost": Metric("purchase price of the machine", "$", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether every unit has a price."""
        return not np.isnan(price(run.machine))

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the price."""
        return {"purchase_cost": price(run.machine)}
