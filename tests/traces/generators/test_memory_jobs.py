import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.traces.generators import generate
from poolwise.traces.generators.memory_jobs import whole

NAMES = ("juwels_like", "perlmutter_like")


def load(workload, nodes):
    return workload.node_seconds.sum() / (nodes * np.ptp(workload.submit) / 1e9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cycle", [0.0, 0.8])
@pytest.mark.parametrize("wanted", [0.5, 1.0, 1.3])
def test_exact_load_is_met_and_changes_only_submit_times(name, cycle, wanted):
    for seed in range(3):
        settings = {"jobs": 3000, "seed": seed, "nodes": 700, "load": wanted, "daily_cycle": cycle}
        exact, free = generate(name, exact_load=True, **settings), generate(name, **settings)
        assert load(exact, 700) == pytest.approx(wanted, rel=1e-4)
        assert load(free, 700) != pytest.approx(wanted, rel=1e-4)
        for column in ("id", "duration", "memory", "nodes"):
            assert (getattr(exact, column) == getattr(free, column)).all()


@pytest.mark.parametrize("name", NAMES)
def test_load_and_machine_scale_arrival_rate(name):
    spans = {
        (nodes, wanted): np.ptp(generate(name, jobs=2000, nodes=nodes, load=wanted).submit)
        for nodes in (600, 1200)
        for wanted in (0.5, 1.0)
    }
    assert spans[600, 0.5] == pytest.approx(4 * spans[1200, 1.0], rel=1e-4)
    assert spans[600, 1.0] == pytest.approx(spans[1200, 0.5], rel=1e-4)


def test_arrivals_are_uniform_unless_daily_cycle_is_set():
    def hours(**settings):
        submit = generate("perlmutter_like", jobs=40_000, seed=2, **settings).submit / 3.6e12
        return np.bincount((submit[submit < 8 * 24] % 24).astype(int), minlength=24)

    even, cyclic = hours(), hours(daily_cycle=0.9)
    assert even.max() / even.min() < 1.2
    assert cyclic[12:16].sum() / cyclic[0:4].sum() == pytest.approx(1.852 / 0.148, rel=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_wide_jobs_are_reduced_to_machine_and_counted(name):
    wide, cut = generate(name, seed=1), generate(name, seed=1, nodes=100)
    (count,) = cut.repaired.values()
    assert (cut.nodes == np.minimum(wide.nodes, 100)).all()
    assert count == int((wide.nodes > 100).sum()) > 0
    assert not wide.repaired


def test_memory_correlates_with_size_as_configured():
    def rank_correlation(rho):
        jobs = generate("perlmutter_like", jobs=20_000, correlation=rho)
        ranks = [np.argsort(np.argsort(column)) for column in (jobs.duration, jobs.memory)]
        return float(np.corrcoef(ranks)[0, 1])

    # The runtime contributes rho / sqrt 2 to the score; Spearman's coefficient of a Gaussian copula is 6/pi asin(r/2).
    for rho in (0.0, 0.5, 1.0):
        assert rank_correlation(rho) == pytest.approx(6 / np.pi * np.arcsin(rho / 2**1.5), abs=0.03)


@pytest.mark.parametrize(("key", "value"), [("daily_cycle", 1.1), ("daily_cycle", -0.1), ("correlation", 1.01), ("load", -1.0)])
def test_out_of_range_setting_is_reported(key, value):
    with pytest.raises(InputError) as problem:
        generate("juwels_like", **{key: value})
    assert problem.value.field == key


def test_whole_rounds_up_except_floating_point_noise():
    assert whole(np.array([8.0, 8.0 + 1e-13, 8.0 - 1e-13, 8.001, 7.999])).tolist() == [8, 8, 8, 9, 8]
