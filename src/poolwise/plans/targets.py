"""Targets of a plan, and the margin by which a run meets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from poolwise.arrays import BoolArray, FloatArray
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.metrics import Metric, Outcomes, metrics_of
from poolwise.metrics.measures import Deadlines
from poolwise.metrics.memory import degradation
from poolwise.metrics.slowdown import bounded_slowdown, bounded_slowdown_local, wait_s
from poolwise.metrics.summary import STANDARD
from poolwise.presentation.format import format_number
from poolwise.quantities import format_time

MISSED = "missed_deadlines_pct"
KNOWN: Mapping[str, Metric] = metrics_of((*STANDARD, Deadlines()))
"""Metrics that a target may name."""
FAIRNESS = ("benefit_s", "discrimination_s", "pct_s")
"""Suffixes of metrics that need a run under FCFS without backfilling."""


class TargetSection(Section):
    """A metric and its bound."""

    metric: str = Field(description="name of a metric in results.csv, or missed_deadlines_pct")
    at_most: float | None = Field(default=None, description="upper bound")
    at_least: float | None = Field(default=None, description="lower bound")
    of: Literal["reference"] | None = Field(
        default=None, description="reference: the bound is a multiple of the reference's value"
    )

    @model_validator(mode="after")
    def _one_bound(self) -> TargetSection:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("give either at_most or at_least")
        return self


@dataclass(frozen=True)
class Target:
    """Bound on a metric: metric <= bound (`sign` 1) or >= bound (-1); if `relative`, a multiple of the reference's value."""

    metric: str
    bound: float
    sign: Literal[1, -1]
    relative: bool

    def margin(self, value: float, reference: float) -> float:
        """Return the margin by which a value meets the bound, in the unit of the metric; negative if it misses the bound."""
        return self.sign * (self.bound * (reference if self.relative else 1.0) - value)

    def tightened(self, share: float) -> Target:
        """Return the target with its bound tightened by a share of the bound; a negative share loosens it."""
        return replace(self, bound=self.bound - self.sign * share * abs(self.bound))

    @property
    def title(self) -> str:
        """Description of the metric, capitalized."""
        description = KNOWN[self.metric].description
        return description[:1].upper() + description[1:]

    @property
    def text(self) -> str:
        """Description for readers, such as "mean wait of at most 1 h"."""
        bound = f"{format_number(self.bound)} times the reference's" if self.relative else self.format_value(self.bound)
        return f"{KNOWN[self.metric].description} of at {'most' if self.sign > 0 else 'least'} {bound}"

    def format_value(self, value: float) -> str:
        """Format a value of the metric with its unit."""
        unit = KNOWN[self.metric].unit
        if unit == "s":
            return format_time(value)
        return f"{format_number(100 * value)} %" if unit == "fraction" else f"{format_number(value)} {unit}".strip()

    def __str__(self) -> str:
        words = f"{self.metric} {'<=' if self.sign > 0 else '>='} {self.bound:g}"
        return f"{words} x reference" if self.relative else words


def read_targets(sections: Sequence[TargetSection], has_reference: bool, document: Document) -> tuple[Target, ...]:
    """Resolve the targets of a document; raise InputError with the line of an invalid one."""
    targets: list[Target] = []
    for k, section in enumerate(sections):
        path = ("plan", "target", k)
        if section.metric not in KNOWN:
            raise document.unknown((*path, "metric"), "metric", section.metric, list(KNOWN))
        if section.of == "reference" and not has_reference:
            raise document.error((*path, "of"), "the plan has no reference", "write [plan.reference] with its values")
        bound = section.at_most if section.at_most is not None else section.at_least
        assert bound is not None  # the section requires one of both
        sign: Literal[1, -1] = 1 if section.at_most is not None else -1
        targets.append(Target(section.metric, bound, sign, section.of is not None))
    if not targets:
        raise document.error(("plan", "target"), "the plan has no target", "write a [[plan.target]]")
    return tuple(targets)


def needs_fcfs(targets: Sequence[Target]) -> bool:
    """Return whether any target is a fairness metric, which needs a run under FCFS without backfilling."""
    return any(target.metric.endswith(FAIRNESS) for target in targets)


# Contributions of single jobs, for intervals within one run

_PER_JOB: Mapping[str, Callable[[Outcomes, float], FloatArray]] = {
    "wait_s": lambda outcomes, tau_s: wait_s(outcomes),
    "bounded_slowdown": bounded_slowdown,
    "bounded_slowdown_local": bounded_slowdown_local,
    "degradation": lambda outcomes, tau_s: degradation(outcomes),
}
_SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99}


def is_percentile(target: Target) -> bool:
    """Return whether a target's metric is a percentile of a value per job, so that `job_margins` gives shares of jobs."""
    prefix, _, name = target.metric.partition("_")
    return name in _PER_JOB and prefix in _SHARES


def job_margins(
    target: Target, outcomes: Outcomes, reference: Outcomes | None, population: BoolArray, tau_s: float
) -> FloatArray | None:
    """Return the contribution of each job in a population, (n,), to the margin, their mean; None for run-level metrics.

    A percentile meets its bound if the share of jobs beyond the bound is small enough, so its margin is a share of jobs. The
    reference's percentile is treated as exact.
    """
    prefix, _, name = target.metric.partition("_")
    per_job = _PER_JOB.get(name)
    if per_job is None or prefix not in ("mean", *_SHARES):
        return None
    values = per_job(outcomes, tau_s)[population]
    others = per_job(reference, tau_s)[population] if target.relative and reference is not None else np.ones(len(values))
    if prefix == "mean":
        return target.sign * (target.bound * others - values)
    share = _SHARES[prefix]
    bound = target.bound * (float(np.quantile(others, share)) if len(others) else np.nan)
    beyond = (values > bound).astype(np.float64)
    return target.sign * ((1.0 - share) - beyond)
