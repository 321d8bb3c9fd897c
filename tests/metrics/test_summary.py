import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.metrics import METRICS, Outcomes, Window, common_population, summarize
from poolwise.quantities import SECOND


def test_summary_matches_a_hand_computation(example, outcomes_of):
    baseline = outcomes_of(
        [
            (0, 0, 100, 100, 2, 50),
            (10, 40, 140, 100, 2, 150),
            (20, 80, 84, 4, 4, 0),
            (30, None, None, 50, 1, 100),
            (40, None, None, 60, 9, 0),
            (50, 50, 60, 10, 1, 0),
        ]
    )
    everyone = np.ones(6, dtype=bool)
    summary = summarize(
        example, warm_up=1, population=everyone, window=Window.of(example, 1), baseline=baseline, memory_baseline=baseline
    )
    # measured: the second to the fourth job; window 0 to 144 s; compared: the second (+20) and the third (-60)
    wanted = {
        "measured_jobs": 3,
        "mean_wait_s": (10 + 120 + 114) / 3,
        "median_wait_s": 114,
        "p90_wait_s": 114 + 0.8 * 6,
        "p99_wait_s": 114 + 0.98 * 6,
        "mean_bounded_slowdown": (13 / 12 + 12.4 + 3.28) / 3,
        "median_bounded_slowdown": 3.28,
        "p90_bounded_slowdown": 3.28 + 0.8 * 9.12,
        "p99_bounded_slowdown": 3.28 + 0.98 * 9.12,
        "mean_bounded_slowdown_local": (1.3 + 12.4 + 3.28) / 3,
        "median_bounded_slowdown_local": 3.28,
        "p90_bounded_slowdown_local": 3.28 + 0.8 * 9.12,
        "p99_bounded_slowdown_local": 3.28 + 0.98 * 9.12,
        "throughput_per_100s": 300 / 144,
        "utilization": (200 + 240 + 16) / (4 * 144),
        "makespan_s": 194,
        "compared_jobs": 2,
        "benefit_s": 20,
        "discrimination_s": 60,
        "marginal_discrimination_s": 40,
        "discrimination_10pct_s": 60,
        "marginal_discrimination_10pct_s": 40,
        "discrimination_20pct_s": 60,
        "marginal_discrimination_20pct_s": 40,
        "mean_degradation": 0.2 / 3,
        "share_under_5pct_degradation": 2 / 3,
        "share_remote_memory": 1 / 3,
        "mean_memory_utilization": (2000 + 32000 + 12000) / (600 * 144),
        "memory_dollars": 600 / 1024 * 4.9,
        "throughput_per_100s_per_memory_dollar": 300 / 144 / (600 / 1024 * 4.9),
        "throughput_per_memory_dollar_gain": (300 / 144) / (100 * 1 / 80),  # under the baseline, one job ends from 0 to 80 s
    }
    assert summary == pytest.approx(wanted)
    assert list(summary) == list(METRICS)


def test_metrics_have_descriptions():
    descriptions = [metric.description for metric in METRICS.values()]
    assert len(set(descriptions)) == len(descriptions)
    for name, metric in METRICS.items():
        assert metric.description and metric.better in ("lower", "higher", "neither")
        assert name.endswith("_s") == (metric.unit == "s")


def test_undefined_metrics_are_nan_never_an_error(example, outcomes_of):
    empty = outcomes_of([], node_memory=0, pool_memory=0)
    summary = summarize(empty, warm_up=3, population=np.zeros(0, dtype=bool), window=Window.whole(empty), baseline=empty)
    defined = {name for name, value in summary.items() if not math.isnan(value)}
    assert defined == {"measured_jobs", "compared_jobs"}
    no_jobs = np.zeros(6, dtype=bool)
    summary = summarize(example, warm_up=0, population=no_jobs, window=Window.whole(example), baseline=example)
    assert math.isnan(summary["mean_wait_s"]) and math.isnan(summary["discrimination_s"])
    assert summary["utilization"] == pytest.approx(506 / 776)  # a property of the machine, for any population


def test_fairness_is_nan_without_a_baseline(example):
    summary = summarize(example, warm_up=0, population=example.finished, window=Window.whole(example))
    for name in ("compared_jobs", "benefit_s", "discrimination_s", "marginal_discrimination_10pct_s"):
        assert math.isnan(summary[name])


def test_gain_does_not_depend_on_the_memory_price(example):
    def measure(price):
        window = Window.whole(example)
        every = {"warm_up": 0, "population": example.finished, "window": window}
        return summarize(example, **every, memory_baseline=example, dollars_per_gb=price)

    cheap, dear = measure(1.0), measure(10.0)
    assert dear["memory_dollars"] == pytest.approx(10 * cheap["memory_dollars"])
    gains = [summary["throughput_per_memory_dollar_gain"] for summary in (cheap, dear)]
    assert gains == pytest.approx([gains[0], gains[0]])


times = st.integers(0, 50)
jobs = st.lists(
    st.tuples(times, times, st.integers(1, 30), st.integers(0, 9), st.integers(1, 4), st.integers(0, 200)), min_size=1
)


@given(jobs, st.integers(0, 5), st.integers(0, 2**32))
def test_row_order_does_not_matter(outcomes_of, jobs, warm_up, seed):
    jobs.sort()
    run = outcomes_of([(s, s + w, s + w + d + more, d, n, m) for s, w, d, more, n, m in jobs])
    again = Outcomes.from_frame(run.to_frame().sample(fraction=1.0, shuffle=True, seed=seed), run.facts)
    summary, wanted = (
        summarize(o, warm_up=warm_up, population=common_population([o], warm_up), window=Window.of(o, warm_up))
        for o in (again, run)
    )
    np.testing.assert_array_equal(list(summary.values()), list(wanted.values()))


@given(jobs, st.integers(2, 9))
def test_ratios_do_not_depend_on_the_time_scale(outcomes_of, jobs, factor):
    jobs.sort()
    runs = [
        outcomes_of([(s * k, (s + w) * k, (s + w + d + more) * k, d * k, n, m) for s, w, d, more, n, m in jobs])
        for k in (1, factor)
    ]
    original, other = (
        summarize(o, warm_up=0, population=o.finished, window=Window.whole(o), tau_s=k)
        for o, k in zip(runs, (1, factor), strict=True)
    )
    for name in ("mean_bounded_slowdown", "utilization", "mean_degradation", "mean_memory_utilization"):
        assert other[name] == pytest.approx(original[name])
    assert other["mean_wait_s"] == pytest.approx(factor * original["mean_wait_s"])
    assert other["makespan_s"] * SECOND == runs[1].end.max() - runs[1].first_submit
