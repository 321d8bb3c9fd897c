from dataclasses import replace

import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.quantities import SECOND
from poolwise.traces import read, write_table
from poolwise.traces.generators import generate
from poolwise.traces.generators.nvme_mix import SHARES, NvmeMix, WorkloadKind


@pytest.mark.parametrize("scenario", SHARES)
def test_shares_and_gaps_match_settings(scenario):
    workload = generate("nvme_mix", scenario=scenario, jobs=20_000, seed=5, mean_gap_s=100.0)
    names = ("bandwidth_bound", "capacity_bound", "compute_bound")
    shares = [float((workload.attributes["kind"] == name).mean()) for name in names]
    assert np.allclose(shares, SHARES[scenario], atol=0.015)
    gaps = np.diff(workload.submit) / SECOND
    assert gaps.mean() == pytest.approx(100, rel=0.03)
    assert gaps.std() == pytest.approx(100, rel=0.05)  # exponential
    urgent = workload.attributes["high_priority"] > 0
    assert float(urgent.mean()) == pytest.approx(0.2, abs=0.015)
    factor = (workload.attributes["deadline"] - workload.submit) / workload.duration
    assert np.allclose(factor[urgent], 1.2)
    assert np.allclose(factor[~urgent], 4.0)


def test_streams_are_independent():
    base = NvmeMix(jobs=500, seed=2)
    again = base.generate()
    for other in (replace(base, mean_gap_s=7.0), replace(base, high_priority_factor=2.0), replace(base, constant_gaps=True)):
        workload = other.generate()
        assert np.array_equal(again.attributes["kind"], workload.attributes["kind"])
        assert np.array_equal(again.attributes["high_priority"], workload.attributes["high_priority"])
    assert np.array_equal(replace(base, jobs=50).generate().submit, again.submit[:50])


def test_correlated_priorities_select_first_kinds():
    workload = NvmeMix("high_compute", jobs=2000, correlated=True).generate()
    assert np.array_equal(workload.attributes["high_priority"] > 0, workload.attributes["kind"] == "bandwidth_bound")


def test_fio_replaces_part_of_bandwidth_bound_jobs():
    kinds = NvmeMix(fio=0.7, jobs=20_000).generate().attributes["kind"]
    assert float((kinds == "fio").mean()) == pytest.approx(0.49, abs=0.015)
    assert float((kinds == "bandwidth_bound").mean()) == pytest.approx(0.21, abs=0.015)


def test_job_table_round_trip(tmp_path):
    from tests.helpers.nvme_examples import machine

    workload = NvmeMix(jobs=30).generate()
    write_table(workload, tmp_path / "jobs.parquet")
    again = read(tmp_path / "jobs.parquet", machine())
    for name in ("cores", "bandwidth", "storage"):
        assert np.array_equal(again.request(name), workload.request(name))
    for name in ("kind", "deadline", "high_priority", "peak_bandwidth"):
        assert np.array_equal(again.attributes[name], workload.attributes[name])


def test_out_of_range_setting_is_rejected():
    for wrong in ({"fio": 1.5}, {"mean_gap_s": 0.0}, {"jobs": 0}):
        with pytest.raises(InputError):
            NvmeMix(**wrong).generate()
    with pytest.raises(InputError, match="shares"):
        NvmeMix(kinds=(WorkloadKind("a", 1.0, 1, share=0.0),)).generate()
