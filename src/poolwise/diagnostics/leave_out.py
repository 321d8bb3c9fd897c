"""Whether a few jobs decide an answer: which jobs to leave out, how many of them change it, and how that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.diagnostics.few_jobs import ids_text
from poolwise.diagnostics.outliers import few, largest
from poolwise.hashing import Json
from poolwise.model import Workload
from poolwise.units import format_memory

Found = TypeVar("Found")
CHEAP = 5_000_000
"""Answers that took more simulated jobs than this are not found again without some of them."""


@dataclass(frozen=True)
class Largest:
    """The few jobs that ask for the most of something.

    Attributes
    ----------
    what : what they ask for, in words
    jobs : of the workload
    ids : (k,) of the few, the largest first
    amounts : (k + 1,) of the few, and the most of any other job; base units
    """

    what: str
    jobs: int
    ids: tuple[int, ...]
    amounts: tuple[float, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of jobs that may be told from all others: each of them asks for more than any other job does."""
        return tuple(k for k in range(1, len(self.ids) + 1) if self.amounts[k - 1] > self.amounts[k])

    def text(self, count: int) -> str:
        """The first `count` of them in words: who they are, and what they ask for."""
        amount = self.amounts[count]
        written = format_memory(amount) if "memory" in self.what else f"{amount:,.6g}"
        asks = "asks" if count == 1 else "ask"
        return f"{count:,} of {self.jobs:,} jobs ({ids_text(self.ids[:count])}) {asks} for more than {written} of {self.what}"


def largest_jobs(workload: Workload, key: str) -> Largest:
    """Find the few jobs that ask for the most of what a size of the machine gives, by the dotted path of that size."""
    what, amounts = _asked(workload, key)
    rows = largest(amounts, few(len(workload)) + 1)
    ids = tuple(int(job) for job in workload.id[rows[:-1]])
    return Largest(what, len(workload), ids, tuple(float(amount) for amount in amounts[rows]))


def _asked(workload: Workload, key: str) -> tuple[str, FloatArray]:
    """What jobs ask for of a size, in words, and (n_job,) amounts; node-hours where no request is of that size."""
    _, section, name, field = (*key.split("."), "", "", "")[:4]
    if field in workload.requests and workload.request(field).any():
        return f"{field} a {'node' if 'nodes' in workload.requests else 'task'}", workload.request(field).astype(np.float64)
    if section == "device" and name in workload.requests:
        return name, (workload.request(name) * workload.tasks).astype(np.float64)
    if section == "rack":
        return "nodes", (workload.nodes * workload.tasks).astype(np.float64)
    return "node-hours", workload.node_seconds / 3600


@dataclass(frozen=True)
class LeftOut:
    """What became of an answer without the few jobs that ask for the most.

    Attributes
    ----------
    text : the same in sentences
    tried : whether the answer was looked for again
    decide : ids of the fewest jobs without which the answer is the one without all of the few; empty where it stays
    what : what they ask for the most of
    then : the answer without them, as plain data; None where it stays, or where nothing keeps the targets
    """

    text: str
    tried: bool = False
    decide: tuple[int, ...] = ()
    what: str = ""
    then: Json | None = None

    def to_dict(self) -> Json:
        """Plain data."""
        return {
            "tried": self.tried,
            "ids": list(self.decide),
            "largest_by": self.what,
            "answer_without_them": self.then,
            "text": self.text,
        }


def fewest(group: Largest, answer: Found, again: Callable[[tuple[int, ...]], Found]) -> tuple[int, Found] | None:
    """Find the fewest of the largest jobs that change the answer as all of the few do, and that answer; None if it stays.

    `again` finds the answer without jobs, by their ids; it is asked for all of the few first. Where the answer stays the
    same once it is the one without all of them, however many more are left out, no fewer would do.
    """
    counts = group.counts
    if not counts or (last := again(group.ids[: counts[-1]])) == answer:
        return None
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if again(group.ids[: counts[middle]]) == last:
            high = middle
        else:
            low = middle + 1
    return counts[high], last


def reason_not_to(engines: set[str], jobs: int, runs: int) -> str | None:
    """Say why an answer is not looked for again, given what ran it, jobs of its workload and its runs; None if it is cheap."""
    if jobs * runs > CHEAP:
        return f"that takes {runs:,} runs of {jobs:,} jobs again, or more"
    if engines != {"compiled"}:
        return "the reference engine is too slow for that"
    return None
