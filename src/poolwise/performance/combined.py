"""Combination of several models: slowdown factors multiply, setup times add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.interfaces import PerformanceModel
from poolwise.model import Fetch, JobTable, Machine, Placement, Run, Snapshot
from poolwise.model.snapshot import Estimate, model_parts
from poolwise.registry import register


@register("models", "combined")
@dataclass(frozen=True)
class Combined(PerformanceModel):
    """Product of the factors 1 + slowdown of several models, and sum of their setup times; at most one of them may fetch.

    Parameters
    ----------
    models
        At least one model. In a study, each is a name, or a table with its name and settings.
    """

    models: tuple[PerformanceModel, ...] = ()

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """Parts of all models."""
        return tuple(part for model in self.models for part in model_parts(model))

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the sum of the setup times (ns)."""
        return sum(model.setup(run, snapshot) for model in self.models)

    def fetch(self, run: Run, snapshot: Snapshot) -> Fetch | None:
        """Return the fetch of the first model that has one."""
        return next((fetch for model in self.models if (fetch := model.fetch(run, snapshot)) is not None), None)

    def fetch_slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the total slowdown while the run fetches, as in `slowdown`."""
        return _product(model.fetch_slowdown(run, snapshot) for model in self.models)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the total s with 1 + s = (1 + s1)(1 + s2)...; exactly s1 if the others are 0."""
        return _product(model.slowdown(run, snapshot) for model in self.models)

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the union of the owners that the models return."""
        return tuple(sorted({owner for model in self.models for owner in model.touches(placement, snapshot)}))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the inputs of every model."""
        for model in self.models:
            model.check(machine, jobs)


def _product(slowdowns: Iterable[float]) -> float:
    total = 0.0
    for more in slowdowns:
        total = more + total + (more * total if more and total else 0.0)  # infinity times zero is not a number
    return total
