"""Tests of the device job generator: arrivals, kinds, times and warm-up jobs."""

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.quantities import SECOND
from poolwise.traces.generators import generate


def test_means_match_settings():
    workload = generate("device_jobs", jobs=20000, warm_up_s=0.0, seed=3)
    assert workload.submit[-1] / SECOND == pytest.approx(20000 / 16, rel=0.03)
    profiles = read_device_profiles("catalog:rodinia")
    for kind, profile in profiles.items():
        mine = workload.attributes["kind"] == kind
        assert mine.mean() == pytest.approx(1 / len(profiles), rel=0.1)
        times = workload.duration[mine] / SECOND
        assert times.mean() == pytest.approx(profile.local_s, rel=0.02)
        assert times.std() / times.mean() == pytest.approx(profile.spread, rel=0.1)
        assert (workload.requested[mine] == profile.local_s * SECOND).all()
        assert np.abs(workload.attributes["goal"][mine] - profile.goal_s * SECOND).max() <= 1


@pytest.mark.parametrize("spread", [False, True])
def test_warm_up_jobs_hold_half_the_cores_and_no_device(spread):
    workload = generate("device_jobs", jobs=50, machines=6, warm_up_s=700.0, spread=spread)
    warm = workload.attributes["pinned"] >= 0
    assert workload.attributes["pinned"][warm].tolist() == list(range(6 if spread else 3))
    assert workload.request("cores")[warm].sum() == 6 * 160 // 2
    assert not workload.request("gpu")[warm].any()
    assert not workload.request("bandwidth")[warm].any()
    assert (workload.duration[warm] == 700 * SECOND).all()
    assert not workload.attributes["goal"][warm].any()
    assert (workload.submit[warm] == 0).all()
    assert workload.submit[~warm].min() > 0


def test_jobs_are_reproducible_and_a_prefix_of_more_jobs():
    few, many = (generate("device_jobs", jobs=jobs, seed=5, warm_up_s=0.0) for jobs in (20, 40))
    for column in ("submit", "duration"):
        assert getattr(few, column).tolist() == getattr(many, column)[:20].tolist()
    assert few.attributes["kind"].tolist() == many.attributes["kind"][:20].tolist()


@pytest.mark.parametrize("settings", [{"jobs": 0}, {"rate": 0.0}, {"warm_up_s": -1.0}, {"machines": 0}])
def test_out_of_range_setting_is_reported(settings):
    with pytest.raises(InputError) as error:
        generate("device_jobs", **settings)
    assert error.value.field == next(iter(settings))
