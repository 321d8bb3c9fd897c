"""Tests of memory use over time: from a file, drawn, and overestimated requests."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import MemoryUse, Workload
from poolwise.quantities import SECOND
from poolwise.traces.memory_use.phases import Phases
from poolwise.traces.memory_use.source import with_overestimates
from poolwise.traces.memory_use.table import UseTable


def jobs(memory: list[int], seconds: int = 100) -> Workload:
    n = len(memory)
    return Workload.of(np.arange(n), np.full(n, seconds * SECOND), requests={"memory": np.array(memory)})


@settings(max_examples=60, deadline=None)
@given(
    memory=st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
    phases=st.integers(1, 6),
    least=st.floats(0, 1),
    seed=st.integers(0, 5),
    seconds=st.sampled_from([1, 100]),
)
def test_phases_reach_the_peak_and_stay_within_bounds(
    memory: list[int], phases: int, least: float, seed: int, seconds: int
) -> None:
    workload = jobs(memory, seconds)
    source = Phases(seed=seed, phases=phases, least=least)
    use = source.applied(workload).memory_use
    assert use is not None and use.peak.tolist() == memory
    for job, most in enumerate(memory):
        work, used = use.steps(job)
        assert 1 <= len(work) <= phases and work[-1] < seconds * SECOND
        assert all(least * most - 1 <= value <= most for value in used.tolist())
    again = source.applied(jobs(memory[:1], seconds)).memory_use
    assert again is not None
    assert [part.tolist() for part in again.steps(0)] == [
        part.tolist() for part in use.steps(0)
    ]  # draws of a job do not depend on other jobs


def test_number_and_length_of_phases_match_settings() -> None:
    use = Phases(seed=1, phases=4, least=0.2).applied(jobs([1000] * 4000)).memory_use
    assert use is not None
    counts = np.bincount(np.diff(use.offset), minlength=5)[1:]
    assert (abs(counts / 4000 - 0.25) < 0.03).all()
    single_phase = Phases(phases=1).applied(jobs([1000] * 5)).memory_use
    assert single_phase is not None and single_phase.memory.tolist() == [1000] * 5
    others = use.memory[use.memory < 1000]
    assert others.min() >= 200 and others.mean() == pytest.approx(600, abs=15)


def test_share_of_users_overestimates() -> None:
    workload = jobs([100] * 2000)
    requested = with_overestimates(workload, 0, 0.6, 0.3)
    assert set(requested.tolist()) == {100, 160} and (requested == 160).mean() == pytest.approx(0.3, abs=0.04)
    applied = Phases(overestimate=0.6).applied(workload)
    assert set(applied.memory.tolist()) == {160} and applied.memory_use is not None
    assert set(applied.memory_use.peak.tolist()) == {100}
    assert with_overestimates(jobs([100]), 0, 0.1, 1.0).tolist() == [110]  # although 100 x 1.1 exceeds 110 in floating point


@pytest.mark.parametrize(
    "source",
    [Phases(phases=0), Phases(least=1.5), Phases(overestimate=-0.1), Phases(overestimating=2.0), Phases(least=float("nan"))],
)
def test_out_of_range_setting_is_rejected(source: Phases) -> None:
    with pytest.raises(InputError, match=r"must be between"):
        source.applied(jobs([1]))


def table(folder: Path, text: str, **settings: float) -> Workload:
    (folder / "use.csv").write_text(text)
    return UseTable(str(folder / "use.csv"), **settings).applied(jobs([100, 200]))


def test_table_steps_are_read(tmp_path: Path) -> None:
    workload = table(tmp_path, "job,seconds,memory\n1,0,50\n9,0,1\n1,2.5,90.5\n", overestimate=1.0)
    use = workload.memory_use
    assert use is not None
    assert [part.tolist() for part in use.steps(0)] == [[0, 2_500_000_000], [50, 91]]
    assert [part.tolist() for part in use.steps(1)] == [[0], [200]]
    assert workload.memory.tolist() == [200, 400]
    assert workload.notes == ("1 of 2 jobs has no rows in use.csv", "1 job of use.csv is not in the workload")


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("job,seconds\n1,0\n", 1, "memory"),
        ("job,seconds,memory\n1,5,3\n", 2, "seconds"),
        ("job,seconds,memory\n1,0,3\n1,0,4\n", 3, "seconds"),
        ("job,seconds,memory\n1,0,3\n1,x,4\n", 3, "seconds"),
        ("job,seconds,memory\n1,0,-3\n", 2, "memory"),
        ("job,seconds,memory\n1,0\n", 2, "memory"),
        ("job,seconds,memory\n1.5,0,3\n", 2, "job"),
        ("job,seconds,memory\nnan,0,3\n", 2, "job"),
    ],
)
def test_invalid_table_is_reported_with_line(tmp_path: Path, text: str, line: int, field: str) -> None:
    with pytest.raises(InputError) as raised:
        table(tmp_path, text)
    assert (raised.value.line, raised.value.field) == (line, field)


def test_missing_file_is_reported() -> None:
    with pytest.raises(InputError, match="no such file"):
        UseTable("nowhere.csv").applied(jobs([1]))


def test_invalid_steps_are_rejected() -> None:
    start = np.array([0, 1])
    for work, memory in (([5], [1]), ([0, 0], [1, 2]), ([0, 3, 2], [1, 2, 3])):
        with pytest.raises(ValueError, match="step"):
            MemoryUse(np.array([0, len(work)]), np.array(work), np.array(memory))
    with pytest.raises(InputError, match="negative"):
        MemoryUse(start, np.array([0]), np.array([-1]))
    with pytest.raises(ValueError, match="expected 2"):
        replace(jobs([1, 2]), memory_use=MemoryUse(start, np.array([0]), np.array([1])))
