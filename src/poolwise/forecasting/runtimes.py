"""How long jobs will run, from those that ran before: a mixture of what is known of ever larger classes of jobs.

A job's classes are those of its user, nodes and request, of its user and request, of its user, of its request, and all jobs.
What a class has shown is believed as far as it has shown much: each class is mixed with the next larger one as if that had
been seen `PRIOR` times in it. Jobs at work count as censored, and are themselves conditioned on what they have run. Only
what is known at the time is read: runtimes of jobs that have ended, and requests as users wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.forecasting.lifetimes import Lifetimes, kaplan_meier
from poolwise.units import UNKNOWN

PRIOR = 2.0
"""Jobs that the next larger class counts as."""
RECENT = 100
"""Jobs of a class that are remembered, the latest."""
OVERRUN = np.array([1.02, 1.1, 1.25, 1.5, 2.0])
"""Where nothing that was seen lasted so long, a job lasts so many times what it has run."""


@dataclass(frozen=True, eq=False)
class JobFeatures:
    """What is known of jobs before they run, (n_job,) each.

    Attributes
    ----------
    user : number of the user
    nodes : nodes, or cores where nodes are shared
    request : seconds; infinite where none was given
    """

    user: IntArray
    nodes: IntArray
    request: FloatArray

    def classes(self) -> IntArray:
        """(n_level, n_job) numbers of the classes that jobs are in, the smallest class first."""
        return np.stack([_numbers(columns) for columns in self._levels()])

    def _levels(self) -> list[list[FloatArray]]:
        user, nodes = self.user.astype(np.float64), self.nodes.astype(np.float64)
        whole = np.zeros(len(user))
        return [[user, nodes, self.request], [user, self.request], [user], [self.request], [whole]]


def _numbers(columns: list[FloatArray]) -> IntArray:
    """(n,) equal numbers for equal rows."""
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def request_seconds(requested: IntArray) -> FloatArray:
    """(n,) seconds of requested times (ns), infinite where none was given."""
    return np.where(requested >= UNKNOWN, np.inf, requested / 1e9)


class RuntimeModel:
    """Distributions of runtimes as they are known at one time.

    Parameters
    ----------
    classes
        (n_level, n_job) of `JobFeatures.classes`, jobs in the order in which they became known, the latest last.
    seen
        (n_job,) seconds that jobs have run; 0 for those that have not.
    over
        (n_job,) whether they have ended.
    """

    def __init__(self, classes: IntArray, seen: FloatArray, over: BoolArray) -> None:
        self._classes, self._seen, self._over = classes, seen, over
        known = np.flatnonzero(over | (seen > 0))
        self._members = []
        for level in classes:
            order = known[np.argsort(level[known], kind="stable")]
            self._members.append((level[order], order))
        self._estimates: dict[tuple[int, int], tuple[Lifetimes, int]] = {}
        self._mixtures: dict[int, Lifetimes] = {}

    def _estimate(self, level: int, number: int) -> tuple[Lifetimes, int]:
        """Distribution of a class, and how many of it have ended."""
        found = self._estimates.get((level, number))
        if found is None:
            numbers, rows = self._members[level]
            low, high = np.searchsorted(numbers, [number, number + 1])
            recent = rows[low:high][-RECENT * (1 + 4 * (level == len(self._classes) - 1)) :]
            over = self._over[recent]
            found = self._estimates[level, number] = kaplan_meier(self._seen[recent], over), int(over.sum())
        return found

    def lifetimes(self, job: int, request: float, elapsed: float = 0.0) -> Lifetimes:
        """Distribution of a job's whole runtime in seconds, given that it has run for `elapsed`."""
        kind = int(self._classes[0, job])
        if kind not in self._mixtures:
            self._mixtures[kind] = self._mixture(job, request)
        found = self._mixtures[kind].after(elapsed)
        return found if len(found.value) else _overrun(request, elapsed)

    def _mixture(self, job: int, request: float) -> Lifetimes:
        """Distribution of the runtimes of jobs of one kind: same user, nodes and request."""
        values, masses, rest = [], [], 1.0
        last = len(self._classes) - 1
        for level, numbers in enumerate(self._classes):
            found, count = self._estimate(level, int(numbers[job]))
            share = rest if level == last else rest * count / (count + PRIOR)
            rest -= share
            values.append(found.value if level < 2 else np.minimum(found.value, request))
            masses.append(share * found.mass)
            if np.isfinite(request):
                values.append(np.array([request]))
                masses.append(np.array([share * found.beyond]))
        value, mass = np.concatenate(values), np.concatenate(masses)
        order = np.argsort(value, kind="stable")
        order = order[mass[order] > 0]
        return Lifetimes(value[order], mass[order])


def _overrun(request: float, elapsed: float) -> Lifetimes:
    """Distribution where nothing that was seen lasted so long."""
    value = np.maximum(elapsed, 1.0) * OVERRUN
    if elapsed < request < np.inf:
        value = np.concatenate([np.minimum(value, request), [request]])
    return Lifetimes(np.sort(value), np.full(len(value), 1.0 / len(value)))


def mean_of(found: Lifetimes) -> float:
    """Mean of a distribution whose masses need not add up to 1."""
    return float((found.value * found.mass).sum() / found.mass.sum())
