"""Availability profile and earliest interval of conservative backfilling, compared with exhaustive search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.kernels.common.state import MEAN, PAPER, WORST, record
from poolwise.kernels.list_scheduling import candidate_filter, racks
from poolwise.kernels.list_scheduling import earliest as search
from poolwise.kernels.list_scheduling import profile as kernels
from poolwise.kernels.list_scheduling.state import ProfileArrays, ProfileStatus, RackNow, ReservationCacheArrays, StepArrays
from poolwise.kernels.python_code import python_code
from poolwise.quantities import HORIZON, NEVER

earliest, change, drop_instant = map(python_code, (search.earliest, kernels.change, kernels.drop_instant))
merge, advance = map(python_code, (kernels.merge, kernels.advance))
last_candidate, remains_candidate = map(python_code, (candidate_filter.last_candidate, candidate_filter.remains_candidate))
place, expected, fits = map(python_code, (racks.place, racks.expected, racks.fits))


def _status(instants: int) -> ProfileStatus:
    status = record(ProfileStatus)
    status.instants, status.single_rack = instants, -1
    return status


class _Jobs(NamedTuple):
    """The columns of `JobArrays` that a search reads."""

    nodes: np.ndarray
    remote: np.ndarray
    expected_work: np.ndarray
    length: np.ndarray
    believed_near: np.ndarray
    believed_far: np.ndarray
    believed_weight: np.ndarray
    mixed: None = None


class _Rules(NamedTuple):
    anywhere: bool
    varies: bool
    believed_spread: int
    by_node: bool = False


class _Racks(NamedTuple):
    free: np.ndarray
    take: np.ndarray
    borrow: np.ndarray


def _draw(g: np.random.Generator):
    """Draw free capacity at up to 24 instants, the last often at the horizon, and a job that fits at some of them."""
    n_rack, count = int(g.integers(1, 4)), int(g.integers(1, 25))
    room = count + 40
    gaps = g.integers(1, 4, count)
    free, pool = np.zeros((n_rack, room), np.int64), np.zeros((n_rack, room), np.int64)
    free[:, :count], pool[:, :count] = g.integers(0, 6, (n_rack, count)), g.integers(0, 25, (n_rack, count))
    time = np.zeros(room, np.int64)
    time[:count] = int(g.choice([0, HORIZON - gaps.sum()])) + np.cumsum(gaps)
    wide, narrow = (lambda: np.full((room, n_rack), -7)), (lambda: np.full(n_rack, -7))
    cache = ReservationCacheArrays(*(np.zeros(0, np.int64) for _ in ReservationCacheArrays._fields))
    steps = StepArrays(*(np.zeros(room, np.int64) for _ in range(3)), wide(), wide())
    profile = ProfileArrays(
        time, free.sum(axis=0), pool.sum(axis=0), free, pool, _decreases(free, pool), _status(count),
        narrow(), narrow(), np.full(room, -7), narrow(), narrow(), wide(), wide(), steps, cache,
    )  # fmt: skip
    n, remote, expected_work = int(g.integers(1, 2 * n_rack + 1)), int(g.choice([0, 1, 3, 5])), int(g.integers(0, 16))
    near = float(g.choice([-0.5, 0.0, 0.4])) if remote else 0.0
    far = near + float(g.choice([0.0, 0.5, 2.0]))
    length = int(np.ceil(expected_work * (1 + near)))
    jobs = _Jobs(*(np.array([value]) for value in (n, remote, expected_work, length, near, far, 1.0)))
    anywhere = bool(g.random() < 0.5)
    rules = _Rules(anywhere, anywhere, int(g.choice([WORST, MEAN, PAPER])))
    return profile, jobs, rules, _Racks(*(np.zeros(n_rack, np.int64) for _ in range(3)))


def _decreases(free, pool):
    """Mark the instants at which some rack has less than before."""
    decreases = np.zeros(free.shape[1], np.int64)
    decreases[1:] = ((np.diff(free) < 0) | (np.diff(pool) < 0)).any(axis=0)
    return decreases


def _try_each_instant(first, limit, profile, jobs, rules, found):
    """Try each instant, extending the interval until the job placed in it ends within it."""
    count = int(profile.status.instants)
    for k in range(first, count):
        if profile.time[k] >= limit:
            break
        most, length = (
            HORIZON - int(profile.time[k]),
            max(int(jobs.expected_work[0]), 0 if rules.anywhere else int(jobs.length[0])),
        )
        length = min(length, most)
        while True:
            some = [m for m in range(k, count) if m == k or profile.time[m] - profile.time[k] < length]
            least = profile.free[:, some].min(axis=1), profile.pool[:, some].min(axis=1)
            if not place(0, jobs, rules.anywhere, *least, found.take, found.borrow):
                break
            needed = min(expected(0, jobs, found.take, found.borrow, rules), most)
            if needed <= length:
                return k, length, least
            length = needed
    return -1, None, None


@given(st.integers(0, 2**32))
def test_earliest_interval_matches_exhaustive_search(seed):
    g = np.random.default_rng(seed)
    for _ in range(20):
        profile, jobs, rules, interval = _draw(g)
        count = int(profile.status.instants)
        first = int(g.integers(0, count)) if g.random() < 0.5 else 0
        limit = int(profile.time[g.integers(0, count)]) if g.random() < 0.5 else NEVER
        k = earliest(0, first, limit, jobs, rules, interval, profile)
        also = _Racks(*(np.zeros_like(column) for column in interval))
        wanted, length, least = _try_each_instant(first, limit, profile, jobs, rules, also)
        assert k == wanted
        if k >= 0:
            assert int(profile.status.length_found) == length
            assert (interval.take.tolist(), interval.borrow.tolist()) == (also.take.tolist(), also.borrow.tolist())
            assert (profile.least_free.tolist(), profile.least_pool.tolist()) == tuple(some.tolist() for some in least)


@given(st.integers(0, 2**32))
def test_reserve_and_release_restore_the_profile(seed):
    g = np.random.default_rng(seed)
    for _ in range(5):
        profile, _, _, use = _draw(g)
        time, before = profile.time, _steps(profile)
        begin = int(time[g.integers(profile.status.instants)])
        end = min(begin + int(g.integers(0, 30)), HORIZON)
        use.take[:], use.borrow[:] = g.integers(0, 3), g.integers(0, 9)
        change(begin, end, use.take, use.borrow, -1, profile)
        _check_sums(profile)
        change(begin, end, use.take, use.borrow, 1, profile)
        for time_ in (end, begin):
            drop_instant(time_, profile)
        _check_sums(profile)
        assert _steps(profile) == before


@given(st.integers(0, 2**32))
def test_advancing_a_profile_keeps_its_future(seed):
    g = np.random.default_rng(seed)
    for _ in range(5):
        profile, _, _, use = _draw(g)
        now = record(RackNow)
        count = int(profile.status.instants)
        now.time = int(profile.time[g.integers(count)]) + int(g.integers(0, 3))
        advance(profile, now)
        assert int(profile.time[profile.status.present]) == int(now.time)
        before = _steps(profile)
        for _ in range(int(g.integers(0, 2))):  # instants at which nothing changes
            begin = int(now.time) + int(g.integers(0, 9))
            use.take[:], use.borrow[:] = 1, 1
            if begin < profile.time[count - 1] - 1:
                for sign in (-1, 1):
                    change(begin, begin + 1, use.take, use.borrow, sign, profile)
        assert _steps(profile) == before
        merge(profile)
        assert _steps(profile) == before and int(profile.status.instants) == len(before)
        _check_sums(profile)


@given(st.integers(0, 2**32))
def test_candidate_filter_matches_exhaustive_check(seed):
    g = np.random.default_rng(seed)
    for _ in range(10):
        profile, _, rules, _ = _draw(g)
        count, n_rack = 6, profile.free.shape[0]
        column = [g.integers(low, high, count) for low, high in ((1, 5), (0, 6), (0, 20), (0, 20))]
        jobs = _Jobs(*column, *np.zeros((3, count)))
        take, borrow = np.zeros((2, count, n_rack), np.int64)
        cache = profile.cache._replace(ranked=g.permutation(count), start=np.zeros(count, np.int64), take=take, borrow=borrow)
        now = record(RackNow)
        now.time = profile.time[g.integers(profile.status.instants)]
        advance(profile, now)
        profile = profile._replace(cache=cache)
        profile.status.steps, last = 0, count
        while last >= 0:
            able = [k for k in range(last) if _fits_from_now_on(cache.ranked[k], jobs, rules, profile)]
            last = last_candidate(last - 1, 0, jobs, rules, profile)
            assert last == max(able, default=-1)
            while last >= 0:
                other, job = g.integers(count), cache.ranked[last]
                begin, end = _reserve(other, g, now.time, profile)
                cache.start[other] = begin
                change(begin, end, take[other], borrow[other], -1, profile)
                still = remains_candidate(job, other, jobs, rules, profile)
                assert still == _fits_from_now_on(job, jobs, rules, profile)
                if not still or g.random() < 0.2:
                    break


def _reserve(job, g, now, profile):
    """Draw an interval and a placement that is free in it."""
    room = profile.time.size - int(profile.status.instants)
    begin = min(int(g.choice([now, now + g.integers(0, 20)])), HORIZON)
    end = min(begin + int(g.integers(0, 9)), HORIZON)
    begin = end if room < 2 else begin  # the arrays are full
    time, some = profile.time, range(profile.status.present, profile.status.instants)
    met = [m for m in some if time[m] < end and (m + 1 not in some or time[m + 1] > begin)] or [profile.status.present]
    rack = g.integers(0, 2, profile.free.shape[0])
    profile.cache.take[job] = np.minimum(g.integers(0, 3) * rack, profile.free[:, met].min(axis=1))
    profile.cache.borrow[job] = np.minimum(g.integers(0, 9) * rack, profile.pool[:, met].min(axis=1))
    return begin, end


def _fits_from_now_on(job, jobs, rules, profile):
    """Check each instant of the interval."""
    first, count = int(profile.status.present), int(profile.status.instants)
    length = int(
        jobs.expected_work[job] if rules.anywhere and jobs.remote[job] > 0 else max(jobs.expected_work[job], jobs.length[job])
    )
    until = profile.time[first] + min(length, HORIZON - int(profile.time[first]))
    some = [m for m in range(first, count) if m == first or profile.time[m] < until]
    least = profile.free[:, some].min(axis=1), profile.pool[:, some].min(axis=1)
    return bool(fits(job, int(jobs.nodes[job]), int(jobs.remote[job]), rules.anywhere, None, *least))


def _check_sums(profile):
    """Check the stored sums against the amounts."""
    some = slice(profile.status.present, profile.status.instants)
    assert profile.nodes[some].tolist() == profile.free[:, some].sum(axis=0).tolist()
    assert profile.memory[some].tolist() == profile.pool[:, some].sum(axis=0).tolist()


def _steps(profile):
    """Return (time, amounts) of the instants from now on at which amounts change."""
    some = range(profile.status.present, profile.status.instants)
    states = [(int(profile.time[k]), profile.free[:, k].tolist(), profile.pool[:, k].tolist()) for k in some]
    return [state for k, state in enumerate(states) if k == 0 or state[1:] != states[k - 1][1:]]
