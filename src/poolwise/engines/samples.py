"""Many versions of one run that goes on from a state, such as a forecast draws them."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts, Sampler
from poolwise.engines.kernel_arrays import starts_of
from poolwise.engines.progress import Obstacle
from poolwise.engines.select import family_of
from poolwise.engines.simulate import simulate
from poolwise.model import Workload
from poolwise.units import NEVER


@dataclass(frozen=True, eq=False)
class PlainSampler:
    """Replays each version on the reference engine."""

    parts: Parts
    sought: IntArray
    until: int

    def starts(self, workload: Workload) -> IntArray:
        """(k,) ns at which the sought jobs start, `NEVER` for one that does not."""
        parts = self.parts
        found = simulate(
            parts.machine,
            workload,
            parts.scheduler,
            truth=parts.truth,
            estimate=parts.estimate,
            seed=parts.seed,
            engine="reference",
            initial=parts.initial,
        ).schedule
        starts = starts_of(found.job[::-1], found.start[::-1], self.sought, len(workload))  # the first start of each
        starts[starts > self.until] = NEVER
        return starts


def sampler_of(parts: Parts, sought: IntArray, until: int = NEVER) -> tuple[Sampler, Obstacle | None]:
    """Find what replays versions of a run fastest, and why no kernel does where none does.

    Parameters
    ----------
    parts
        The run, which goes on from others (`Parts.initial`).
    sought
        (k,) rows of the workload whose starts are asked for; a replay stops when all of them have started.
    until
        Ns after which nothing is replayed.
    """
    family, obstacle = family_of(parts)
    if family is None or family.sampler is None:
        return PlainSampler(parts, sought, until), obstacle
    return family.sampler(parts, sought, until), None
