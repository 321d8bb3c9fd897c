"""Measures of the utilization of processing units and shared resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics.devices import device_use
from poolwise.metrics.latency import PERCENTILES
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.resource_use import resource_use
from poolwise.metrics.unit_use import unit_use, units_of
from poolwise.model import Kind
from poolwise.registry import register

_WORDS = {"p50": "median", "p99": "99th percentile of the", "p99_9": "99.9th percentile of the"}


@register("metrics", "units")
@dataclass(frozen=True)
class UnitMeasure(Measure):
    """Busy share of processing units, transfers included, for machines that have such units."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "unit_utilization": Metric("mean utilization of processing units", "fraction", "higher"),
        "unit_utilization_by_type": Metric("mean utilization of processing units", "fraction", "higher", per="unit type"),
        **{
            f"{name}_unit_utilization": Metric(f"{words} utilization of a processing unit", "fraction", "neither")
            for name, words in _WORDS.items()
        },
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
        "resource_stranded": Metric("mean share free while jobs wait for it", "fraction", "lower", per="resource"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether jobs share nodes: whole nodes and processing units have their own measures."""
        return "nodes" not in run.machine.resources and not len(units_of(run.machine))

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; no values for an empty window."""
        found = resource_use(run.schedule, run.window)
        used = {f"resource_used.{use.resource}": use.used for use in found}
        return {**used, **{f"resource_stranded.{use.resource}": use.stranded for use in found}}


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
        return {
            "cpu_load": use.cpu_load,
            "bandwidth_load": use.bandwidth_load,
            "capacity_load": use.capacity_load,
            "device_usage_pct": use.usage_pct,
            "composition_size": use.composition_size,
            "sharing_ratio": use.sharing_ratio,
        }
