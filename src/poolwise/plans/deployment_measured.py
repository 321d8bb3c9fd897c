"""What was measured of deployments: latency, cost and energy of each, whether it is fast enough, and which are on the front."""

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
from poolwise.presentation.format import in_words


@dataclass(frozen=True, eq=False)
class MeasuredDeployments:
    """Candidates by cost, then latency, then energy.

    Attributes
    ----------
    elements : n candidates
    counts : (n, n_type) units
    values : (n, n_seed, 5) as `MEASURED`
    on_front : (n,)
    states : keeps, breaks or undecided, one a candidate
    margins : of the latency, one a candidate, us or multiples of the fastest; None without a target
    utility : (n,)
    """

    bench: DeploymentTaskType
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
        """Candidates of a state, the best utility first."""
        means = self.means
        chosen = [k for k in range(len(self.elements)) if self.states[k] == state]
        return sorted(chosen, key=lambda k: (float(self.utility[k]), *means[k, :3].tolist(), self.elements[k]))

    def label(self, k: int) -> str:
        """A candidate in words."""
        section = self.bench.section
        units = " and ".join(f"{n:,} {unit.type}" for unit, n in zip(section.unit, self.counts[k], strict=True) if n)
        placed = f' placed by "{self.placement(k)}"' if len(section.placement) > 1 else ""
        return f"{units}{placed}"

    def placement(self, k: int) -> str:
        """A candidate's placement in words."""
        return in_words(str(self.bench.section.placement[self.elements[k][-1]]))


def measure_deployments(
    bench: DeploymentTaskType, measured: Sequence[Element], runs: Mapping[Element, Sequence[Json]]
) -> MeasuredDeployments:
    """Put together what was measured of each candidate; `runs` are those of each, one a seed."""
    values = np.array([[[run[name] for name in MEASURED] for run in runs[e]] for e in measured], dtype=np.float64)
    means = values.mean(axis=1)
    order = sorted(range(len(measured)), key=lambda k: (means[k, 1], means[k, 0], means[k, 2], measured[k]))
    elements, values, means = tuple(measured[k] for k in order), values[order], means[order]
    utility = {str(name): weight for name, weight in bench.section.utility.items()}
    weights = np.array([utility.get(name, 0.0) for name in OBJECTIVES])
    states, margins = _judge(bench, values)
    return MeasuredDeployments(
        bench,
        elements,
        tuple(counts_of(bench.section, element) for element in elements),
        values,
        front(means[:, :3]),
        states,
        margins,
        means[:, :3] @ weights,
    )


def _judge(bench: DeploymentTaskType, values: FloatArray) -> tuple[tuple[str, ...], tuple[Interval, ...] | None]:
    """Whether the latency of each candidate is good enough, in the mean over the seeds.

    Margins are us below the bound; or, against the fastest, its multiples, seed by seed: seeds differ far more in how long
    the jobs take at best than in how candidates compare.
    """
    target = bench.section.target
    if target is None:
        return ("keeps",) * len(values), None
    latency = values[:, :, 0]
    if target.within is not None:
        missing = target.within - latency / latency[np.argmin(latency.mean(axis=1))]
    else:
        assert target.at_most is not None  # the section takes one of both
        missing = target.at_most - latency
    margins = []
    for row in missing:
        found = mean_interval(row)
        margins.append(found if found.n > 1 else Interval(found.mean, found.mean, found.mean, found.level, found.n))
    states = tuple("keeps" if m.low >= 0 else "breaks" if m.high < 0 else "undecided" for m in margins)
    return states, tuple(margins)
