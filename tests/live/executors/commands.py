"""Commands whose cells real clusters compute while a worker is killed: `make test-live`."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.kept_trials import content, written
from tests.live.executors.clusters import ROOT, DaskProcesses, RayProcesses, kill_one, wait_until

COMMANDS = {
    "run": ("cerit-pools", "--set", "seeds.values=[0, 1, 2]"),
    "plan": ("gpu-share",),
    "reproduce": ("fair-memory", "--quick"),
}
ANSWERS = (
    "results.csv",
    "results.parquet",
    "candidates.csv",
    "candidates.parquet",
    "plan.json",
    "comparison.csv",
    "figures.csv",
)
"""Files in which neither a time nor a place stands."""


def command(name: str, out: Path, *where: str) -> subprocess.Popen[bytes]:
    """Give a command of Poolwise, as a process; what it says goes to OUT.log."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    words = [sys.executable, "-m", "poolwise", name, *COMMANDS[name], "--out", str(out), *where]
    with out.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, env=environment)


def kept_so_far(out: Path) -> int:
    """How many cells are kept; none in a file that has just been made."""
    try:
        return len(written(out)) if (out / "cells.sqlite").is_file() else 0
    except sqlite3.OperationalError:
        return 0


def answers(out: Path) -> dict[str, bytes]:
    """Every byte that must not depend on where cells are computed."""
    return content(out) | {name: (out / name).read_bytes() for name in ANSWERS if (out / name).is_file()}


@pytest.fixture(scope="module", params=COMMANDS)
def here(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """A command, and what it leaves behind on this computer."""
    out = tmp_path_factory.mktemp(request.param) / "here"
    assert command(request.param, out, "--jobs", "2").wait() == 0, out.with_suffix(".log").read_text()
    return request.param, answers(out)


@pytest.mark.parametrize("cluster", [DaskProcesses, RayProcesses])
def test_a_command_leaves_the_same_behind(
    here: tuple[str, dict[str, bytes]], cluster: type[DaskProcesses] | type[RayProcesses], tmp_path: Path
) -> None:
    name, expected = here
    killed, out, engine = list[int](), tmp_path / "there", cluster.__name__.removesuffix("Processes").lower()
    with cluster(tmp_path / "cluster") as there:
        client = command(name, out, "--executor", engine, "--executor-address", there.address)
        try:
            wait_until(lambda: kept_so_far(out) >= 5, 120)
            kill_one(there.processes(), killed, random.Random(1))
            assert client.poll() is None, "the worker was killed in the middle"
            assert client.wait() == 0, out.with_suffix(".log").read_text()
        finally:
            client.kill()
            client.wait()
    assert len(killed) == 1 and len(expected) > 10
    assert answers(out) == expected
