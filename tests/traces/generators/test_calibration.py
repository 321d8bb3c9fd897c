"""Tests that the machine-like generators match published statistics over several seeds. Targets: specs, "Workloads"."""

import numpy as np
import pytest

from poolwise.traces.generators import generate

SEEDS = range(24)
DAY = 86400e9


@pytest.fixture(scope="module", params=["usual", "hungry", "juwels"])
def case(request):
    name = "juwels_like" if request.param == "juwels" else "perlmutter_like"
    settings = {"hungry": True} if request.param == "hungry" else {}
    return request.param, [generate(name, seed=seed, **settings) for seed in SEEDS]


def each(workloads, measure):
    return np.array([measure(workload) for workload in workloads])


def gigabytes(workload):
    return workload.memory / 1024


def test_jobs_days_load_and_work_match(case):
    which, workloads = case
    jobs, nodes, work = (13_844, 960, 18_000) if which == "juwels" else (13_930, 1536, 28_600)
    assert {len(workload) for workload in workloads} == {jobs}
    days = each(workloads, lambda w: np.ptp(w.submit) / DAY)
    assert days == pytest.approx(3.0, rel=0.04)
    means = each(workloads, lambda w: w.node_seconds.mean())
    assert means.mean() == pytest.approx(work, rel=0.05)
    # Few wide jobs carry much of the work: one seed deviates by 5 % (juwels 6 %), the mean of 24 by a fifth of that.
    assert means == pytest.approx(work, rel=0.25)
    loads = each(workloads, lambda w: w.node_seconds.sum() / (nodes * np.ptp(w.submit) / 1e9))
    assert loads.mean() == pytest.approx(1.0, rel=0.05)
    assert loads == pytest.approx(1.0, rel=0.25)


@pytest.mark.parametrize(
    ("name", "settings", "work", "memory"),
    [
        ("perlmutter_like", {}, 28_600, 140),
        ("perlmutter_like", {"hungry": True}, 28_600, 140),
        ("juwels_like", {}, 18_000, 125),
    ],
)
def test_distribution_means_match(name, settings, work, memory):
    workload = generate(name, jobs=200_000, **settings)
    assert workload.node_seconds.mean() == pytest.approx(work, rel=0.04)
    assert np.average(gigabytes(workload), weights=workload.node_seconds) == pytest.approx(memory, rel=0.03)


def test_node_time_weighted_memory_matches(case):
    which, workloads = case
    target = 125 if which == "juwels" else 140
    means = each(workloads, lambda w: np.average(gigabytes(w), weights=w.node_seconds))
    assert means.mean() == pytest.approx(target, rel=0.04)
    assert means == pytest.approx(target, rel=0.25)
    plain = each(workloads, lambda w: gigabytes(w).mean())
    if which != "hungry":
        assert (plain < 0.7 * means).all()  # large and long jobs need more


def test_memory_per_node_matches(case):
    which, workloads = case
    for workload in workloads:
        memory = gigabytes(workload)
        assert 480 < memory.max() <= 505
        if which == "usual":
            assert ((memory >= 32) & (memory < 64)).mean() > 0.6
        elif which == "juwels":
            assert (memory < 32).mean() > 0.58
        else:
            quantiles = np.quantile(memory, [0.05, 0.25, 0.50, 0.75, 0.90, 0.99])
            assert quantiles == pytest.approx([32, 45, 77, 169, 441, 495], rel=0.06)


def test_perlmutter_nodes_match(case):
    which, workloads = case
    if which == "juwels":
        assert each(workloads, lambda w: w.nodes.max()).max() <= 960
        return
    for workload in workloads:
        assert (workload.nodes == 1).mean() == pytest.approx(0.54, abs=0.015)
        assert (workload.nodes == 2).mean() == pytest.approx(0.24, abs=0.015)
        assert (workload.nodes <= 8).mean() == pytest.approx(0.90, abs=0.01)
    largest = each(workloads, lambda w: w.nodes.max())
    assert largest.max() == 526
    assert np.median(largest) == pytest.approx(526, rel=0.15)


def test_runtimes_match(case):
    which, workloads = case
    for workload in workloads:
        runtime = workload.duration / 1e9
        if which == "juwels":
            assert 0.2 < (runtime < 600).mean() < 0.6
            continue
        assert runtime.min() == 600
        assert 12 * 3600 < runtime.max() <= 12 * 3600 + 30
        for hours in (2, 4, 8, 12):
            at, before = (((runtime >= start) & (runtime < start + 60)).mean() for start in (hours * 3600, hours * 3600 - 600))
            assert at > 0.015
            assert at > 10 * before


def test_requested_time_equals_duration(case):
    assert all((workload.requested == workload.duration).all() for workload in case[1])
