"""Against a real Slurm, started here: `make test-live`. What it decides now is held against the order and the backfill."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.slurm_day import RecordedDay
from tests.helpers.slurm_priorities import RecordedPriorities
from tests.live.slurm import day, priorities
from tests.live.slurm.cluster import why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "a Slurm is installed")


def test_every_number_that_sprio_prints(tmp_path: Path) -> None:
    """Of classic fair share the dump has six digits only: there a factor, and the sum, may be cut one lower or higher."""
    priorities.record(tmp_path)
    for case in priorities.CASES:
        found = RecordedPriorities.read(tmp_path / case)
        assert len(found.printed) == len(priorities.WAITING)
        loose = ("fair_share", "priority") if case == "classic-small-first" else ()
        assert [text for text in found.differences() if not any(f", {name}:" in text for name in loose)] == []
        for name in loose:
            assert all(abs(int(row[name]) - int(found.ours[job][name])) <= 1 for job, row in found.printed.items())


@pytest.mark.skipif(not os.environ.get("POOLWISE_LIVE_DAY"), reason="takes seven minutes: POOLWISE_LIVE_DAY=1 asks for it")
def test_a_short_day(tmp_path: Path) -> None:
    """All priorities at all recalculations, and what starts when, but for looks that found nodes completing still."""
    day.record(tmp_path, 300)
    found = RecordedDay.read(tmp_path)
    for instant, printed in found.priorities.items():
        ours = found.priorities_at(instant, [*printed])
        assert all(abs(ours[job] - value) <= 18 for job, value in printed.items())  # a second of age: the log has milliseconds
    for name, day_ in (("as recorded", found), ("told when nodes came free", found.with_freed_nodes())):
        late = np.abs(day_.late_ms(day_.replay()))
        print(f"{len(late)} jobs, {name}: {np.mean(late <= 10_000):.0%} of the starts within one backfill interval")
    assert np.mean(late <= 10_000) >= 0.95
