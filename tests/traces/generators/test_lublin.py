import math

import numpy as np
import pytest

from poolwise.traces.generators import generate, lublin
from poolwise.traces.generators.arrivals import BUCKETS, DailyCycle

N = 30_000


@pytest.fixture(scope="module", params=[0, 1])
def workload(request):
    return generate("lublin", jobs=N, seed=request.param)


def within(share):
    """Return four standard deviations of a share of N."""
    return 4 * math.sqrt(share * (1 - share) / N)


def test_size_shares_match_model(workload):
    nodes = workload.nodes
    assert (nodes == 1).mean() == pytest.approx(0.244, abs=within(0.244))
    powers = np.isin(nodes, 2 ** np.arange(1, 8)).mean()
    assert 0.576 < powers < 0.7  # drawn powers of two, and some other sizes by chance
    assert nodes.max() == 128
    # Sizes above 2 ** 5.5 nodes come from the second stage (14 % of the parallel jobs, from 2 ** 4.5 to 2 ** 7), without its
    # first 40 %; rounding to powers of two does not move jobs across.
    assert (nodes > 2**5.5).sum() / (nodes > 1).sum() == pytest.approx(0.14 * 0.6, abs=4 * math.sqrt(0.08 / (0.756 * N)))


@pytest.mark.parametrize("machine", [10, 100, 5000])
def test_sizes_fit_machine(machine):
    nodes = generate("lublin", jobs=5000, nodes=machine).nodes
    assert nodes.min() == 1
    assert machine * 0.9 <= nodes.max() <= machine


def test_runtimes_are_hyper_gamma_given_nodes(workload):
    runtime = workload.duration / 1e9
    assert runtime.min() >= 1
    assert runtime.max() <= math.exp(12)
    for low, high in ((1, 1), (2, 8), (16, 64)):
        group = (workload.nodes >= low) & (workload.nodes <= high)
        short = float(np.clip(-0.0054 * workload.nodes[group] + 0.78, 0, 1).mean())

        def below(logarithm, short=short):
            shorter, longer = (lublin.gamma_share(a, logarithm / b) for a, b in ((4.2, 0.94), (312.0, 0.03)))
            return short * shorter + (1 - short) * longer

        for seconds in (10, 100, 1000, 10_000, 40_000):
            expected = below(math.log(seconds)) / below(12.0)
            got = float((runtime[group] < seconds).mean())
            assert got == pytest.approx(expected, abs=4 * math.sqrt(0.25 / group.sum()))


def test_larger_jobs_run_longer(workload):
    serial, large = workload.nodes == 1, workload.nodes >= 64
    assert np.median(workload.duration[large]) > 3 * np.median(workload.duration[serial])


def test_arrivals_follow_published_daily_cycle(workload):
    buckets = ((workload.submit / 1e9) % 86400 // 1800).astype(int)
    counts = np.bincount(buckets, minlength=BUCKETS) / N
    weights = lublin.cycle_weights()
    assert counts == pytest.approx(weights / weights.sum(), abs=0.006)


def test_daily_cycle_is_gamma_density_low_at_five_and_high_in_the_afternoon():
    weights = lublin.cycle_weights()
    assert weights.min() > 0
    assert int(weights.argmin()) // 2 in (4, 5)
    assert int(weights.argmax()) // 2 in (13, 14)
    # from bucket 10.5 to 58.5, which contain all the weight
    total = lublin.gamma_share(8.1737, 58.5 / 3.9631) - lublin.gamma_share(8.1737, 10.5 / 3.9631)
    assert weights.sum() == pytest.approx(total, rel=1e-12)


def test_gaps_in_operational_time_are_log_gamma(workload):
    points = DailyCycle(lublin.cycle_weights()).to_operational(workload.submit / 1e9)
    gaps = np.diff(points)
    for seconds in (100.0, 500.0, 2000.0):
        expected = lublin.gamma_share(10.2303 * 1.0225, math.log(seconds) / 0.4871)
        assert float((gaps < seconds).mean()) == pytest.approx(expected, abs=4 * math.sqrt(0.25 / N))


@pytest.mark.parametrize("wanted", [0.3, 0.9, 1.5])
def test_load_is_met_by_stretching_gaps(wanted):
    for seed in range(3):
        loaded, free = generate("lublin", jobs=2000, seed=seed, load=wanted), generate("lublin", jobs=2000, seed=seed)
        got = loaded.node_seconds.sum() / (128 * np.ptp(loaded.submit) / 1e9)
        assert got == pytest.approx(wanted, rel=1e-5)
        assert (loaded.duration == free.duration).all()
        assert (loaded.nodes == free.nodes).all()


def test_jobs_request_no_memory(workload):
    assert set(workload.requests) == {"nodes"}


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 3.0, 10.0, 40.0])
def test_gamma_share_of_integer_shapes(x):
    assert lublin.gamma_share(1.0, x) == pytest.approx(1 - math.exp(-x), rel=1e-12)
    erlang = 1 - sum(math.exp(-x) * x**k / math.factorial(k) for k in range(5))
    assert lublin.gamma_share(5.0, x) == pytest.approx(erlang, rel=1e-9, abs=1e-12)
    assert lublin.gamma_share(5.0, 0.0) == 0.0
