import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Workload
from poolwise.traces.generators import configure, generate
from tests.helpers.machine_speed import slowness

NAMES = ("juwels_like", "lublin", "perlmutter_like")


def columns(workload):
    return {
        "id": workload.id,
        "submit": workload.submit,
        "duration": workload.duration,
        "requested": workload.requested,
        **workload.requests,
    }


def same(a, b):
    a, b = columns(a), columns(b)
    return a.keys() == b.keys() and all(a[key].tobytes() == b[key].tobytes() for key in a)


def test_generators_are_registered():
    assert set(NAMES) <= set(registry.names("generators"))


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**63 - 1), jobs=st.integers(1, 300), more=st.integers(0, 300))
@settings(max_examples=15, deadline=None)
def test_first_jobs_are_independent_of_job_count(name, seed, jobs, more):
    few, many = generate(name, jobs=jobs, seed=seed), generate(name, jobs=jobs + more, seed=seed)
    assert len(few) == jobs
    assert all((columns(many)[key][:jobs] == column).all() for key, column in columns(few).items())


@pytest.mark.parametrize("name", NAMES)
def test_seeds_differ_and_are_reproducible(name):
    first, again, other = (generate(name, jobs=200, seed=seed) for seed in (5, 5, 6))
    assert same(first, again)
    assert not (columns(first)["duration"] == columns(other)["duration"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_times_are_whole_seconds_from_first_job(name):
    workload = generate(name, jobs=500, seed=1)
    assert workload.submit[0] == 0
    for column in (workload.submit, workload.duration, workload.requested):
        assert not (column % 10**9).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [1.0, 1.7, 3])
def test_requested_time_follows_estimate_factor(name, factor):
    workload = generate(name, jobs=500, estimate_factor=factor)
    assert (workload.requested == np.ceil(workload.duration / 1e9 * factor) * 1e9).all()


@pytest.mark.parametrize("name", NAMES)
def test_hundred_thousand_jobs_take_seconds(name):
    begun = time.process_time()
    assert len(generate(name, jobs=100_000)) == 100_000
    assert time.process_time() - begun < 5.0 * slowness()  # measured: 0.1 to 0.4 s


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("key", "value"),
    [("jobs", 0), ("jobs", 10**9), ("nodes", 0), ("load", 0.0), ("load", float("nan")), ("estimate_factor", 0.99)],
)
def test_out_of_range_setting_is_reported(name, key, value):
    with pytest.raises(InputError) as problem:
        generate(name, **{key: value})
    assert problem.value.field == key
    assert problem.value.remedy


@pytest.mark.parametrize(("key", "value"), [("jobs", "many"), ("jobs", 1.5), ("jobs", True), ("load", "1"), ("seed", None)])
def test_wrong_type_of_setting_is_reported(key, value):
    with pytest.raises(InputError, match="lublin") as problem:
        configure("lublin", **{key: value})
    assert problem.value.field == key


def test_whole_number_is_accepted_for_float():
    assert same(generate("lublin", jobs=50, load=1), generate("lublin", jobs=50, load=1.0))


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'perlmutter_like'"):
        generate("perlmuter_like")
    with pytest.raises(UnknownNameError, match="did you mean 'jobs'"):
        generate("lublin", job=3)


@dataclass(frozen=True)
class Equal:
    """A user-defined generator."""

    jobs: int = 3
    nodes: int = 4

    def generate(self) -> Workload:
        return Workload.of(np.arange(self.jobs), np.full(self.jobs, 7))


def test_user_generator_is_found_by_file():
    assert generate(f"{__file__}:Equal", jobs=2).duration.tolist() == [7, 7]
    assert configure(f"{__file__}:Equal", nodes=9).nodes == 9
    with pytest.raises(UnknownNameError, match="did you mean 'nodes'"):
        configure(f"{__file__}:Equal", node=9)
