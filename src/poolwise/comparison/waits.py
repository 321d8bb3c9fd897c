"""How jobs wait under an answer and under what it is compared with, in the rows of a decision card."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.metrics import Outcomes
from poolwise.metrics.slowdown import wait_s
from poolwise.units import format_time

PairedRun = tuple[Outcomes, Outcomes | None, BoolArray]
"""One seed: the run under the answer, the other (None without one), and (n_job,) which jobs are measured."""

_WAITS: tuple[tuple[str, Callable[[FloatArray], float]], ...] = (
    ("Median wait", lambda waits: float(np.median(waits))),
    ("95th percentile of the wait", lambda waits: float(np.quantile(waits, 0.95))),
)


@dataclass(frozen=True, eq=False)
class PairedWaits:
    """How jobs wait under the answer and, where there is one, under what it is compared with; all on the same jobs.

    Attributes
    ----------
    then : (n,) s that each job waits under the answer, one run a seed after another
    now : the same under the other, None without one
    turned_away : jobs that can never run, most of any seed: under the answer, and under the other
    """

    then: FloatArray
    now: FloatArray | None
    turned_away: tuple[int, int]

    @classmethod
    def of(cls, runs: Iterable[PairedRun]) -> PairedWaits:
        """Look at runs of one setting, one a seed; jobs count that both finish."""
        then, now, away, away_other = [], [], 0, 0
        for outcomes, other, population in runs:
            both = population & outcomes.finished & (True if other is None else other.finished)
            then.append(wait_s(outcomes)[both])
            away = max(away, _turned_away(outcomes))
            if other is not None:
                now.append(wait_s(other)[both])
                away_other = max(away_other, _turned_away(other))
        return cls(np.concatenate(then), np.concatenate(now) if now else None, (away, away_other))

    def rows(self, other: str = "today") -> list[list[str]]:
        """Rows of a card: who is turned away, the waits, and what the answer adds to the wait of the job hit hardest."""
        rows = [["Jobs that can never run", *(f"{count:,}" for count in self.turned_away)]]
        if not len(self.then):
            return rows
        for label, measure in _WAITS:
            rows.append([label, format_time(measure(self.then)), "" if self.now is None else format_time(measure(self.now))])
        if self.now is not None:
            added = self.then - self.now
            rows.append(["Wait added to the job hit hardest", format_time(max(0.0, float(added.max()))), ""])
            rows.append([f"Jobs that wait longer than {_under(other)}", f"{int((added > 0).sum()):,} of {len(added):,}", ""])
        return rows


def _under(other: str) -> str:
    return other if other == "today" else f"under {other}"


def _turned_away(outcomes: Outcomes) -> int:
    return sum(1 for reason in outcomes.reason if reason)
