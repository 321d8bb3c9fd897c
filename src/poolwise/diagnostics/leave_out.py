"""Sensitivity of an answer to the few largest jobs: select these jobs, and find the fewest that change the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.diagnostics.outliers import few, ids_text, largest
from poolwise.hashing import Json
from poolwise.model import Workload
from poolwise.quantities import format_memory

Found = TypeVar("Found")
CHEAP = 5_000_000
"""Maximum number of simulated jobs, over the runs behind an answer, for repeating the runs without the few jobs."""


@dataclass(frozen=True)
class Largest:
    """The few jobs with the largest requests for a resource.

    Attributes
    ----------
    what : description of the resource
    jobs : number of jobs of the workload
    ids : (k,) ids of the few jobs, the largest first
    amounts : (k + 1,) requests of the few jobs, and the largest request of any other job; base units
    """

    what: str
    jobs: int
    ids: tuple[int, ...]
    amounts: tuple[float, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of largest jobs whose requests all exceed the request of every other job."""
        return tuple(k for k in range(1, len(self.ids) + 1) if self.amounts[k - 1] > self.amounts[k])

    def text(self, count: int) -> str:
        """Describe the first `count` jobs: their number, ids and requests."""
        amount = self.amounts[count]
        written = f"{format_memory(amount)} of" if "memory" in self.what else f"{amount:,.6g}"
        what = self.what.removesuffix("s") if amount == 1 and self.what in ("nodes", "node-hours") else self.what
        verb = "requests" if count == 1 else "request"
        return f"{count:,} of {self.jobs:,} jobs ({ids_text(self.ids[:count])}) {verb} more than {written} {what}"


def largest_jobs(workload: Workload, key: str) -> Largest:
    """Return the few jobs with the largest requests for the resource that a machine size provides; `key` is its dotted path."""
    what, amounts = _requests(workload, key)
    rows = largest(amounts, few(len(workload)) + 1)
    ids = tuple(int(job) for job in workload.id[rows[:-1]])
    return Largest(what, len(workload), ids, tuple(float(amount) for amount in amounts[rows]))


def _requests(workload: Workload, key: str) -> tuple[str, FloatArray]:
    """Return the name of the resource that a size provides and its requests, (n_job,); node-hours if no request matches."""
    _, section, name, field = (*key.split("."), "", "", "")[:4]
    if section == "rack":
        return "nodes", (workload.nodes * workload.tasks).astype(np.float64)
    if field in workload.requests and workload.request(field).any():
        return f"{field} per {'node' if 'nodes' in workload.requests else 'task'}", workload.request(field).astype(np.float64)
    if section == "device" and name in workload.requests:
        return name, (workload.request(name) * workload.tasks).astype(np.float64)
    return "node-hours", workload.node_seconds / 3600


@dataclass(frozen=True)
class LeftOut:
    """Result of answering a question again without the few largest jobs.

    Attributes
    ----------
    text : the result in sentences
    tried : whether the answer was computed again
    decide : ids of the fewest jobs whose removal changes the answer as removing all of the few does; empty if none does
    what : resource by which these jobs are the largest
    then : the answer without these jobs, as plain data; None if it does not change, or if no candidate meets the targets
    """

    text: str
    tried: bool = False
    decide: tuple[int, ...] = ()
    what: str = ""
    then: Json | None = None

    def to_dict(self) -> Json:
        """Return plain data."""
        return {
            "tried": self.tried,
            "ids": list(self.decide),
            "largest_by": self.what,
            "answer_without_them": self.then,
            "text": self.text,
        }


def fewest(group: Largest, answer: Found, answer_without: Callable[[tuple[int, ...]], Found]) -> tuple[int, Found] | None:
    """Return the smallest set of the largest jobs whose removal changes the answer as removing all few does, and that answer.

    Returns None if there is none.

    `answer_without` computes the answer without the jobs that have the given ids; it is first called for all of the few. The
    binary search assumes that, once an answer equals the one without all of the few, removing more of them does not change it.
    """
    counts = group.counts
    if not counts or (last := answer_without(group.ids[: counts[-1]])) == answer:
        return None
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if answer_without(group.ids[: counts[middle]]) == last:
            high = middle
        else:
            low = middle + 1
    return counts[high], last


def leave_out_few(
    group: Largest,
    answer: Found,
    answer_without: Callable[[tuple[int, ...]], Found],
    describe: Callable[[Found], tuple[str, Json | None]],
    noun: str,
) -> LeftOut:
    """Answer a question again without the few largest jobs; see `fewest`.

    `describe` puts an answer into words that follow "without them", and returns it as plain data; `noun` names the decision.
    """
    if not group.counts:
        text = f"More than {len(group.ids)} jobs request the most {group.what}, so no small group of them decides the {noun}."
        return LeftOut(text, what=group.what)
    changed = fewest(group, answer, answer_without)
    if changed is None:
        words, _ = describe(answer)
        return LeftOut(f"{group.text(group.counts[-1])}; without them {words}.", tried=True, what=group.what)
    count, other = changed
    words, content = describe(other)
    return LeftOut(f"{group.text(count)}; without them {words}.", True, group.ids[:count], group.what, content)


def reason_to_skip(engines: set[str], jobs: int, runs: int) -> str | None:
    """Return why an answer is not computed again, from the engines, jobs and runs behind it; None if computing it is cheap."""
    if jobs * runs > CHEAP:
        return f"it would repeat at least {runs:,} runs of {jobs:,} jobs"
    if engines != {"compiled"}:
        return "the reference engine is too slow for it"
    return None
