"""Comparison of the multifactor order and the backfill with a real Slurm started here: `make test-live`."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.slurm_day import RecordedDay
from tests.helpers.slurm_priorities import RecordedPriorities
from tests.live.slurm import day, priorities
from tests.live.slurm.cluster import missing_programs

pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=missing_programs() or "Slurm is installed")


def test_priorities_equal_those_of_sprio(tmp_path: Path) -> None:
    """Classic fair share is dumped with six digits only; there a factor, and the sum, may differ by one."""
    priorities.record(tmp_path)
    for case in priorities.CASES:
        recording = RecordedPriorities.read(tmp_path / case)
        assert len(recording.printed) == len(priorities.WAITING)
        loose = ("fair_share", "priority") if case == "classic-small-first" else ()
        assert [text for text in recording.differences() if not any(f", {name}:" in text for name in loose)] == []
        for name in loose:
            assert all(abs(int(row[name]) - int(recording.ours[job][name])) <= 1 for job, row in recording.printed.items())


def test_priorities_with_weights_of_gpus_and_licenses_equal_those_of_sprio(tmp_path: Path) -> None:
    priorities.record_gpus(tmp_path)
    recording = RecordedPriorities.read(tmp_path / priorities.GPUS)
    assert len(recording.printed) == len(priorities.WITH_GPUS)
    assert recording.differences() == []


@pytest.mark.skipif(not os.environ.get("POOLWISE_LIVE_DAY"), reason="takes seven minutes; set POOLWISE_LIVE_DAY=1 to run it")
def test_replay_of_a_short_day_equals_slurm(tmp_path: Path) -> None:
    """Priorities agree at every recalculation; start times agree except where nodes were still completing."""
    day.record(tmp_path, 300)
    recorded_day = RecordedDay.read(tmp_path)
    for instant, printed in recorded_day.priorities.items():
        ours = recorded_day.priorities_at(instant, [*printed])
        assert all(abs(ours[job] - value) <= 18 for job, value in printed.items())  # a second of age: the log has milliseconds
    for name, day_ in (
        ("as recorded", recorded_day),
        ("with the times at which nodes became free", recorded_day.with_freed_nodes()),
    ):
        late = np.abs(day_.late_ms(day_.replay()))
        print(f"{len(late)} jobs, {name}: {np.mean(late <= 10_000):.0%} of the starts within one backfill interval")
    assert np.mean(late <= 10_000) >= 0.95
