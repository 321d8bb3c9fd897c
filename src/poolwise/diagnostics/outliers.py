"""Jobs so far above all others that they alone may decide what is measured or recommended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.diagnostics.few_jobs import ids_text, share_text
from poolwise.hashing import Json
from poolwise.metrics.outcomes import Outcomes
from poolwise.units import SECOND, UNKNOWN, format_memory, format_time

MOST_FEW = 10
"""However many jobs there are, more than this are not a few."""
FEW_SHARE = 0.01
"""Nor are more than this share of them."""
APART = 2.0
"""A few jobs stand apart where the least of them asks for this many times the most of all others."""
HEAVY = 0.1
"""A few jobs are heavy where they ask for this share of all node-hours."""


def few(jobs: int) -> int:
    """How many of so many jobs are a few, at most; 0 below a hundred jobs."""
    return min(MOST_FEW, int(jobs * FEW_SHARE))


class _Quantity(NamedTuple):
    """What jobs are compared by, how an amount is written, and what one job and several do with {} of it."""

    name: str
    of: Callable[[Outcomes], FloatArray]
    written: Callable[[float], str]
    one: str
    several: str


def node_hours(outcomes: Outcomes) -> FloatArray:
    """(n_job,) hours that each job would hold nodes at reference speed, summed over its nodes."""
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
        "asks for {} of memory a {node}",
        "ask for {} of memory a {node}",
    ),
    _Quantity("nodes", lambda o: o.nodes.astype(np.float64), _count, "asks for {} {node}s", "ask for {} {node}s"),
    _Quantity("duration_s", lambda o: o.duration / SECOND, format_time, "runs for {}", "run for {}"),
    _Quantity("requested_s", _known_requests, format_time, "has a requested time of {}", "have requested times of {}"),
)


@dataclass(frozen=True)
class Outliers:
    """A few jobs far above all others.

    Attributes
    ----------
    quantity : what they are compared by: memory_mib (a node), nodes, duration_s, requested_s or node_hours
    ids : of the few jobs, the largest first
    jobs : of the workload
    least, most : of the few jobs
    rest : the most that any other job asks for
    share : of all node-hours that are theirs
    text : the same in a sentence
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
        """Plain data, the sentence left out."""
        names = ("quantity", "jobs", "least", "most", "rest", "share")
        return {**{name: getattr(self, name) for name in names}, "ids": list(self.ids)}


def outliers(outcomes: Outcomes) -> tuple[Outliers, ...]:
    """Find the few jobs that stand apart in a quantity, and those that hold much of all node-hours.

    Of each quantity those few are named whose distance to all others is the widest, as a ratio, if it is `APART` or more.
    """
    found = (_apart(outcomes, quantity) for quantity in _APART)
    return tuple(group for group in (*found, _heavy(outcomes)) if group is not None)


def largest(amounts: FloatArray, count: int) -> IntArray:
    """(count,) rows of the largest amounts, the largest first; of equal ones the first."""
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
    does = (quantity.one if count == 1 else quantity.several).format(
        low if low == high else f"{low} to {high}", node=outcomes.unit
    )
    whose = "its" if count == 1 else "theirs"
    words = f"{does}, no other job more than {rest}; {{share}} of all {outcomes.unit}-hours are {whose}"
    return _group(outcomes, quantity.name, amounts, rows[:count], float(top[count]), words)


def _heavy(outcomes: Outcomes) -> Outliers | None:
    hours = node_hours(outcomes)
    rows = largest(hours, few(len(outcomes)) + 1)
    shares = np.cumsum(hours[rows[:-1]]) / hours.sum()
    if not (shares >= HEAVY).any():
        return None
    count = int(np.argmax(shares >= HEAVY)) + 1
    rest = float(hours[rows[count]])
    words = f"{'holds' if count == 1 else 'hold'} {{share}} of all {outcomes.unit}-hours, no other job more than {rest:,.3g}"
    return _group(outcomes, "node_hours", hours, rows[:count], rest, words)


def _group(outcomes: Outcomes, quantity: str, amounts: FloatArray, rows: IntArray, rest: float, words: str) -> Outliers:
    """Make a group of (k,) rows; `words` has {share} where their share of all node-hours stands."""
    hours = node_hours(outcomes)
    share = float(hours[rows].sum() / hours.sum())
    ids = tuple(int(job) for job in outcomes.id[rows])
    text = f"{len(ids):,} of {len(outcomes):,} jobs ({ids_text(ids)}) {words.format(share=share_text(share))}."
    return Outliers(quantity, ids, len(outcomes), float(amounts[rows[-1]]), float(amounts[rows[0]]), rest, share, text)
