"""Job waits under a recommendation and under its reference, as rows of a decision card."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.metrics import Outcomes
from poolwise.metrics.slowdown import wait_s
from poolwise.quantities import format_time

PairedRun = tuple[Outcomes, Outcomes | None, BoolArray]
"""One seed: the recommended run, the reference run (None without one), and (n_job,) measured jobs."""

_WAITS: tuple[tuple[str, Callable[[FloatArray], float]], ...] = (
    ("Median wait", lambda waits: float(np.median(waits))),
    ("95th percentile of the wait", lambda waits: float(np.quantile(waits, 0.95))),
)


@dataclass(frozen=True, eq=False)
class PairedWaits:
    """Waits of the same jobs under the recommendation and, if there is one, under the reference.

    Attributes
    ----------
    recommended : (n,) waits in s under the recommendation, with the runs of all seeds concatenated
    reference : (n,) waits in s under the reference; None without one
    rejected : number of jobs that can never run, maximum over seeds: under the recommendation, and under the reference
    """

    recommended: FloatArray
    reference: FloatArray | None
    rejected: tuple[int, int]

    @classmethod
    def of(cls, runs: Iterable[PairedRun]) -> PairedWaits:
        """Collect waits over the runs of one setting, one per seed; only jobs that finish in both runs count."""
        recommended, reference, rejected, rejected_reference = [], [], 0, 0
        for outcomes, other, population in runs:
            both = population & outcomes.finished & (True if other is None else other.finished)
            recommended.append(wait_s(outcomes)[both])
            rejected = max(rejected, _count_rejected(outcomes))
            if other is not None:
                reference.append(wait_s(other)[both])
                rejected_reference = max(rejected_reference, _count_rejected(other))
        waits = np.concatenate(reference) if reference else None
        return cls(np.concatenate(recommended), waits, (rejected, rejected_reference))

    def rows(self, reference: str = "today") -> list[list[str]]:
        """Return rows of a decision card: jobs that can never run, waits, and the largest wait added to any job."""
        rows = [["Jobs that can never run", *(f"{count:,}" for count in self.rejected)]]
        if not len(self.recommended):
            return rows
        for label, measure in _WAITS:
            other = "" if self.reference is None else format_time(measure(self.reference))
            rows.append([label, format_time(measure(self.recommended)), other])
        if self.reference is not None:
            added = self.recommended - self.reference
            rows.append(["Largest wait added to any job", format_time(max(0.0, float(added.max()))), ""])
            longer = f"{int((added > 0).sum()):,} of {len(added):,}"
            rows.append([f"Jobs that wait longer than {_under(reference)}", longer, ""])
        return rows


def _under(reference: str) -> str:
    return reference if reference == "today" else f"under {reference}"


def _count_rejected(outcomes: Outcomes) -> int:
    return sum(1 for reason in outcomes.reason if reason)
