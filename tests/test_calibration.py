import numpy as np
import pytest

from poolwise.calibration import TOLERANCE, calibrate, ideal_load
from poolwise.traces.generators.nvme_mix import NvmeMix
from tests.helpers.nvme_examples import machine

MACHINE = machine(nodes=(25,) * 5, devices=((2000, 600),) * 10)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["high_bandwidth", "high_compute"])
@pytest.mark.parametrize("target", [0.5, 0.8])
def test_calibrated_load_is_within_the_tolerance(scenario, target):
    calibration = calibrate(NvmeMix(scenario, jobs=400, seed=3), MACHINE, target)
    assert calibration.reached
    assert abs(calibration.ideal.load - target) <= TOLERANCE
    assert ideal_load(calibration.mix.generate(), MACHINE) == calibration.ideal


def test_calibration_scales_only_the_gaps():
    mix = NvmeMix(jobs=200, seed=1)
    original, other = mix.generate(), calibrate(mix, MACHINE, 0.6).mix.generate()
    assert np.array_equal(original.attributes["kind"], other.attributes["kind"])
    assert np.array_equal(original.attributes["high_priority"], other.attributes["high_priority"])
    ratio = other.submit[1:] / original.submit[1:]
    assert np.allclose(ratio, ratio[-1], rtol=1e-6)


@pytest.mark.long
def test_unreachable_load_is_reported_as_not_reached():
    """Compute-bound jobs take 15 cores each, so at most 8 x 15 of 125 cores are busy: the load cannot exceed 0.96."""
    mix = NvmeMix("high_compute", jobs=300, high_priority=0)
    calibration = calibrate(mix, MACHINE, 0.999, most=12)
    assert not calibration.reached
    assert calibration.runs <= 12


def test_window_opens_at_an_ideal_load_of_0_7():
    """Workloads of 15 of 125 cores arrive every 100 s: the load is 0.72 when the sixth arrives."""
    from tests.helpers.nvme_examples import workload

    jobs = workload([(100 * k, "compute") for k in range(8)])
    ideal = ideal_load(jobs, MACHINE)
    assert ideal.opened
    assert ideal.window.begin == 500 * 10**9
    assert ideal.window.end == 700 * 10**9
    assert ideal.load == pytest.approx((6 * 15 + 7 * 15) / 2 / 125)
    assert ideal.population(jobs).tolist() == [False] * 5 + [True] * 3
    light = ideal_load(workload([(1000 * k, "compute") for k in range(4)]), MACHINE)
    assert not light.opened
    assert (light.window.begin, light.window.end) == (0, 3000 * 10**9)


def test_all_resources_can_open_the_window():
    from tests.helpers.nvme_examples import workload

    jobs = workload([(100 * k, "capacity") for k in range(12)])  # 6 cores of 125, one device of ten each
    assert not ideal_load(jobs, MACHINE).opened
    wide = ideal_load(jobs, MACHINE, all_resources=True)
    assert wide.opened
    assert wide.window.begin == 600 * 10**9
