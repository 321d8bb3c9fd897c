"""Outliers: the few jobs so much larger than all others that they alone may determine metrics or recommendations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.hashing import Json
from poolwise.metrics.outcomes import Outcomes
from poolwise.presentation.format import format_number
from poolwise.quantities import SECOND, UNKNOWN, format_memory, format_time

SHOWN = 6
"""Number of ids in a sentence; JSON contains all ids."""

LITTLE = 1e-5
"""Share below which shares are reported as 'less than' this value."""


def ids_text(ids: Sequence[int]) -> str:
    """Format job ids: 'job 7', 'jobs 7, 9', 'jobs 1, 2, 3, 4, 5, 6 and 4 more'."""
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"job{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids[:SHOWN]))}{more}"


def share_text(share: float) -> str:
    """Format a share as a percentage with two digits: 0.00043 -> '0.043 %'."""
    if 0 < share < LITTLE:
        return f"less than {100 * LITTLE:g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


MOST_FEW = 10
"""Largest number of jobs that counts as a few."""
FEW_SHARE = 0.01
"""Largest share of all jobs that counts as a few."""
APART = 2.0
"""Smallest ratio of the smallest of a few outliers to the largest other job."""
HEAVY = 0.1
"""Smallest share of all node-hours that a few heavy jobs hold."""


def few(jobs: int) -> int:
    """Return the largest number of a workload's jobs that counts as a few; 0 for fewer than a hundred jobs."""
    return min(MOST_FEW, int(jobs * FEW_SHARE))


class _Quantity(NamedTuple):
    """A quantity by which jobs are compared, the format of its amounts, and phrases with {} for one job and for several."""

    name: str
    of: Callable[[Outcomes], FloatArray]
    written: Callable[[float], str]
    one: str
    several: str


def node_hours(outcomes: Outcomes) -> FloatArray:
    """Return the hours that each job would hold nodes at reference speed, summed over its nodes, (n_job,)."""
    hours: FloatArray = outcomes.nodes * (outcomes.duration / (3600 * SECOND))
    return hours


def _count(amount: float) -> str:
    return f"{amount:,.0f}"


def _known_requests(outcomes: Outcomes) -> FloatArray:
    return np.where(outcomes.requested < UNKNOWN, outcomes.requested, 0) / SECOND


_APART = (
    _Quantity(
        "memory_mib",
        lambda o: o.memory.astype(np.float64),
        format_memory,
        "requests {} of memory per {node}",
        "request {} of memory per {node}",
    ),
    _Quantity("nodes", lambda o: o.nodes.astype(np.float64), _count, "requests {} {node}s", "request {} {node}s"),
    _Quantity("duration_s", lambda o: o.duration / SECOND, format_time, "runs for {}", "run for {}"),
    _Quantity("requested_s", _known_requests, format_time, "has a requested time of {}", "have requested times of {}"),
)


@dataclass(frozen=True)
class Outliers:
    """A few jobs much larger than all others.

    Attributes
    ----------
    quantity : quantity that sets them apart: memory_mib (per node), nodes, duration_s, requested_s or node_hours
    ids : ids of the few jobs, the largest first
    jobs : number of jobs of the workload
    least, most : smallest and largest amount of the few jobs
    rest : largest amount of any other job
    share : share of all node-hours that the few jobs hold
    text : description in a sentence
    """

    quantity: str
    ids: tuple[int, ...]
    jobs: int
    least: float
    most: float
    rest: float
    share: float
    text: str

    def to_dict(self) -> Json:
        """Return plain data, without the sentence."""
        names = ("quantity", "jobs", "least", "most", "rest", "share")
        return {**{name: getattr(self, name) for name in names}, "ids": list(self.ids)}


def outliers(outcomes: Outcomes) -> tuple[Outliers, ...]:
    """Return the few jobs that exceed all others in a quantity, and those that hold a large share of all node-hours.

    For each quantity, the group is the one with the largest ratio to all other jobs, if that ratio is at least `APART`.
    """
    groups = (_apart(outcomes, quantity) for quantity in _APART)
    return tuple(group for group in (*groups, _heavy(outcomes)) if group is not None)


def largest(amounts: FloatArray, count: int) -> IntArray:
    """Return the rows of the largest amounts, (count,), the largest first; of equal amounts, the first."""
    return np.argsort(-amounts, kind="stable")[:count]


def _apart(outcomes: Outcomes, quantity: _Quantity) -> Outliers | None:
    amounts = quantity.of(outcomes)
    rows = largest(amounts, few(len(outcomes)) + 1)
    top = amounts[rows]
    ratios = np.divide(top[:-1], top[1:], out=np.zeros(len(top[1:])), where=top[1:] > 0)
    if not len(ratios) or ratios.max() < APART:
        return None
    count = int(np.argmax(ratios)) + 1
    low, high, rest = (quantity.written(float(amount)) for amount in (top[count - 1], top[0], top[count]))
    verb = (quantity.one if count == 1 else quantity.several).format(
        low if low == high else f"{low} to {high}", node=outcomes.unit
    )
    holds = "it holds" if count == 1 else "they hold"
    words = f"{verb}, no other job more than {rest}; {holds} {{share}} of all {outcomes.unit}-hours"
    return _group(outcomes, quantity.name, amounts, rows[:count], float(top[count]), words)


def _heavy(outcomes: Outcomes) -> Outliers | None:
    hours = node_hours(outcomes)
    rows = largest(hours, few(len(outcomes)) + 1)
    shares = np.cumsum(hours[rows[:-1]]) / hours.sum()
    if not (shares >= HEAVY).any():
        return None
    count = int(np.argmax(shares >= HEAVY)) + 1
    rest = float(hours[rows[count]])
    holds, unit = "holds" if count == 1 else "hold", f"{outcomes.unit}-hours"
    words = f"{holds} {{share}} of all {unit}, no other job more than {format_number(rest)} {unit}"
    return _group(outcomes, "node_hours", hours, rows[:count], rest, words)


def _group(outcomes: Outcomes, quantity: str, amounts: FloatArray, rows: IntArray, rest: float, words: str) -> Outliers:
    """Build the description of some rows, (k,); `words` contains {share} for their share of all node-hours."""
    hours = node_hours(outcomes)
    share = float(hours[rows].sum() / hours.sum())
    ids = tuple(int(job) for job in outcomes.id[rows])
    text = f"{len(ids):,} of {len(outcomes):,} jobs ({ids_text(ids)}) {words.format(share=share_text(share))}."
    return Outliers(quantity, ids, len(outcomes), float(amounts[rows[-1]]), float(amounts[rows[0]]), rest, share, text)
