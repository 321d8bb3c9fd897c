"""The platform wheel of `make dist`, installed into an empty environment with an empty cache, compiles nothing."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.machine_speed import slowness

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "simulate": ["simulate", "catalog:cerit-2013.swf.gz", "--machine", "cerit-racks", "--order", "fm", "--json"],
    "place": ["place", "catalog:batch-150x1200", "--json"],
}
ANSWER_S = 3.0
"""Seconds until the first answer of a command, on an idle core of the reference machine."""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command line of an environment that holds the platform wheel and its dependencies only."""
    wheels = list((ROOT / "dist").glob("*manylinux*.whl"))
    assert len(wheels) == 1, "run `make dist` first"
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheels[0])], check=True)
    return [str(folder / "bin" / "poolwise")]


@pytest.mark.parametrize("name", COMMANDS)
def test_first_command_compiles_nothing_and_answers_quickly(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([*command, "--version"], check=True, env=environment)  # reads the files of the installation once
    begun = time.perf_counter()
    done = subprocess.run([*command, *COMMANDS[name]], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    seconds = time.perf_counter() - begun
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "compil" not in done.stderr
    assert not list((tmp_path / "cache").rglob("*.nbc"))
    print(f"{name}: {seconds:.1f} s")
    assert seconds < ANSWER_S * slowness()


def test_study_compiles_nothing(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = [*command, "run", "cerit-pools", "--out", "results", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "compil" not in done.stderr
    assert not list((tmp_path / "cache").rglob("*.nbc"))
