"""Tests that the shipped measured profiles are fits of the shipped measurements."""

import csv
import json

import pytest

from poolwise import catalog
from poolwise.performance.fitting import fit, read_measurements
from poolwise.performance.profiles import read_profiles
from poolwise_agents.profiling.experiment import COLUMNS

RAW = catalog.FOLDER / "measurements" / "measured.csv"


def test_each_profile_is_the_fit_of_its_measurements() -> None:
    shipped = read_profiles(catalog.resolve("memory_profiles", "catalog:measured"))
    measured = read_measurements(RAW)
    assert {measurement.name for measurement in measured} == set(shipped)
    for measurement in measured:
        profile = fit(measurement).profile
        assert shipped[measurement.name].remote == pytest.approx(profile.remote)
        assert shipped[measurement.name].slowdown == pytest.approx(profile.slowdown, rel=1e-6, abs=1e-9)
        assert shipped[measurement.name].is_convex and measurement.remote.max() == pytest.approx(0.75)


def test_measurements_have_conditions_and_swapped_the_remote_part() -> None:
    conditions = json.loads(RAW.with_suffix(".json").read_text())
    with RAW.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert tuple(rows[0]) == tuple(COLUMNS)
    assert {row["workload"] for row in rows} == set(conditions)
    for about in conditions.values():
        assert about["page_in"]["us"]["p50"] > 0 and about["kernel"]
    for row in rows:
        swapped, remote = float(row["swapped_mib"]), float(row["remote"])
        assert swapped == 0 if remote == 0 else swapped > 1 or remote < 0.75  # file pages are evicted first, without swap
        assert float(row["seconds"]) == float(row["cpu_s"])
