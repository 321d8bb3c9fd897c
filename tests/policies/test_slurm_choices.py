"""Recorded days of a real Slurm that differ in one setting, and their replays (`tests/live/slurm/choices.py`).

Only days that agree completely are kept: they show that nothing has changed, not how often replays agree, which is on the page
`how-to/start-from-slurm`.
"""

from pathlib import Path

import pytest

from tests.helpers.data import DATA
from tests.helpers.slurm_choices import Recording

FOLDER = DATA / "slurm-choices"
DAYS = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", DAYS)
def test_imported_configuration_with_slurms_own_placement_repeats_the_day(name: str, tmp_path: Path) -> None:
    placement = "" if name == "least-loaded-nodes" else "topology_none"
    found = Recording.read(FOLDER / name).replay(tmp_path / "out", placement)
    assert (found.same_starts, found.same_nodes, found.same_stops) == (1.0, 1.0, 1.0)
    assert abs(found.wait_deviation) < 0.001


@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_without_preemption_the_replay_differs(mode: str, tmp_path: Path) -> None:
    day = Recording.read(FOLDER / f"preemption-by-{mode.lower()}")
    assert (day.stopped >= 0).any()
    found = day.replay(tmp_path / "out", "topology_none", {f"PreemptMode={mode}": "PreemptMode=OFF"})
    assert found.same_stops == 0.0 and found.same_nodes < 0.7


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("weights", {r" Weight=\d+": ""}),
        ("tiers", {"PriorityTier=10": "PriorityTier=1"}),
        ("licenses", {r"(?m)^Licenses=.*": ""}),
    ],
)
def test_without_the_setting_the_replay_differs(name: str, without: dict[str, str], tmp_path: Path) -> None:
    found = Recording.read(FOLDER / name).replay(tmp_path / "out", "topology_none", without)
    assert found.same_starts < 0.9 or found.same_nodes < 0.5
