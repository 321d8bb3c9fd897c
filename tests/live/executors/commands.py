"""Commands whose cells run on a real Dask cluster while a worker is killed: `make test-live`."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.kept_trials import content, written
from tests.live.executors.clusters import ROOT, DaskProcesses, kill_one, wait_until

COMMANDS = {
    "run": ("cerit-pools", "--set", "seeds.values=[0, 1, 2]"),
    "plan": ("gpu-share",),
    "search": ("cerit-order", "--set", "budget.candidates=48"),
    "reproduce": ("fair-memory", "--quick"),
}
OUTPUTS = (
    "results.csv",
    "results.parquet",
    "candidates.csv",
    "candidates.parquet",
    "plan.json",
    "orders.csv",
    "comparison.csv",
    "figures.csv",
)
"""Output files that contain neither times nor paths."""


def command(name: str, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a command of Poolwise as a process with its output in OUT.log."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    words = [sys.executable, "-m", "poolwise", name, *COMMANDS[name], "--out", str(out), *options]
    with out.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, env=environment)


def count_saved_cells(out: Path) -> int:
    """Return the number of saved cells; 0 if the file has just been created."""
    try:
        return len(written(out)) if (out / "cells.sqlite").is_file() else 0
    except sqlite3.OperationalError:
        return 0


def outputs(out: Path) -> dict[str, bytes]:
    """Return all output that must not depend on where cells run."""
    return content(out) | {name: (out / name).read_bytes() for name in OUTPUTS if (out / name).is_file()}


@pytest.fixture(scope="module", params=COMMANDS)
def local(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """A command and its output when it runs on this computer."""
    out = tmp_path_factory.mktemp(request.param) / "here"
    assert command(request.param, out, "--jobs", "2").wait() == 0, out.with_suffix(".log").read_text()
    return request.param, outputs(out)


def test_command_output_on_a_cluster_equals_local_output(local: tuple[str, dict[str, bytes]], tmp_path: Path) -> None:
    name, expected = local
    killed, out = list[int](), tmp_path / "there"
    with DaskProcesses(tmp_path / "cluster") as remote:
        client = command(name, out, "--executor", "dask", "--executor-address", remote.address)
        try:
            wait_until(lambda: count_saved_cells(out) >= 5, 120)
            kill_one(remote.processes(), killed, random.Random(1))
            assert client.poll() is None, "the command ended before the worker was killed"
            assert client.wait() == 0, out.with_suffix(".log").read_text()
        finally:
            client.kill()
            client.wait()
    assert len(killed) == 1 and len(expected) > 10
    assert outputs(out) == expected
