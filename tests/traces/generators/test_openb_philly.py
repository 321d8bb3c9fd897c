"""Tests of openb pods with Philly durations: trace values are preserved, and drawn values follow the settings."""

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.quantities import SECOND
from poolwise.traces.generators import generate
from poolwise.traces.generators.openb_philly import _philly, _pods

PODS, PHILLY = "catalog:openb-gpuspec33.csv.gz", "catalog:philly-2017-10.csv.gz"
TYPES = ("v100", "p100", "t4")


def test_requests_and_durations_come_from_traces():
    jobs = generate("openb_philly", jobs=3000, seed=4, longest_s=1e9)
    pods, philly = _pods(PODS), _philly(PHILLY)
    gpus = sum(jobs.request(name) for name in TYPES)
    pod_requests = set(zip(*(pods.request(name).tolist() for name in ("cores", "memory", "gpu")), strict=True))
    assert set(zip(jobs.request("cores").tolist(), jobs.memory.tolist(), gpus.tolist(), strict=True)) <= pod_requests
    assert (gpus > 0).mean() == pytest.approx((pods.request("gpu") > 0).mean(), abs=0.02)
    for many in (1, 8):
        assert set(jobs.duration[gpus == many].tolist()) <= set(philly[many].tolist())
    assert jobs.duration[gpus <= 1].mean() == pytest.approx(philly[1].mean(), rel=0.15)


def test_pod_gets_an_available_type_that_it_names():
    jobs, pods = generate("openb_philly", jobs=2000, seed=1), _pods(PODS)
    requested = {name: jobs.request(name) > 0 for name in TYPES}
    assert (sum(requested[name].astype(int) for name in TYPES) <= 1).all()
    named = (pods.request("gpu") > 0) & (pods.attributes["gpu_spec"] == "T4")
    least = named.sum() / len(pods)
    assert requested["t4"].mean() > least
    only = generate("openb_philly", jobs=500, gpus={"p100": 4})
    assert sorted(only.requests) == ["bandwidth", "cores", "memory", "p100", "storage"]
    workload = generate("openb_philly", jobs=2000, seed=1, gpus={"t4": 1, "v100": 10**9})
    assert (workload.request("t4") > 0).mean() == pytest.approx(
        least, abs=0.02
    )  # pods that name no type follow the number of GPUs


def test_drawn_columns_follow_settings():
    jobs = generate("openb_philly", jobs=4000, seed=2, nvme_mb_s=(100, 200), nvme_gib=(10, 20), staged=0.5, racks=3)
    gpus = sum(jobs.request(name) for name in TYPES)
    nvme = jobs.request("storage") > 0
    assert nvme[gpus > 0].mean() == pytest.approx(0.5, abs=0.03)
    assert nvme[gpus == 0].mean() == pytest.approx(0.3, abs=0.06)
    assert ((jobs.request("bandwidth") > 0) == nvme).all()
    each = jobs.request("bandwidth")[nvme] / np.maximum(gpus[nvme], 1)
    assert each.min() >= 100
    assert each.max() <= 201
    assert 10 * 1024 <= jobs.request("storage")[nvme].min() <= jobs.request("storage")[nvme].max() <= 20 * 1024
    assert (jobs.attributes["data_size"] == jobs.request("storage") * 2**19).all()
    assert set(jobs.attributes["data_x"].tolist()) == {0, 1, 2}
    assert np.diff(jobs.submit).mean() / SECOND == pytest.approx(60, rel=0.05)
    assert (jobs.requested == jobs.duration).all()
    assert ((jobs.attributes["kind"] == "gpu_training") | (jobs.attributes["kind"] == "gpu_inference"))[gpus > 0].all()


def test_jobs_are_a_prefix_of_more_jobs_and_depend_on_seed():
    few, many, other = (generate("openb_philly", jobs=n, seed=s) for n, s in ((20, 3), (50, 3), (20, 4)))
    for name in few.requests:
        assert (few.request(name) == many.request(name)[:20]).all()
    assert (few.duration == many.duration[:20]).all()
    assert (few.duration != other.duration).any()


def test_limited_durations_and_shared_gpus_are_counted():
    jobs = generate("openb_philly", jobs=1000, most_gpus=1, longest_s=3600)
    assert max(jobs.request(name).max() for name in TYPES) == 1
    assert jobs.duration.max() == 3600 * SECOND
    assert jobs.repaired["duration limited to 3600 s"] == (jobs.duration == 3600 * SECOND).sum()
    assert jobs.repaired["fraction of a GPU, rounded up to a whole GPU"] > 100


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"gpus": {"h200": 4}}, "gpus"),
        ({"gpus": {"t4": 0}}, "gpus"),
        ({"gpu_nvme": 1.5}, "gpu_nvme"),
        ({"nvme_gib": (9.0, 5.0)}, "nvme_gib"),
        ({"longest_s": 0.0}, "longest_s"),
        ({"most_gpus": 0}, "most_gpus"),
    ],
)
def test_invalid_setting_is_reported(settings, field):
    with pytest.raises(InputError) as error:
        generate("openb_philly", jobs=5, **settings)
    assert error.value.field == field
