"""Measurements of deployments: latency, cost and energy of each candidate, verdict on the target, and Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.hashing import Json
from poolwise.metrics import Interval, mean_interval
from poolwise.optimize.front import front
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_file import OBJECTIVES, counts_of
from poolwise.plans.deployment_tasks import MEASURED, DeploymentTaskType
from poolwise.presentation.format import humanize_name


@dataclass(frozen=True, eq=False)
class MeasuredDeployments:
    """Candidates ordered by cost, then latency, then energy.

    Attributes
    ----------
    task_type : the plan and its tables
    elements : n candidates
    counts : (n, n_type) units
    values : (n, n_seed, 5) columns as in `MEASURED`
    on_front : (n,) candidates on the Pareto front
    states : keeps, breaks or undecided, one per candidate
    margins : margin of the latency, one per candidate, us or multiples of the fastest; None without a target
    utility : (n,) weighted sum of the objectives
    """

    task_type: DeploymentTaskType
    elements: tuple[Element, ...]
    counts: tuple[tuple[int, ...], ...]
    values: FloatArray
    on_front: BoolArray
    states: tuple[str, ...]
    margins: tuple[Interval, ...] | None
    utility: FloatArray

    @property
    def means(self) -> FloatArray:
        """(n, 5) means over the seeds."""
        means: FloatArray = self.values.mean(axis=1)
        return means

    def ranked(self, state: str) -> list[int]:
        """Return the candidates of a state, the best utility first."""
        means = self.means
        chosen = [k for k in range(len(self.elements)) if self.states[k] == state]
        return sorted(chosen, key=lambda k: (float(self.utility[k]), *means[k, :3].tolist(), self.elements[k]))

    def label(self, k: int) -> str:
        """Return the units of a candidate, and its placement if the plan has several."""
        section = self.task_type.section
        units = " and ".join(f"{n:,} {unit.type}" for unit, n in zip(section.unit, self.counts[k], strict=True) if n)
        placed = f' with placement "{self.placement(k)}"' if len(section.placement) > 1 else ""
        return f"{units}{placed}"

    def placement(self, k: int) -> str:
        """Return the name of a candidate's placement."""
        return humanize_name(str(self.task_type.section.placement[self.elements[k][-1]]))


def measure_deployments(
    task_type: DeploymentTaskType, measured: Sequence[Element], runs: Mapping[Element, Sequence[Json]]
) -> MeasuredDeployments:
    """Collect the measurements of each candidate from its runs, one per seed."""
    values = np.array([[[run[name] for name in MEASURED] for run in runs[e]] for e in measured], dtype=np.float64)
    means = values.mean(axis=1)
    order = sorted(range(len(measured)), key=lambda k: (means[k, 1], means[k, 0], means[k, 2], measured[k]))
    elements, values, means = tuple(measured[k] for k in order), values[order], means[order]
    utility = {str(name): weight for name, weight in task_type.section.utility.items()}
    weights = np.array([utility.get(name, 0.0) for name in OBJECTIVES])
    states, margins = _judge(task_type, values)
    return MeasuredDeployments(
        task_type,
        elements,
        tuple(counts_of(task_type.section, element) for element in elements),
        values,
        front(means[:, :3]),
        states,
        margins,
        means[:, :3] @ weights,
    )


def _judge(task_type: DeploymentTaskType, values: FloatArray) -> tuple[tuple[str, ...], tuple[Interval, ...] | None]:
    """Judge whether the mean latency of each candidate over the seeds meets the target.

    Margins are us below the bound or, for a target relative to the fastest, multiples of its latency under the same seed:
    the achievable latency differs more between seeds than between candidates.
    """
    target = task_type.section.target
    if target is None:
        return ("keeps",) * len(values), None
    latency = values[:, :, 0]
    if target.within is not None:
        margin = target.within - latency / latency[np.argmin(latency.mean(axis=1))]
    else:
        assert target.at_most is not None  # the section requires one of both
        margin = target.at_most - latency
    margins = []
    for row in margin:
        found = mean_interval(row)
        margins.append(found if found.n > 1 else Interval(found.mean, found.mean, found.mean, found.level, found.n))
    states = tuple("keeps" if m.low >= 0 else "breaks" if m.high < 0 else "undecided" for m in margins)
    return states, tuple(margins)
