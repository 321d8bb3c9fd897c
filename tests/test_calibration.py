import numpy as np
import pytest

from poolwise.calibration import TOLERANCE, calibrate, ideal_load
from poolwise.traces.generators.nvme_mix import NvmeMix
from tests.helpers.nvme_examples import machine

WHAT = machine(nodes=(25,) * 5, devices=((2000, 600),) * 10)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["high_bandwidth", "high_compute"])
@pytest.mark.parametrize("target", [0.5, 0.8])
def test_the_target_is_reached_and_said(scenario, target):
    found = calibrate(NvmeMix(scenario, jobs=400, seed=3), WHAT, target)
    assert found.reached
    assert abs(found.ideal.load - target) <= TOLERANCE
    assert ideal_load(found.mix.generate(), WHAT) == found.ideal


def test_only_the_clock_is_stretched():
    mix = NvmeMix(jobs=200, seed=1)
    one, other = mix.generate(), calibrate(mix, WHAT, 0.6).mix.generate()
    assert np.array_equal(one.attributes["kind"], other.attributes["kind"])
    assert np.array_equal(one.attributes["high_priority"], other.attributes["high_priority"])
    ratio = other.submit[1:] / one.submit[1:]
    assert np.allclose(ratio, ratio[-1], rtol=1e-6)


@pytest.mark.long
def test_a_load_that_cannot_be_reached_is_not_claimed():
    """Compute-bound work alone leaves 5 of 125 cores idle at most when 8 x 15 are used: 0.96 is the ceiling."""
    mix = NvmeMix("high_compute", jobs=300, high_priority=0)
    found = calibrate(mix, WHAT, 0.999, most=12)
    assert not found.reached
    assert found.runs <= 12


def test_the_window_opens_at_an_ideal_load_of_seven_tenths():
    """Six workloads of 15 of 125 cores at 100 s intervals: 0.72 when the sixth arrives."""
    from tests.helpers.nvme_examples import workload

    jobs = workload([(100 * k, "compute") for k in range(8)])
    found = ideal_load(jobs, WHAT)
    assert found.opened
    assert found.window.begin == 500 * 10**9
    assert found.window.end == 700 * 10**9
    assert found.load == pytest.approx((6 * 15 + 7 * 15) / 2 / 125)
    assert found.population(jobs).tolist() == [False] * 5 + [True] * 3
    light = ideal_load(workload([(1000 * k, "compute") for k in range(4)]), WHAT)
    assert not light.opened
    assert (light.window.begin, light.window.end) == (0, 3000 * 10**9)


def test_all_resources_can_open_the_window():
    from tests.helpers.nvme_examples import workload

    jobs = workload([(100 * k, "capacity") for k in range(12)])  # 6 cores of 125, one device of ten each
    assert not ideal_load(jobs, WHAT).opened
    wide = ideal_load(jobs, WHAT, all_resources=True)
    assert wide.opened
    assert wide.window.begin == 600 * 10**9
