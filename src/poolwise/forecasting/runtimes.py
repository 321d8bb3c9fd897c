"""Runtime distributions of jobs, estimated from earlier jobs in increasingly large classes.

The classes of a job are: same user, nodes and request; same user and request; same user; same request; all jobs. Each class is
mixed with the next larger one, whose estimate weighs as much as `PRIOR` completed jobs. Running jobs count as censored, and
their own distributions are conditioned on their elapsed time. The model uses only what is known at that time: runtimes of
completed jobs, and requested times as submitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.quantities import UNKNOWN


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Discrete distribution of a duration.

    Attributes
    ----------
    value : (n,) values, ascending
    mass : (n,) probabilities; the remainder up to 1 lies beyond the largest value
    """

    value: FloatArray
    mass: FloatArray

    @property
    def beyond(self) -> float:
        """Probability of a value beyond the largest one."""
        return max(1.0 - float(self.mass.sum()), 0.0)

    @cached_property
    def cumulative(self) -> FloatArray:
        """(n,) cumulative masses."""
        return np.cumsum(self.mass)

    def after(self, elapsed: float) -> Lifetimes:
        """Return the part of the distribution above `elapsed`; its masses are not normalized."""
        first = int(np.searchsorted(self.value, elapsed, side="right"))
        return Lifetimes(self.value[first:], self.mass[first:]) if first else self

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles at levels, (...,), of the total mass: the smallest value whose cumulative mass reaches each."""
        reached = np.searchsorted(self.cumulative, levels * self.cumulative[-1])
        at: FloatArray = self.value[np.minimum(reached, len(self.value) - 1)]
        return at


def kaplan_meier(time: FloatArray, over: BoolArray, weight: FloatArray | None = None) -> Lifetimes:
    """Estimate a distribution from (n,) times, each of which is complete (`over`) or censored (Kaplan, Meier 1958).

    Among equal times, complete ones come first. If the longest time is censored, the masses sum to less than 1.
    """
    if not len(time):
        return Lifetimes(np.zeros(0), np.zeros(0))
    order = np.lexsort((~over, time))
    ranked, ends = time[order], over[order]
    size = np.ones(len(time)) if weight is None else weight[order]
    at_risk = np.cumsum(size[::-1])[::-1]
    hazard = np.where(ends, size / at_risk, 0.0)
    surviving = np.cumprod(1.0 - hazard)
    mass = np.concatenate([[1.0], surviving[:-1]]) * hazard
    return Lifetimes(ranked[ends], mass[ends])


PRIOR = 2.0
"""Weight of the next larger class, in completed jobs."""
RECENT = 100
"""Number of most recent jobs to keep per class."""
OVERRUN = np.array([1.02, 1.1, 1.25, 1.5, 2.0])
"""Possible ends of a job that has run longer than all earlier jobs, as multiples of its elapsed time."""


@dataclass(frozen=True, eq=False)
class JobFeatures:
    """Features of jobs that are known before the jobs run, (n_job,) each.

    Attributes
    ----------
    user : number of the user
    nodes : number of nodes, or of cores if jobs share nodes
    request : requested time, seconds; infinite if unknown
    """

    user: IntArray
    nodes: IntArray
    request: FloatArray

    def classes(self) -> IntArray:
        """Return the class numbers of jobs, (n_level, n_job), the smallest class first."""
        return np.stack([_numbers(columns) for columns in self._levels()])

    def _levels(self) -> list[list[FloatArray]]:
        user, nodes = self.user.astype(np.float64), self.nodes.astype(np.float64)
        whole = np.zeros(len(user))
        return [[user, nodes, self.request], [user, self.request], [user], [self.request], [whole]]


def _numbers(columns: list[FloatArray]) -> IntArray:
    """Assign numbers to rows, (n,), so that equal rows have equal numbers."""
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def request_seconds(requested: IntArray) -> FloatArray:
    """Convert requested times (ns) to seconds, (n,), infinite if unknown."""
    return np.where(requested >= UNKNOWN, np.inf, requested / 1e9)


class RuntimeModel:
    """Runtime distributions of jobs, in submission order, from what is known at one time.

    `classes` are those of `JobFeatures.classes`, `seen` is the (n_job,) elapsed run time in seconds (0 for jobs that have not
    started), and `over` marks the (n_job,) jobs that have ended.
    """

    def __init__(self, classes: IntArray, seen: FloatArray, over: BoolArray) -> None:
        self._classes, self._seen, self._over = classes, seen, over
        informative = np.flatnonzero(over | (seen > 0))
        self._members = []
        for level in classes:
            order = informative[np.argsort(level[informative], kind="stable")]
            self._members.append((level[order], order))
        self._estimates: dict[tuple[int, int], tuple[Lifetimes, int]] = {}
        self._mixtures: dict[int, Lifetimes] = {}

    def _estimate(self, level: int, number: int) -> tuple[Lifetimes, int]:
        """Return the distribution of a class and its number of completed jobs."""
        estimate = self._estimates.get((level, number))
        if estimate is None:
            numbers, rows = self._members[level]
            low, high = np.searchsorted(numbers, [number, number + 1])
            recent = rows[low:high][-RECENT * (1 + 4 * (level == len(self._classes) - 1)) :]
            over = self._over[recent]
            estimate = self._estimates[level, number] = kaplan_meier(self._seen[recent], over), int(over.sum())
        return estimate

    def lifetimes(self, job: int, request: float, elapsed: float = 0.0) -> Lifetimes:
        """Return the distribution of a job's total runtime in seconds, given that it has run for `elapsed`."""
        kind = int(self._classes[0, job])
        if kind not in self._mixtures:
            self._mixtures[kind] = self._mixture(job, request)
        remaining = self._mixtures[kind].after(elapsed)
        return remaining if len(remaining.value) else _overrun(request, elapsed)

    def _mixture(self, job: int, request: float) -> Lifetimes:
        """Return the runtime distribution of jobs of one kind: same user, nodes and request."""
        values, masses, rest = [], [], 1.0
        last = len(self._classes) - 1
        for level, numbers in enumerate(self._classes):
            distribution, count = self._estimate(level, int(numbers[job]))
            share = rest if level == last else rest * count / (count + PRIOR)
            rest -= share
            values.append(distribution.value if level < 2 else np.minimum(distribution.value, request))
            masses.append(share * distribution.mass)
            if np.isfinite(request):
                values.append(np.array([request]))
                masses.append(np.array([share * distribution.beyond]))
        value, mass = np.concatenate(values), np.concatenate(masses)
        order = np.argsort(value, kind="stable")
        order = order[mass[order] > 0]
        return Lifetimes(value[order], mass[order])


def _overrun(request: float, elapsed: float) -> Lifetimes:
    """Return the distribution for a job that has run longer than all earlier jobs."""
    value = np.maximum(elapsed, 1.0) * OVERRUN
    if elapsed < request < np.inf:
        value = np.concatenate([np.minimum(value, request), [request]])
    return Lifetimes(np.sort(value), np.full(len(value), 1.0 / len(value)))


def mean_of(lifetimes: Lifetimes) -> float:
    """Return the mean of a distribution whose masses need not sum to 1."""
    return float((lifetimes.value * lifetimes.mass).sum() / lifetimes.mass.sum())
