"""The earliest interval in which a job fits, found in one walk over the instants, against trying one instant after another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.kernels.list_scheduling import profile as kernels
from poolwise.kernels.list_scheduling import racks
from poolwise.kernels.list_scheduling.state import MEAN, PAPER, WORST, ProfileArrays
from poolwise.kernels.python_code import python_code
from poolwise.units import HORIZON

earliest, change, forget, minima = map(python_code, (kernels.earliest, kernels.change, kernels.forget, kernels.minima))
place, expected, fits = map(python_code, (racks.place, racks.expected, racks.fits))


class _Jobs(NamedTuple):
    """Those columns of `JobArrays` that a search reads, of one job."""

    nodes: np.ndarray
    remote: np.ndarray
    asked: np.ndarray
    length: np.ndarray
    believed_near: np.ndarray
    believed_far: np.ndarray
    believed_weight: np.ndarray


class _Rules(NamedTuple):
    anywhere: bool
    believed_spread: int


class _Racks(NamedTuple):
    free: np.ndarray
    take: np.ndarray
    borrow: np.ndarray


def _draw(g: np.random.Generator):
    """Draw what is free at up to 24 instants, the last of them often at the horizon, and a job that fits at some of them."""
    n_rack, count = int(g.integers(1, 4)), int(g.integers(1, 25))
    room = count + 2
    row, gaps = g.permutation(room), g.integers(1, 4, count)
    free, pool = np.zeros((room, n_rack), np.int64), np.zeros((room, n_rack), np.int64)
    some = row[:count]
    free[some], pool[some] = g.integers(0, 6, (count, n_rack)), g.integers(0, 25, (count, n_rack))
    time, nodes, memory = (np.zeros(room, np.int64) for _ in range(3))
    time[:count] = int(g.choice([0, HORIZON - gaps.sum()])) + np.cumsum(gaps)
    nodes[:count], memory[:count] = free[some].sum(axis=1), pool[some].sum(axis=1)
    wide, narrow = (lambda: np.full((room, n_rack), -7)), (lambda: np.full(n_rack, -7))
    profile = ProfileArrays(
        time, row, nodes, memory, free, pool, wide(), wide(), np.array([count, 0]),
        narrow(), narrow(), narrow(), narrow(), wide(), wide(), np.zeros(1, np.int64),
    )  # fmt: skip
    n, remote, asked = int(g.integers(1, 2 * n_rack + 1)), int(g.choice([0, 1, 3, 5])), int(g.integers(0, 16))
    near = float(g.choice([-0.5, 0.0, 0.4])) if remote else 0.0
    far = near + float(g.choice([0.0, 0.5, 2.0]))
    length = int(np.ceil(asked * (1 + near)))
    jobs = _Jobs(*(np.array([value]) for value in (n, remote, asked, length, near, far, 1.0)))
    rules = _Rules(bool(g.random() < 0.5), int(g.choice([WORST, MEAN, PAPER])))
    return profile, jobs, rules, _Racks(*(np.zeros(n_rack, np.int64) for _ in range(3)))


def _one_by_one(profile, jobs, rules, found):
    """Try each instant: the interval is made longer until the placement that it allows is through in time."""
    count = int(profile.size[0])
    for k in range(count):
        most, length = HORIZON - int(profile.time[k]), int(jobs.asked[0])
        length = min(length, most)
        while True:
            rows = [profile.row[m] for m in range(k, count) if m == k or profile.time[m] - profile.time[k] < length]
            least = profile.free[rows].min(axis=0), profile.pool[rows].min(axis=0)
            if not place(int(jobs.nodes[0]), int(jobs.remote[0]), rules.anywhere, *least, found.take, found.borrow):
                break
            needed = min(expected(0, jobs, found.take, found.borrow, rules.anywhere, rules.believed_spread), most)
            if needed <= length:
                return k, length
            length = needed
    return -1, None


@given(st.integers(0, 2**32))
def test_the_earliest_interval_is_the_first_of_all_that_hold_the_job(seed):
    g = np.random.default_rng(seed)
    for _ in range(20):
        profile, jobs, rules, found = _draw(g)
        k = earliest(0, jobs, rules, found, profile)
        also = _Racks(*(np.zeros_like(column) for column in found))
        first, length = _one_by_one(profile, jobs, rules, also)
        assert k == first
        if k >= 0:
            assert int(profile.size[1]) == length
            assert (found.take.tolist(), found.borrow.tolist()) == (also.take.tolist(), also.borrow.tolist())


@given(st.integers(0, 2**32))
def test_what_is_taken_and_given_back_leaves_the_profile_as_it_was(seed):
    g = np.random.default_rng(seed)
    for _ in range(5):
        profile, _, _, found = _draw(g)
        time, count = profile.time, int(profile.size[0])
        was = [(int(time[k]), profile.free[profile.row[k]].tolist()) for k in range(count)]
        begin = int(time[g.integers(count)])
        end = min(begin + int(g.integers(0, 30)), HORIZON)
        found.take[:], found.borrow[:] = g.integers(0, 3), g.integers(0, 9)
        minima(0, count, count, profile)
        last = change(begin, end, found.take, found.borrow, -1, profile)
        _check(profile, int(np.searchsorted(time[:count], begin)), last)
        change(begin, end, found.take, found.borrow, 1, profile)
        for time_ in (end, begin):
            forget(time_, profile)
        count = int(profile.size[0])
        is_ = [(int(time[k]), profile.free[profile.row[k]].tolist()) for k in range(count)]
        assert sorted(profile.row.tolist()) == list(range(len(profile.row)))
        assert _steps(is_) == _steps(was)


def _check(profile, first, last):
    """Hold the sums and the least amounts that are kept against the amounts."""
    count = int(profile.size[0])
    rows = profile.row[:count]
    assert profile.nodes[:count].tolist() == profile.free[rows].sum(axis=1).tolist()
    assert profile.memory[:count].tolist() == profile.pool[rows].sum(axis=1).tolist()
    if first < last:
        before = profile.low_free[rows].copy(), profile.low_pool[rows].copy()
        less = minima(first, last, count, profile)
        assert less or ((profile.low_free[rows] == before[0]).all() and (profile.low_pool[rows] == before[1]).all())
    assert profile.low_free[rows].tolist() == np.minimum.accumulate(profile.free[rows]).tolist()
    assert profile.low_pool[rows].tolist() == np.minimum.accumulate(profile.pool[rows]).tolist()


def _steps(states):
    """Those of (time, amounts) at which amounts change."""
    return [state for k, state in enumerate(states) if k == 0 or state[1] != states[k - 1][1]]
