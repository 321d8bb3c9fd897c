"""The tables of live tests, and the record from which it is made."""

import json
import re
import subprocess
from datetime import date
from pathlib import Path

import pytest

from docs.live_results import RESULTS, table
from poolwise.version import __version__
from tests.live.conftest import LiveResults, passed_in_a_row

LIVE = Path(__file__).parents[1] / "live"
ENTRY = {"outcome": "passed", "seconds": 12.5, "date": "2026-11-27", "release": __version__, "versions": {"slurm": "22.05.8"}}


@pytest.mark.parametrize(
    ("change", "today", "old"),
    [({}, "2026-12-01", False), ({}, "2027-01-01", True), ({"release": "0.0.9"}, "2026-11-27", True)],
)
def test_outcomes_of_last_month_or_another_release_are_marked(change: dict[str, str], today: str, old: bool) -> None:
    text = table({"slurm/live.py::test_jobs_start[1]": ENTRY | change}, date.fromisoformat(today))
    head, *_, row = text.splitlines()
    assert ("(old)" in row) == old
    assert row.startswith("| jobs start[1] | passed | 1 | 12.5 |") and head.startswith("`slurm/live.py` (release ")
    assert "Slurm 22.05.8" in head


def test_reason_of_a_skip_is_in_the_table() -> None:
    rows = table({"a": ENTRY | {"outcome": "skipped", "reason": "no GPU"}}, date(2026, 11, 27))
    assert "| skipped: no GPU |" in rows


@pytest.mark.parametrize(
    ("outcome", "previous", "count"),
    [
        ("passed", {}, 1),
        ("passed", ENTRY, 2),
        ("passed", ENTRY | {"passed_in_a_row": 4}, 5),
        ("passed", {"outcome": "skipped"}, 1),
        ("failed", ENTRY | {"passed_in_a_row": 4}, 0),
        ("skipped", ENTRY | {"passed_in_a_row": 4}, 0),
    ],
)
def test_runs_that_passed_in_a_row_are_counted(outcome: str, previous: dict[str, object], count: int) -> None:
    assert passed_in_a_row(outcome, previous) == count


def report(name: str, when: str) -> pytest.TestReport:
    """Return the report of a phase of a live test that passed."""
    return pytest.TestReport(f"tests/live/{name}", ("", None, ""), {}, "passed", None, when, duration=0.5)  # type: ignore[arg-type]


def test_interrupted_tests_are_not_recorded(tmp_path: Path) -> None:
    results = LiveResults(tmp_path / "live.json")
    for name, phases in (("slurm/live.py::ended", ("setup", "call", "teardown")), ("slurm/live.py::stopped", ("setup",))):
        for when in phases:
            results.pytest_runtest_logreport(report(name, when))
    results.pytest_sessionfinish()
    (name, entry), *others = json.loads(results.file.read_text()).items()
    assert others == [] and name == "slurm/live.py::ended"
    assert (entry["outcome"], entry["passed_in_a_row"], entry["seconds"]) == ("passed", 1, 1.5)


def test_recorded_tests_exist() -> None:
    for name in json.loads(RESULTS.read_text()):
        file, _, function = name.partition("::")
        assert f"def {function.partition('[')[0]}(" in (LIVE / file).read_text(), name


def test_all_live_tests_run_in_make_test_live() -> None:
    commands = subprocess.run(
        ["make", "-n", "test-live"], cwd=LIVE.parents[1], capture_output=True, text=True, check=True
    ).stdout
    files = [path for path in LIVE.rglob("*.py") if re.search(r"^def test_", path.read_text("utf-8"), re.MULTILINE)]
    expected = {str(path.relative_to(LIVE.parents[1])) for path in files if not path.name.startswith("test_")}
    assert {*re.findall(r"tests/live/\S+\.py", commands)} == expected
