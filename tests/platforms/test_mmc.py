"""Queues with known mean wait: M/M/c by Erlang's C formula, M/D/1 by Pollaczek and Khinchin.

A machine of c one-node servers under first come, first served without backfilling is such a queue. Independent
replications, each with its first jobs deleted; the seeds are fixed, the interval is that of their means.
"""

import heapq

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.metrics import Outcomes, mean_interval
from poolwise.metrics.slowdown import wait_s
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.schedulers.list import ListScheduler

pytestmark = pytest.mark.long

SERVICE_S = 1000.0
WARM_UP, MEASURED = 300, 1200


def erlang_c(c: int, rho: float) -> float:
    """Return the probability that an arrival waits in M/M/c at load `rho` per server."""
    offered = c * rho
    blocked = 1.0  # Erlang's B by its recursion over the servers
    for k in range(1, c + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1 - rho * (1 - blocked))


def mean_wait_s(c: int, rho: float, exponential: bool) -> float:
    """Return the mean wait in M/M/c, or in M/D/1."""
    if exponential:
        return erlang_c(c, rho) * SERVICE_S / (c * (1 - rho))
    assert c == 1
    return rho / (2 * (1 - rho)) * SERVICE_S


def jobs_of(c: int, rho: float, exponential: bool, seed: int) -> Workload:
    """Draw Poisson arrivals at load `rho` per server."""
    job = np.arange(WARM_UP + MEASURED)
    gap = -np.log1p(-uniform(seed, "gap", job)) * SERVICE_S / (c * rho)
    service = -np.log1p(-uniform(seed, "service", job)) * SERVICE_S if exponential else np.full(len(job), SERVICE_S)
    submit = np.ceil(np.cumsum(gap) * SECOND).astype(np.int64)
    return Workload.of(submit, np.maximum(np.ceil(service * SECOND), 1).astype(np.int64))


def simulated(c: int, workload: Workload) -> Outcomes:
    """Simulate first come, first served on c servers."""
    scheduler = ListScheduler(FCFS(), NoBackfill())
    return Outcomes.of(simulate(workload, Machine.flat(c), scheduler, engine="reference").schedule)


def recursion(c: int, workload: Workload) -> list[int]:
    """Return the starts (ns) by Kiefer and Wolfowitz 1955: a job starts once it has arrived and one of c servers is free."""
    free, starts = [0] * c, []
    for submit, duration in zip(workload.submit.tolist(), workload.duration.tolist(), strict=True):
        starts.append(max(submit, free[0]))
        heapq.heapreplace(free, starts[-1] + duration)
    return starts


def test_erlang_c_matches_hand_computed_values():
    assert erlang_c(1, 0.3) == pytest.approx(0.3)  # one server: busy with probability rho
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)
    assert mean_wait_s(1, 0.5, True) == 2 * mean_wait_s(1, 0.5, False) == pytest.approx(SERVICE_S)


@pytest.mark.parametrize(("c", "rho", "exponential"), [(1, 0.6, True), (3, 0.7, True), (1, 0.7, False)])
def test_mean_wait_matches_theory(c, rho, exponential):
    theory = mean_wait_s(c, rho, exponential)
    runs = [simulated(c, jobs_of(c, rho, exponential, seed)) for seed in range(10)]
    interval = mean_interval([float(wait_s(run)[WARM_UP:].mean()) for run in runs], level=0.99)
    assert interval.low <= theory <= interval.high
    assert (interval.high - interval.low) / 2 < 0.3 * theory  # the interval is narrow enough to be a test


# Ten runs leave room for errors of some percent. The recursion is fast enough for hundreds: theory and recursion agree
# closely, and the simulator agrees with the recursion to the nanosecond.


@pytest.mark.parametrize("c", [1, 2, 7])
def test_starts_match_the_recursion(c):
    workload = jobs_of(c, 0.9, True, seed=1)
    assert simulated(c, workload).start.tolist() == recursion(c, workload)


@pytest.mark.parametrize(("c", "rho", "exponential"), [(1, 0.7, True), (3, 0.7, True), (8, 0.75, True), (1, 0.7, False)])
def test_recursion_matches_theory(c, rho, exponential):
    theory = mean_wait_s(c, rho, exponential)
    means = []
    for seed in range(600):
        workload = jobs_of(c, rho, exponential, seed)
        waits = np.array(recursion(c, workload)) - workload.submit
        means.append(float(waits[WARM_UP:].mean()) / SECOND)
    interval = mean_interval(means, level=0.99)
    assert interval.low <= theory <= interval.high
    assert (interval.high - interval.low) / 2 < 0.05 * theory
