"""Record of live tests: `--live-results FILE` writes the outcome of each, with its duration and the versions of the servers."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from poolwise.version import __version__
from tests.live.kubernetes.control_plane import built_versions

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live-results", type=Path, help="JSON file to which the outcomes of live tests are added")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--live-results"):
        config.pluginmanager.register(LiveResults(Path(file)), "live-results")


class LiveResults:
    """Collects the outcomes of a session and adds them to a file; tests that did not run keep their last outcome.

    Attributes
    ----------
    tests : name of the test -> outcome (passed, failed or skipped), reason of a skip, seconds, date, release, versions, and the
        number of its latest runs in a row that passed
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tests: dict[str, dict[str, Any]] = {}
        self.ended: set[str] = set()  # tests whose last phase was reported; an interrupted one has no outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the outcome of one phase of a test; the worst counts, and the times of all phases are added."""
        entry = self.tests.setdefault(report.nodeid.removeprefix("tests/live/"), {"outcome": "passed", "seconds": 0.0})
        entry["seconds"] = round(entry["seconds"] + report.duration, 1)
        if report.failed or (report.skipped and entry["outcome"] == "passed"):
            entry["outcome"] = report.outcome
        if report.when == "teardown":
            self.ended.add(report.nodeid.removeprefix("tests/live/"))
        if report.skipped and isinstance(report.longrepr, tuple):
            entry["reason"] = report.longrepr[2].removeprefix("Skipped: ")

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        recorded = json.loads(self.file.read_text()) if self.file.is_file() else {}
        installed = installed_versions()
        self.tests = {name: entry for name, entry in self.tests.items() if name in self.ended}
        for name, entry in self.tests.items():
            entry["passed_in_a_row"] = passed_in_a_row(entry["outcome"], recorded.get(name, {}))
            entry |= {"date": time.strftime("%Y-%m-%d"), "release": __version__, "versions": dict(_relevant(name, installed))}
        self.file.write_text(json.dumps(dict(sorted((recorded | self.tests).items())), indent=1) + "\n")


def passed_in_a_row(outcome: str, previous: Mapping[str, Any]) -> int:
    """Return how many runs in a row passed, up to a run with this outcome; an earlier record without a count is one run."""
    if outcome != "passed":
        return 0
    return 1 + int(previous.get("passed_in_a_row", previous.get("outcome") == "passed"))


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, the kernel and of the servers that are installed."""
    installed = {"python": platform.python_version(), "linux": platform.release(), "dask": version("distributed")}
    if built := built_versions():
        installed["kubernetes"] = built[-1]
    if server := shutil.which("slurmctld"):
        installed["slurm"] = subprocess.run([server, "-V"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return installed


def _relevant(test: str, installed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the versions of Python, of Linux and of the servers that a test uses."""
    used = {"python", "linux"} | {name for name in ("slurm", "kubernetes") if name in test.partition("::")[0]}
    if test.startswith("executors/"):
        used.add("dask")
    yield from ((name, text) for name, text in installed.items() if name in used)
