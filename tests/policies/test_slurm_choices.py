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
SLOW = ("maintenance-of-all-nodes", "reservations-in-overlapping-partitions")


@pytest.mark.parametrize("name", [pytest.param(day, marks=[pytest.mark.long] * (day in SLOW)) for day in DAYS])
def test_imported_configuration_with_slurms_own_placement_repeats_the_day(name: str, tmp_path: Path) -> None:
    """The import writes the placement, but with `gpu_weights = false` on clusters with GPUs."""
    placement = "topology_none" if "Gres=gpu" in (FOLDER / name / "slurm.conf").read_text() else ""
    comparison = Recording.read(FOLDER / name).replay(tmp_path / "out", placement)
    assert (comparison.same_starts, comparison.same_nodes, comparison.same_stops) == (1.0, 1.0, 1.0)
    assert abs(comparison.wait_deviation) < 0.002


def test_placement_without_weights_of_gpus_is_closer_to_the_day_than_first_fit(tmp_path: Path) -> None:
    day = Recording.read(FOLDER / "mixed-nodes-4")
    imported, first = day.replay(tmp_path / "out"), day.replay(tmp_path / "first", "first_fit")
    assert 0.8 < imported.same_starts < 1 and first.same_starts < imported.same_starts - 0.08
    assert imported.same_nodes > 0.5 and first.same_nodes < 0.2
    assert abs(imported.wait_deviation) < 0.03 and first.wait_deviation < -0.2


@pytest.mark.parametrize("kind", ["", "qos-"])
@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_without_preemption_the_replay_differs(mode: str, kind: str, tmp_path: Path) -> None:
    day = Recording.read(FOLDER / f"{kind}preemption-by-{mode.lower()}")
    assert (day.stopped >= 0).any()
    comparison = day.replay(tmp_path / "out", "topology_none", {f"PreemptMode={mode}": "PreemptMode=OFF"})
    assert comparison.same_stops == 0.0 and comparison.same_nodes < 0.7


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("weights", {r" Weight=\d+": ""}),
        ("tiers", {"PriorityTier=10": "PriorityTier=1"}),
        ("licenses", {r"(?m)^Licenses=.*": ""}),
        ("bf_max_job_assoc", {",bf_max_job_assoc=1": ""}),
        ("bf_max_job_assoc", {"bf_max_job_assoc=1": "bf_max_job_user=1"}),
        ("bf_min_prio_reserve", {",bf_min_prio_reserve=500": ""}),
        ("bf_min_prio_reserve-overlapping", {",bf_min_prio_reserve=500": ""}),
        ("bf_job_part_count_reserve", {",bf_job_part_count_reserve=1": ""}),
        ("bf_busy_nodes", {",bf_busy_nodes": ""}),
        ("bf_max_job_part", {",bf_max_job_part=1": ""}),
        ("priority-weight-tres", {"PriorityWeightTRES=CPU=10000": "PriorityWeightTRES=CPU=0"}),
        ("priority-weight-gpus", {"GRES/gpu=2000": "GRES/gpu=0"}),
        ("priority-weight-licenses", {"license/matlab=1000": "license/matlab=0"}),
        ("whole-nodes-overlapping", {"SelectType=select/linear": "SelectType=select/cons_tres"}),
        ("leaf-switches", {"topology/tree": "topology/none"}),
        ("leaf-switches-in-another-order", {"topology/tree": "topology/none"}),
        ("leaf-switches-with-whole-nodes", {"topology/tree": "topology/none"}),
        ("limits-of-associations", {"AccountingStorageEnforce=limits": "AccountingStorageEnforce=associations"}),
    ],
)
def test_without_the_setting_the_replay_differs(name: str, without: dict[str, str], tmp_path: Path) -> None:
    comparison = Recording.read(FOLDER / name).replay(tmp_path / "out", "topology_none", without)
    assert comparison.same_starts < 0.9 or comparison.same_nodes < 0.5


@pytest.mark.parametrize("name", ["heads-under-sched-builtin", "heads-of-disjoint-partitions-under-sched-builtin"])
def test_with_one_head_for_all_partitions_the_replay_differs(name: str, tmp_path: Path) -> None:
    comparison = Recording.read(FOLDER / name).replay(tmp_path / "out", "topology_none", heads="machine")
    assert comparison.same_starts < 0.5 and comparison.wait_deviation > 0.5


@pytest.mark.parametrize("name", [name for name in DAYS if (FOLDER / name / "reservations.txt").exists()])
def test_without_the_reservations_the_replay_differs(name: str, tmp_path: Path) -> None:
    comparison = Recording.read(FOLDER / name).replay(tmp_path / "out", "topology_none", reserves=False)
    assert comparison.same_starts < 0.9 and comparison.wait_deviation < -0.5


def test_interval_of_the_main_scheduler_gives_the_times_of_its_passes(tmp_path: Path) -> None:
    day = Recording.read(FOLDER / "sched_min_interval")
    imported = day.replay(tmp_path / "out", passes=False)
    assert imported.same_starts == 1.0 and abs(imported.wait_deviation) < 0.002
    comparison = day.replay(tmp_path / "without", without={",sched_min_interval=20000000": ""}, passes=False)
    assert comparison.same_starts < 0.1 and comparison.wait_deviation < -0.8
