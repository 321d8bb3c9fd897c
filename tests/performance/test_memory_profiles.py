"""Remote-memory model with measured profiles per job."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Schedule, Workload
from poolwise.performance.fitting import to_csv
from poolwise.performance.memory_profiles import MemoryProfiles
from poolwise.performance.profiles import Profile
from poolwise.performance.remote_memory import NEAR, RemoteMemory
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler

FLAT = Profile("flat", (0.0, 0.9), (0.0, 0.0))
STEEP = Profile("steep", (0.0, 0.25, 0.75), (0.0, 0.1, 1.1))
OWN = (FLAT, STEEP)


def workload(memory: list[int], names: list[str] | None = None, **columns: np.ndarray) -> Workload:
    n = len(memory)
    attributes = columns | ({} if names is None else {"profile": np.array(names, dtype=np.str_)})
    requests = {"nodes": np.ones(n, dtype=np.int64), "memory": np.array(memory)}
    return Workload.of(np.zeros(n, dtype=np.int64), np.full(n, 100 * SECOND), requests=requests, attributes=attributes)


def runs(load: Workload, model: RemoteMemory, scope: str = "rack", pool: int = 10_000) -> Schedule:
    """Run every job at once on its own node with 64 MiB; two racks have pools."""
    machine = Machine.of_racks(2, (len(load) + 1) // 2, local=64, pool=pool)
    return simulate(load, machine, ListScheduler(FCFS(), placement=RackPlacement(scope)), model=model).schedule


def seconds(schedule: Schedule) -> list[float]:
    return ((schedule.job_end - schedule.job_start) / SECOND).tolist()


def test_each_job_follows_its_profile_at_its_fraction_of_remote_memory() -> None:
    load = workload([64, 80, 128, 200, 128], ["steep", "steep", "steep", "steep", "flat"])
    # fractions 0, 0.2, 0.5, 0.68: slope 0.4 on the first piece, on the second 0.1 plus slope 2 beyond 0.25
    assert seconds(runs(load, MemoryProfiles(profiles=OWN))) == pytest.approx([100, 108, 160, 196, 100], abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 255), min_size=1, max_size=4), st.lists(st.integers(0, 3000), min_size=2, max_size=2))
def test_runtimes_are_exact_to_the_nanosecond(memory: list[int], rise: list[int]) -> None:
    profile = Profile("mine", (0.0, 0.5, 0.9), (0.0, rise[0] / 1000, (rise[0] + rise[1]) / 1000))
    schedule = runs(workload(memory, ["mine"] * len(memory)), MemoryProfiles(profiles=(profile,)))
    for ran, mib in zip((schedule.job_end - schedule.job_start).tolist(), memory, strict=True):
        share = max(mib - 64, 0) / mib
        assert ran == 100 * SECOND + math.ceil(100 * SECOND * float(profile.at(share)))


def test_kernel_as_a_profile_equals_the_drawn_kernel() -> None:
    memory = [100, 128, 300, 600]
    k = np.array([10, 3, 7, 9])
    kernels = tuple(Profile(f"k{i}", (0.0, 0.95), (0.0, NEAR[i] / 100 * 0.95)) for i in k.tolist())
    own = runs(workload(memory, [p.name for p in kernels]), MemoryProfiles(profiles=kernels))
    drawn = runs(workload(memory, u=(k + 0.5) / 11), RemoteMemory())
    assert seconds(own) == pytest.approx(seconds(drawn), abs=2e-9)


def test_jobs_without_a_profile_are_drawn_and_counted() -> None:
    memory = [128, 128, 500]
    with pytest.warns(UserWarning, match="2 of 3 jobs have no profile"):
        mixed = runs(workload(memory, ["steep", "", ""]), MemoryProfiles(seed=5, profiles=OWN))
    drawn = runs(workload(memory), RemoteMemory(seed=5))
    assert seconds(mixed)[1:] == seconds(drawn)[1:] and seconds(mixed)[0] == pytest.approx(160)
    assert seconds(runs(workload(memory), MemoryProfiles(seed=5))) == seconds(drawn), "no profiles, no change"


def test_default_applies_to_jobs_without_a_name() -> None:
    assert seconds(runs(workload([128, 128]), MemoryProfiles(profiles=OWN, default="steep"))) == pytest.approx([160, 160])
    load = workload([128, 128], ["flat", ""])
    assert seconds(runs(load, MemoryProfiles(profiles=OWN, default="steep"))) == pytest.approx([100, 160])


def test_slowdown_scales_with_the_latency() -> None:
    load = workload([128], ["steep"])
    assert seconds(runs(load, MemoryProfiles(profiles=OWN, near_ns=90))) == pytest.approx([130])
    assert seconds(runs(load, MemoryProfiles(profiles=OWN, measured_ns=360))) == pytest.approx([130])
    wide = workload([128, 128], ["steep", "steep"])
    far = runs(wide, MemoryProfiles(profiles=OWN, far_ns=270), "system", pool=48)  # 48 of 64 MiB in the own pool, 16 in both
    assert seconds(far)[0] == pytest.approx(100 * (1 + 0.6 * (0.75 + 0.25 * 1.5)))


def test_mean_estimate_is_the_mean_over_the_jobs() -> None:
    load = workload([128, 128, 128, 64], ["steep", "steep", "flat", "flat"])
    model = MemoryProfiles(profiles=OWN, expect="mean")
    assert seconds(runs(load, model)) == pytest.approx([130, 130, 130, 100])
    assert seconds(runs(load, MemoryProfiles(profiles=OWN, expect="none"))) == [100] * 4


def test_last_slope_is_extrapolated_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="'steep' was measured up to 0.75"):
        assert seconds(runs(workload([320], ["steep"]), MemoryProfiles(profiles=OWN))) == pytest.approx([220])


def test_profiles_are_read_from_the_file_of_a_fit(tmp_path: Path) -> None:
    file = tmp_path / "profiles.csv"
    file.write_text(to_csv(list(OWN)))
    load = workload([128, 128], ["steep", "flat"])
    assert seconds(runs(load, MemoryProfiles(profiles=str(file)))) == pytest.approx([160, 100])
    file.write_text(to_csv([FLAT, Profile("steep", (0.0, 0.5), (0.0, 0.25))]))
    assert seconds(runs(workload([128, 128], ["steep", "flat"]), MemoryProfiles(profiles=str(file)))) == pytest.approx(
        [125, 100]
    )


@pytest.mark.parametrize(
    ("load", "model", "says", "field"),
    [
        (workload([128]), MemoryProfiles(profiles=OWN), "no column 'profile'", "profile"),
        (workload([128], ["steeep"]), MemoryProfiles(profiles=OWN), "did you mean 'steep'", "profile"),
        (workload([128], ["flat"]), MemoryProfiles(profiles=OWN, column="u", default=""), "no column 'u'", "u"),
        (workload([128], u=np.zeros(1)), MemoryProfiles(profiles=OWN, column="u"), "contains numbers", "u"),
        (workload([128]), MemoryProfiles(profiles=OWN, default="fla"), "did you mean 'flat'", "default"),
        (workload([128]), MemoryProfiles(profiles="nowhere.csv", default="x"), "profile file not found", "profiles"),
    ],
)
def test_errors_name_the_column_and_the_remedy(load: Workload, model: MemoryProfiles, says: str, field: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        runs(load, model)
    assert caught.value.field == field and caught.value.remedy
    assert isinstance(caught.value, UnknownNameError) == ("did you mean" in says)


def test_latency_of_the_measurement_must_be_positive() -> None:
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        MemoryProfiles(measured_ns=0)


def test_model_has_no_kernel_and_the_error_states_it() -> None:
    load, machine = workload([128], ["steep"]), Machine.of_racks(1, 1, local=64, pool=64)
    result = simulate(load, machine, ListScheduler(), model=MemoryProfiles(profiles=OWN))
    assert result.engine == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="MemoryProfiles has no kernel"):
            simulate(load, machine, ListScheduler(), model=MemoryProfiles(profiles=OWN), engine="compiled")
